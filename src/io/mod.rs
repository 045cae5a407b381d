//! File formats: readers and writers, without a device.
//!
//! [`matrix_market`] reads and writes sparse and dense matrices as text, plain or gzipped. [`idx`] reads images and
//! labels of the MNIST family. [`WholeFile`] writes a file that appears only when complete.

#[cfg(any(feature = "io", feature = "disk-cache"))]
mod aside;
#[cfg(feature = "io")]
pub mod idx;
#[cfg(feature = "io")]
pub mod matrix_market;
#[cfg(feature = "io")]
mod shown;
#[cfg(any(feature = "io", feature = "sparse"))]
pub(crate) mod triplets;
#[cfg(feature = "io")]
mod whole_file;

#[cfg(feature = "disk-cache")]
pub(crate) use aside::Aside;
#[cfg(feature = "io")]
pub use shown::shown;
#[cfg(feature = "io")]
pub use whole_file::{WholeFile, check_outputs, write_aside};

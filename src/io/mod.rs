//! Files of the field: parsers and writers, no device.
//!
//! [`matrix_market`] reads and writes sparse and dense matrices as text, also compressed; [`idx`] reads images and
//! labels of the MNIST family; [`WholeFile`] writes a file that appears when it is whole.

mod aside;
pub mod idx;
pub mod matrix_market;
mod shown;
mod whole_file;

pub(crate) use aside::Aside;
pub use shown::shown;
pub use whole_file::{WholeFile, check_outputs, write_aside};

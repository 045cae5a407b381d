//! What is kept between runs of a program: files with the feature `disk-cache`, nothing without it.

#[cfg(feature = "disk-cache")]
mod disk;
#[cfg(not(feature = "disk-cache"))]
mod nowhere;

#[cfg(feature = "disk-cache")]
pub(crate) use disk::Store;
#[cfg(feature = "disk-cache")]
pub use disk::{CacheDir, CacheReport};
#[cfg(not(feature = "disk-cache"))]
pub(crate) use nowhere::NoStore as Store;

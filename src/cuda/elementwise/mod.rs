//! Lowerings of functions of elements.

mod zip;

pub(super) use zip::samples;

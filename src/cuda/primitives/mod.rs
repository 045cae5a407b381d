//! Lowerings of the primitives.

mod scan;

pub(super) use scan::samples;

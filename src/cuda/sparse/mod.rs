//! Programs of sparse systems.

pub(crate) mod cg_stream;

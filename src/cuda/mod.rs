//! probe
#[allow(missing_docs)]
pub mod interop;

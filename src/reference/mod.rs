//! Sequential twins of the ops, short enough to be checked by eye: floats are computed in `f64` and
//! rounded once at the end, integers exactly and wrapped at the end.

mod axpy;
mod map;
mod number;
mod reduce;
mod zip;

pub use axpy::axpy;
pub use map::map;
pub use number::Number;
pub use reduce::{reduce, reduce_bound, reduce_with};
pub use zip::zip;

//! Device-wide primitives: what CUB is to CUDA.
//!
//! | want | take |
//! |---|---|
//! | one number from many, or one a row | [`Reduce`] with [`Sum`], [`Prod`], [`Min`], [`Max`] |
//! | where the extreme is | [`Reduce`] with [`ArgMin`], [`ArgMax`] |
//! | how many elements fall into each bin | [`Histogram`] |
//! | another associative operator | [`Reduce`] with [`CustomOp`] |

mod histogram;
mod operator;
mod reduce;

pub(crate) use histogram::Edges;
pub use histogram::Histogram;
pub use operator::{ArgMax, ArgMin, CustomOp, Max, Min, Operator, Prod, Reducer, Sum};
pub use reduce::Reduce;

use crate::program::OpInfo;

/// The ops of this family.
pub const OPS: &[OpInfo] = &[reduce::INFO, histogram::INFO];

//! Device-wide primitives: what CUB is to CUDA.
//!
//! | want | take |
//! |---|---|
//! | one number from many, or one a row | [`Reduce`] with [`Sum`], [`Prod`], [`Min`], [`Max`] |
//! | where the extreme is | [`Reduce`] with [`ArgMin`], [`ArgMax`] |
//! | another associative operator | [`Reduce`] with [`CustomOp`] |
//! | all prefixes, of one array or of each row | [`Scan`] with [`Sum`], [`Prod`], [`Min`], [`Max`], [`CustomOp`] |

mod operator;
mod reduce;
mod scan;

pub use operator::{ArgMax, ArgMin, CustomOp, Max, Min, Operator, Prod, Reducer, Sum};
pub use reduce::Reduce;
pub use scan::Scan;

use crate::program::OpInfo;

/// The ops of this family.
pub const OPS: &[OpInfo] = &[reduce::INFO, scan::INFO];

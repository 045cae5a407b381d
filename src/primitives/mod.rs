//! Device-wide primitives: what CUB is to CUDA.
//!
//! | want | take |
//! |---|---|
//! | one number from many, or one a row | [`Reduce`] with [`Sum`], [`Prod`], [`Min`], [`Max`] |
//! | where the extreme is | [`Reduce`] with [`ArgMin`], [`ArgMax`] |
//! | another associative operator | [`Reduce`] with [`CustomOp`] |
//! | keys in order, alone or with values | [`RadixSort`] |

mod operator;
mod reduce;
mod sort;

pub use operator::{ArgMax, ArgMin, CustomOp, Max, Min, Operator, Prod, Reducer, Sum};
pub use reduce::Reduce;
pub use sort::{Counted, InPlace, Keys, Pairs, RadixSort, SortForm};

use crate::program::OpInfo;

/// The ops of this family.
pub const OPS: &[OpInfo] = &[reduce::INFO, sort::INFO];

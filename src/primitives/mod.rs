//! Device-wide primitives: what CUB is to CUDA.
//!
//! | want | take |
//! |---|---|
//! | one number from many, or one a row | [`Reduce`] with [`Sum`], [`Prod`], [`Min`], [`Max`] |
//! | where the extreme is | [`Reduce`] with [`ArgMin`], [`ArgMax`] |
//! | another associative operator | [`Reduce`] with [`CustomOp`] |
//! | all prefixes, of one array or of each row | [`Scan`] with [`Sum`], [`Prod`], [`Min`], [`Max`], [`CustomOp`] |
//! | prefixes that begin anew at flags | [`SegmentedScan`] |

mod operator;
mod reduce;
mod scan;
mod segmented_scan;

pub use operator::{ArgMax, ArgMin, CustomOp, Max, Min, Operator, Prod, Reducer, Sum};
pub use reduce::Reduce;
pub use scan::Scan;
pub use segmented_scan::SegmentedScan;

use crate::program::OpInfo;

/// The ops of this family.
pub const OPS: &[OpInfo] = &[reduce::INFO, scan::INFO, segmented_scan::INFO];

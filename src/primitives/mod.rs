//! Device-wide primitives: what CUB is to CUDA.
//!
//! | want | take |
//! |---|---|
//! | one number from many, or one a row | [`Reduce`] with [`Sum`], [`Prod`], [`Min`], [`Max`] |
//! | where the extreme is | [`Reduce`] with [`ArgMin`], [`ArgMax`] |
//! | how many elements fall into each bin | [`Histogram`] |
//! | another associative operator | [`Reduce`] with [`CustomOp`] |
//! | all prefixes, of one array or of each row | [`Scan`] with [`Sum`], [`Prod`], [`Min`], [`Max`], [`CustomOp`] |
//! | prefixes that begin anew at flags | [`SegmentedScan`] |
//! | some of the elements, close together | [`Select`]; [`Partition`] keeps the others behind them |
//! | runs of equal neighbours | [`Unique`]; with their lengths [`RunLength`] |
//! | one number for each run of equal keys | [`ReduceByKey`]; for each segment by flags [`SegmentedReduce`] |
//! | keys in order, alone or with values | [`RadixSort`] |
//! | the few largest or smallest, and where they are | [`TopK`] |
//!
//! Counts of results stay on the device. [`RadixSort::counted`] takes one, and so does a kernel of one's own:
//! [`OwnKernel::record_counted`](crate::gpu::OwnKernel::record_counted).

mod compact;
mod histogram;
mod lookback;
mod operator;
mod partition;
mod reduce;
mod reduce_by_key;
mod run_length;
mod runs;
mod scan;
mod segmented_reduce;
mod segmented_scan;
mod select;
mod sort;
mod top_k;
mod unique;

pub use compact::Predicate;
pub(crate) use histogram::Edges;
pub use histogram::Histogram;
pub(crate) use lookback::clear_words;
pub use operator::{ArgMax, ArgMin, CustomOp, Max, Min, Operator, Prod, Reducer, Sum};
pub use partition::Partition;
pub use reduce::Reduce;
pub use reduce_by_key::ReduceByKey;
pub use run_length::RunLength;
pub use scan::Scan;
pub use segmented_reduce::SegmentedReduce;
pub use segmented_scan::SegmentedScan;
pub use select::Select;
pub use sort::RadixSort;
pub use top_k::TopK;
pub use unique::Unique;

use crate::element::DType;
use crate::program::Operation;

/// What scans and compactions take.
const DTYPES: [DType; 4] = [DType::F32, DType::F16, DType::I32, DType::U32];
/// What sorts and reductions of runs take.
const WORDS: [DType; 3] = [DType::F32, DType::I32, DType::U32];

/// The ops of this family.
pub const OPS: &[Operation] = &[
    reduce::INFO,
    scan::INFO,
    segmented_scan::INFO,
    histogram::INFO,
    select::INFO,
    partition::INFO,
    unique::INFO,
    run_length::INFO,
    reduce_by_key::INFO,
    segmented_reduce::INFO,
    sort::INFO,
    top_k::INFO,
];

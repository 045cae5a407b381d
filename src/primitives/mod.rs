//! Device-wide primitives, as CUB has them for CUDA.
//!
//! | to compute | use |
//! |---|---|
//! | one number from an array, or one from each row | [`Reduce`] with [`Sum`], [`Prod`], [`Min`], [`Max`] |
//! | the position of the minimum or maximum | [`Reduce`] with [`ArgMin`], [`ArgMax`] |
//! | the number of elements in each bin, or the sum of their weights; of points in bins of two axes; of interleaved channels | [`Histogram`], [`WeightedHistogram`]; [`Histogram2d`]; [`HistogramChannels`] |
//! | a reduction by your own associative operator | [`Reduce`] with [`CustomOp`] |
//! | several numbers in one pass: [`MinMax`], [`MeanVariance`], [`LogSumExp`], sums of 64 bits ([`Sum64`]), a linear recurrence ([`Affine`]) or your own ([`StateOp`]) | any op that takes an operator |
//! | all prefixes of an array or of each row | [`Scan`] with [`Sum`], [`Prod`], [`Min`], [`Max`], [`CustomOp`] |
//! | prefixes that restart at flags, where a key changes, or at offsets | [`SegmentedScan`], [`ScanByKey`], [`ScanOffsets`] |
//! | the elements that a flag or predicate keeps | [`Select`]; [`Partition`] puts the others behind them |
//! | one element of each run of equal neighbours | [`Unique`]; with the lengths of runs [`RunLength`]; with the first value of a key [`UniqueByKey`] |
//! | one number for each run of equal keys | [`ReduceByKey`]; for each segment between flags [`SegmentedReduce`], between offsets [`ReduceOffsets`] |
//! | keys in order, alone or with values; the order itself; whether they are in order | [`RadixSort`], by your own comparison [`MergeSort`]; [`Argsort`]; [`IsSorted`] |
//! | the keys of each segment in order | [`SegmentedSort`] |
//! | the `k` largest or smallest elements and their positions | [`TopK`]; of each row [`TopKRows`]; the element at a rank [`NthElement`]; quantiles [`Quantile`] |
//! | rows read, written or added by index | [`Gather`], [`Scatter`] |
//! | two sorted arrays in one, alone or with values | [`Merge`] |
//! | sorted arrays united, or the elements that both have, or one lacks | [`SetUnion`], [`SetIntersection`], [`SetDifference`] |
//! | places of needles in sorted elements | [`LowerBound`], [`UpperBound`] |
//! | where a predicate first holds, or two arrays first differ, and how often | [`Find`] |
//! | BLAS level 1 | [`Dot`], [`Nrm2`], [`Asum`], [`Iamax`], [`Iamin`] |
//! | differences of neighbours; elements reversed or rotated | [`AdjacentDifference`], [`Reverse`], [`Rotate`] |
//! | random numbers; a random order | [`Random`] with a [`Distribution`]; [`Shuffle`] |
//! | work lists, level by level, without a count on the host | [`Frontier`] |
//! | a tree over points, or a grid that is fine where a field varies | [`Quadtree`], [`AdaptiveGrid`] |
//!
//! The number of results stays on the device. [`RadixSort::counted`] and [`Select::counted`] read it there, and so
//! does your own kernel: [`OwnKernel::record_counted`](crate::gpu::OwnKernel::record_counted).

mod adaptive_grid;
mod adjacent_difference;
mod argsort;
mod asum;
mod categorical;
mod compact;
mod dot;
mod find;
mod frontier;
mod gather;
mod histogram;
mod histogram_2d;
mod histogram_channels;
mod iamax;
mod iamin;
mod is_sorted;
mod lookback;
mod lower_bound;
mod made;
pub(crate) mod merge;
mod merge_sort;
mod nrm2;
mod nth_element;
mod operator;
mod partition;
pub(crate) mod pass_sums;
mod quadtree;
mod quantile;
pub(crate) mod random;
mod reduce;
mod reduce_by_key;
mod reduce_offsets;
mod reverse;
mod rotate;
mod run_length;
mod runs;
mod scan;
mod scan_by_key;
mod scan_offsets;
mod scatter;
mod search;
mod segmented_reduce;
mod segmented_scan;
mod segmented_sort;
mod select;
mod select_columns;
mod set_difference;
mod set_intersection;
mod set_union;
mod sets;
mod shuffle;
mod sort;
pub(crate) mod sort_samples;
mod split_parts;
mod state;
mod top_k;
mod top_k_rows;
mod unique;
mod unique_by_key;
mod upper_bound;
mod values;
mod vectors;
mod weighted_histogram;

pub use adaptive_grid::AdaptiveGrid;
pub use adjacent_difference::AdjacentDifference;
pub use argsort::Argsort;
pub use asum::Asum;
pub use categorical::Categorical;
pub(crate) use categorical::alias_table;
pub use compact::Predicate;
pub use dot::Dot;
pub use find::Find;
pub use frontier::Frontier;
pub use gather::Gather;
pub(crate) use histogram::Edges;
pub use histogram::Histogram;
pub use histogram_2d::Histogram2d;
pub use histogram_channels::HistogramChannels;
pub use iamax::Iamax;
pub use iamin::Iamin;
pub use is_sorted::IsSorted;
pub(crate) use lookback::clear_words;
pub use lower_bound::LowerBound;
pub use merge::Merge;
pub use merge_sort::MergeSort;
pub use nrm2::Nrm2;
pub use nth_element::NthElement;
pub use operator::{ArgMax, ArgMin, CustomOp, Max, Min, Operator, Prod, Reducer, Sum};
pub use partition::Partition;
pub use quadtree::Quadtree;
pub use quantile::Quantile;
pub(crate) use random::poisson_table;
pub use random::{Distribution, Random};
pub use reduce::Reduce;
pub use reduce_by_key::ReduceByKey;
pub use reduce_offsets::ReduceOffsets;
pub use reverse::Reverse;
pub use rotate::Rotate;
pub use run_length::RunLength;
pub use scan::Scan;
pub use scan_by_key::ScanByKey;
pub use scan_offsets::ScanOffsets;
pub use scatter::{Scatter, ScatterOp};
pub use segmented_reduce::SegmentedReduce;
pub use segmented_scan::SegmentedScan;
pub use segmented_sort::SegmentedSort;
pub use select::Select;
pub use select_columns::SelectColumns;
pub use set_difference::SetDifference;
pub use set_intersection::SetIntersection;
pub use set_union::SetUnion;
pub use shuffle::Shuffle;
pub use sort::{KeyBits, RadixSort};
pub use split_parts::SplitParts;
pub(crate) use state::Monoid;
pub use state::{Affine, LogSumExp, MeanVariance, MinMax, StateOp, Sum64};
pub use top_k::TopK;
pub use top_k_rows::TopKRows;
pub use unique::Unique;
pub use unique_by_key::UniqueByKey;
pub use upper_bound::UpperBound;
pub use weighted_histogram::WeightedHistogram;

use crate::program::prelude::*;

/// Element types of scans and compactions.
const DTYPES: [DType; 4] = [DType::F32, DType::F16, DType::I32, DType::U32];
/// Element types of top-k and of reductions of runs.
const WORDS: [DType; 3] = [DType::F32, DType::I32, DType::U32];

/// The ops of this family.
pub const OPS: &[Operation] = &[
    reduce::INFO,
    scan::INFO,
    segmented_scan::INFO,
    scan_by_key::INFO,
    scan_offsets::INFO,
    reduce_offsets::INFO,
    histogram::INFO,
    histogram_2d::INFO,
    histogram_channels::INFO,
    weighted_histogram::INFO,
    select::INFO,
    partition::INFO,
    split_parts::INFO,
    select_columns::INFO,
    unique::INFO,
    unique_by_key::INFO,
    run_length::INFO,
    reduce_by_key::INFO,
    segmented_reduce::INFO,
    sort::INFO,
    argsort::INFO,
    segmented_sort::INFO,
    merge_sort::INFO,
    top_k::INFO,
    top_k_rows::INFO,
    nth_element::INFO,
    quantile::INFO,
    frontier::INFO,
    quadtree::INFO,
    adaptive_grid::INFO,
    random::INFO,
    categorical::INFO,
    shuffle::INFO,
    gather::INFO,
    scatter::INFO,
    lower_bound::INFO,
    upper_bound::INFO,
    merge::INFO,
    is_sorted::INFO,
    find::INFO,
    set_union::INFO,
    set_intersection::INFO,
    set_difference::INFO,
    dot::INFO,
    nrm2::INFO,
    asum::INFO,
    iamax::INFO,
    iamin::INFO,
    adjacent_difference::INFO,
    reverse::INFO,
    rotate::INFO,
];

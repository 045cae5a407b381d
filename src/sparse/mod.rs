//! Sparse matrices.
//!
//! | format | what it is | take it where |
//! |---|---|---|
//! | [`Coo`] | a row, a column and a value for each entry | entries come in any order, or are very few |
//! | [`Csr`] | entries row after row | in general |
//! | [`Csc`] | entries column after column | columns are what is wanted |
//! | [`Ell`] | as many places in every row, side by side down the columns | rows are equally long |
//! | [`Hybrid`] | most of each row as [`Ell`], the rest as [`Coo`] | few rows are much longer |
//! | [`Jds`] | rows by falling length, first entries of all of them, then second ones | lengths fall evenly, as in a triangle |
//! | [`Sell`] | slices of rows of similar length, each as [`Ell`] | lengths vary |
//!
//! These are matrices in the host's memory, plain data with public fields, each checked by `validate`. Every format is
//! made from [`Csr`] and turned back into it; [`Csr::from_triplets`] begins with what a file holds.
//! [`Csr::analyse`] says what the rows of a matrix look like, and which format suits them.
//!
//! [`Gpu::upload_matrix`](crate::Gpu::upload_matrix) brings any of them to a device, where [`Spmv`] multiplies it by a
//! vector and [`Spmm`] by a dense matrix, [`Gpu::convert_matrix`](crate::Gpu::convert_matrix) brings it into another
//! format, and [`Gpu::analyse_matrix`](crate::Gpu::analyse_matrix) says what its rows look like.
//!
//! | to find | take |
//! |---|---|
//! | x with A x = b, A symmetric and positive definite | [`ConjugateGradient`] |
//! | the eigenvalue of largest magnitude and its vector | [`PowerIteration`] |
//! | the ranks of the nodes of a graph | [`PageRank`] |

mod by_name;
mod conjugate_gradient;
mod formats;
mod host;
mod matrix_layout;
mod page_rank;
mod power;
pub(crate) mod solver;
mod spconvert;
mod spmm;
mod spmv;
mod statistics;

pub use crate::io::triplets::Triplets as Coo;
pub use by_name::Described;
pub(crate) use by_name::{THROUGH, wanted_format};
pub use conjugate_gradient::{ConjugateGradient, Preconditioner};
pub use formats::{Csc, Csr, Duplicates, Ell, Hybrid, Jds, PADDING, Sell};
pub use host::HostMatrix;
pub use matrix_layout::{Format, List, MatrixLayout, SparseMatrix};
pub use page_rank::PageRank;
pub use power::PowerIteration;
pub use solver::{Outcome, Solution};
pub(crate) use spconvert::{
    MEASURES, Measured, find_runs, insert_places, measure, measure_longest, order_slices, point_at_rest,
    sum_runs,
};
pub use spconvert::{Spconvert, Target};
pub use spmm::Spmm;
pub use spmv::Spmv;
pub use statistics::Statistics;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[spmv::INFO, spmm::INFO, spconvert::INFO];

/// The solvers, which drive ops: their kernels, for tests of shaders.
pub const SOLVERS: &[Operation] = &[conjugate_gradient::INFO, power::INFO, page_rank::INFO];

/// Forms that a matrix may have for a variant of a product: what tests of shaders look at.
fn sample_formats(variant: &str) -> Vec<Format> {
    match variant {
        "coo" | "coo-atomic" => vec![Format::Coo { sorted: true }, Format::Coo { sorted: false }],
        "csc" | "csc-atomic" => vec![Format::Csc],
        "ell" => vec![Format::Ell { width: 9 }],
        "jds" => vec![Format::Jds],
        "hybrid" => vec![
            Format::Hybrid { width: 4, list: 5000, sorted: true },
            Format::Hybrid { width: 0, list: 5000, sorted: false },
        ],
        "sell" => vec![Format::Sell { slice: 32, places: 32_000 }],
        _ => vec![Format::Csr],
    }
}

/// Names of ops that the host drives.
pub(crate) mod names {
    pub(crate) const SPCONVERT: &str = super::spconvert::INFO.name;
    pub(crate) const CONJUGATE_GRADIENT: &str = super::conjugate_gradient::INFO.name;
    pub(crate) const POWER_ITERATION: &str = super::power::INFO.name;
    pub(crate) const PAGE_RANK: &str = super::page_rank::INFO.name;
}

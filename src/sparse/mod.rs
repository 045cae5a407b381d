//! Sparse matrices: storage formats, products, conversions and iterative solvers.
//!
//! | format | stores | use it when |
//! |---|---|---|
//! | [`Coo`] | row, column and value of each entry | entries come in any order, or most rows are empty |
//! | [`Csr`] | entries row by row | in general |
//! | [`Csc`] | entries column by column | you need columns |
//! | [`Ell`] | the same number of slots for every row, column-major | rows have about the same length |
//! | [`Hybrid`] | most of each row as [`Ell`], the rest as [`Coo`] | a few rows are much longer than the others |
//! | [`Jds`] | rows sorted by length; all first entries, then all second ones, ... | lengths fall evenly (a triangle) |
//! | [`Sell`] | slices of rows of similar length, each as [`Ell`] | row lengths vary |
//!
//! These types live in host memory. Their fields are public, and `validate` checks them. Every format converts from and
//! to [`Csr`]; [`Csr::from_triplets`] takes entries in any order, as files hold them. [`Csr::analyse`] measures the
//! rows of a matrix and names the format that suits it.
//!
//! [`Gpu::upload_matrix`](crate::Gpu::upload_matrix) uploads any of them. On the device, [`Spmv`] multiplies by a
//! vector, [`Spmm`] by a dense matrix, [`Gpu::convert_matrix`](crate::Gpu::convert_matrix) converts to another format,
//! [`Spinsert`] inserts entries, and [`Gpu::analyse_matrix`](crate::Gpu::analyse_matrix) measures the rows.
//! [`Gpu::matrix_of_entries`](crate::Gpu::matrix_of_entries) makes a matrix from buffers that kernels filled.
//!
//! | to find | use |
//! |---|---|
//! | x with A x = b, A symmetric positive definite | [`ConjugateGradient`] |
//! | the eigenvalue of largest magnitude and its eigenvector | [`PowerIteration`] |
//! | the ranks of the nodes of a graph | [`PageRank`] |

/// The builders of both products; `$x` is the dense factor and `$y` the result.
macro_rules! product_builders {
    ($x:literal, $y:literal) => {
        #[doc = concat!("Sets the factor of the product; the default is 1. With 0, A and ", $x, " are not read.")]
        #[must_use]
        pub fn alpha(mut self, alpha: f32) -> Self {
            self.alpha = alpha;
            self
        }

        #[doc = concat!("Sets the factor of the old ", $y, "; the default is 0, and ", $y, " is then not read.")]
        #[must_use]
        pub fn beta(mut self, beta: f32) -> Self {
            self.beta = beta;
            self
        }

        #[doc = concat!(
            "Reads alpha and beta from an operand `scalars` of two f32, `plan.with_scalars(&scalars)`, instead of ",
            "those given: they change without a new plan, for one more dispatch and 4 bytes of scratch for each ",
            "element of ", $y, ". With an alpha of 0 the product does not reach the result, with a beta of 0 the old ",
            $y, " does not."
        )]
        #[must_use]
        pub fn with_scalars(mut self) -> Self {
            self.scalars = true;
            self
        }

        crate::program::variants!(variant);

        /// Appends a note to the decision if there is no product. Returns whether there is one.
        fn has_product(&self, decision: &mut Decision) -> bool {
            let product = self.matrix.places() > 0 && self.matrix.cols > 0 && self.alpha != 0.0;
            if !product {
                let zero = if self.alpha == 0.0 { "alpha is 0" } else { "there are no entries" };
                decision.because(format_args!(concat!("{}, so ", $y, " is only scaled"), zero));
            }
            product
        }
    };
}

mod by_name;
mod by_row;
mod conjugate_gradient;
mod formats;
mod host;
mod matrix_layout;
mod page_rank;
mod power;
mod prediction;
mod scalars;
pub(crate) mod shard_steps;
pub(crate) mod solver;
mod spconvert;
mod spinsert;
mod spmm;
mod spmv;
mod statistics;

pub use crate::io::triplets::Triplets as Coo;
pub use by_name::Described;
pub(crate) use by_name::{THROUGH, wanted_format};
pub(crate) use by_row::{BY_ROW, order_by_row};
pub use conjugate_gradient::{ConjugateGradient, Preconditioner};
pub use formats::{Csc, Csr, Duplicates, Ell, Hybrid, Jds, PADDING, Sell};
pub use host::HostMatrix;
pub use matrix_layout::{Format, List, MatrixLayout, SparseMatrix};
pub use page_rank::PageRank;
pub use power::PowerIteration;
pub use solver::{Outcome, Solution};
pub(crate) use spconvert::{
    MEASURES, Measured, find_runs, measure, measure_longest, order_slices, point_at_rest, sum_runs,
};
pub use spconvert::{Spconvert, Target};
pub use spinsert::Spinsert;
pub use spmm::Spmm;
pub use spmv::Spmv;
pub use statistics::Statistics;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[spmv::INFO, spmm::INFO, spconvert::INFO, spinsert::INFO];

/// The solvers. They drive ops from the host; shader tests take their kernels from here.
pub const SOLVERS: &[Operation] = &[conjugate_gradient::INFO, power::INFO, page_rank::INFO];

/// Returns the formats that a variant of a product takes, for shader tests.
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
    pub(crate) const SPINSERT: &str = super::spinsert::INFO.name;
    pub(crate) const CONJUGATE_GRADIENT: &str = super::conjugate_gradient::INFO.name;
    pub(crate) const POWER_ITERATION: &str = super::power::INFO.name;
    pub(crate) const PAGE_RANK: &str = super::page_rank::INFO.name;
}

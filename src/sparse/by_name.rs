//! Sparse matrices for ops built by name: lists as arrays, and a description of them.

use super::{HostMatrix, List, MatrixLayout, Preconditioner, SparseMatrix, Statistics, Target};
use crate::program::prelude::*;

/// The facts about a sparse matrix, besides its arrays, from which an op is built by name.
#[derive(Debug, Clone)]
pub struct Described {
    /// How the matrix is stored.
    pub layout: MatrixLayout,
    /// Row statistics, if they were measured.
    pub statistics: Option<Statistics>,
    /// The layout to convert to, for an op that converts.
    pub to: Option<MatrixLayout>,
}

impl Described {
    /// Returns the lists of a matrix and their description. Fails like [`SparseMatrix::layout`].
    pub fn new(matrix: &HostMatrix) -> Result<(Vec<HostArray>, Self)> {
        let lists = matrix.lists().into_iter().map(|list| match list {
            List::Indices(list) => HostArray::new(&[list.len()], copied("the lists of a matrix", list)?),
            List::Values(list) => HostArray::new(&[list.len()], copied("the lists of a matrix", list)?),
        });
        let described = Self { layout: matrix.layout()?, statistics: None, to: None };
        Ok((lists.collect::<Result<_>>()?, described))
    }
}

const FORMATS: [&str; 7] = ["coo", "csr", "csc", "ell", "jds", "hybrid", "sell"];

pub(crate) const FORMAT: Setting = Setting::word("format", || [&["auto", "textbook"][..], &FORMATS].concat());

pub(crate) const THROUGH: Setting = Setting::word("through", || {
    let others = FORMATS.into_iter().filter(|format| *format != "csr");
    std::iter::once("csr").chain(others).collect()
});

/// Returns the requested format, or the fastest one for a matrix with these statistics. A variant selected by name
/// implies its format.
pub(crate) fn wanted_format(
    settings: &Settings, variant: &str, statistics: &Statistics, profile: &DeviceProfile,
) -> Result<Target> {
    let of_variant = variant.split('-').next().and_then(Target::named);
    let wanted = match settings.choice(FORMAT.name)? {
        "auto" => of_variant.or_else(|| Target::named(statistics.format(profile).0)),
        "textbook" => Target::named(statistics.textbook_format().0),
        format => Target::named(format),
    };
    Ok(wanted.unwrap_or(Target::Csr))
}

pub(super) const TOLERANCE: Setting = Setting::number("tolerance", "1e-5");
pub(super) const ITERATIONS: Setting = Setting::number("iterations", "1000");
pub(super) const CHECK_EVERY: Setting = Setting::number("check-every", "16");

impl Preconditioner {
    /// All preconditioners.
    pub const ALL: [Self; 2] = [Self::None, Self::Jacobi];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Jacobi => "jacobi",
        }
    }

    /// Returns the preconditioner with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}

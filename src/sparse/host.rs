use super::{Coo, Csc, Csr, Ell, Hybrid, Jds, List, MatrixLayout, Sell, SparseMatrix};
use crate::error::Result;

/// A host matrix in any format, as [`DeviceMatrix::read`](crate::DeviceMatrix::read) returns it.
///
/// ```
/// use tilework::sparse::{Csr, HostMatrix, SparseMatrix};
///
/// let csr = Csr { rows: 1, cols: 2, row_ptrs: vec![0, 1], col_idxs: vec![1], values: vec![3.0] };
/// let matrix = HostMatrix::Jds(csr.to_jds()?);
/// assert_eq!(matrix.layout()?.format.name(), "jds");
/// assert_eq!(matrix.to_csr()?, csr);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum HostMatrix {
    /// Coordinates.
    Coo(Coo),
    /// Compressed rows.
    Csr(Csr),
    /// Compressed columns.
    Csc(Csc),
    /// ELLPACK.
    Ell(Ell),
    /// ELLPACK, with the rest as coordinates.
    Hybrid(Hybrid),
    /// Jagged diagonals.
    Jds(Jds),
    /// Sliced ELLPACK.
    Sell(Sell),
}

impl HostMatrix {
    fn inner(&self) -> &dyn SparseMatrix {
        match self {
            Self::Coo(matrix) => matrix,
            Self::Csr(matrix) => matrix,
            Self::Csc(matrix) => matrix,
            Self::Ell(matrix) => matrix,
            Self::Hybrid(matrix) => matrix,
            Self::Jds(matrix) => matrix,
            Self::Sell(matrix) => matrix,
        }
    }

    /// Converts to compressed rows. Unsorted coordinates are sorted by row and column; duplicates are kept.
    ///
    /// # Errors
    /// As the conversion of the format.
    pub fn to_csr(&self) -> Result<Csr> {
        match self {
            Self::Coo(matrix) => Csr::from_coo(matrix),
            Self::Csr(matrix) => matrix.try_clone("csr"),
            Self::Csc(matrix) => matrix.to_csr(),
            Self::Ell(matrix) => matrix.to_csr(),
            Self::Hybrid(matrix) => matrix.to_csr(),
            Self::Jds(matrix) => matrix.to_csr(),
            Self::Sell(matrix) => matrix.to_csr(),
        }
    }
}

impl SparseMatrix for HostMatrix {
    fn layout(&self) -> Result<MatrixLayout> {
        self.inner().layout()
    }

    fn lists(&self) -> Vec<List<'_>> {
        self.inner().lists()
    }
}

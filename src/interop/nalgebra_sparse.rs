//! Matrices of the crate `nalgebra-sparse` (feature `nalgebra-sparse`).
//!
//! | ours | theirs |
//! |---|---|
//! | [`Csr`] | `CsrMatrix<f32>` |
//! | [`Csc`] | `CscMatrix<f32>` |
//! | [`Coo`] | `CooMatrix<f32>` |
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use nalgebra_sparse::{CooMatrix, CsrMatrix};
//! use tilework::Gpu;
//! use tilework::sparse::Csr;
//!
//! let mut coo = CooMatrix::new(2, 3);
//! coo.push(0, 0, 1.0f32);
//! coo.push(0, 2, 2.0);
//! coo.push(1, 1, 3.0);
//! let matrix = CsrMatrix::from(&coo);
//!
//! let gpu = Gpu::new()?;
//! let ours = Csr::try_from(&matrix)?;
//! let y = gpu.spmv(&gpu.upload_matrix(&ours)?, &gpu.upload(&[1.0f32, 10.0, 100.0])?)?;
//! assert_eq!(y.read()?, [201.0, 30.0]);
//! assert_eq!(CsrMatrix::try_from(&ours)?, matrix);
//! # Ok::<(), tilework::Error>(())
//! ```

use super::sorted::{indices_to, indices_u32, sorted_csc, sorted_csr};
use crate::program::prelude::*;
use crate::sparse::{Coo, Csc, Csr};
use nalgebra_sparse::{CooMatrix, CscMatrix, CsrMatrix, SparseFormatError};

const NAME: &str = "nalgebra-sparse";

fn ours(indices: &[usize]) -> Result<Vec<u32>> {
    indices_u32(NAME, indices, Some)
}

fn theirs(indices: &[u32]) -> Result<Vec<usize>> {
    indices_to(NAME, indices, Some)
}

fn wrong_format(e: &SparseFormatError) -> Error {
    err!(InvalidArgument, "{NAME}: {e}")
}

macro_rules! compressed {
    ($ours:ident, $theirs:ident, $data:ident, $sorted:ident, $new:ident, $ptrs:ident, $idxs:ident) => {
        impl TryFrom<&$theirs<f32>> for $ours {
            type Error = Error;

            fn try_from(matrix: &$theirs<f32>) -> Result<Self> {
                let (ptrs, idxs, values) = matrix.$data();
                let ($ptrs, $idxs, values) = (ours(ptrs)?, ours(idxs)?, copied(NAME, values)?);
                Ok(Self { rows: matrix.nrows(), cols: matrix.ncols(), $ptrs, $idxs, values })
            }
        }

        impl TryFrom<&$ours> for $theirs<f32> {
            type Error = Error;

            fn try_from(matrix: &$ours) -> Result<Self> {
                let sorted = $sorted(matrix)?;
                let (ptrs, idxs) = (theirs(&sorted.$ptrs)?, theirs(&sorted.$idxs)?);
                let values = copied(NAME, &sorted.values)?;
                Self::$new(sorted.rows, sorted.cols, ptrs, idxs, values).map_err(|e| wrong_format(&e))
            }
        }
    };
}
compressed!(Csr, CsrMatrix, csr_data, sorted_csr, try_from_csr_data, row_ptrs, col_idxs);
compressed!(Csc, CscMatrix, csc_data, sorted_csc, try_from_csc_data, col_ptrs, row_idxs);

/// Entries keep their order, and duplicates are kept.
impl TryFrom<&CooMatrix<f32>> for Coo {
    type Error = Error;

    fn try_from(matrix: &CooMatrix<f32>) -> Result<Self> {
        Ok(Self {
            rows: matrix.nrows(),
            cols: matrix.ncols(),
            row_idxs: ours(matrix.row_indices())?,
            col_idxs: ours(matrix.col_indices())?,
            values: copied(NAME, matrix.values())?,
        })
    }
}

/// Entries keep their order, and duplicates are kept.
impl TryFrom<&Coo> for CooMatrix<f32> {
    type Error = Error;

    fn try_from(matrix: &Coo) -> Result<Self> {
        matrix.validate()?;
        let (row_idxs, col_idxs) = (theirs(&matrix.row_idxs)?, theirs(&matrix.col_idxs)?);
        let values = copied(NAME, &matrix.values)?;
        Self::try_from_triplets(matrix.rows, matrix.cols, row_idxs, col_idxs, values).map_err(|e| wrong_format(&e))
    }
}

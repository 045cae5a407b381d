//! Matrices of the crate `sprs` (feature `sprs`).
//!
//! | ours | theirs |
//! |---|---|
//! | [`Csr`], [`Csc`] | `CsMat<f32>`, `CsMatView<f32>`, and those with other types of indices; either storage |
//! | [`Coo`] | `TriMat<f32>` and its views |
//!
//! [`Csr::try_from`] of a matrix that is stored by columns converts it, and the reverse. [`Csr`] becomes a matrix
//! stored by rows and [`Csc`] one stored by columns.
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use sprs::{CsMat, TriMat};
//! use tilework::Gpu;
//! use tilework::sparse::Csr;
//!
//! let mut triplets = TriMat::new((2, 3));
//! triplets.add_triplet(0, 0, 1.0f32);
//! triplets.add_triplet(0, 2, 2.0);
//! triplets.add_triplet(1, 1, 3.0);
//! let matrix: CsMat<f32> = triplets.to_csr();
//!
//! let gpu = Gpu::new()?;
//! let ours = Csr::try_from(&matrix)?;
//! let y = gpu.spmv(&gpu.upload_matrix(&ours)?, &gpu.upload(&[1.0f32, 10.0, 100.0])?)?;
//! assert_eq!(y.read()?, [201.0, 30.0]);
//! assert_eq!(CsMat::try_from(&ours)?, matrix);
//! # Ok::<(), tilework::Error>(())
//! ```

use super::sorted::{indices_to, indices_u32, sorted_csc, sorted_csr};
use crate::program::prelude::*;
use crate::sparse::{Coo, Csc, Csr};
use sprs::{CsMatBase, CsMatI, SpIndex, TriMatBase, TriMatI};
use std::ops::Deref;

const NAME: &str = "sprs";

fn ours<I: SpIndex>(indices: &[I]) -> Result<Vec<u32>> {
    indices_u32(NAME, indices, I::try_index)
}

fn theirs<I: SpIndex>(indices: &[u32]) -> Result<Vec<I>> {
    indices_to(NAME, indices, I::try_from_usize)
}

/// Pointers, indices and values, in the storage order of the matrix.
type Lists = (Vec<u32>, Vec<u32>, Vec<f32>);

fn lists<I, P, IptrS, IndS, DataS>(matrix: &CsMatBase<f32, I, IptrS, IndS, DataS, P>) -> Result<Lists>
where
    I: SpIndex,
    P: SpIndex,
    IptrS: Deref<Target = [P]>,
    IndS: Deref<Target = [I]>,
    DataS: Deref<Target = [f32]>,
{
    // Pointers of a part of a matrix do not start at 0.
    let ptrs = ours(&matrix.proper_indptr())?;
    Ok((ptrs, ours(matrix.indices())?, copied(NAME, matrix.data())?))
}

macro_rules! compressed {
    ($ours:ident, $other:ident, $stored:ident, $convert:ident, $sorted:ident, $new:ident, $ptrs:ident, $idxs:ident) => {
        impl<I, P, IptrS, IndS, DataS> TryFrom<&CsMatBase<f32, I, IptrS, IndS, DataS, P>> for $ours
        where
            I: SpIndex,
            P: SpIndex,
            IptrS: Deref<Target = [P]>,
            IndS: Deref<Target = [I]>,
            DataS: Deref<Target = [f32]>,
        {
            type Error = Error;

            fn try_from(matrix: &CsMatBase<f32, I, IptrS, IndS, DataS, P>) -> Result<Self> {
                if !matrix.$stored() {
                    return $other::try_from(matrix)?.$convert();
                }
                let ($ptrs, $idxs, values) = lists(matrix)?;
                Ok(Self { rows: matrix.rows(), cols: matrix.cols(), $ptrs, $idxs, values })
            }
        }

        impl<I: SpIndex> TryFrom<&$ours> for CsMatI<f32, I> {
            type Error = Error;

            fn try_from(matrix: &$ours) -> Result<Self> {
                let sorted = $sorted(matrix)?;
                let (ptrs, idxs) = (theirs(&sorted.$ptrs)?, theirs(&sorted.$idxs)?);
                let values = copied(NAME, &sorted.values)?;
                Self::$new((sorted.rows, sorted.cols), ptrs, idxs, values)
                    .map_err(|(.., e)| err!(InvalidArgument, "{NAME}: {e}"))
            }
        }
    };
}
compressed!(Csr, Csc, is_csr, to_csr, sorted_csr, try_new, row_ptrs, col_idxs);
compressed!(Csc, Csr, is_csc, to_csc, sorted_csc, try_new_csc, col_ptrs, row_idxs);

/// Entries keep their order, and duplicates are kept.
impl<I, IndS, DataS> TryFrom<&TriMatBase<IndS, DataS>> for Coo
where
    I: SpIndex,
    IndS: Deref<Target = [I]>,
    DataS: Deref<Target = [f32]>,
{
    type Error = Error;

    fn try_from(matrix: &TriMatBase<IndS, DataS>) -> Result<Self> {
        Ok(Self {
            rows: matrix.rows(),
            cols: matrix.cols(),
            row_idxs: ours(matrix.row_inds())?,
            col_idxs: ours(matrix.col_inds())?,
            values: copied(NAME, matrix.data())?,
        })
    }
}

/// Entries keep their order, and duplicates are kept.
impl<I: SpIndex> TryFrom<&Coo> for TriMatI<f32, I> {
    type Error = Error;

    fn try_from(matrix: &Coo) -> Result<Self> {
        matrix.validate()?;
        let shape = (matrix.rows, matrix.cols);
        let (row_idxs, col_idxs) = (theirs(&matrix.row_idxs)?, theirs(&matrix.col_idxs)?);
        Ok(Self::from_triplets(shape, row_idxs, col_idxs, copied(NAME, &matrix.values)?))
    }
}

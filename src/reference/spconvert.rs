use super::prelude::*;
use crate::sparse::{Coo, Csc, Csr, Ell, Format, HostMatrix, Hybrid, Jds, List, Sell};
use crate::sparse::{MatrixLayout, SparseMatrix, Spconvert, Target};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let Spconvert { from, to, window, .. } = descriptor::<Spconvert>(call)?;
    let target = match to.format {
        Format::Coo { .. } => Target::Coo,
        Format::Csr => Target::Csr,
        Format::Csc => Target::Csc,
        Format::Ell { .. } => Target::Ell,
        Format::Hybrid { width, .. } => Target::Hybrid { width: Some(width) },
        Format::Jds => Target::Jds,
        Format::Sell { slice, .. } => Target::Sell { slice, window: *window },
    };
    let converted = spconvert(&matrix(call, from)?.0, target)?;
    let of = |(at, list): (usize, &List<'_>)| {
        let shape = output_shape(call, at);
        match list {
            List::Indices(list) => Wanted::exact(&shape, list.to_vec()),
            List::Values(list) if to.values == DType::F16 => {
                Wanted::exact(&shape, list.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>())
            }
            List::Values(list) => Wanted::exact(&shape, list.to_vec()),
        }
    };
    converted.lists().iter().enumerate().map(of).collect()
}

/// Returns the matrix whose arrays are the first inputs of a call, and their number.
pub(super) fn matrix(call: &OpCall, layout: &MatrixLayout) -> Result<(HostMatrix, usize)> {
    let MatrixLayout { rows, cols, .. } = *layout;
    let indices = |at| input::<u32>(call, at).map(<[u32]>::to_vec);
    let values = |at| {
        let list = call.inputs().nth(at).map(HostArray::data);
        let list =
            list.ok_or_else(|| err!(InvalidArgument, "reference of spconvert: the values of the matrix are missing"))?;
        Ok(list.to_f32().into_owned())
    };
    let coo = |at| {
        let (row_idxs, col_idxs) = (indices(at)?, indices(at + 1)?);
        Ok(Coo { rows, cols, row_idxs, col_idxs, values: values(at + 2)? })
    };
    let ell = |width| Ok(Ell { rows, cols, width, col_idxs: indices(0)?, values: values(1)? });
    Ok(match layout.format {
        Format::Coo { .. } => (HostMatrix::Coo(coo(0)?), 3),
        Format::Csr => {
            let (row_ptrs, col_idxs) = (indices(0)?, indices(1)?);
            (HostMatrix::Csr(Csr { rows, cols, row_ptrs, col_idxs, values: values(2)? }), 3)
        }
        Format::Csc => {
            let (col_ptrs, row_idxs) = (indices(0)?, indices(1)?);
            (HostMatrix::Csc(Csc { rows, cols, col_ptrs, row_idxs, values: values(2)? }), 3)
        }
        Format::Ell { width } => (HostMatrix::Ell(ell(width)?), 2),
        Format::Hybrid { width, .. } => (HostMatrix::Hybrid(Hybrid { ell: ell(width)?, coo: coo(2)? }), 5),
        Format::Jds => {
            let (row_order, diagonal_ptrs, col_idxs) = (indices(0)?, indices(1)?, indices(2)?);
            let values = values(3)?;
            (HostMatrix::Jds(Jds { rows, cols, row_order, diagonal_ptrs, col_idxs, values }), 4)
        }
        Format::Sell { slice, .. } => {
            let (row_order, slice_ptrs, col_idxs) = (indices(0)?, indices(1)?, indices(2)?);
            let values = values(3)?;
            (HostMatrix::Sell(Sell { rows, cols, slice, row_order, slice_ptrs, col_idxs, values }), 4)
        }
    })
}

/// Converts the matrix to another format. Rows keep the order of their entries; duplicates are not summed. Entries of
/// compressed columns are sorted by row, unsorted coordinates by row, then column.
///
/// # Errors
/// [`TooLarge`](ErrorKind::TooLarge) for 2^32 places or more;
/// [`InvalidArgument`](ErrorKind::InvalidArgument) for slices or windows of 0 rows.
pub fn spconvert(matrix: &HostMatrix, to: Target) -> Result<HostMatrix> {
    let csr = matrix.to_csr()?;
    Ok(match to {
        Target::Coo => HostMatrix::Coo(csr.to_coo()?),
        Target::Csr => HostMatrix::Csr(csr),
        Target::Csc => HostMatrix::Csc(csr.to_csc()?),
        Target::Ell => HostMatrix::Ell(csr.to_ell()?),
        Target::Hybrid { width } => HostMatrix::Hybrid(csr.to_hybrid(width.unwrap_or(csr.analyse().hybrid_width))?),
        Target::Jds => HostMatrix::Jds(csr.to_jds()?),
        Target::Sell { slice, window } => HostMatrix::Sell(csr.to_sell(slice, window)?),
    })
}

#[cfg(test)]
#[path = "tests/spconvert.rs"]
mod tests;

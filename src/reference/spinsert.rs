use super::prelude::*;
use crate::sparse::{Coo, Ell, Format, HostMatrix, PADDING, Spinsert};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let Spinsert { matrix, .. } = descriptor::<Spinsert>(call)?;
    let (rows, cols) = (matrix.rows, matrix.cols);
    let indices = |at| input::<u32>(call, at).map(<[u32]>::to_vec);
    // f32 holds all values of f16.
    let values = |at| match matrix.values {
        DType::F16 => Ok(input::<f16>(call, at)?.iter().map(|x| x.to_f32()).collect()),
        _ => input::<f32>(call, at).map(<[f32]>::to_vec),
    };
    let exact = |shape: &[usize], values: Vec<f32>| match matrix.values {
        DType::F16 => Wanted::exact(shape, values.into_iter().map(f16::from_f32).collect()),
        _ => Wanted::exact(shape, values),
    };
    let coo = |at| Ok(Coo { rows, cols, row_idxs: indices(at)?, col_idxs: indices(at + 1)?, values: values(at + 2)? });
    let (old, new) = match matrix.format {
        Format::Ell { width } => {
            let old = Ell { rows, cols, width, col_idxs: indices(0)?, values: values(1)? };
            (HostMatrix::Ell(old), coo(2)?)
        }
        _ => {
            let mut old: Coo = coo(0)?;
            old.row_idxs.truncate(matrix.entries);
            old.col_idxs.truncate(matrix.entries);
            old.values.truncate(matrix.entries);
            (HostMatrix::Coo(old), coo(3)?)
        }
    };
    let shape = |at| output_shape(call, at);
    Ok(match spinsert(&old, &new)? {
        (HostMatrix::Ell(ell), missing) => vec![
            Wanted::exact(&shape(0), ell.col_idxs)?,
            exact(&shape(1), ell.values)?,
            Wanted::exact(&shape(2), vec![missing as u32])?,
        ],
        (HostMatrix::Coo(coo), missing) => vec![
            Wanted::exact(&shape(0), coo.row_idxs)?,
            Wanted::exact(&shape(1), coo.col_idxs)?,
            exact(&shape(2), coo.values)?,
            Wanted::exact(&shape(3), vec![missing as u32])?,
        ],
        _ => return Err(err!(Shape, "reference of spinsert: the format changed")),
    })
}

/// Inserts entries: behind those of coordinates, or into the first free slots of their rows in ELL. Returns the matrix
/// and the number of missing slots; if there are any, the matrix is unchanged.
///
/// # Errors
/// [`InvalidArgument`](ErrorKind::InvalidArgument): another format. [`Shape`](ErrorKind::Shape): lists of
/// other lengths, or an index out of range.
pub fn spinsert(matrix: &HostMatrix, new: &Coo) -> Result<(HostMatrix, usize)> {
    new.validate()?;
    match matrix {
        HostMatrix::Coo(old) => {
            let joined = |old: &[u32], new: &[u32]| [old, new].concat();
            let (row_idxs, col_idxs) = (joined(&old.row_idxs, &new.row_idxs), joined(&old.col_idxs, &new.col_idxs));
            let values = [old.values.as_slice(), &new.values].concat();
            Ok((HostMatrix::Coo(Coo { rows: old.rows, cols: old.cols, row_idxs, col_idxs, values }), 0))
        }
        HostMatrix::Ell(old) => {
            let (mut ell, mut missing) = (old.clone(), 0);
            if new.rows > old.rows {
                return Err(err!(Shape, "reference spinsert: rows of a matrix with {}, not {}", old.rows, new.rows));
            }
            for ((&row, &col), &value) in new.row_idxs.iter().zip(&new.col_idxs).zip(&new.values) {
                let mut slots = (0..old.width).map(|k| k * old.rows + row as usize);
                match slots.find(|&slot| ell.col_idxs.get(slot) == Some(&PADDING)) {
                    Some(slot) => (ell.col_idxs[slot], ell.values[slot]) = (col, value),
                    None => missing += 1,
                }
            }
            Ok((HostMatrix::Ell(if missing > 0 { old.clone() } else { ell }), missing))
        }
        _ => Err(err!(InvalidArgument, "reference spinsert: only coordinates and ELL have room for new entries")),
    }
}

#[cfg(test)]
#[path = "tests/spinsert.rs"]
mod tests;

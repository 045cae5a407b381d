//! Conversion of a sparse matrix, row by row.

use crate::error::Result;
use crate::sparse::{HostMatrix, Target};

/// The matrix in another format. Rows keep the order of their entries, and entries at one position are not added up;
/// compressed columns come by rising row, and coordinates in no order by row, then column.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) for 2^32 places or more;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for slices or windows of 0 rows.
pub fn spconvert(matrix: &HostMatrix, to: Target) -> Result<HostMatrix> {
    let csr = matrix.to_csr()?;
    Ok(match to {
        Target::Coo => HostMatrix::Coo(csr.to_coo()?),
        Target::Csr => HostMatrix::Csr(csr),
        Target::Csc => HostMatrix::Csc(csr.to_csc()?),
        Target::Ell => HostMatrix::Ell(csr.to_ell()?),
        Target::Hybrid { width } => {
            HostMatrix::Hybrid(csr.to_hybrid(width.unwrap_or(csr.analyse().hybrid_width))?)
        }
        Target::Jds => HostMatrix::Jds(csr.to_jds()?),
        Target::Sell { slice, window } => HostMatrix::Sell(csr.to_sell(slice, window)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Coo;

    #[test]
    fn four_entries_in_no_order_are_known_in_every_format() {
        // . 5 .
        // 1 2,3 .    with two entries at one position
        let coo = Coo {
            rows: 2,
            cols: 3,
            row_idxs: vec![1, 1, 0, 1],
            col_idxs: vec![1, 0, 1, 1],
            values: vec![2.0, 1.0, 5.0, 3.0],
        };
        let to = |target| spconvert(&HostMatrix::Coo(coo.clone()), target).unwrap();
        let HostMatrix::Csr(csr) = to(Target::Csr) else { panic!("no csr") };
        assert_eq!((csr.row_ptrs.as_slice(), csr.col_idxs.as_slice()), (&[0, 1, 4][..], &[1, 0, 1, 1][..]));
        assert_eq!(csr.values, [5.0, 1.0, 2.0, 3.0]);
        let HostMatrix::Csc(csc) = to(Target::Csc) else { panic!("no csc") };
        assert_eq!((csc.col_ptrs, csc.row_idxs), (vec![0, 1, 4, 4], vec![1, 0, 1, 1]));
        assert_eq!(csc.values, [1.0, 5.0, 2.0, 3.0]);
        let HostMatrix::Hybrid(hybrid) = to(Target::Hybrid { width: Some(1) }) else { panic!("no hybrid") };
        assert_eq!((hybrid.ell.values, hybrid.coo.values), (vec![5.0, 1.0], vec![2.0, 3.0]));
        let HostMatrix::Jds(jds) = to(Target::Jds) else { panic!("no jds") };
        assert_eq!((jds.row_order, jds.values), (vec![1, 0], vec![1.0, 5.0, 2.0, 3.0]));
        for target in [
            Target::Coo,
            Target::Csc,
            Target::Ell,
            Target::Hybrid { width: None },
            Target::Jds,
            Target::Sell { slice: 2, window: 2 },
        ] {
            assert_eq!(to(target).to_csr().unwrap(), csr);
        }
    }
}

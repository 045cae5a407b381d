//! The formats in the host's memory, and ways between them.

mod from_rows;
mod to_rows;
mod validate;

use crate::io::triplets::Triplets as Coo;

/// The column of a place that holds no entry. Its value is never looked at.
pub const PADDING: u32 = u32::MAX;

/// What becomes of a position that comes more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Its values are added up, in the order in which they come.
    Sum,
    /// It is an error.
    Refuse,
}

/// Compressed rows: the entries of row r are number `row_ptrs[r]` to `row_ptrs[r + 1]`, the latter left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csr {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Where each row begins, and the number of entries: rows + 1 numbers.
    pub row_ptrs: Vec<u32>,
    /// The column of each entry.
    pub col_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// Compressed columns: as [`Csr`], with rows and columns in each other's place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csc {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Where each column begins, and the number of entries: cols + 1 numbers.
    pub col_ptrs: Vec<u32>,
    /// The row of each entry.
    pub row_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// ELLPACK: `width` places in every row; place k of row r is number `k * rows + r`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ell {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Places in a row.
    pub width: usize,
    /// The column of each place, [`PADDING`] where it holds nothing: behind the entries of its row.
    pub col_idxs: Vec<u32>,
    /// The value of each place.
    pub values: Vec<f32>,
}

/// The first entries of each row as [`Ell`], the others as [`Coo`], by rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hybrid {
    /// Up to `width` entries of each row.
    pub ell: Ell,
    /// What does not fit there.
    pub coo: Coo,
}

/// Jagged diagonals: rows by falling length; diagonal k holds entry k of every row with more than k entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Jds {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The row that lies at each place.
    pub row_order: Vec<u32>,
    /// Where each diagonal begins, and the number of entries.
    pub diagonal_ptrs: Vec<u32>,
    /// The column of each entry.
    pub col_idxs: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f32>,
}

/// SELL-C-sigma: rows in slices of `slice` (C), each as wide as its longest row, and sorted by falling length within
/// windows of `window` (sigma) rows. Place k of the i-th row of slice s is number `slice_ptrs[s] + k * slice + i`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sell {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows of a slice.
    pub slice: usize,
    /// The row that lies at each place; [`PADDING`] for those behind the last row of the last slice.
    pub row_order: Vec<u32>,
    /// Where each slice begins, and the number of places.
    pub slice_ptrs: Vec<u32>,
    /// The column of each place, [`PADDING`] where it holds nothing.
    pub col_idxs: Vec<u32>,
    /// The value of each place.
    pub values: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, Result};
    use crate::sparse::SparseMatrix;

    /// ```text
    /// . 1 . 2 .
    /// . . . . .
    /// 3 4 5 6 7
    /// . . 8 . .
    /// ```
    pub(super) fn matrix() -> Csr {
        Csr {
            rows: 4,
            cols: 5,
            row_ptrs: vec![0, 2, 2, 7, 8],
            col_idxs: vec![1, 3, 0, 1, 2, 3, 4, 2],
            values: (1..=8).map(|x| x as f32).collect(),
        }
    }

    /// Of any shape, with rows of 0 to 9 entries.
    fn random(rows: usize, cols: usize, mut state: u32) -> Csr {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 10
        };
        let mut triplets = Coo { rows, cols, ..Coo::default() };
        for row in 0..rows {
            for _ in 0..if cols == 0 { 0 } else { next() % 10 } {
                triplets.row_idxs.push(row as u32);
                triplets.col_idxs.push(next() % cols as u32);
                triplets.values.push(next() as f32);
            }
        }
        Csr::from_triplets(&triplets, Duplicates::Sum).unwrap()
    }

    #[test]
    fn formats_are_as_drawn_by_hand() {
        let csr = matrix();
        csr.validate().unwrap();
        let csc = csr.to_csc().unwrap();
        assert_eq!(csc.col_ptrs, [0, 1, 3, 5, 7, 8]);
        assert_eq!(csc.row_idxs, [2, 0, 2, 2, 3, 0, 2, 2]);
        assert_eq!(csc.values, [3.0, 1.0, 4.0, 5.0, 8.0, 2.0, 6.0, 7.0]);
        let hybrid = csr.to_hybrid(2).unwrap();
        assert_eq!(hybrid.ell.col_idxs, [1, PADDING, 0, 2, 3, PADDING, 1, PADDING]);
        assert_eq!(hybrid.ell.values, [1.0, 0.0, 3.0, 8.0, 2.0, 0.0, 4.0, 0.0]);
        assert_eq!((hybrid.coo.row_idxs, hybrid.coo.col_idxs), (vec![2, 2, 2], vec![2, 3, 4]));
        let jds = csr.to_jds().unwrap();
        assert_eq!(jds.row_order, [2, 0, 3, 1]);
        assert_eq!(jds.diagonal_ptrs, [0, 3, 5, 6, 7, 8]);
        assert_eq!(jds.values, [3.0, 1.0, 8.0, 4.0, 2.0, 5.0, 6.0, 7.0]);
        let sell = csr.to_sell(2, 4).unwrap();
        assert_eq!(sell.row_order, [2, 0, 3, 1]);
        assert_eq!(sell.slice_ptrs, [0, 10, 12]);
        assert_eq!(sell.values, [3.0, 1.0, 4.0, 2.0, 5.0, 0.0, 6.0, 0.0, 7.0, 0.0, 8.0, 0.0]);
        assert_eq!(csr.to_ell().unwrap().width, 5);
    }

    #[test]
    fn every_format_comes_back_as_it_was() {
        let shapes = [(0, 0), (0, 3), (3, 0), (1, 1), (7, 3), (33, 65), (100, 10)];
        for (i, (rows, cols)) in shapes.into_iter().enumerate() {
            let csr = random(rows, cols, i as u32);
            csr.validate().unwrap();
            assert_eq!(Csr::from_triplets(&csr.to_coo().unwrap(), Duplicates::Refuse).unwrap(), csr);
            csr.to_coo().unwrap().validate().unwrap();
            csr.to_csc().unwrap().validate().unwrap();
            assert_eq!(csr.to_csc().unwrap().to_csr().unwrap(), csr);
            assert_eq!(csr.transposed().unwrap().transposed().unwrap(), csr);
            let ell = csr.to_ell().unwrap();
            ell.validate().unwrap();
            assert_eq!(ell.to_csr().unwrap(), csr);
            for width in [0, 1, 4, 50] {
                let hybrid = csr.to_hybrid(width).unwrap();
                hybrid.validate().unwrap();
                assert_eq!(hybrid.to_csr().unwrap(), csr);
            }
            csr.to_jds().unwrap().validate().unwrap();
            assert_eq!(csr.to_jds().unwrap().to_csr().unwrap(), csr);
            for (slice, window) in [(1, 1), (4, 8), (32, 32), (8, usize::MAX)] {
                let sell = csr.to_sell(slice, window).unwrap();
                sell.validate().unwrap();
                assert_eq!(sell.to_csr().unwrap(), csr);
            }
        }
    }

    #[test]
    fn extents_beyond_kernels_and_memory_are_errors() {
        let kind = |result: Result<Csr>| result.unwrap_err().kind();
        for rows in [1 << 32, 1 << 40, usize::MAX - 1, usize::MAX] {
            let one = Coo { rows, cols: 3, row_idxs: vec![1], col_idxs: vec![2], values: vec![5.0] };
            for duplicates in [Duplicates::Sum, Duplicates::Refuse] {
                assert_eq!(kind(Csr::from_triplets(&one, duplicates)), ErrorKind::TooLarge, "{rows}");
            }
            assert_eq!(kind(Csr::from_coo(&one)), ErrorKind::TooLarge, "{rows}");
            let none = Csr { rows, ..Csr::default() };
            assert_eq!(none.validate().unwrap_err().kind(), ErrorKind::Shape, "{rows}");
            let wide = Csr { cols: rows, ..matrix() };
            assert_eq!(kind(wide.transposed()), ErrorKind::TooLarge, "{rows}");
            assert_eq!(wide.to_csc().unwrap_err().kind(), ErrorKind::TooLarge, "{rows}");
            let tall = Csc { rows, ..matrix().to_csc().unwrap() };
            assert_eq!(kind(tall.to_csr()), ErrorKind::TooLarge, "{rows}");
        }
    }

    #[test]
    fn rows_without_entries_take_no_memory_to_count() {
        let (row_idxs, col_idxs, values) = (vec![7, 1, 7, 0, 7], vec![0; 5], vec![1.0; 5]);
        for rows in [8, 11, 1000, 1 << 40] {
            let mut coo = Coo {
                rows,
                cols: 1,
                row_idxs: row_idxs.clone(),
                col_idxs: col_idxs.clone(),
                values: values.clone(),
            };
            assert_eq!(coo.layout().unwrap().longest, 3, "{rows}");
            coo.row_idxs.sort_unstable();
            assert_eq!(coo.layout().unwrap().longest, 3, "{rows}");
        }
    }

    #[test]
    fn matrices_that_are_not_valid_are_refused_and_not_converted() {
        let wrong = Csr { cols: 2, ..matrix() };
        assert!(wrong.to_coo().is_err() && wrong.to_csc().is_err() && wrong.to_ell().is_err());
        assert!(wrong.to_jds().is_err() && wrong.to_sell(2, 2).is_err() && wrong.to_hybrid(1).is_err());
        let csr = matrix();
        assert!(Csr::from_coo(&Coo { rows: 1, ..csr.to_coo().unwrap() }).is_err());
        assert!(Csc { rows: 1, ..csr.to_csc().unwrap() }.to_csr().is_err());
        assert!(Ell { rows: 3, ..csr.to_ell().unwrap() }.to_csr().is_err());
        assert!(Jds { rows: 3, ..csr.to_jds().unwrap() }.to_csr().is_err());
        assert!(Sell { slice: 0, ..csr.to_sell(2, 4).unwrap() }.to_csr().is_err());
        let mut hybrid = csr.to_hybrid(2).unwrap();
        hybrid.coo.row_idxs[0] = 9;
        assert!(hybrid.to_csr().is_err());
    }
}

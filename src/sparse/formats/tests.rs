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

/// A matrix of any shape with 0 to 9 entries in each row.
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
fn conversions_match_hand_written_formats() {
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
fn every_format_round_trips() {
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
fn rejects_extents_above_32_bits() {
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
fn counts_the_longest_row_without_memory_for_empty_rows() {
    let (row_idxs, col_idxs, values) = (vec![7, 1, 7, 0, 7], vec![0; 5], vec![1.0; 5]);
    for rows in [8, 11, 1000, 1 << 40] {
        let mut coo =
            Coo { rows, cols: 1, row_idxs: row_idxs.clone(), col_idxs: col_idxs.clone(), values: values.clone() };
        assert_eq!(coo.layout().unwrap().longest, 3, "{rows}");
        coo.row_idxs.sort_unstable();
        assert_eq!(coo.layout().unwrap().longest, 3, "{rows}");
    }
}

#[test]
fn conversions_reject_invalid_matrices() {
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

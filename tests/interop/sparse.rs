//! Sparse matrices of other crates.

use ::nalgebra_sparse::{CooMatrix, CscMatrix, CsrMatrix};
use ::sprs::{CsMat, CsMatI, TriMat};
use tilework::ErrorKind;
use tilework::sparse::{Coo, Csc, Csr};

fn csr(row_ptrs: &[u32], col_idxs: &[u32], cols: usize) -> Csr {
    let values = (0..col_idxs.len()).map(|x| x as f32 + 1.0).collect();
    Csr { rows: row_ptrs.len() - 1, cols, row_ptrs: row_ptrs.to_vec(), col_idxs: col_idxs.to_vec(), values }
}

#[test]
fn sorted_matrices_round_trip() {
    for ours in [
        csr(&[0], &[], 0),
        csr(&[0], &[], 4),
        csr(&[0, 0, 0], &[], 0),
        csr(&[0, 1], &[0], 1),
        csr(&[0, 2, 2, 5], &[1, 3, 0, 2, 3], 4),
    ] {
        let (csc, coo) = (ours.to_csc().unwrap(), ours.to_coo().unwrap());
        assert_eq!(Csr::try_from(&CsrMatrix::try_from(&ours).unwrap()).unwrap(), ours);
        assert_eq!(Csc::try_from(&CscMatrix::try_from(&csc).unwrap()).unwrap(), csc);
        assert_eq!(Coo::try_from(&CooMatrix::try_from(&coo).unwrap()).unwrap(), coo);
        let rows = CsMat::try_from(&ours).unwrap();
        let columns: CsMatI<f32, u16> = (&csc).try_into().unwrap();
        assert!(rows.is_csr() && columns.is_csc());
        assert_eq!(Csr::try_from(&rows).unwrap(), ours);
        assert_eq!(Csc::try_from(&rows).unwrap(), csc);
        assert_eq!(Csr::try_from(&columns).unwrap(), ours);
        assert_eq!(Csc::try_from(&columns.view()).unwrap(), csc);
        assert_eq!(Coo::try_from(&TriMat::try_from(&coo).unwrap()).unwrap(), coo);
    }
}

#[test]
fn slices_of_sprs_matrices_get_pointers_from_0() {
    let matrix = CsMat::try_from(&csr(&[0, 2, 2, 5], &[1, 3, 0, 2, 3], 4)).unwrap();
    let part = Csr::try_from(&matrix.slice_outer(1..3)).unwrap();
    assert_eq!((part.rows, part.row_ptrs, part.values), (2, vec![0, 0, 3], vec![3.0, 4.0, 5.0]));
}

#[test]
fn unsorted_rows_are_sorted_and_duplicates_rejected() {
    let unsorted = csr(&[0, 3, 4], &[2, 0, 1, 0], 3);
    let back = Csr::try_from(&CsrMatrix::try_from(&unsorted).unwrap()).unwrap();
    assert_eq!((&back.col_idxs[..], &back.values[..]), (&[0, 1, 2, 0][..], &[2.0, 3.0, 1.0, 4.0][..]));
    assert_eq!(Csr::try_from(&CsMat::try_from(&unsorted).unwrap()).unwrap(), back);
    let turned = Csc {
        rows: unsorted.cols,
        cols: unsorted.rows,
        col_ptrs: unsorted.row_ptrs,
        row_idxs: unsorted.col_idxs,
        values: unsorted.values,
    };
    assert_eq!(Csc::try_from(&CscMatrix::try_from(&turned).unwrap()).unwrap().row_idxs, back.col_idxs);
    assert_eq!(Csc::try_from(&CsMat::try_from(&turned).unwrap()).unwrap().values, back.values);

    let twice = csr(&[0, 2, 2], &[1, 1], 3);
    let coo = twice.to_coo().unwrap();
    let csc = twice.to_csc().unwrap();
    let errors = [
        CsrMatrix::try_from(&twice).unwrap_err(),
        CsMat::try_from(&twice).unwrap_err(),
        CscMatrix::try_from(&csc).unwrap_err(),
        CsMat::try_from(&csc).unwrap_err(),
    ];
    for e in errors {
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("several entries at"), "{e}");
    }
    assert_eq!(Coo::try_from(&CooMatrix::try_from(&coo).unwrap()).unwrap(), coo);
    assert_eq!(Coo::try_from(&TriMat::try_from(&coo).unwrap()).unwrap(), coo);
}

#[test]
fn rejects_wrong_lists_and_narrow_indices() {
    for wrong in [csr(&[0, 1], &[3], 3), csr(&[0, 2, 1], &[0], 3), csr(&[0, 5], &[0], 3)] {
        assert_eq!(CsrMatrix::try_from(&wrong).unwrap_err().kind(), ErrorKind::Shape);
        assert_eq!(CsMat::try_from(&wrong).unwrap_err().kind(), ErrorKind::Shape);
    }
    let outside = Coo { rows: 1, cols: 1, row_idxs: vec![1], col_idxs: vec![0], values: vec![1.0] };
    assert_eq!(CooMatrix::try_from(&outside).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(TriMat::try_from(&outside).unwrap_err().kind(), ErrorKind::Shape);
    let wide = csr(&[0, 1], &[70_000], 70_001);
    let e = CsMatI::<f32, u16>::try_from(&wide).unwrap_err();
    assert!(e.kind() == ErrorKind::TooLarge && e.to_string().contains("70000"), "{e}");
}

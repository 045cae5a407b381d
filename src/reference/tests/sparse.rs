use super::*;

mod spmv {
    use super::*;

    /// (1 0 2; 0 0 0; 0 3 0)
    fn matrix() -> Csr {
        let (row_ptrs, col_idxs, values) = (vec![0, 2, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
        Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values }
    }

    #[test]
    fn product_of_3x3_is_known() {
        let (a, x) = (matrix(), [1.0, 10.0, 100.0]);
        assert_eq!(spmv(1.0, &a, &x, 0.0, &[f32::NAN; 3]).unwrap(), [201.0, 0.0, 30.0]);
        assert_eq!(spmv(2.0, &a, &x, -1.0, &[1.0, 2.0, 3.0]).unwrap(), [401.0, -2.0, 57.0]);
        assert_eq!(spmv(0.0, &a, &[f32::NAN; 3], 1.0, &[1.0, 2.0, 3.0]).unwrap(), [1.0, 2.0, 3.0]);
        assert!(spmv(1.0, &a, &x[..2], 0.0, &[0.0; 3]).is_err());
    }

    #[test]
    fn bound_grows_with_a_row_and_covers_rounding() {
        let bound = spmv_bound(1.0, &matrix(), &[0.1, 0.2, 0.3], 0.0, &[0.0; 3]).unwrap();
        let got = 0.1f32 + 2.0 * 0.3f32;
        let exact = f64::from(0.1f32) + 2.0 * f64::from(0.3f32);
        assert!((f64::from(got) - exact).abs() <= bound[0] && bound[0] < 1e-6 && bound[1] < 1e-30, "{bound:?}");
    }
}

mod spmm {
    use super::*;

    #[test]
    fn product_of_2x3_and_3x2_is_known() {
        // (1 0 2; 0 3 0)
        let (row_ptrs, col_idxs, values) = (vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
        let a = Csr { rows: 2, cols: 3, row_ptrs, col_idxs, values };
        let b = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0];
        assert_eq!(spmm(1.0, &a, &b, 2, 0.0, &[f32::NAN; 4]).unwrap(), [201.0, 402.0, 30.0, 60.0]);
        assert_eq!(spmm(2.0, &a, &b, 2, -1.0, &[1.0; 4]).unwrap(), [401.0, 803.0, 59.0, 119.0]);
        assert!(spmm(1.0, &a, &b[..5], 2, 0.0, &[0.0; 4]).is_err());
        let bound = spmm_bound(1.0, &a, &b, 2, 0.0, &[0.0; 4]).unwrap();
        assert!(bound[1] == 2.0 * bound[0] || (bound[1] / bound[0] - 2.0).abs() < 1e-6, "{bound:?}");
    }
}

mod spconvert {
    use super::*;
    use crate::sparse::Coo;

    #[test]
    fn unsorted_entries_convert_to_every_format() {
        // . 5 .
        // 1 2,3 .    with a duplicate
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

mod spinsert {
    use super::*;

    #[test]
    fn entries_take_the_first_free_slot_or_none() {
        let (col_idxs, values) = (vec![1, PADDING, PADDING, PADDING], vec![5.0, 0.0, 0.0, 0.0]);
        let ell = HostMatrix::Ell(Ell { rows: 2, cols: 3, width: 2, col_idxs, values });
        let new = |rows: &[u32]| Coo {
            rows: 2,
            cols: 3,
            row_idxs: rows.to_vec(),
            col_idxs: vec![2; rows.len()],
            values: vec![7.0; rows.len()],
        };
        let (HostMatrix::Ell(got), 0) = spinsert(&ell, &new(&[0, 1])).unwrap() else { panic!() };
        assert_eq!((got.col_idxs, got.values), (vec![1, 2, 2, PADDING], vec![5.0, 7.0, 7.0, 0.0]));
        assert_eq!(spinsert(&ell, &new(&[0, 0, 1])).unwrap(), (ell.clone(), 1));
        assert!(spinsert(&ell, &new(&[2])).is_err());
        let coo = HostMatrix::Coo(new(&[1]));
        let (HostMatrix::Coo(got), 0) = spinsert(&coo, &new(&[0])).unwrap() else { panic!() };
        assert_eq!(got.row_idxs, [1, 0]);
    }
}

mod conjugate_gradient {
    use super::*;

    #[test]
    fn two_equations_take_two_steps() {
        let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 1.0, 1.0, 3.0]);
        let a = Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values };
        for jacobi in [false, true] {
            let (x, history) = conjugate_gradient(&a, &[1.0, 2.0], &[2.0, 1.0], jacobi, 1e-12, 9).unwrap();
            assert!((x[0] - 1.0 / 11.0).abs() < 1e-12 && (x[1] - 7.0 / 11.0).abs() < 1e-12, "{x:?}");
            assert_eq!(history.len(), 3);
        }
        // The residual of (2, 1) is (-8, -3).
        let (_, history) = conjugate_gradient(&a, &[1.0, 2.0], &[2.0, 1.0], false, 1e-12, 0).unwrap();
        assert!((history[0] - (73.0f64 / 5.0).sqrt()).abs() < 1e-12);
        assert!(conjugate_gradient(&a, &[1.0], &[2.0, 1.0], false, 1e-12, 9).is_err());
    }
}

mod power {
    use super::*;

    #[test]
    fn largest_eigenvalue_of_2x2_is_found() {
        let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0]);
        let a = Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values };
        let (value, x) = power_iteration(&a, &[1.0, 0.0], 60).unwrap();
        assert!((value - 3.0).abs() < 1e-12 && (x[0] - 0.5f64.sqrt()).abs() < 1e-12, "{value} {x:?}");
        assert!(power_iteration(&a, &[1.0], 1).is_err());
    }

    #[test]
    fn ranks_of_three_nodes_are_known() {
        // 0 and 1 link to 2, which is dangling: x2 = c + d (x0 + x1), x0 = x1 = c, with c = (1 - d) / 3 + d x2 / 3.
        let (row_ptrs, col_idxs, values) = (vec![0, 0, 0, 2], vec![0, 1], vec![1.0, 1.0]);
        let t = Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values };
        let x = page_rank(&t, 0.5, None, 100).unwrap();
        assert!((x[0] - 0.25).abs() < 1e-12 && (x[2] - 0.5).abs() < 1e-12, "{x:?}");
        // All walks start at node 1, so node 0 is never reached.
        let x = page_rank(&t, 0.5, Some(&[0.0, 1.0, 0.0]), 100).unwrap();
        assert!(x[0] == 0.0 && (x[1] - 2.0 / 3.0).abs() < 1e-12, "{x:?}");
        assert!(page_rank(&t, 0.5, Some(&[1.0]), 1).is_err());
    }
}

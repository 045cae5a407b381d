use super::*;

mod gemv {
    use super::*;

    /// (1 2 3; 4 5 6), with an element between the rows.
    const A: [f32; 7] = [1.0, 2.0, 3.0, -9.0, 4.0, 5.0, 6.0];

    #[test]
    fn product_of_2x3_is_known_both_ways() {
        let op = Gemv::new(2, 3).lda(4);
        assert_eq!(gemv(&op, &A, &[1.0, 10.0, 100.0], &[0.0; 2]).unwrap(), [321.0, 654.0]);
        let trans = op.trans();
        assert_eq!(gemv(&trans, &A, &[1.0, 10.0], &[0.0; 3]).unwrap(), [41.0, 52.0, 63.0]);
        assert!(gemv(&trans, &A[..6], &[1.0, 10.0], &[0.0; 3]).is_err());
    }

    #[test]
    fn alpha_and_beta_follow_the_formula_and_0_hides() {
        let op = Gemv::new(2, 3).lda(4).alpha(2.0).beta(-1.0);
        assert_eq!(gemv(&op, &A, &[1.0, 1.0, 1.0], &[10.0, 20.0]).unwrap(), [2.0, 10.0]);
        let nan = [f32::NAN; 7];
        assert_eq!(gemv(&op.alpha(0.0), &nan, &nan[..3], &[10.0, 20.0]).unwrap(), [-10.0, -20.0]);
        let op = Gemv::new(2, 3).lda(4);
        assert_eq!(gemv(&op, &A, &[1.0, 0.0, 0.0], &nan[..2]).unwrap(), [1.0, 4.0]);
    }

    #[test]
    fn bound_covers_the_same_sum_in_f32() {
        let n = 1000;
        let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
        let x: Vec<f32> = (0..n).map(|i| (i as f32 * 0.91).cos()).collect();
        let single: f32 = a.iter().zip(&x).map(|(a, x)| a * x).sum();
        let op = Gemv::new(1, n);
        let exact = gemv(&op, &a, &x, &[0.0]).unwrap()[0];
        let bound = gemv_bound(&op, &a, &x, &[0.0]).unwrap()[0];
        assert!((f64::from(single) - exact).abs() <= bound && bound < 0.05, "{single} {exact} {bound}");
    }
}

mod cgemv {
    use super::*;

    #[test]
    fn products_by_hand() {
        let (a, x) = ([1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 3.0, 0.0]);
        assert_eq!(cgemv(&Cgemv::new(1, 2), &a, &x, &[]), [2.0, 3.0]);
        assert_eq!(cgemv(&Cgemv::new(1, 2).trans().conjugated(), &a, &x[..2], &[]), [2.0, 0.0, 0.0, -2.0]);
    }
}

mod ger {
    use super::*;

    #[test]
    fn matrices_by_hand() {
        assert_eq!(ger(2.0, &[1.0f32, -1.0], &[3.0, 4.0], None), [6.0, 8.0, -6.0, -8.0]);
        assert_eq!(ger(1.0, &[1.0f32], &[3.0, 4.0], Some(&[1.0, 1.0])), [4.0, 5.0]);
    }
}

mod symv {
    use super::*;

    /// (1 2 0; 2 3 4; 0 4 5) times (1 10 100).
    #[test]
    fn each_packing_gives_the_same_product() {
        let (x, y, n) = ([1.0, 10.0, 100.0], [0.0; 3], f32::NAN);
        let of = |op: Symv, a: &[f32]| symv(&op, a, &x, &y).unwrap();
        let want = [21.0, 432.0, 540.0];
        assert_eq!(of(Symv::new(3), &[1.0, n, n, 2.0, 3.0, n, 0.0, 4.0, 5.0]), want);
        assert_eq!(of(Symv::new(3).upper(), &[1.0, 2.0, 0.0, n, 3.0, 4.0, n, n, 5.0]), want);
        assert_eq!(of(Symv::new(3).packed(), &[1.0, 2.0, 3.0, 0.0, 4.0, 5.0]), want);
        assert_eq!(of(Symv::new(3).packed().upper(), &[1.0, 2.0, 0.0, 3.0, 4.0, 5.0]), want);
        assert_eq!(of(Symv::new(3).banded(1), &[n, 1.0, 2.0, 3.0, 4.0, 5.0]), want);
        assert_eq!(of(Symv::new(3).banded(1).upper(), &[1.0, 2.0, 3.0, 4.0, 5.0, n]), want);
    }
}

mod syr {
    use super::*;

    #[test]
    fn triangles_by_hand() {
        assert_eq!(syr(&Syr::new(2), &[1.0, 2.0], &[0.0, 7.0, 0.0, 1.0]), [1.0, 7.0, 2.0, 5.0]);
        assert_eq!(syr(&Syr::new(2).upper().packed().alpha(2.0), &[1.0, 2.0], &[0.0; 3]), [2.0, 4.0, 8.0]);
    }
}

mod syr2 {
    use super::*;

    #[test]
    fn triangles_by_hand() {
        let (x, y) = ([1.0, 2.0], [3.0, 4.0]);
        assert_eq!(syr2(&Syr2::new(2), &x, &y, &[0.0, 7.0, 0.0, 0.0]), [6.0, 7.0, 10.0, 16.0]);
        assert_eq!(syr2(&Syr2::new(2).upper().packed(), &x, &y, &[1.0; 3]), [7.0, 11.0, 17.0]);
    }
}

mod trmv {
    use super::*;

    #[test]
    fn triangles_by_hand() {
        let (x, n) = ([1.0, 10.0], f32::NAN);
        assert_eq!(trmv(&Trmv::new(2), &[2.0, n, 3.0, 4.0], &x).unwrap(), [2.0, 43.0]);
        assert_eq!(trmv(&Trmv::new(2).trans().unit(), &[n, n, 3.0, n], &x).unwrap(), [31.0, 10.0]);
        assert_eq!(trmv(&Trmv::new(2).upper().packed(), &[2.0, 3.0, 4.0], &x).unwrap(), [32.0, 40.0]);
    }
}

mod trsv {
    use super::*;

    #[test]
    fn systems_by_hand() {
        assert_eq!(trsv(&Trsv::new(2), &[2.0, f32::NAN, 1.0, 4.0], &[4.0, 10.0]), [2.0, 2.0]);
        assert_eq!(trsv(&Trsv::new(2).packed().trans(), &[2.0, 1.0, 4.0], &[4.0, 8.0]), [1.0, 2.0]);
        assert_eq!(trsv(&Trsv::new(2).banded(1).unit(), &[0.0, 0.0, 1.0, 0.0], &[4.0, 10.0]), [4.0, 6.0]);
    }
}

mod gbmv {
    use super::*;

    #[test]
    fn bands_by_hand() {
        // (1 2 0; 0 3 4): the main diagonal and one above.
        let (op, a) = (Gbmv::new(2, 3, 0, 1), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(gbmv(&op, &a, &[1.0, 10.0, 100.0], &[0.0; 2]).unwrap(), [21.0, 430.0]);
        assert_eq!(gbmv(&op.trans(), &a, &[1.0, 10.0], &[0.0; 3]).unwrap(), [1.0, 32.0, 40.0]);
    }
}

use super::*;

mod symm {
    use super::*;

    #[test]
    fn products_by_hand() {
        // (2 1; 1 4) (1; 3) and (1 3) (2 1; 1 4).
        let (a, b) = ([2.0, f32::NAN, 1.0, 4.0], [1.0, 3.0]);
        assert_eq!(symm(&Symm::new(2, 1), &a, &b, &[0.0; 2]).unwrap(), [5.0, 13.0]);
        assert_eq!(symm(&Symm::new(1, 2).right().beta(1.0), &a, &b, &[1.0; 2]).unwrap(), [6.0, 14.0]);
        let upper = [2.0, 1.0, f32::NAN, 4.0];
        assert_eq!(symm(&Symm::new(2, 1).upper(), &upper, &b, &[0.0; 2]).unwrap(), [5.0, 13.0]);
    }
}

mod syrk {
    use super::*;

    #[test]
    fn triangles_by_hand() {
        let a = [1.0, 2.0, 3.0, 4.0];
        let c = [9.0; 4];
        assert_eq!(syrk(&Syrk::new(2, 2), &a, &c).unwrap(), [5.0, 9.0, 11.0, 25.0]);
        let op = Syrk::new(2, 2).upper().trans().alpha(2.0).beta(1.0);
        assert_eq!(syrk(&op, &a, &c).unwrap(), [29.0, 37.0, 9.0, 49.0]);
        assert_eq!(syrk_bound(&op, &a, &c).unwrap()[2], 0.0);
    }
}

mod syr2k {
    use super::*;

    #[test]
    fn triangles_by_hand() {
        let (a, b, c) = ([1.0, 2.0], [3.0, 4.0], [9.0; 4]);
        assert_eq!(syr2k(&Syr2k::new(2, 1), &a, &b, &c).unwrap(), [6.0, 9.0, 10.0, 16.0]);
        let op = Syr2k::new(2, 1).upper().trans().alpha(2.0).beta(1.0);
        assert_eq!(syr2k(&op, &a, &b, &c).unwrap(), [21.0, 29.0, 9.0, 41.0]);
        // Two rows of one: x y^T + y x^T with sums of two products each.
        let op = Syr2k::new(1, 2).full();
        assert_eq!(syr2k(&op, &a, &b, &c[..1]).unwrap(), [22.0]);
        assert_eq!(syr2k_bound(&Syr2k::new(2, 1), &a, &b, &c).unwrap()[1], 0.0);
    }
}

mod trmm {
    use super::*;

    #[test]
    fn products_by_hand() {
        // (2 0; 1 4) (1; 3), its transpose, and (1 3) (2 0; 1 4).
        let (a, b) = ([2.0, f32::NAN, 1.0, 4.0], [1.0, 3.0]);
        assert_eq!(trmm(&Trmm::new(2, 1), &a, &b), [2.0, 13.0]);
        assert_eq!(trmm(&Trmm::new(2, 1).trans().alpha(2.0), &a, &b), [10.0, 24.0]);
        assert_eq!(trmm(&Trmm::new(1, 2).right(), &a, &b), [5.0, 12.0]);
        assert_eq!(trmm(&Trmm::new(2, 1).unit(), &a, &b), [1.0, 4.0]);
        assert_eq!(trmm(&Trmm::new(2, 1).upper(), &[2.0, 1.0, f32::NAN, 4.0], &b), [5.0, 12.0]);
    }
}

mod trsm {
    use super::*;

    const A: [f32; 4] = [2.0, 99.0, 1.0, 4.0];

    #[test]
    fn systems_of_two_unknowns_are_solved() {
        // (2 0; 1 4) (2; 2) = (4; 10); (2 1; 0 4) (1; 2) = (4; 8).
        assert_eq!(trsm(&Trsm::new(2, 1), &A, &[4.0, 10.0]), [2.0, 2.0]);
        assert_eq!(trsm(&Trsm::new(2, 1).trans(), &A, &[4.0, 8.0]), [1.0, 2.0]);
        // (1 2) (2 0; 1 4) = (4 8).
        assert_eq!(trsm(&Trsm::new(1, 2).right().alpha(0.5), &A, &[8.0, 16.0]), [1.0, 2.0]);
        assert_eq!(trsm(&Trsm::new(2, 1).unit(), &A, &[4.0, 10.0]), [4.0, 6.0]);
        assert_eq!(trsm(&Trsm::new(2, 1).upper(), &[2.0, 1.0, 99.0, 4.0], &[4.0, 8.0]), [1.0, 2.0]);
    }

    #[test]
    fn singular_systems_give_infinities_and_no_bound() {
        let a = [1.0, 0.0, 1.0, 0.0];
        let op = Trsm::new(2, 1);
        assert_eq!(trsm(&op, &a, &[1.0, 3.0]), [1.0, f64::INFINITY]);
        let bound = trsm_bound(&op, &a, &[1.0, 3.0]);
        assert!(bound[0] < 1e-5 && bound[1] == f64::INFINITY);
        assert_eq!(trsm(&op.alpha(0.0), &[f32::NAN; 4], &[f32::NAN, 3.0]), [0.0, 0.0]);
    }
}

mod cgemm {
    use super::*;

    #[test]
    fn products_by_hand() {
        // (1 + 2i, i) (3; 1 - i)
        let (a, b) = ([1.0, 2.0, 0.0, 1.0], [3.0, 0.0, 1.0, -1.0]);
        let op = Cgemm::new(1, 1, 2);
        assert_eq!(cgemm(&op, &a, &b, &[]), [4.0, 7.0]);
        assert_eq!(cgemm(&op.clone().conjugated_a(), &a, &b, &[]), [2.0, -7.0]);
        assert_eq!(cgemm(&op.clone().alpha([0.0, 1.0]).beta([0.0, 2.0]), &a, &b, &[1.0, 1.0]), [-9.0, 6.0]);
        assert_eq!(cgemm(&op.alpha([0.0; 2]), &[f32::NAN; 4], &b, &[]), [0.0, 0.0]);
        let outer = cgemm(&Cgemm::new(2, 1, 1).trans_a(), &a, &[0.0, 1.0], &[]);
        assert_eq!(outer, [-2.0, 1.0, -1.0, 0.0]);
    }
}

mod gemm_grouped {
    use super::*;

    #[test]
    fn products_by_hand() {
        let op = GemmGrouped::new([[1, 1, 2], [2, 2, 1]]);
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let begins = op.packed().unwrap().0;
        let of = |begins: &[[usize; 3]]| gemm_grouped(&op, begins, &a, &b, &[9.0; 5]).unwrap();
        assert_eq!(of(&begins), [17.0, 21.0, 24.0, 28.0, 32.0]);
        assert_eq!(of(&[[2, 2, 4], [4, 0, 0]]), [9.0, 9.0, 9.0, 9.0, 53.0]);
    }
}

mod gemm_batched {
    use super::*;

    #[test]
    fn products_of_two_pairs_are_known() {
        // (1 2; 3 4) (1 0; 0 1) and (5 6; 7 8) (0 1; 1 0).
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0f32];
        let b = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0f32];
        let op = GemmBatched::new(2, 2, 2, 2);
        let got = gemm_batched(&op, &a, &b, None, &[0.0; 8]).unwrap();
        assert_eq!(got, [1.0, 2.0, 3.0, 4.0, 6.0, 5.0, 8.0, 7.0]);
        let both = op.clone().trans_a().alpha(2.0).beta(1.0);
        let got = gemm_batched(&both, &a, &b, None, &[1.0; 8]).unwrap();
        assert_eq!(got, [3.0, 7.0, 5.0, 9.0, 15.0, 11.0, 17.0, 13.0]);
        let rows = op.clone().with_row_bias();
        let got = gemm_batched(&rows, &a, &b, Some(&[0.0, 10.0]), &[0.0; 8]).unwrap();
        assert_eq!(got, [1.0, 2.0, 13.0, 14.0, 6.0, 5.0, 18.0, 17.0]);
        assert!(gemm_batched(&op, &a[..7], &b, None, &[0.0; 8]).is_err());
    }

    #[test]
    fn strides_repeat_and_skip() {
        let op = GemmBatched::new(3, 1, 1, 1).strides(0, 2, 3);
        let got = gemm_batched(&op, &[2.0f32], &[1.0, 9.0, 2.0, 9.0, 3.0], None, &[7.0; 7]).unwrap();
        assert_eq!(got, [2.0, 7.0, 7.0, 4.0, 7.0, 7.0, 6.0]);
        let bound = gemm_batched_bound(&op, &[2.0f32], &[1.0, 9.0, 2.0, 9.0, 3.0], None, &[7.0; 7]).unwrap();
        assert!(bound[0] > 0.0 && bound[1] == 0.0 && bound[6] > 0.0);
        assert!(
            gemm_batched(&GemmBatched::new(2, 1, 1, 1).strides(1, 1, 0), &[1.0f32; 2], &[1.0; 2], None, &[0.0; 2])
                .is_err()
        );
    }

    #[test]
    fn matrices_side_by_side_stay_apart() {
        // Columns of one matrix times single numbers.
        let op = GemmBatched::new(2, 2, 1, 1).lda(2).ldc(3).strides(1, 1, 1);
        let got = gemm_batched(&op, &[1.0f32, 2.0, 3.0, 4.0], &[10.0, 100.0], None, &[7.0; 5]).unwrap();
        assert_eq!(got, [10.0, 200.0, 7.0, 30.0, 400.0]);
        let bound = gemm_batched_bound(&op, &[1.0f32, 2.0, 3.0, 4.0], &[10.0, 100.0], None, &[7.0; 5]).unwrap();
        assert_eq!(bound.iter().map(|b| *b > 0.0).collect::<Vec<_>>(), [true, true, false, true, true]);
    }

    #[test]
    fn an_empty_batch_leaves_c_and_an_empty_k_scales_it() {
        assert_eq!(gemm_batched::<f32, f32>(&GemmBatched::new(0, 2, 2, 2), &[], &[], None, &[]).unwrap(), [0.0; 0]);
        let op = GemmBatched::new(2, 1, 1, 0).beta(3.0);
        assert_eq!(gemm_batched::<f32, _>(&op, &[], &[], None, &[1.0f32, 2.0]).unwrap(), [3.0, 6.0]);
    }
}

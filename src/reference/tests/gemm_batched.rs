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
        gemm_batched(&GemmBatched::new(2, 1, 1, 1).strides(1, 1, 0), &[1.0f32; 2], &[1.0; 2], None, &[0.0; 2]).is_err()
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

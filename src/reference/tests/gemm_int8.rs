use super::*;
use crate::Activation;

#[test]
fn matches_sums_and_scales_by_hand() {
    // [1 -2; 3 4] [5 6; 7 -8]
    let (a, b) = ([1, -2, 3, 4], [5, 6, 7, -8]);
    let op = GemmInt8::new(2, 2, 2);
    assert_eq!(gemm_int8(&op, &a, &b), [-9, 22, 43, -14]);
    assert_eq!(gemm_int8(&op.clone().trans_b(), &a, &b), [-7, 23, 39, -11]);
    let layer = op.scaled().activation(Activation::Relu);
    let scales = [&[0.5, 2.0][..], &[1.0, 0.25]];
    let got = gemm_int8_scaled(&layer, [&a, &b], scales, Some(&[5.0, -1.0]));
    assert_eq!(got, [0.5, 1.75, 91.0, 0.0]);
    let bound = gemm_int8_bound::<f32>(&layer, [&a, &b], scales, None);
    assert!(bound.iter().all(|x| (1e-9..1e-3).contains(x)), "{bound:?}");
    assert_eq!(gemm_int8(&GemmInt8::new(1, 1, 0), &[], &[]), [0]);
}

use super::*;
use crate::Activation;

const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const B: [f32; 6] = [7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
/// (1 2 3; 4 5 6) (7 8; 9 10; 11 12).
const AB: [f64; 4] = [58.0, 64.0, 139.0, 154.0];

#[test]
fn product_of_2x3_and_3x2_is_known() {
    assert_eq!(gemm(&Gemm::new(2, 2, 3), &A, &B, None, &[0.0; 4]).unwrap(), AB);
}

#[test]
fn transposed_factors_give_the_same_product() {
    let at = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0f32];
    let bt = [7.0, 9.0, 11.0, 8.0, 10.0, 12.0f32];
    let op = Gemm::new(2, 2, 3);
    assert_eq!(gemm(&op.clone().trans_a(), &at, &B, None, &[0.0; 4]).unwrap(), AB);
    assert_eq!(gemm(&op.clone().trans_b(), &A, &bt, None, &[0.0; 4]).unwrap(), AB);
    assert_eq!(gemm(&op.trans_a().trans_b(), &at, &bt, None, &[0.0; 4]).unwrap(), AB);
}

#[test]
fn alpha_beta_bias_and_activation_follow_the_formula() {
    let op = Gemm::new(2, 2, 3).alpha(2.0).beta(-1.0).activation(Activation::Relu);
    let c = [100.0, 200.0, 300.0, 400.0];
    let got = gemm(&op, &A, &B, Some(&[5.0, -50.0]), &c).unwrap();
    assert_eq!(got, [116.0 - 100.0 + 5.0, 0.0, 0.0, 0.0]);
    let rows = Gemm::new(2, 2, 3).with_row_bias();
    assert_eq!(gemm(&rows, &A, &B, Some(&[1.0, -2.0]), &[0.0; 4]).unwrap(), [59.0, 65.0, 137.0, 152.0]);
    let tall = Gemm::new(3, 1, 0).with_row_bias();
    assert!(gemm::<f32, f32>(&tall, &[], &[], Some(&[1.0]), &[0.0; 3]).is_err());
    let sigmoid = Gemm::new(1, 1, 1).activation(Activation::Sigmoid);
    assert_eq!(gemm(&sigmoid, &[0.0f32], &[3.0], None, &[0.0]).unwrap(), [0.5]);
}

#[test]
fn operands_with_factor_0_are_not_read() {
    let nan = [f32::NAN; 6];
    let op = Gemm::new(2, 2, 3);
    assert_eq!(gemm(&op, &A, &B, None, &nan[..4]).unwrap(), AB);
    let c = [1.0, 2.0, 3.0, 4.0f32];
    let scaled = [3.0, 6.0, 9.0, 12.0];
    assert_eq!(gemm(&op.alpha(0.0).beta(3.0), &nan, &nan, None, &c).unwrap(), scaled);
    assert_eq!(gemm::<f32, _>(&Gemm::new(2, 2, 0).beta(3.0), &[], &[], None, &c).unwrap(), scaled);
}

#[test]
fn nan_and_infinities_pass_through_the_product() {
    let a = [f32::INFINITY, 1.0, f32::NAN, 1.0];
    let got = gemm(&Gemm::new(2, 2, 2), &a, &[1.0, 0.0, 1.0, 1.0], None, &[0.0; 4]).unwrap();
    assert_eq!(got[0], f64::INFINITY);
    assert!(got[1].is_nan() && got[2].is_nan() && got[3].is_nan());
}

#[test]
fn leading_dimensions_skip_elements_between_rows() {
    let a = [1.0, 2.0, 3.0, -9.0, 4.0, 5.0, 6.0f32];
    let b = [7.0, 8.0, -9.0, -9.0, 9.0, 10.0, -9.0, -9.0, 11.0, 12.0];
    let c = [0.0, 0.0, 77.0, 0.0, 0.0];
    let op = Gemm::new(2, 2, 3).lda(4).ldb(4).ldc(3);
    assert_eq!(gemm(&op, &a, &b, None, &c).unwrap(), [58.0, 64.0, 77.0, 139.0, 154.0]);
    let bound = gemm_bound(&op, &a, &b, None, &c).unwrap();
    assert!(bound[2] == 0.0 && bound[0] > 0.0);
    assert!(gemm(&op, &a[..6], &b, None, &c).is_err());
}

#[test]
fn the_bound_is_infinite_if_a_sum_may_overflow() {
    let bound = |a: &[f32], op: Gemm| gemm_bound(&op, a, &[1.0, 1.0], None, &[0.0]).unwrap()[0];
    let op = Gemm::new(1, 1, 2);
    assert_eq!(bound(&[f32::MAX, -f32::MAX], op.clone()), f64::INFINITY);
    assert_eq!(bound(&[f32::MAX, f32::MAX], op.clone().alpha(0.25)), f64::INFINITY);
    assert_eq!(bound(&[1e38, 1e38], op.clone().alpha(4.0)), f64::INFINITY);
    assert!(bound(&[1e38, 1e38], op.clone()) < 1e33);
    let (large, one) = (f16::from_f32(40_000.0), f16::ONE);
    let halves = gemm_bound(&op, &[large, large], &[one, one], None, &[f16::ZERO]).unwrap();
    assert_eq!(halves, [f64::INFINITY]);
}

#[test]
fn bound_covers_the_same_sum_in_f32_and_f16() {
    let k = 1000;
    let a: Vec<f32> = (0..k).map(|i| (i as f32 * 0.37).sin()).collect();
    let b: Vec<f32> = (0..k).map(|i| (i as f32 * 0.91).cos()).collect();
    let single: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
    let op = Gemm::new(1, 1, k);
    let exact = gemm(&op, &a, &b, None, &[0.0]).unwrap()[0];
    let bound = gemm_bound(&op, &a, &b, None, &[0.0]).unwrap()[0];
    assert!((f64::from(single) - exact).abs() <= bound && bound < 0.05, "{single} {exact} {bound}");

    let half = |x: &[f32]| x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let (a, b, c) = (half(&a), half(&b), [f16::ZERO]);
    let exact = gemm(&op, &a, &b, None, &c).unwrap()[0];
    let bound = gemm_bound(&op, &a, &b, None, &c).unwrap()[0];
    assert!((f64::from(f16::from_f64(exact)) - exact).abs() <= bound && bound < 0.1, "{exact} {bound}");
}

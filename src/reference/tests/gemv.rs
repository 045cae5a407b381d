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

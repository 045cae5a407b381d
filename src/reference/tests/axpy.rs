use super::*;
use crate::ErrorKind;
use half::f16;

#[test]
fn axpy_matches_values_known_by_heart() {
    let mut y = [1.0f32, 2.0, 3.0];
    axpy(0.5, &[2.0, 4.0, -6.0], &mut y).unwrap();
    assert_eq!(y, [2.0, 4.0, 0.0]);
    let mut y = [f16::from_f32(60000.0), f16::ONE];
    axpy(-2.0, &[f16::from_f32(30000.0), f16::ONE], &mut y).unwrap();
    assert_eq!(y, [f16::ZERO, f16::NEG_ONE]);
    let mut y = [1, i32::MAX];
    axpy(-3.0, &[2, -1], &mut y).unwrap();
    assert_eq!(y, [-5, i32::MIN + 2]);
    let mut y = [1, 1];
    axpy(4294967295.0, &[1, u32::MAX], &mut y).unwrap();
    assert_eq!(y, [0, 2]);
}

#[test]
fn lengths_that_differ_are_refused() {
    assert_eq!(axpy(1.0, &[1.0f32], &mut []).unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn bounds_count_one_rounding_for_the_product_and_one_for_the_sum() {
    let u = 2f64.powi(-23);
    let of = |alpha, x: f32, y: f32| axpy_bound(alpha, &[x], &[y]).unwrap()[0];
    assert_eq!(of(0.5, 3.0, 0.25), 0.0);
    let third = f64::from(1.0f32 / 3.0);
    assert_eq!(of(third, 3.0, 0.0), 2.0 * u);
    assert_eq!(of(1.0, 1e-10, 1.0), u);
    assert_eq!(of(3e38, 3e38, -1.0), f64::INFINITY);
    assert_eq!(axpy_bound(-3.0, &[2], &[1]).unwrap(), [0.0]);
}

use super::*;

#[test]
fn mean_and_gradient_match_values_by_hand() {
    let (mean, gradient) = squared_error(&[1.0f32, 5.0], &[2.0, 2.0]);
    assert_eq!((mean, gradient), (5.0, vec![-1.0, 3.0]));
    let (bound, bounds) = squared_error_bound(&[1.0f32, 5.0], &[2.0, 2.0]);
    assert!(bound > 0.0 && bound < 1e-4 && bounds.iter().all(|b| *b < 1e-5));
    super::super::assert_slopes(&[1.0, 5.0], &[-1.0, 3.0], |x| results(x, &[2.0f32, 2.0]).0);
}

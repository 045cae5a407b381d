use super::*;

#[test]
fn gradient_matches_finite_differences() {
    use super::super::log_softmax;
    let (x, dy) = ([0.3f32, -1.0, 0.5, 2.0], [1.0f32, -2.0, 0.5, 3.0]);
    let dx = log_softmax_backward(4, &log_softmax(4, &x), &dy);
    let loss =
        |x: &[f32]| -> f64 { log_softmax(4, x).iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum() };
    super::super::assert_slopes(&x, &dx, loss);
}

#[test]
fn bound_is_small() {
    assert!(log_softmax_backward_bound(2, &[-0.5f32, -1.0], &[1.0, 2.0]).iter().all(|b| *b > 0.0 && *b < 1e-5));
}

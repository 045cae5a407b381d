use super::*;

#[test]
fn equal_logits_cost_the_logarithm_of_their_number() {
    let (losses, mean, gradient) = cross_entropy(4, &[7.0f32; 8], &[0, 3]);
    assert_eq!((losses[0], losses[1], mean), (4f32.ln(), 4f32.ln(), 4f32.ln()));
    assert_eq!(gradient, [-0.375, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, -0.375]);
    let (losses, mean, gradient) = cross_entropy(2, &[0.0f32; 4], &[1, 2]);
    assert!(losses[0] > 0.0 && losses[1].is_nan() && mean.is_nan());
    assert!(gradient[0] > 0.0 && gradient[2].is_nan() && gradient[3].is_nan());
}

#[test]
fn gradient_matches_finite_differences() {
    let (x, labels) = ([0.3f32, -1.0, 0.5, 2.0, 0.0, -0.5], [2, 0]);
    let (.., dx) = cross_entropy(3, &x, &labels);
    // Uses the exact mean, since a rounded one has too few digits.
    super::super::assert_slopes(&x, &dx, |x| results(3, x, &labels).1.0);
}

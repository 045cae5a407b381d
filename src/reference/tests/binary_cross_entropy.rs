use super::*;

#[test]
fn equal_odds_cost_the_logarithm_of_2() {
    let (mean, gradient) = binary_cross_entropy(&[0.0f32; 2], &[1.0, 0.25]);
    assert_eq!((mean, gradient), (2f32.ln(), vec![-0.25, 0.125]));
    let (mean, gradient) = binary_cross_entropy(&[f32::INFINITY, f32::NEG_INFINITY], &[1.0, 0.0]);
    assert_eq!((mean, gradient), (0.0, vec![0.0; 2]));
    for wrong in [-0.1, 1.5, f32::NAN] {
        let (mean, gradient) = binary_cross_entropy(&[1.0f32, 1.0], &[wrong, 0.0]);
        assert!(mean.is_nan() && gradient[0].is_nan() && gradient[1] > 0.0, "{wrong}");
    }
}

#[test]
fn gradient_matches_finite_differences() {
    let (x, target) = ([0.3f32, -1.0, 5.0, -9.0], [1.0f32, 0.25, 0.0, 0.5]);
    super::super::assert_slopes(&x, &binary_cross_entropy(&x, &target).1, |x| results(x, &target).0.0);
    let (of_mean, bounds) = binary_cross_entropy_bound(&x, &target);
    assert!(of_mean < 1e-4 && bounds.iter().all(|b| *b > 0.0 && *b < 1e-5));
}

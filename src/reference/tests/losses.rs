use super::*;

mod cross_entropy {
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
        crate::reference::assert_slopes(&x, &dx, |x| cross_entropy_results(3, x, &labels).1.0);
    }
}

mod squared_error {
    use super::*;

    #[test]
    fn mean_and_gradient_match_values_by_hand() {
        let (mean, gradient) = squared_error(&[1.0f32, 5.0], &[2.0, 2.0]);
        assert_eq!((mean, gradient), (5.0, vec![-1.0, 3.0]));
        let (bound, bounds) = squared_error_bound(&[1.0f32, 5.0], &[2.0, 2.0]);
        assert!(bound > 0.0 && bound < 1e-4 && bounds.iter().all(|b| *b < 1e-5));
        crate::reference::assert_slopes(&[1.0, 5.0], &[-1.0, 3.0], |x| squared_error_results(x, &[2.0f32, 2.0]).0);
    }
}

mod binary_cross_entropy {
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
        crate::reference::assert_slopes(&x, &binary_cross_entropy(&x, &target).1, |x| {
            binary_cross_entropy_results(x, &target).0.0
        });
        let (of_mean, bounds) = binary_cross_entropy_bound(&x, &target);
        assert!(of_mean < 1e-4 && bounds.iter().all(|b| *b > 0.0 && *b < 1e-5));
    }
}

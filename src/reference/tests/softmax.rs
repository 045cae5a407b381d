use super::*;

mod softmax {
    use super::*;

    #[test]
    fn rows_sum_to_one() {
        assert_eq!(softmax(2, &[0.0f32, 0.0, 1000.0, 1000.0]), [0.5; 4]);
        let two = 2f32.ln();
        let got = softmax(3, &[0.0, two, -f32::INFINITY]);
        assert!((got[0] - 1.0 / 3.0).abs() < 1e-7 && (got[1] - 2.0 / 3.0).abs() < 1e-7 && got[2] == 0.0);
        assert_eq!(softmax(1, &[5.0f32, -3.0]), [1.0, 1.0]);
        assert!(softmax::<f32>(0, &[]).is_empty());
    }

    #[test]
    fn undefined_softmax_is_nan() {
        let inf = f32::INFINITY;
        for row in [[-inf, -inf], [inf, 0.0], [f32::NAN, 0.0]] {
            assert!(softmax(2, &row).iter().all(|x| x.is_nan()), "{row:?}");
        }
    }

    #[test]
    fn bound_grows_with_distance_and_is_small() {
        let bound = softmax_bound(2, &[0.0f32, -10.0]);
        assert!(bound[0] > 0.0 && bound[0] < 1e-4 && bound[1] < bound[0], "{bound:?}");
    }
}

mod softmax_backward {
    use super::*;

    #[test]
    fn gradient_matches_finite_differences() {
        use crate::reference::softmax;
        let (x, dy) = ([0.3f32, -1.0, 0.5, 2.0], [1.0f32, -2.0, 0.5, 3.0]);
        let dx = softmax_backward(4, &softmax(4, &x), &dy);
        let loss =
            |x: &[f32]| -> f64 { softmax(4, x).iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum() };
        crate::reference::assert_slopes(&x, &dx, loss);
        // A shift of all logits has no effect.
        assert!(dx.iter().sum::<f32>().abs() < 1e-6);
    }

    #[test]
    fn bound_is_small() {
        assert!(softmax_backward_bound(2, &[0.25f32, 0.75], &[1.0, 2.0]).iter().all(|b| *b > 0.0 && *b < 1e-5));
    }
}

mod log_softmax {
    use super::*;

    #[test]
    fn logarithms_of_probabilities() {
        let half = -std::f32::consts::LN_2;
        assert_eq!(log_softmax(2, &[7.0f32, 7.0]), [half, half]);
        // Logarithms of probabilities that round to 0 stay finite.
        assert_eq!(log_softmax(2, &[0.0f32, -1000.0]), [0.0, -1000.0]);
        assert_eq!(log_softmax(2, &[0.0f32, -f32::INFINITY]), [0.0, -f32::INFINITY]);
        assert!(log_softmax(2, &[-f32::INFINITY; 2]).iter().all(|x| x.is_nan()));
    }

    #[test]
    fn bound_is_small() {
        assert!(log_softmax_bound(3, &[0.0f32, 1.0, 2.0]).iter().all(|b| *b > 0.0 && *b < 1e-5));
    }
}

mod log_softmax_backward {
    use super::*;

    #[test]
    fn gradient_matches_finite_differences() {
        use crate::reference::log_softmax;
        let (x, dy) = ([0.3f32, -1.0, 0.5, 2.0], [1.0f32, -2.0, 0.5, 3.0]);
        let dx = log_softmax_backward(4, &log_softmax(4, &x), &dy);
        let loss =
            |x: &[f32]| -> f64 { log_softmax(4, x).iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum() };
        crate::reference::assert_slopes(&x, &dx, loss);
    }

    #[test]
    fn bound_is_small() {
        assert!(log_softmax_backward_bound(2, &[-0.5f32, -1.0], &[1.0, 2.0]).iter().all(|b| *b > 0.0 && *b < 1e-5));
    }
}

mod sample_logits {
    use super::*;

    /// How often each token comes in many rows of the same logits.
    fn shares(op: &SampleLogits, logits: &[f32]) -> Vec<f64> {
        let ([rows, classes], ..) = op.rule();
        let all: Vec<f32> = (0..rows).flat_map(|_| logits.to_vec()).collect();
        let mut counts = vec![0.0; classes];
        for tokens in sample_logits(op, &all) {
            counts[tokens[0] as usize] += 1.0 / rows as f64;
        }
        counts
    }

    #[test]
    fn tokens_come_as_often_as_their_probability() {
        let logits = [0.0f32, 2f32.ln(), f32::NEG_INFINITY, 4f32.ln(), f32::NAN];
        let op = SampleLogits::new([20_000, 5]).seed(9);
        let near = |got: Vec<f64>, want: [f64; 5]| {
            assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 0.02), "{got:?} {want:?}");
        };
        near(shares(&op, &logits), [1.0 / 7.0, 2.0 / 7.0, 0.0, 4.0 / 7.0, 0.0]);
        near(shares(&op.clone().top_k(2), &logits), [0.0, 1.0 / 3.0, 0.0, 2.0 / 3.0, 0.0]);
        near(shares(&op.clone().top_p(0.5), &logits), [0.0, 0.0, 0.0, 1.0, 0.0]);
        near(shares(&op.clone().top_p(0.7), &logits), [0.0, 1.0 / 3.0, 0.0, 2.0 / 3.0, 0.0]);
        near(shares(&op.clone().temperature(0.5), &logits), [1.0 / 21.0, 4.0 / 21.0, 0.0, 16.0 / 21.0, 0.0]);
        near(shares(&op.temperature(0.0), &logits), [0.0, 0.0, 0.0, 1.0, 0.0]);
    }
}

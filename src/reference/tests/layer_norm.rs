use super::*;

mod layer_norm {
    use super::*;

    #[test]
    fn rows_have_mean_0_and_variance_1() {
        let norm = LayerNorm::new(2, 2).eps(0.0);
        let x = [1.0f32, 3.0, 10.0, 30.0];
        assert_eq!(layer_norm(&norm, &x, &[1.0; 2], None), [-1.0, 1.0, -1.0, 1.0]);
        assert_eq!(layer_norm(&norm, &x, &[2.0, 3.0], Some(&[0.5, 0.5])), [-1.5, 3.5, -1.5, 3.5]);
        // An epsilon of 3 beside a variance of 1.
        assert_eq!(layer_norm(&norm.eps(3.0), &x[..2], &[1.0; 2], None), [-0.5, 0.5]);
    }

    #[test]
    fn bound_follows_the_mean() {
        let norm = LayerNorm::new(1, 2);
        let near = layer_norm_bound(&norm, &[1.0f32, 3.0], &[1.0; 2], None);
        let far = layer_norm_bound(&norm, &[1001.0f32, 1003.0], &[1.0; 2], None);
        assert!(near[0] > 0.0 && near[0] < 1e-5 && far[0] > 100.0 * near[0], "{near:?} {far:?}");
    }
}

mod layer_norm_backward {
    use super::*;
    use crate::nn::LayerNorm;
    use crate::reference::{assert_slopes, layer_norm};

    #[test]
    fn gradients_match_finite_differences() {
        let norm = LayerNorm::new(2, 3);
        let x = [0.3f32, -1.0, 0.5, 2.0, 1.0, -0.5];
        let (gamma, beta, dy) = ([0.5f32, 2.0, -1.0], [0.1f32, 0.2, 0.3], [1.0f32, -2.0, 0.5, 3.0, -1.0, 0.25]);
        let [dx, dgamma, dbeta] = layer_norm_backward(&LayerNormBackward::new(2, 3), &x, &gamma, &dy);
        let loss = |x: &[f32], gamma: &[f32], beta: &[f32]| -> f64 {
            let y = layer_norm(&norm, x, gamma, Some(beta));
            y.iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
        };
        assert_slopes(&x, &dx, |x| loss(x, &gamma, &beta));
        assert_slopes(&gamma, &dgamma, |gamma| loss(&x, gamma, &beta));
        assert_slopes(&beta, &dbeta, |beta| loss(&x, &gamma, beta));
    }
}

mod rms_norm {
    use super::*;

    #[test]
    fn rows_have_mean_square_1() {
        let norm = RmsNorm::new(2, 2).eps(0.0);
        assert_eq!(rms_norm(&norm, &[1.0f32, 7.0, 2.0, -2.0], &[1.0; 2], None), [0.2, 1.4, 1.0, -1.0]);
        assert_eq!(rms_norm(&norm, &[2.0f32, -2.0], &[1.0, 3.0], Some(&[1.0, 1.0])), [2.0, -2.0]);
        assert_eq!(rms_norm(&norm.eps(12.0), &[2.0f32, 2.0], &[1.0; 2], None), [0.5, 0.5]);
    }

    #[test]
    fn bound_is_small() {
        let bound = rms_norm_bound(&RmsNorm::new(1, 2), &[1.0f32, 7.0], &[1.0; 2], None);
        assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-5), "{bound:?}");
    }
}

mod rms_norm_backward {
    use super::*;
    use crate::nn::RmsNorm;
    use crate::reference::{assert_slopes, rms_norm};

    #[test]
    fn gradients_match_finite_differences() {
        let norm = RmsNorm::new(2, 2);
        let (x, gamma, dy) = ([0.3f32, -1.0, 0.5, 2.0], [0.5f32, 2.0], [1.0f32, -2.0, 0.5, 3.0]);
        let [dx, dgamma] = rms_norm_backward(&RmsNormBackward::new(2, 2), &x, &gamma, &dy);
        let loss = |x: &[f32], gamma: &[f32]| -> f64 {
            let y = rms_norm(&norm, x, gamma, None);
            y.iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
        };
        assert_slopes(&x, &dx, |x| loss(x, &gamma));
        assert_slopes(&gamma, &dgamma, |gamma| loss(&x, gamma));
    }
}

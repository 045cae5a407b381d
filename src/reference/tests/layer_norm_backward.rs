use super::super::{assert_slopes, layer_norm};
use super::*;
use crate::nn::LayerNorm;

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

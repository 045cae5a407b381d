use super::super::{assert_slopes, rms_norm};
use super::*;
use crate::nn::RmsNorm;

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

use super::super::{assert_slopes, batch_norm_train};
use super::*;
use crate::nn::BatchNormTrain;

#[test]
fn gradients_are_those_of_finite_differences() {
    let shape = [2, 2, 1, 2];
    let (forward, backward) = (BatchNormTrain::new(shape), BatchNormBackward::new(shape));
    let x = [0.3f32, -1.0, 0.5, 2.0, 1.0, -0.5, 0.7, -2.0];
    let dy = [1.0f32, -2.0, 0.5, 3.0, -1.0, 0.25, 2.0, 0.5];
    let (gamma, beta, zeros) = ([0.5f32, -2.0], [0.1f32, 0.2], [0.0f32; 2]);
    let [dx, dgamma, dbeta] = batch_norm_backward(&backward, &x, &gamma, &dy);
    let loss = |x: &[f32], gamma: &[f32], beta: &[f32]| -> f64 {
        let [y, ..] = batch_norm_train(&forward, x, [gamma, beta, &zeros, &zeros]);
        y.iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
    };
    assert_slopes(&x, &dx, |x| loss(x, &gamma, &beta));
    assert_slopes(&gamma, &dgamma, |gamma| loss(&x, gamma, &beta));
    assert_slopes(&beta, &dbeta, |beta| loss(&x, &gamma, beta));
}

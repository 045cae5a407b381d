use super::*;
use crate::nn::{Pool2d, PoolKind};
use crate::reference::pool;

#[test]
fn gradient_matches_finite_differences_of_the_pool() {
    let shape = [1, 2, 3, 4];
    let (x, dy): (Vec<f32>, Vec<f32>) =
        ((0..24).map(|i| (i as f32).sin()).collect(), (0..30).map(|i| 0.3 - 0.1 * i as f32).collect());
    let op = Pool2dBackwardWeights::new(shape, [2, 1]).stride([1, 1]).pad([1, 0]).dilation([2, 1]);
    let of = |weights: &[f32]| -> f64 {
        let kind = PoolKind::Weighted(weights.to_vec());
        let op = Pool2d::new(kind, shape, [2, 1]).stride([1, 1]).pad([1, 0]).dilation([2, 1]);
        let y = pool(&op, &x, None).unwrap();
        y.iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
    };
    let dy = &dy[..op.dy_shape().unwrap().iter().product()];
    let dw = pool_backward_weights(&op, &x, dy).unwrap();
    for (i, want) in dw.iter().enumerate() {
        // The pool is linear in its weights.
        let mut weights = [0.0; 2];
        weights[i] = 1.0;
        assert!((of(&weights) - f64::from(*want)).abs() < 1e-5, "{i}");
    }
    assert!(pool_backward_weights_bound(&op, &x, dy).unwrap().iter().all(|b| *b < 1e-4));
}

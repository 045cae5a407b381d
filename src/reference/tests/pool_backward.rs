use super::*;

#[test]
fn shares_of_two_windows_add() {
    let x = [1.0f32, 3.0, 2.0];
    let of = |kind| Pool2dBackward::new(kind, [1, 1, 1, 3], [1, 2]).stride([1, 1]);
    assert_eq!(pool_backward(&of(PoolKind::Max), &x, &[10.0, 20.0]).unwrap(), [0.0, 30.0, 0.0]);
    assert_eq!(pool_backward(&of(PoolKind::Average), &x, &[10.0, 20.0]).unwrap(), [5.0, 15.0, 10.0]);
    let l2 = Pool2dBackward::new(PoolKind::L2, [1, 1, 1, 2], [1, 2]);
    assert_eq!(pool_backward(&l2, &[3.0f32, 4.0], &[5.0]).unwrap(), [3.0, 4.0]);
    assert_eq!(pool_backward(&l2, &[0.0f32, 0.0], &[5.0]).unwrap(), [0.0, 0.0]);
    // Squares that may be flushed to 0.
    let bound = pool_backward_bound(&l2, &[1e-20f32, 0.0], &[5.0]).unwrap();
    assert!(bound[0] == f64::INFINITY && bound[1] <= f64::from(f32::MIN_POSITIVE), "{bound:?}");
}

#[test]
fn gradient_matches_finite_differences() {
    use super::super::pool;
    use crate::nn::Pool2d;
    let x: Vec<f32> = (0..30).map(|i| ((i * 7919) % 101) as f32 / 50.0 - 1.0).collect();
    let weights = PoolKind::Weighted((0..6).map(|i| 0.5 - 0.2 * i as f32).collect());
    for kind in [PoolKind::Max, PoolKind::Average, PoolKind::L2, weights] {
        let shape = [1, 1, 5, 6];
        let forward = Pool2d::new(kind.clone(), shape, [3, 2]).stride([2, 1]).pad([1, 1]);
        let [.., p, q] = forward.output_shape().unwrap();
        let op = Pool2dBackward::new(kind, shape, [3, 2]).stride([2, 1]).pad([1, 1]);
        let dx = pool_backward(&op, &x, &vec![1.0; p * q]).unwrap();
        let loss = |x: &[f32]| pool(&forward, x, None).unwrap().iter().map(|y| f64::from(*y)).sum::<f64>();
        for i in 0..x.len() {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[i] += 1e-3;
            down[i] -= 1e-3;
            let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
            assert!((slope - f64::from(dx[i])).abs() < 2e-3, "{i}: {slope} {}", dx[i]);
        }
    }
}

use super::*;

mod pool {
    use super::*;

    const X: [f32; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

    fn of(kind: PoolKind) -> Pool2d {
        Pool2d::new(kind, [1, 1, 3, 3], [2, 2]).stride([1, 1])
    }

    #[test]
    fn windows_of_a_square_are_known() {
        assert_eq!(pool(&of(PoolKind::Max), &X, None).unwrap(), [5.0, 6.0, 8.0, 9.0]);
        assert_eq!(pool(&of(PoolKind::Average), &X, None).unwrap(), [3.0, 4.0, 6.0, 7.0]);
        let corners = PoolKind::Weighted(vec![1.0, 0.0, 0.0, -1.0]);
        assert_eq!(pool(&of(corners), &X, Some(&[0.5])).unwrap(), [-3.5; 4]);
        let l2 = Pool2d::new(PoolKind::L2, [1, 1, 1, 2], [1, 2]);
        assert_eq!(pool(&l2, &[3.0f32, -4.0], None).unwrap(), [5.0]);
        // The stride skips the last row and column.
        assert_eq!(pool(&of(PoolKind::Max).stride([2, 2]), &X, None).unwrap(), [5.0]);
    }

    #[test]
    fn padding_is_ignored_unless_counted() {
        let op = of(PoolKind::Average).stride([2, 2]).pad([1, 1]);
        assert_eq!(pool(&op, &X, None).unwrap(), [1.0, 2.5, 5.5, 7.0]);
        assert_eq!(pool(&op.count_include_pad(), &X, None).unwrap(), [0.25, 1.25, 2.75, 7.0]);
        let op = of(PoolKind::Max).stride([2, 2]).pad([1, 1]);
        assert_eq!(pool(&op, &X.map(|x| -x), None).unwrap(), [-1.0, -2.0, -4.0, -5.0]);
    }

    #[test]
    fn dilation_and_padding_of_each_side_follow_the_formula() {
        let op = Pool2d::new(PoolKind::Max, [1, 1, 3, 3], [2, 2]).stride([1, 1]).dilation([2, 2]);
        assert_eq!(pool(&op, &X, None).unwrap(), [9.0]);
        let right = of(PoolKind::Max).pad_each([0, 0, 0, 1]);
        assert_eq!(pool(&right, &X, None).unwrap(), [5.0, 6.0, 6.0, 8.0, 9.0, 9.0]);
    }

    #[test]
    fn the_maximum_is_the_first_and_nan_wins() {
        assert_eq!(largest(&[1.0, 3.0, 3.0]), Some(1));
        assert_eq!(largest(&[f64::NAN, 3.0]), Some(0));
        assert_eq!(largest(&[]), None);
    }
}

mod pool_backward {
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
        use crate::nn::Pool2d;
        use crate::reference::pool;
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
}

mod pool_backward_weights {
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
}

mod mean_pool {
    use super::*;

    #[test]
    fn only_tokens_within_the_length_count() {
        let x = [1.0f32, 2.0, 5.0, 6.0, f32::NAN, f32::NAN];
        assert_eq!(mean_pool(&MeanPool::new([1, 3, 2]), &x, &[2]), [3.0, 4.0]);
        assert_eq!(mean_pool(&MeanPool::new([1, 3, 2]).normalized(), &x, &[2]), [0.6, 0.8]);
        assert_eq!(mean_pool(&MeanPool::new([1, 3, 2]).normalized(), &x, &[0]), [0.0, 0.0]);
        assert_eq!(mean_pool(&MeanPool::new([2, 1, 2]), &x[..4], &[9, 1]), [1.0, 2.0, 5.0, 6.0]);
        // Half of the smallest number rounds to 0.
        let tiny = [f32::from_bits(1), 0.0];
        let op = MeanPool::new([1, 2, 1]).normalized();
        assert!(mean_pool(&op, &tiny, &[2])[0] > 0.0);
        assert!(mean_pool_bound(&op, &tiny, &[2])[0] >= f64::from(mean_pool(&op, &tiny, &[2])[0]));
        let bound = mean_pool_bound(&MeanPool::new([1, 3, 2]).normalized(), &x, &[2]);
        assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-5));
    }
}

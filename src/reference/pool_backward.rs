//! The gradient of pooling.

use super::Number;
use super::judge::{Wanted, by_input, descriptor, input, output_shape};
use super::number::{spread, ulp};
use super::pool::{each_window, largest, lost};
use crate::error::Result;
use crate::nn::{Pool2dBackward, PoolKind};
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Pool2dBackward>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = pool_backward_bound(op, x, dy)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), pool_backward(op, x, dy)?, bound)?])
    })
}

/// Computes the gradient of pooling with respect to `x`.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) if the windows do not fit.
pub fn pool_backward<T: Number>(op: &Pool2dBackward, x: &[T], dy: &[T]) -> Result<Vec<T>> {
    Ok(shares(op, x, dy)?.iter().map(|[exact, ..]| T::from_f64(*exact)).collect())
}

/// Bounds the error of each element: for each share a division (2.5 ULP) and, for L2, the sum of squares and lost
/// subnormal squares; then the chain of additions of the shares.
///
/// # Errors
/// As [`pool_backward`].
pub fn pool_backward_bound<T: Number>(op: &Pool2dBackward, x: &[T], dy: &[T]) -> Result<Vec<f64>> {
    let cells = op.parts().1.kernel.iter().product::<usize>() as f64;
    let error = (2.0 * cells + 10.0) * ulp(1.0);
    // Subnormal intermediate results may be flushed to 0.
    let least = f64::from(f32::MIN_POSITIVE);
    Ok(shares(op, x, dy)?
        .iter()
        .map(|&[exact, size, lost]| spread(T::from_f64(exact), exact, error * size + lost + least))
        .collect())
}

/// Returns for each element the sum of its shares, the sum of their magnitudes, and the error from subnormal squares.
fn shares<T: Number>(op: &Pool2dBackward, x: &[T], dy: &[T]) -> Result<Vec<[f64; 3]>> {
    let (kind, windows) = op.parts();
    let mut sums = vec![[0.0; 3]; x.len()];
    let mut gradients = dy.iter().map(|dy| dy.to_f64());
    each_window(windows, |_, window| {
        let Some(gradient) = gradients.next() else { return };
        let values: Vec<f64> = window.iter().map(|cell| x[cell.at].to_f64()).collect();
        let root = values.iter().map(|x| x * x).sum::<f64>().sqrt();
        // If less than half of the squares is certain, the root may be 0 and the quotient anything.
        let part = if *kind == PoolKind::L2 { lost(&values) } else { 0.0 };
        let lost = if part > 0.5 { f64::INFINITY } else { part };
        let all = windows.kernel[0] * windows.kernel[1];
        let cells = if windows.padding_counts { all } else { values.len() } as f64;
        let first = largest(&values);
        for (i, cell) in window.iter().enumerate() {
            let share = match kind {
                PoolKind::Max if first == Some(i) => gradient,
                PoolKind::Average => gradient / cells,
                PoolKind::L2 if root != 0.0 => gradient * values[i] / root,
                PoolKind::Weighted(weights) => gradient * f64::from(weights[cell.place]),
                _ => 0.0,
            };
            let sum = &mut sums[cell.at];
            sum[0] += share;
            sum[1] += share.abs();
            if share != 0.0 {
                sum[2] += share.abs() * lost;
            }
        }
    })?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
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
            let loss =
                |x: &[f32]| pool(&forward, x, None).unwrap().iter().map(|y| f64::from(*y)).sum::<f64>();
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

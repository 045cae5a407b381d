use super::prelude::*;
use crate::conv::{Boundary, Filter1d, Filter2d, Filter3d, Stencil};

judges! { filter1d => judge_filter1d, filter2d => judge_filter2d, filter3d => judge_filter3d }

fn judge_filter1d(call: &OpCall) -> Result<Vec<Wanted>> {
    judge_stencil(call, descriptor::<Filter1d>(call)?.stencil())
}

/// Filters `input` in f64. Results are not rounded. The filter must be one of the host's.
pub fn filter1d<T: Element + Into<f64>>(op: &Filter1d, input: &[T]) -> Vec<f64> {
    stencil(op.stencil(), input)
}

/// Bounds the difference from [`filter1d`] of each element.
pub fn filter1d_bound<T: Element + Into<f64>>(op: &Filter1d, input: &[T]) -> Vec<f64> {
    stencil_bound(op.stencil(), input)
}

fn judge_filter2d(call: &OpCall) -> Result<Vec<Wanted>> {
    judge_stencil(call, descriptor::<Filter2d>(call)?.stencil())
}

/// Filters `input` in f64, unrounded. The filter must be one of the host's. The kernels round `u8` to nearest, ties to
/// even, and clamp to 0 to 255.
pub fn filter2d<T: Element + Into<f64>>(op: &Filter2d, input: &[T]) -> Vec<f64> {
    stencil(op.stencil(), input)
}

/// Bounds the difference from [`filter2d`] of each element, before it is rounded to `u8`.
pub fn filter2d_bound<T: Element + Into<f64>>(op: &Filter2d, input: &[T]) -> Vec<f64> {
    stencil_bound(op.stencil(), input)
}

fn judge_filter3d(call: &OpCall) -> Result<Vec<Wanted>> {
    judge_stencil(call, descriptor::<Filter3d>(call)?.stencil())
}

/// The expected output of a filter, whose weights are those of its second input if it has none.
pub(super) fn judge_stencil(call: &OpCall, op: &Stencil) -> Result<Vec<Wanted>> {
    let with_input = input::<f32>(call, 1).ok().filter(|_| op.weights.is_none()).map(|w| op.holding(w));
    let (op, shape) = (with_input.as_ref().unwrap_or(op), output_shape(call, 0));
    by_input!(call, 0, [f32, f16, u8], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (stencil(op, x), stencil_bound(op, x));
        Ok(vec![match T::DTYPE {
            DType::F32 => unrounded(&shape, &want, &bound)?,
            dtype => Wanted::rounded(dtype, &shape, &want, &bound)?,
        }])
    })
}

/// The place that coordinate `i` of an axis of `n` elements reads; `None` reads 0.
pub(super) fn outside(boundary: Boundary, i: isize, n: usize) -> Option<usize> {
    let last = n as isize - 1;
    let inside = match boundary {
        Boundary::Zero if i < 0 || i > last => return None,
        Boundary::Zero => i,
        Boundary::Clamp => i.clamp(0, last),
        Boundary::Wrap => i.rem_euclid(last + 1),
    };
    Some(inside as usize)
}

fn at<T: Element + Into<f64>>(stencil: &Stencil, input: &[T], p: [isize; 3]) -> f64 {
    let mut place = 0;
    for (axis, &n) in stencil.extents.iter().enumerate() {
        let Some(i) = outside(stencil.boundary, p[axis], n) else { return 0.0 };
        place = place * n + i;
    }
    input[place].into()
}

/// The sum of each output, and the same with every term made positive.
fn sums<T: Element + Into<f64>>(stencil: &Stencil, input: &[T]) -> Vec<(f64, f64)> {
    let [d, h, w] = stencil.extents;
    let [fd, fh, fw] = stencil.filter;
    let mut all = Vec::with_capacity(d * h * w);
    for z in 0..d as isize {
        for y in 0..h as isize {
            for x in 0..w as isize {
                let (mut sum, mut size) = (0.0, 0.0);
                let mut weights = stencil.weights.iter().flatten();
                for k in 0..fd as isize {
                    for j in 0..fh as isize {
                        for i in 0..fw as isize {
                            let from =
                                [z + k - (fd / 2) as isize, y + j - (fh / 2) as isize, x + i - (fw / 2) as isize];
                            let weight = weights.next().copied().unwrap_or_default();
                            let term = f64::from(weight) * at(stencil, input, from);
                            sum += term;
                            size += term.abs();
                        }
                    }
                }
                all.push((sum, size));
            }
        }
    }
    all
}

/// The exact sums, not rounded.
pub(super) fn stencil<T: Element + Into<f64>>(stencil: &Stencil, input: &[T]) -> Vec<f64> {
    sums(stencil, input).into_iter().map(|(sum, _)| sum).collect()
}

/// Bounds the error of fused multiply-adds in f32, in any order, with subnormal numbers flushed.
pub(super) fn stencil_bound<T: Element + Into<f64>>(stencil: &Stencil, input: &[T]) -> Vec<f64> {
    let terms = stencil.taps() as f64;
    // One rounding of the sum for each term; a product may also be rounded by itself.
    let gamma = (terms + 1.0) * 2f64.powi(-23);
    let flush = 2.0 * terms * f64::from(f32::MIN_POSITIVE);
    sums(stencil, input)
        .into_iter()
        .map(|(_, size)| {
            let error = gamma * size + flush;
            if size + error > f64::from(f32::MAX) { f64::INFINITY } else { error }
        })
        .collect()
}

/// Filters `input` in f64. Results are not rounded. The filter must be one of the host's.
pub fn filter3d<T: Element + Into<f64>>(op: &Filter3d, input: &[T]) -> Vec<f64> {
    stencil(op.stencil(), input)
}

/// Bounds the difference from [`filter3d`] of each element.
pub fn filter3d_bound<T: Element + Into<f64>>(op: &Filter3d, input: &[T]) -> Vec<f64> {
    stencil_bound(op.stencil(), input)
}

#[cfg(test)]
#[path = "tests/filters.rs"]
mod tests;

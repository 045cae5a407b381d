use super::filter3d::{judge_stencil, stencil, stencil_bound};
use super::prelude::*;
use crate::conv::Filter2d;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/filter2d.rs"]
mod tests;

use super::filter3d::{judge_stencil, stencil, stencil_bound};
use super::prelude::*;
use crate::conv::Filter1d;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/filter1d.rs"]
mod tests;

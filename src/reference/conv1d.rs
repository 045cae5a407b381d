//! Stencils along a line.

use super::conv3d::{stencil, stencil_bound};
use super::judge::{Wanted, descriptor, input, output_shape, unrounded};
use crate::conv::Conv1d;
use crate::element::Element;
use crate::error::Result;
use crate::program::Form;

pub(super) fn judge(form: &Form) -> Result<Vec<Wanted>> {
    let (op, x) = (descriptor::<Conv1d>(form)?, input::<f32>(form, 0)?);
    Ok(vec![unrounded(&output_shape(form, 0), &conv1d(op, x), &conv1d_bound(op, x))?])
}

/// What `op` makes of `input`, not rounded.
pub fn conv1d<T: Element + Into<f64>>(op: &Conv1d, input: &[T]) -> Vec<f64> {
    stencil(op.stencil(), input)
}

/// How far from [`conv1d`] each element may be.
pub fn conv1d_bound<T: Element + Into<f64>>(op: &Conv1d, input: &[T]) -> Vec<f64> {
    stencil_bound(op.stencil(), input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::Boundary;

    #[test]
    fn known_sums_at_every_boundary() {
        let x = [8.0f32, 2.0, 5.0, 4.0, 1.0, 7.0, 3.0];
        let op = Conv1d::new(7, &[1.0, 3.0, 5.0, 3.0, 1.0]);
        assert_eq!(conv1d(&op, &x), [51.0, 53.0, 52.0, 47.0, 46.0, 51.0, 37.0]);
        let next = Conv1d::new(3, &[0.0, 0.0, 1.0]);
        assert_eq!(conv1d(&next, &x[..3]), [2.0, 5.0, 0.0]);
        assert_eq!(conv1d(&next.clone().boundary(Boundary::Clamp), &x[..3]), [2.0, 5.0, 5.0]);
        assert_eq!(conv1d(&next.boundary(Boundary::Wrap), &x[..3]), [2.0, 5.0, 8.0]);
    }
}

//! The gradients of RMS norm.

use super::form::{EPS, of_rows_backward};
use super::rows_backward::{Of, RowsBackward, VARIANTS, samples as samples_of_rows};
use crate::element::DType;
use crate::error::Result;
use crate::program::{Asked, DeviceProfile, Form, Input, Op, Operation, Program, operands};

/// The gradients of a loss by the argument and the scale of RMS norm, from that by its result. With `s = 1 / sqrt(mean(x^2) + eps)`
/// and `g = dy gamma`:
/// `dx = s (g - x s^2 mean(g x)), dgamma = sum over rows of dy x s`.
///
/// # Shapes
/// `x`, the argument of [`RmsNorm`](super::RmsNorm), `dy` and `dx` have `rows * n` elements, row-major; the others n. Operands
/// are `x`, `gamma`, `dy`, `dx`, `dgamma`, in this order. Either extent may be 0. Every output must be a wgpu
/// buffer of its own.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Sums in f32, over rows in a tree of fixed order, over columns by blocks of rows and then over blocks. Same device, same
/// bits. [`reference::rms_norm_backward_bound`](crate::reference::rms_norm_backward_bound) is the bound of the error.
///
/// # Cost
/// About 8 operations an element. `x` and `dy` are read twice: for `dx`, where the statistics of each row are found anew, and
/// for the sums of columns; three dispatches, 8 bytes of scratch a row and the sums of at most 128 blocks.
///
/// # Variants
/// `whole` keeps a row in the registers of at most a workgroup, up to 8192 elements (on processors 2048; a quarter of that where rows are no multiple of 4); `passes` takes
/// rows of any length. `auto` (the default) takes `whole` where it can.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, a row above the largest binding, or above what
/// `whole` can hold; [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, an `eps` that is negative
/// or not finite.
///
/// # Algorithm
/// `shaders/nn/rows_backward.wgsl` with `rms_norm_backward.wgsl`, then `bias_backward.wgsl` twice.
///
/// # Example
/// ```
/// use tilework::nn::RmsNormBackward;
/// use tilework::program::{DeviceProfile, Op};
///
/// let program = Op::<f32>::lower(&RmsNormBackward::new(16384, 4096), &DeviceProfile::h100())?;
/// assert_eq!((program.variant(), program.operands[4].name), ("whole", "dgamma"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNormBackward {
    rows: RowsBackward,
}

impl RmsNormBackward {
    /// Of `rows` rows of `n` elements, with an epsilon of 1e-5.
    pub fn new(rows: usize, n: usize) -> Self {
        Self { rows: RowsBackward::new("rms-norm-backward", Of::RmsNorm, rows, n) }
    }

    /// What was added below the root; the default is 1e-5.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> Self {
        self.rows.eps = eps;
        self
    }

    /// Returns the epsilon. Pass it to the [reference](crate::reference::rms_norm_backward).
    pub fn epsilon(&self) -> f32 {
        self.rows.eps
    }

    crate::program::variants!(rows.variant);
}

operands! {
    impl[] RmsNormBackward, f32 {
        fn record(x: f32, gamma: f32, dy: f32, dx: f32, dgamma: f32);
    }
}

crate::program::lowers! {
    impl[] RmsNormBackward as [f32], |op, _, profile| op.rows.lower(profile)
}

pub(super) const INFO: Operation = Operation {
    name: "rms-norm-backward",
    about: "the gradients of RMS norm: of x and gamma",
    inputs: &[Input::new("x", "(..., n)"), Input::new("gamma", "(n)"), Input::new("dy", "(..., n)")],
    outputs: &[("dx", "as x"), ("dgamma", "(n)")],
    types: &[DType::F32],
    options: &[EPS],
    make: Some(make),
    variants: RmsNormBackward::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    of_rows_backward(asked, RmsNormBackward::new(0, 0).rows, |rows| RmsNormBackward { rows })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    samples_of_rows(|rows, n| Op::<f32>::lower(&RmsNormBackward::new(rows, n).variant(variant), profile))
}

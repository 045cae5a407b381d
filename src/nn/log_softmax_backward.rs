//! The gradient of the logarithm of softmax.

use super::form::of_rows_backward;
use super::rows_backward::{Of, RowsBackward, VARIANTS, samples as samples_of_rows};
use crate::element::DType;
use crate::error::Result;
use crate::program::{Asked, DeviceProfile, Domain, Form, Input, Op, Operation, Program, operands};

/// The gradient of a loss by the argument of the logarithm of softmax, from that by its result, row by row:
/// `dx = dy - e^y sum(dy)`.
///
/// # Shapes
/// `y`, the result of [`LogSoftmax`](super::LogSoftmax), `dy` and `dx` have `rows * n` elements, row-major. Operands are `y`, `dy`, `dx`,
/// in this order. Either extent may be 0. `dx` must be a wgpu buffer of its own.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Sums in f32, in a tree of fixed order. A row that holds NaN is NaN. Same device, same bits.
/// [`reference::log_softmax_backward_bound`](crate::reference::log_softmax_backward_bound) is the bound of the error.
///
/// # Cost
/// About 8 operations an element; one dispatch, no scratch. `whole` reads and writes every element once.
///
/// # Variants
/// `whole` keeps a row in the registers of at most a workgroup, up to 8192 elements (on processors 2048; a quarter of that where rows are no multiple of 4); `passes` takes
/// rows of any length. `auto` (the default) takes `whole` where it can.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, a row above the largest binding, or above what
/// `whole` can hold; [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/rows_backward.wgsl` with `log_softmax_backward.wgsl`.
///
/// # Example
/// ```
/// use tilework::nn::LogSoftmaxBackward;
/// use tilework::program::{DeviceProfile, Op};
///
/// let program = Op::<f32>::lower(&LogSoftmaxBackward::new(16384, 4096), &DeviceProfile::h100())?;
/// assert_eq!((program.variant(), program.dispatches.len()), ("whole", 1));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LogSoftmaxBackward {
    rows: RowsBackward,
}

impl LogSoftmaxBackward {
    /// Of `rows` rows of `n` elements.
    pub fn new(rows: usize, n: usize) -> Self {
        Self {
            rows: RowsBackward::new("log-softmax-backward", Of::Softmax("nn/log_softmax_backward"), rows, n),
        }
    }

    crate::program::variants!(rows.variant);
}

operands! {
    impl[] LogSoftmaxBackward, f32 {
        fn record(y: f32, dy: f32, dx: f32);
    }
}

crate::program::lowers! {
    impl[] LogSoftmaxBackward as [f32], |op, _, profile| op.rows.lower(profile)
}

pub(super) const INFO: Operation = Operation {
    name: "log-softmax-backward",
    about: "the gradient of log-softmax",
    inputs: &[Input::new("y", "(..., n)"), Input::new("dy", "(..., n)")],
    outputs: &[("dx", "as y")],
    types: &[DType::F32],
    domains: &[("y", Domain::Finite)],
    make: Some(make),
    variants: LogSoftmaxBackward::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    of_rows_backward(asked, LogSoftmaxBackward::new(0, 0).rows, |rows| LogSoftmaxBackward { rows })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    samples_of_rows(|rows, n| Op::<f32>::lower(&LogSoftmaxBackward::new(rows, n).variant(variant), profile))
}

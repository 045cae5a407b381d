//! Log-softmax: logarithms of probabilities.

use super::form::{FLOATS, LANES, of_rows};
use super::rows::{Rows, VARIANTS, samples as samples_of_rows};
use crate::element::Element;
use crate::error::Result;
use crate::program::{Asked, Comparison, DeviceProfile, Form, Input, Op, Operation, Program, operands};
use half::f16;

/// Logarithm of the softmax of each row: `output[r, i] = x[r, i] - max(x[r]) - log(sum_j exp(x[r, j] - max(x[r])))`.
///
/// # Shapes
/// `x` and `output` have `rows * n` elements, row-major: [`LogSoftmax::new`] says both. Of a tensor the last axis is the
/// row. Either may be 0. Rows may have any length that one binding of the device holds. The two must be different wgpu
/// buffers.
///
/// # Types
/// f32, and f16 with arithmetic in f32.
///
/// # Precision and determinism
/// Computed in f32, the largest of the row subtracted first, and no logarithm of a rounded 0; sums in a tree of fixed order.
/// A row that holds NaN or infinity, or nothing but -infinity, is all NaN; -infinity beside numbers gives
/// -infinity. Same device, same bits. [`reference::log_softmax_bound`](crate::reference::log_softmax_bound) is the bound of the error.
///
/// # Cost
/// About 5 operations an element. `whole`: one dispatch, no scratch, every element read once and written once. `parts`:
/// three dispatches, every element read twice and written once, and 8 bytes of scratch for about 4096 elements.
///
/// # Variants
/// `whole` keeps a row in the registers of at most a workgroup, up to 16384 elements (on processors 4096); `parts` takes rows of
/// any length. `auto` (the default) takes `whole` where it can.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge): `x` above the largest buffer, a row above the largest binding, or above what
/// `whole` can hold; [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant, lanes that are no power
/// of two.
///
/// # Algorithm
/// As [`Softmax`](super::Softmax), without dividing: `shaders/nn/rows_normalize.wgsl` with `log_softmax.wgsl`.
///
/// # Example
/// ```
/// use tilework::nn::LogSoftmax;
/// use tilework::program::{DeviceProfile, Op};
///
/// let op = LogSoftmax::new(16384, 4096);
/// assert_eq!(Op::<f32>::lower(&op, &DeviceProfile::h100())?.variant(), "whole");
/// let long = LogSoftmax::new(3, 1 << 20);
/// assert_eq!(Op::<f32>::lower(&long, &DeviceProfile::h100())?.variant(), "parts");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LogSoftmax {
    rows: Rows,
}

impl LogSoftmax {
    /// Of each of `rows` rows of `n` elements.
    pub fn new(rows: usize, n: usize) -> Self {
        Self { rows: Rows::new("log-softmax", "nn/log_softmax", rows, n, f32::NEG_INFINITY) }
    }

    crate::program::variants!(rows.variant);

    /// How many invocations share a row (in `parts`, a part of one): a power of two. The default follows the device
    /// and the length of rows.
    #[must_use]
    pub fn lanes(mut self, lanes: u32) -> Self {
        self.rows.lanes = Some(lanes);
        self
    }
}

operands! {
    impl[T: Element,] LogSoftmax, T {
        fn record(x: T, output: T);
    }
}

crate::program::lowers! {
    impl[] LogSoftmax as [f32, f16], |op, dtype, profile| op.rows.lower(dtype, &[], profile)
}

pub(super) const INFO: Operation = Operation {
    name: "log-softmax",
    about: "logarithms of probabilities",
    inputs: &[Input::new("x", "(..., n)")],
    outputs: &[("output", "as x")],
    types: &FLOATS,
    options: &[LANES],
    make: Some(make),
    variants: LogSoftmax::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    of_rows(asked, LogSoftmax::new(0, 0).rows, |rows| LogSoftmax { rows })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    samples_of_rows(|rows, n| {
        let op = LogSoftmax::new(rows, n).variant(variant);
        vec![Op::<f32>::lower(&op, profile), Op::<f16>::lower(&op, profile)]
    })
}

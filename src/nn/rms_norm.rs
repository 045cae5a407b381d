//! RMS norm.

use super::form::{EPS, FLOATS, LANES, of_norm};
use super::rows::{Rows, VARIANTS, samples as samples_of_rows};
use crate::element::Element;
use crate::error::Result;
use crate::program::{Asked, Comparison, DeviceProfile, Form, Input, Op, Operation, Program, operands};
use half::f16;

/// RMS norm of each row: `output[r, i] = x[r, i] / sqrt(mean(x[r]^2) + eps) * gamma[i] + beta[i]` (Zhang and Sennrich, 2019).
///
/// # Shapes
/// `x` and `output` have `rows * n` elements, row-major; `gamma` has n. Operands are `x`, `gamma`, `output`, in this
/// order; [`with_beta`](Self::with_beta) adds `beta`, n elements. Of a tensor the last axis is the row.
/// Either extent may be 0. Rows may have any length that one binding of the device holds. `output` must be a wgpu buffer
/// of its own.
///
/// # Types
/// f32, and f16 with arithmetic in f32.
///
/// # Precision and determinism
/// Computed in f32; sums in a tree of fixed order.
/// A row that holds NaN or infinity is NaN where its result is not 0; squares above the range of f32 make a row 0.
/// Same device, same bits. [`reference::rms_norm_bound`](crate::reference::rms_norm_bound) is the bound of the error.
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
/// of two, an `eps` that is negative or not finite.
///
/// # Algorithm
/// Squares summed in registers: `shaders/nn/rows_normalize.wgsl` with `rms_norm.wgsl`; parts are joined by `rows_join.wgsl`.
///
/// # Example
/// ```
/// use tilework::nn::RmsNorm;
/// use tilework::program::{DeviceProfile, Op};
///
/// let norm = RmsNorm::new(16384, 4096).eps(1e-6);
/// assert_eq!(Op::<f32>::lower(&norm, &DeviceProfile::h100())?.operands.len(), 3);
/// let program = Op::<f32>::lower(&norm.with_beta(), &DeviceProfile::h100())?;
/// assert_eq!((program.variant(), program.operands[2].name), ("whole", "beta"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNorm {
    rows: Rows,
    beta: bool,
}

impl RmsNorm {
    /// Of each of `rows` rows of `n` elements, with an epsilon of 1e-5.
    pub fn new(rows: usize, n: usize) -> Self {
        let rows = Rows::new("rms-norm", "nn/rms_norm", rows, n, 0.0);
        Self { rows: Rows { eps: 1e-5, ..rows }, beta: false }
    }

    /// What is added below the root; the default is 1e-5.
    ///
    /// ```
    /// use tilework::nn::RmsNorm;
    /// use tilework::program::{DeviceProfile, Op};
    /// let e = Op::<f32>::lower(&RmsNorm::new(1, 8).eps(-1.0), &DeviceProfile::h100()).unwrap_err();
    /// assert!(e.to_string().contains("eps is -1"), "{e}");
    /// ```
    #[must_use]
    pub fn eps(mut self, eps: f32) -> Self {
        self.rows.eps = eps;
        self
    }

    /// Returns the epsilon. Pass it to the [reference](crate::reference::rms_norm).
    pub fn epsilon(&self) -> f32 {
        self.rows.eps
    }

    /// Adds a shift for each column: an operand `beta` of n elements, which plans take by `with_beta`.
    #[must_use]
    pub fn with_beta(mut self) -> Self {
        self.beta = true;
        self
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
    impl[T: Element,] RmsNorm, T {
        fn record(x: T, gamma: T, output: T);
        /// What is added to each column.
        optional with_beta(beta: T);
    }
}

crate::program::lowers! {
    impl[] RmsNorm as [f32, f16], |op, dtype, profile| {
        let by_column: &[_] = if op.beta { &["gamma", "beta"] } else { &["gamma"] };
        op.rows.lower(dtype, by_column, profile)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "rms-norm",
    about: "rows of mean square 1, then scaled and shifted by column",
    inputs: &[Input::new("x", "(..., n)"), Input::new("gamma", "(n)"), Input::optional("beta", "(n)")],
    outputs: &[("output", "as x")],
    types: &FLOATS,
    options: &[EPS, LANES],
    make: Some(make),
    variants: RmsNorm::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    of_norm(asked, RmsNorm::new(0, 0).rows, |rows, beta| RmsNorm { rows, beta })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    samples_of_rows(|rows, n| {
        let op = RmsNorm::new(rows, n).variant(variant);
        let both = op.clone().with_beta();
        vec![
            Op::<f32>::lower(&op, profile),
            Op::<f16>::lower(&op, profile),
            Op::<f32>::lower(&both, profile),
            Op::<f16>::lower(&both, profile),
        ]
    })
}

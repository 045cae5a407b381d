//! The mean squared error.

use super::columns::mean;
use crate::element::DType;
use crate::elementwise::{Sweep, VARIANTS};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Cost, DeviceProfile, Form, Input, Op, Operand, Operation, Program, Resource, Role,
    kernel_params, operands,
};
use crate::shader::Spec;

/// Computes the loss of a regression, `mean = sum over i of (x[i] - target[i])^2 / n`, and its gradient on request.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::SquaredError;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, target) = (gpu.upload(&[1.0f32, 4.0])?, gpu.upload(&[1.0f32, 2.0])?);
/// let (mean, dx) = (gpu.alloc::<f32>(1)?, gpu.alloc::<f32>(2)?);
/// let plan = SquaredError::new(2).with_gradient().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_dx(&dx).record(&mut rec, &x, &target, &mean)?;
/// rec.submit()?;
/// assert_eq!((mean.read()?, dx.read()?), (vec![2.0], vec![0.0, 2.0]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `target` have n elements each, at least 1; `mean` has one; [`with_gradient`](Self::with_gradient) adds `dx`,
/// n elements. Outputs must not share wgpu buffers with other operands.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A difference and a square for each element, then the sums of [`Reduce`](crate::Reduce);
/// [`reference::squared_error_bound`](crate::reference::squared_error_bound) bounds the error. NaN and infinities
/// propagate as in f32 arithmetic. The same device and inputs give the same bits.
///
/// # Cost
/// 3 flop for each element, and 4 n bytes of scratch for the squares. One or two dispatches, those of the reduction,
/// and one more.
///
/// # Variants
/// Those of [`Zip`](crate::Zip).
///
/// # Errors
/// - [`Shape`](crate::ErrorKind::Shape): n is 0.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/squared_error.wgsl`, then a reduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SquaredError {
    n: usize,
    gradient: bool,
    variant: String,
}

kernel_params! {
    struct SquaredErrorParams { n: u32, factor: f32 }
}

impl SquaredError {
    /// Takes `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, gradient: false, variant: "auto".into() }
    }

    /// Adds the gradient of the mean: an operand `dx`, `dx[i] = 2 (x[i] - target[i]) / n`, which plans take by
    /// `with_dx`.
    #[must_use]
    pub fn with_gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    crate::program::variants!(variant);
}

operands! {
    impl[] SquaredError, f32 {
        fn record(x: f32, target: f32, mean: f32);
        /// Takes the buffer for the gradient of the mean.
        optional with_dx(dx: f32);
    }
}

impl Op<f32> for SquaredError {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, gradient, .. } = *self;
        if n == 0 {
            return Err(err!(Shape, "squared-error: n is 0; it must be at least 1, for a mean to exist"));
        }
        let operands = [
            ("x", Access::Read),
            ("target", Access::Read),
            ("squares", Access::Write),
            ("dx", Access::Write),
        ];
        let sweep = Sweep {
            op: "squared-error",
            shader: "nn/squared_error",
            variant: &self.variant,
            dtype: DType::F32,
            n,
            operands: &operands[..if gradient { 4 } else { 3 }],
            spec: Spec::new().flag("GRADIENT", gradient),
            flop_per_element: 3.0,
        };
        let sweep = sweep
            .lower(profile, |elements| SquaredErrorParams { n: elements, factor: (2.0 / n as f64) as f32 })?;
        let mut program = Program::new("squared-error", sweep.decision.clone());
        program.operands = sweep.operands.clone();
        program.operands[2] = Operand { name: "mean", dtype: DType::F32, len: 1, access: Access::Write };
        program.cost = Cost::of(sweep.cost.flop, &program.operands);
        let squares = program.scratch(4 * n as u64).resource;
        let places = [Resource::Operand(0), Resource::Operand(1), squares, Resource::Operand(3)];
        program.append(sweep, &places);
        mean(&mut program, squares, n, Resource::Operand(2), profile)?;
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "squared-error",
    about: "the mean of squared differences, and its gradient",
    inputs: &[Input::new("x", "any shape"), Input::new("target", "as x")],
    outputs: &[("loss", "()"), ("gradient", "as x")],
    types: &[DType::F32],
    make: Some(make),
    variants: SquaredError::variants,
    samples,
    ..Operation::UNDECLARED
};

/// Forms the op with the gradient.
fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let x = asked.any("x")?;
    asked.check_type(&x)?;
    let (n, shape) = (x.len(), x.shape().to_vec());
    let target = asked.like("target", &shape)?;
    let op = SquaredError::new(n).variant(asked.variant()).with_gradient();
    let operands = vec![Role::Given(x), Role::Given(target), Role::Result(vec![]), Role::Result(shape)];
    Ok(Form::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    // 1001 is not a multiple of 4, so `vec4` has a rest.
    let op = SquaredError::new(1001).variant(variant);
    Ok(vec![op.lower(profile)?, op.with_gradient().lower(profile)?])
}

//! The mean of squared differences.

use super::columns::mean;
use crate::element::DType;
use crate::elementwise::{Sweep, VARIANTS};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, DeviceProfile, Form, Input, Op, Operand, Operation, Program, Resource, Role,
    kernel_params, operands,
};
use crate::shader::Spec;

/// The loss of a regression: `mean = sum over i of (x[i] - target[i])^2 / n`.
///
/// # Shapes
/// Operands are `x` and `target`, n elements each, and `mean`, one; [`with_gradient`](Self::with_gradient) adds `dx`, n
/// elements. n must be at least 1. Every output must be a wgpu buffer of its own.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A difference and a square an element, then as of [`Reduce`](crate::Reduce). Same device, same bits.
/// [`reference::squared_error_bound`](crate::reference::squared_error_bound) is the bound of the error.
/// NaN and infinities go the way of f32 arithmetic: they reach what they are a term of, and nothing else.
///
/// # Cost
/// 3 operations an element; the squares are kept, 4 n bytes of scratch, and added up: one or two dispatches, those of the
/// reduction, and one.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): n is 0; [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/squared_error.wgsl` with the walks of the elementwise ops.
///
/// # Example
/// ```
/// use tilework::nn::SquaredError;
/// use tilework::program::{DeviceProfile, Op};
///
/// let loss = SquaredError::new(1 << 20);
/// assert_eq!(loss.lower(&DeviceProfile::h100())?.operands[2].name, "mean");
/// assert_eq!(loss.with_gradient().lower(&DeviceProfile::h100())?.operands[3].name, "dx");
/// # Ok::<(), tilework::Error>(())
/// ```
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
    /// Of `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, gradient: false, variant: "auto".into() }
    }

    /// Adds the gradient of the mean by `x`: an operand `dx`, `dx[i] = 2 (x[i] - target[i]) / n`, which plans take by
    /// `with_dx`.
    #[must_use]
    pub fn with_gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    crate::program::variants!(variant);

    fn lower_with(&self, gradient: bool, profile: &DeviceProfile) -> Result<Program> {
        let n = self.n;
        if n == 0 {
            return Err(err!(Shape, "squared-error: of no elements there is no mean; n must be at least 1"));
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
        program.cost = sweep.cost;
        program.cost.bytes = program.operands.iter().map(|o| o.bytes() as f64).sum();
        let squares = program.scratch(4 * n as u64).resource;
        let places = [Resource::Operand(0), Resource::Operand(1), squares, Resource::Operand(3)];
        program.append(sweep, &places);
        mean(&mut program, squares, n, Resource::Operand(2), profile)?;
        Ok(program)
    }
}

operands! {
    impl[] SquaredError, f32 {
        fn record(x: f32, target: f32, mean: f32);
        /// The gradient of the mean.
        optional with_dx(dx: f32);
    }
}

crate::program::lowers! {
    impl[] SquaredError as [f32], |op, _, profile| op.lower_with(op.gradient, profile)
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

/// With the gradient.
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
    // 1001: the vec4 variant then has a rest.
    let op = SquaredError::new(1001).variant(variant);
    Ok(vec![op.lower(profile)?, op.with_gradient().lower(profile)?])
}

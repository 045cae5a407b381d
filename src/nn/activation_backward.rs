//! The gradient of an activation.

use super::form::FLOATS;
use crate::dense::Activation;
use crate::element::{DType, Element};
use crate::elementwise::{Sweep, VARIANTS};
use crate::error::Result;
use crate::program::{
    Access, Asked, DeviceProfile, Domain, Form, Input, Op, Operation, Program, Role, by_type, kernel_params,
    operands,
};
use crate::shader::{Fragment, Spec};
use half::f16;

/// The gradient of a loss by the argument of an [`Activation`], from that by its result: `dx = dy f'(x)`.
///
/// It is computed from what a fused layer leaves: the result `y` of ReLU (slope 1 where `y > 0`), sigmoid (`y (1 - y)`) and
/// tanh (`1 - y^2`). GELU cannot be told from its result and takes the argument `x`. The slope of ReLU at 0 is 0.
///
/// # Shapes
/// Operands are `value` (`y`, of GELU `x`), `dy` and `dx`, `n` elements each; `n` may be 0. `dx` must be a wgpu buffer of its
/// own.
///
/// # Types
/// f32, and f16 with arithmetic in f32.
///
/// # Precision and determinism
/// ReLU is exact; sigmoid and tanh round three times; the slope of GELU is within 5e-7. NaN gives NaN, but of ReLU, where
/// a NaN among the values has slope 1. Same device, same bits.
/// [`reference::activation_backward_bound`](crate::reference::activation_backward_bound) is the bound of the error.
/// A gradient that is not finite beside a slope of 0 becomes 0 or NaN, by the device.
///
/// # Cost
/// A few operations an element; every operand is moved once; one or two dispatches, as of [`Zip`](crate::Zip); no scratch.
///
/// # Errors
/// [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer; [`InvalidArgument`](crate::ErrorKind::InvalidArgument)
/// for an unknown variant.
///
/// # Algorithm
/// `shaders/elementwise/zip.wgsl` with the slopes of `shaders/nn/activation_backward.wgsl`.
///
/// # Example
/// ```
/// use tilework::Activation;
/// use tilework::nn::ActivationBackward;
/// use tilework::program::{DeviceProfile, Op};
///
/// let op = ActivationBackward::new(Activation::Tanh, 1 << 20);
/// let program = Op::<f32>::lower(&op, &DeviceProfile::h100())?;
/// assert_eq!((program.variant(), program.cost.bytes), ("vec4", 12.0 * f64::from(1 << 20)));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationBackward {
    activation: Activation,
    n: usize,
    variant: String,
}

kernel_params! {
    struct ActivationBackwardParams { n: u32 }
}

impl ActivationBackward {
    /// Of `n` elements.
    pub fn new(activation: Activation, n: usize) -> Self {
        Self { activation, n, variant: "auto".into() }
    }

    crate::program::variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let flag = match self.activation {
            Activation::None => "NONE",
            Activation::Relu => "RELU",
            Activation::Sigmoid => "SIGMOID",
            Activation::Tanh => "TANH",
            Activation::Gelu => "GELU",
        };
        Sweep {
            op: "activation-backward",
            shader: "elementwise/zip",
            variant: &self.variant,
            dtype,
            n: self.n,
            operands: &[("value", Access::Read), ("dy", Access::Read), ("dx", Access::Write)],
            spec: Spec::new().flag(flag, true).slot("function", Fragment::Library("nn/activation_backward")),
            flop_per_element: 3.0,
        }
        .lower(profile, |n| ActivationBackwardParams { n })
    }
}

operands! {
    impl[T: Element,] ActivationBackward, T {
        fn record(value: T, dy: T, dx: T);
    }
}

crate::program::lowers! {
    impl[] ActivationBackward as [f32, f16], |op, dtype, profile| op.lower_as(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "activation-backward",
    about: "the gradient of an activation by its argument",
    inputs: &[
        Input::new("value", "any shape, the result; of gelu the argument"),
        Input::new("dy", "as value"),
    ],
    outputs: &[("dx", "as value")],
    types: &FLOATS,
    options: &[Activation::SETTING],
    domains: &[("dy", Domain::Finite)],
    make: Some(make),
    variants: ActivationBackward::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let value = asked.any("value")?;
    asked.check_type(&value)?;
    let dy = asked.like("dy", value.shape())?;
    let op =
        ActivationBackward::new(Activation::asked(asked.settings())?, value.len()).variant(asked.variant());
    let (dtype, dx) = (value.dtype(), Role::Result(value.shape().to_vec()));
    let operands = vec![Role::Given(value), Role::Given(dy), dx];
    by_type!(asked, dtype, [f32, f16], T => Ok(Form::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let all = Activation::ALL.into_iter().flat_map(|activation| {
        let op = ActivationBackward::new(activation, 1001).variant(variant);
        [Op::<f32>::lower(&op, profile), Op::<f16>::lower(&op, profile)]
    });
    all.collect()
}

use super::by_name::FLOATS;
use crate::dense::Activation;
use crate::elementwise::{Sweep, VARIANTS};
use crate::program::prelude::*;

/// Computes the gradient of an activation, `dx = dy f'(x)`, from the values that a fused layer keeps.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::ActivationBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (y, dy) = (gpu.upload(&[0.0f32, 2.0])?, gpu.upload(&[5.0f32, 5.0])?);
/// let dx = gpu.alloc::<f32>(2)?;
/// let plan = ActivationBackward::new(Activation::Relu, 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &y, &dy, &dx)?;
/// rec.submit()?;
/// assert_eq!(dx.read()?, [0.0, 5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// `value` is the result `y` of ReLU (slope 1 where `y > 0`, else 0), sigmoid (`y (1 - y)`) and tanh (`1 - y^2`). The
/// result of GELU does not determine its slope, so `value` is its input `x`.
///
/// # Shapes
/// `value`, `dy` and `dx` have `n` elements each; `n` may be 0. `dx` must not share a wgpu buffer with the others.
///
/// # Types
/// f32 and f16; f16 is computed in f32.
///
/// # Precision and determinism
/// ReLU is exact; sigmoid and tanh round three times; the slope of GELU is within 5e-7.
/// [`reference::activation_backward_bound`](crate::reference::activation_backward_bound) bounds the error. NaN gives
/// NaN, except that ReLU gives a NaN value slope 1. A gradient that is not finite times a slope of 0 is 0 or NaN,
/// depending on the device. The same device and inputs give the same bits.
///
/// # Cost
/// A few flop for each element; inputs are read once, `dx` is written once. One or two dispatches, as
/// [`Zip`](crate::Zip); no scratch.
///
/// # Variants
/// Those of [`Zip`](crate::Zip).
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/elementwise/zip.wgsl` with the slopes of `shaders/nn/activation_backward.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationBackward {
    activation: Activation,
    n: usize,
    variant: String,
}

kernel_params! {
    struct ActivationBackwardParams { n: u32, first: u32 }
}

impl ActivationBackward {
    /// Takes `n` elements.
    pub fn new(activation: Activation, n: usize) -> Self {
        Self { activation, n, variant: "auto".into() }
    }

    variants!(variant);

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
        .lower(profile, |n, first| ActivationBackwardParams { n, first })
    }
}

operands! {
    impl[T: Element,] ActivationBackward, T {
        fn record(value: T, dy: T, dx: T);
    }
}

lowered_as!(ActivationBackward: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "activation-backward",
    about: "the gradient of an activation with respect to its input",
    inputs: &[Input::new("value", "any shape: the result; for gelu the input"), Input::new("dy", "as value")],
    outputs: &[("dx", "as value")],
    types: &FLOATS,
    options: &[Activation::SETTING],
    domains: &[("dy", Domain::Finite)],
    make: Some(make),
    variants: ActivationBackward::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let value = asked.any("value")?;
    asked.check_type(&value)?;
    let dy = asked.like("dy", value.shape())?;
    let op = ActivationBackward::new(Activation::asked(asked.settings())?, value.len()).variant(asked.variant());
    let (dtype, dx) = (value.dtype(), Role::Result(value.shape().to_vec()));
    let operands = vec![Role::Given(value), Role::Given(dy), dx];
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let all = Activation::ALL.into_iter().flat_map(|activation| {
        let op = ActivationBackward::new(activation, 1001).variant(variant);
        [Op::<f32>::lower(&op, profile), Op::<f16>::lower(&op, profile)]
    });
    all.collect()
}

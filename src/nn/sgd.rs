//! Stochastic gradient descent.

use crate::element::DType;
use crate::elementwise::{Sweep, VARIANTS};
use crate::error::{Result, err};
use crate::program::When;
use crate::program::{
    Access, Asked, DeviceProfile, Example, Form, Input, Op, Operation, Program, Role, Setting, kernel_params,
    operands,
};
use crate::shader::Spec;

/// A step of stochastic gradient descent, in place: `p -= rate (g + decay p)`.
///
/// With [momentum](Self::with_momentum): `v = momentum v + (g + decay p)`, `p -= rate v`, and looking ahead
/// ([`nesterov`](Self::nesterov)) `p -= rate (g + decay p + momentum v)`; as PyTorch has it, without dampening.
///
/// # Shapes
/// Operands are `parameters` (in and out) and `gradients`, n elements each, and with momentum `velocity` (in and out; zeros
/// before the first step). n may be 0. They must lie in different wgpu buffers.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A few roundings an element. Same device, same bits.
/// [`reference::sgd_bound`](crate::reference::sgd_bound) is the bound of the error.
///
/// # Cost
/// 4 to 6 operations an element, each operand moved once each way; one or two dispatches, no scratch.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a rate, momentum or decay that is negative or not finite, an
/// unknown variant; [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer.
///
/// # Algorithm
/// `shaders/nn/sgd.wgsl` with the walks of the elementwise ops.
///
/// # Example
/// ```
/// use tilework::nn::Sgd;
/// use tilework::program::{DeviceProfile, Op};
///
/// let step = Sgd::new(1 << 20, 0.01).decay(1e-4).with_momentum(0.9);
/// assert_eq!(step.lower(&DeviceProfile::h100())?.operands[2].name, "velocity");
/// assert!(Sgd::new(10, -1.0).lower(&DeviceProfile::h100()).is_err());
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sgd {
    n: usize,
    rate: f32,
    /// Whether there is an operand `velocity`, and how much of it is kept.
    momentum: Option<f32>,
    decay: f32,
    nesterov: bool,
    variant: String,
}

kernel_params! {
    struct SgdParams { n: u32, rate: f32, momentum: f32, decay: f32 }
}

/// Refuses a number that is negative or none.
pub(super) fn check_factor(op: &str, name: &str, value: f32) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(err!(InvalidArgument, "{op}: {name} is {value:?}; it must be a finite number that is not negative"))
}

impl Sgd {
    /// Of `n` parameters, with steps of `rate` times the gradient.
    pub fn new(n: usize, rate: f32) -> Self {
        Self { n, rate, momentum: None, decay: 0.0, nesterov: false, variant: "auto".into() }
    }

    /// How much of a parameter is added to its gradient; the default is 0.
    #[must_use]
    pub fn decay(mut self, decay: f32) -> Self {
        self.decay = decay;
        self
    }

    /// Uses Nesterov momentum, which looks one step ahead.
    #[must_use]
    pub fn nesterov(mut self) -> Self {
        self.nesterov = true;
        self
    }

    /// Keeps `momentum` of the last step: an operand `velocity` of n elements, in and out, which plans take by
    /// `with_velocity`.
    #[must_use]
    pub fn with_momentum(mut self, momentum: f32) -> Self {
        self.momentum = Some(momentum);
        self
    }

    crate::program::variants!(variant);

    /// Rate, momentum, decay, and whether it looks ahead.
    pub(crate) fn parts(&self) -> (f32, f32, f32, bool) {
        (self.rate, self.momentum.unwrap_or(0.0), self.decay, self.nesterov)
    }

    /// The same of `n` parameters, with a velocity.
    pub(super) fn of(&self, n: usize) -> Self {
        Self { n, momentum: Some(self.momentum.unwrap_or(0.0)), ..self.clone() }
    }
}

operands! {
    impl[] Sgd, f32 {
        fn record(parameters: f32, gradients: f32);
        /// The last step, which is kept.
        optional with_velocity(velocity: f32);
    }
}

impl Op<f32> for Sgd {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (with_velocity, momentum) = (self.momentum.is_some(), self.momentum.unwrap_or(0.0));
        check_factor("sgd", "rate", self.rate)?;
        check_factor("sgd", "momentum", momentum)?;
        check_factor("sgd", "decay", self.decay)?;
        let operands =
            [("parameters", Access::ReadWrite), ("gradients", Access::Read), ("velocity", Access::ReadWrite)];
        Sweep {
            op: "sgd",
            shader: "nn/sgd",
            variant: &self.variant,
            dtype: DType::F32,
            n: self.n,
            operands: &operands[..if with_velocity { 3 } else { 2 }],
            spec: Spec::new().flag("MOMENTUM", with_velocity).flag("NESTEROV", self.nesterov),
            flop_per_element: if with_velocity { 6.0 } else { 4.0 },
        }
        .lower(profile, |n| SgdParams { n, rate: self.rate, momentum, decay: self.decay })
    }
}

pub(super) const INFO: Operation = Operation {
    name: "sgd",
    about: "a step down the gradient, with momentum and weight decay",
    inputs: &[
        Input::new("parameters", "any shape"),
        Input::new("gradients", "as parameters"),
        Input::optional("velocity", "as parameters"),
    ],
    outputs: &[("parameters", "as parameters"), ("[velocity]", "as parameters")],
    types: &[DType::F32],
    options: &[
        Setting::number("rate", "0.01"),
        Setting::number("momentum", "0"),
        Setting::number("decay", "0"),
        Setting::flag("nesterov"),
    ],
    make: Some(make),
    variants: Sgd::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let settings = asked.settings();
    let parameters = asked.any("parameters")?;
    asked.check_type(&parameters)?;
    let (n, shape) = (parameters.len(), parameters.shape().to_vec());
    let mut op = Sgd::new(n, settings.number("rate")?)
        .decay(settings.number("decay")?)
        .when(settings.has("nesterov"), |op| op.nesterov())
        .variant(asked.variant());
    let mut operands = vec![Role::Updated(parameters), Role::Given(asked.like("gradients", &shape)?)];
    let momentum: f32 = settings.number("momentum")?;
    if asked.has_more() {
        op = op.with_momentum(momentum);
        operands.push(Role::Updated(asked.like("velocity", &shape)?));
    } else if momentum != 0.0 {
        return Err(err!(InvalidArgument, "sgd: --momentum {momentum} needs velocity, the third input"));
    }
    Ok(Form::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Sgd::new(1001, 0.1).variant(variant);
    let ahead = op.clone().nesterov().with_momentum(0.9);
    Ok(vec![op.lower(profile)?, op.with_momentum(0.9).lower(profile)?, ahead.lower(profile)?])
}

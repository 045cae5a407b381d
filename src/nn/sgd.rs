use crate::elementwise::{Sweep, VARIANTS};
use crate::program::prelude::*;

/// Makes a step of stochastic gradient descent in place: `p -= rate (g + decay p)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::Sgd;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (p, g) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[2.0f32, -2.0])?);
/// let velocity = gpu.alloc_zeroed::<f32>(2)?;
/// let step = Sgd::new(2, 0.5).with_momentum(0.9).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// step.with_velocity(&velocity).record(&mut rec, &p, &g)?;
/// rec.submit()?;
/// assert_eq!(p.read()?, [0.0, 3.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// With [momentum](Self::with_momentum), `v = momentum v + (g + decay p)` and `p -= rate v`; with
/// [`nesterov`](Self::nesterov) also, `p -= rate (g + decay p + momentum v)`. This is PyTorch's definition, without
/// dampening.
///
/// The rate may be an operand: [`with_rate`](Self::with_rate). A schedule then writes it, or takes another element of a
/// buffer of rates in each step, without a new plan.
///
/// # Shapes
/// `parameters` (updated) and `gradients` have n elements each, and so has `velocity` (updated; zeros before the first
/// step), which momentum adds. `rate` has one element, which is not checked.
/// n may be 0. No two operands may share a wgpu buffer.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A few roundings for each element; [`reference::sgd_bound`](crate::reference::sgd_bound) bounds the error. The same
/// device and inputs give the same bits.
///
/// # Cost
/// 4 to 6 flop for each element. Gradients are read once, the others read and written once. One or two dispatches, no
/// scratch.
///
/// # Variants
/// Those of [`Zip`](crate::Zip).
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a rate, momentum or decay that is negative or not finite,
///   an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
///
/// # Algorithm
/// H. Robbins and S. Monro, *A Stochastic Approximation Method*, 1951; momentum of B. T. Polyak, 1964, and Y. Nesterov,
/// 1983. `shaders/nn/sgd.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sgd {
    n: usize,
    rate: f32,
    /// The factor of `velocity`, if there is that operand.
    momentum: Option<f32>,
    decay: f32,
    nesterov: bool,
    rated: bool,
    variant: String,
}

kernel_params! {
    struct SgdParams { n: u32, rate: f32, momentum: f32, decay: f32 }
}

/// Rejects a number that is negative or not finite.
pub(super) fn check_factor(op: &str, name: &str, value: f32) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(err!(InvalidArgument, "{op}: {name} is {value:?}; it must be a finite number that is not negative"))
}

/// The settings of a kernel that may read the rate from a binding.
pub(super) fn rate_spec(rated: bool, binding: u32) -> Spec {
    let spec = Spec::new().flag("RATED", rated);
    if rated { spec.constant("RATE_BINDING", binding) } else { spec }
}

pub(super) fn add_rate(program: &mut Program, rated: bool, first: usize) {
    if rated {
        program.operands.push(Operand { name: "rate", dtype: DType::F32, len: 1, access: Access::Read });
        let rate = Binding::operand(program.operands.len() - 1, &program.operands);
        program.dispatches[first..].iter_mut().for_each(|dispatch| dispatch.bindings.push(rate));
    }
}

pub(super) const DEVICE_RATE: Setting = Setting::array("device-rate", "(1)");

impl Sgd {
    /// Updates `n` parameters by `rate` times the gradient.
    pub fn new(n: usize, rate: f32) -> Self {
        Self { n, rate, momentum: None, decay: 0.0, nesterov: false, rated: false, variant: "auto".into() }
    }

    /// Creates the step of a network, which knows how many parameters it has:
    /// [`Sequential::train`](super::Sequential::train).
    pub fn for_network(rate: f32) -> Self {
        Self::new(0, rate)
    }

    /// Reads the rate from an operand `rate` of one element, which plans take by `with_rate`, instead of the one given.
    #[must_use]
    pub fn with_rate(mut self) -> Self {
        self.rated = true;
        self
    }

    /// Sets the weight decay, the multiple of a parameter that is added to its gradient. The default is 0.
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

    /// Adds momentum: an operand `velocity` of n elements, updated, which plans take by `with_velocity`.
    #[must_use]
    pub fn with_momentum(mut self, momentum: f32) -> Self {
        self.momentum = Some(momentum);
        self
    }

    variants!(variant);

    /// Returns rate, momentum, decay, and whether the momentum is Nesterov's.
    pub(crate) fn parts(&self) -> (f32, f32, f32, bool) {
        let nesterov = self.nesterov && self.momentum.is_some();
        (self.rate, self.momentum.unwrap_or(0.0), self.decay, nesterov)
    }

    pub(crate) fn is_rated(&self) -> bool {
        self.rated
    }

    /// Returns the same step at another rate.
    pub(crate) fn at_rate(&self, rate: f32) -> Self {
        Self { rate, ..self.clone() }
    }

    /// Returns the same step for `n` parameters, with a velocity.
    pub(crate) fn of(&self, n: usize) -> Self {
        Self { n, momentum: Some(self.momentum.unwrap_or(0.0)), ..self.clone() }
    }
}

operands! {
    impl[] Sgd, f32 {
        fn record(parameters: f32, gradients: f32);
        /// Takes the velocity, which is updated.
        optional with_velocity(velocity: f32);
        /// Takes the rate, one element.
        optional with_rate(rate: f32);
    }
}

impl Op<f32> for Sgd {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let (with_velocity, momentum) = (self.momentum.is_some(), self.momentum.unwrap_or(0.0));
        check_factor("sgd", "rate", self.rate)?;
        check_factor("sgd", "momentum", momentum)?;
        check_factor("sgd", "decay", self.decay)?;
        let operands =
            [("parameters", Access::ReadWrite), ("gradients", Access::Read), ("velocity", Access::ReadWrite)];
        let sweep = Sweep {
            op: "sgd",
            shader: "nn/sgd",
            variant: &self.variant,
            dtype: DType::F32,
            n: self.n,
            operands: &operands[..if with_velocity { 3 } else { 2 }],
            spec: rate_spec(self.rated, if with_velocity { 4 } else { 3 })
                .flag("MOMENTUM", with_velocity)
                .flag("NESTEROV", self.nesterov),
            flop_per_element: if with_velocity { 6.0 } else { 4.0 },
        };
        let mut program = sweep.lower(profile, |n, _| SgdParams { n, rate: self.rate, momentum, decay: self.decay })?;
        add_rate(&mut program, self.rated, 0);
        Ok(program)
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
        DEVICE_RATE,
        Setting::number("momentum", "0"),
        Setting::number("decay", "0"),
        Setting::flag("nesterov"),
    ],
    domains: &[("device-rate", Domain::Shares)],
    make: Some(make),
    variants: Sgd::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
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
    if let Some(rate) = asked.named("device-rate", &[1])? {
        op = op.with_rate();
        operands.push(Role::Given(rate));
    }
    Ok(OpCall::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Sgd::new(1001, 0.1).variant(variant);
    let ahead = op.clone().nesterov().with_momentum(0.9);
    let mut programs = Vec::new();
    for op in [op.clone(), op.with_momentum(0.9), ahead] {
        programs.extend([op.lower(profile)?, op.with_rate().lower(profile)?]);
    }
    Ok(programs)
}

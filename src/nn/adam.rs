use super::sgd::{DEVICE_RATE, add_rate, check_factor, rate_spec};
use crate::elementwise::{Sweep, VARIANTS};
use crate::program::prelude::*;

/// Makes a step of Adam in place: `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`, and
/// `p -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)` in step t.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::Adam;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (p, g) = (gpu.upload(&[1.0f32])?, gpu.upload(&[4.0f32])?);
/// let (m, v) = (gpu.alloc_zeroed::<f32>(1)?, gpu.alloc_zeroed::<f32>(1)?);
/// let fullness = gpu.alloc_zeroed::<f32>(2)?;
/// let step = Adam::new(1, 0.1).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// step.record(&mut rec, &p, &g, &m, &v, &fullness)?;
/// rec.submit()?;
/// assert!((p.read()?[0] - 0.9).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// Weight decay adds `decay p` to the gradient or, [`decoupled`](Self::decoupled) (AdamW), subtracts `rate decay p`
/// from the parameter first.
///
/// The rate may be an operand, as in [`Sgd`](super::Sgd): [`with_rate`](Self::with_rate).
///
/// # Shapes
/// `parameters` (updated), `gradients`, and the moments `first` and `second` (updated) have n elements each. `fullness`
/// (updated) holds the bias corrections `1 - beta1^t` and `1 - beta2^t`; each call advances them by one step. Start
/// with zeros in the moments and in `fullness`. `rate` has one element, which is not checked.
/// n may be 0. No two operands may share a wgpu buffer.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A few roundings, two quotients and a square root for each element;
/// [`reference::adam_bound`](crate::reference::adam_bound) bounds the error of one step. A moment that is infinite
/// becomes NaN, and so does its parameter. The same device and inputs give the same bits.
///
/// # Cost
/// About 14 flop for each element. Gradients are read once, the others read and written once. One dispatch of one
/// thread, then one or two; no scratch.
///
/// # Variants
/// Those of [`Zip`](crate::Zip).
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a rate, eps or decay that is negative or not finite, a
///   beta outside [0, 1), an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
///
/// # Algorithm
/// D. P. Kingma and J. Ba, *Adam*, 2015; I. Loshchilov and F. Hutter, *Decoupled Weight Decay Regularization*, 2019.
/// `shaders/nn/adam.wgsl`, `adam_advance.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    n: usize,
    rate: f32,
    betas: [f64; 2],
    eps: f32,
    decay: f32,
    decoupled: bool,
    rated: bool,
    variant: String,
}

kernel_params! {
    struct AdamParams { n: u32, rate: f32, rest1: f32, rest2: f32, eps: f32, decay: f32 }
}

kernel_params! {
    struct AdvanceParams { rest1: f32, rest2: f32 }
}

impl Adam {
    /// Updates `n` parameters, each by about `rate` a step.
    pub fn new(n: usize, rate: f32) -> Self {
        let betas = [0.9, 0.999];
        Self { n, rate, betas, eps: 1e-8, decay: 0.0, decoupled: false, rated: false, variant: "auto".into() }
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

    /// Sets the decay rates of the moments. The defaults are 0.9 and 0.999.
    #[must_use]
    pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
        self.betas = [beta1, beta2];
        self
    }

    /// Sets the number added to the root of the second moment. The default is 1e-8.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }

    /// Sets the weight decay. The default is 0.
    #[must_use]
    pub fn decay(mut self, decay: f32) -> Self {
        self.decay = decay;
        self
    }

    /// Applies weight decay to the parameters instead of the gradients (AdamW).
    #[must_use]
    pub fn decoupled(mut self) -> Self {
        self.decoupled = true;
        self
    }

    variants!(variant);

    pub(crate) fn is_rated(&self) -> bool {
        self.rated
    }

    /// Returns the same step at another rate.
    pub(crate) fn at_rate(&self, rate: f32) -> Self {
        Self { rate, ..self.clone() }
    }

    /// Returns the same step for `n` parameters.
    pub(crate) fn of(&self, n: usize) -> Self {
        Self { n, ..self.clone() }
    }

    /// Returns the betas; rate, eps and decay; and whether the decay is decoupled.
    pub(crate) fn parts(&self) -> ([f64; 2], [f32; 3], bool) {
        (self.betas, [self.rate, self.eps, self.decay], self.decoupled)
    }
}

operands! {
    impl[] Adam, f32 {
        fn record(parameters: f32, gradients: f32, first: f32, second: f32, fullness: f32);
        /// Takes the rate, one element.
        optional with_rate(rate: f32);
    }
}

impl Op<f32> for Adam {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { rate, betas, eps, decay, decoupled, rated, .. } = *self;
        check_factor("adam", "rate", rate)?;
        check_factor("adam", "eps", eps)?;
        check_factor("adam", "decay", decay)?;
        if let Some(beta) = betas.into_iter().find(|b| !(0.0..1.0).contains(b)) {
            return Err(err!(InvalidArgument, "adam: beta is {beta:?}; it must be at least 0 and below 1"));
        }
        let [rest1, rest2] = betas.map(|beta| (1.0 - beta) as f32);
        let sweep = Sweep {
            op: "adam",
            shader: "nn/adam",
            variant: &self.variant,
            dtype: DType::F32,
            n: self.n,
            operands: &[
                ("parameters", Access::ReadWrite),
                ("gradients", Access::Read),
                ("first", Access::ReadWrite),
                ("second", Access::ReadWrite),
            ],
            spec: rate_spec(rated, 6).flag("DECOUPLED", decoupled),
            flop_per_element: 14.0,
        };
        let sweep = sweep.lower(profile, |n, _| AdamParams { n, rate, rest1, rest2, eps, decay })?;
        let mut program = Program::new("adam", sweep.decision.clone());
        program.operands = sweep.operands.clone();
        program.cost = sweep.cost;
        let fullness = Operand { name: "fullness", dtype: DType::F32, len: 2, access: Access::ReadWrite };
        program.operands.push(fullness);
        let fullness = Binding::operand(4, &program.operands);
        let advance = program.kernel(Kernel::library("nn/adam_advance", "adam_advance", Spec::new()));
        program.dispatch(advance, &AdvanceParams { rest1, rest2 }, vec![fullness], Grid::fold(1));
        program.append(sweep, &[0, 1, 2, 3].map(Resource::Operand));
        for dispatch in &mut program.dispatches[1..] {
            dispatch.bindings.push(fullness);
        }
        add_rate(&mut program, rated, 1);
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "adam",
    about: "a step down the gradient by its first two moments",
    inputs: &[
        Input::new("parameters", "any shape"),
        Input::new("gradients", "as parameters"),
        Input::new("first", "as parameters"),
        Input::new("second", "as parameters"),
        Input::new("fullness", "(2)"),
    ],
    outputs: &[
        ("parameters", "as parameters"),
        ("first", "as parameters"),
        ("second", "as parameters"),
        ("fullness", "(2)"),
    ],
    types: &[DType::F32],
    options: &[
        Setting::number("rate", "0.001"),
        DEVICE_RATE,
        Setting::number("beta1", "0.9"),
        Setting::number("beta2", "0.999"),
        Setting::number("eps", "1e-8"),
        Setting::number("decay", "0"),
        Setting::flag("decoupled"),
    ],
    domains: &[("second", Domain::NotNegative), ("fullness", Domain::Shares), ("device-rate", Domain::Shares)],
    make: Some(make),
    variants: Adam::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let parameters = asked.any("parameters")?;
    asked.check_type(&parameters)?;
    let mut op = Adam::new(parameters.len(), settings.number("rate")?)
        .betas(settings.number("beta1")?, settings.number("beta2")?)
        .eps(settings.number("eps")?)
        .decay(settings.number("decay")?)
        .when(settings.has("decoupled"), |op| op.decoupled())
        .variant(asked.variant());
    let shape = parameters.shape().to_vec();
    let mut operands = vec![
        Role::Updated(parameters),
        Role::Given(asked.like("gradients", &shape)?),
        Role::Updated(asked.like("first", &shape)?),
        Role::Updated(asked.like("second", &shape)?),
        Role::Updated(asked.like("fullness", &[2])?),
    ];
    if let Some(rate) = asked.named("device-rate", &[1])? {
        op = op.with_rate();
        operands.push(Role::Given(rate));
    }
    Ok(OpCall::new::<f32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Adam::new(1001, 0.1).decay(0.01).variant(variant);
    let all = [op.clone(), op.clone().with_rate(), op.clone().decoupled(), op.decoupled().with_rate()];
    all.into_iter().map(|op| op.lower(profile)).collect()
}

//! Stochastic gradient descent.

use crate::element::DType;
use crate::elementwise::{Sweep, VARIANTS};
use crate::error::{Result, err};
use crate::program::{Access, DeviceProfile, In, InOut, Op, OpInfo, Program, Variant, kernel_params};
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
    momentum: f32,
    decay: f32,
    nesterov: bool,
    variant: String,
}

/// [`Sgd`] with momentum: operands `parameters`, `gradients`, `velocity`.
///
/// Made by [`Sgd::with_momentum`]; all that [`Sgd`] says holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SgdMomentum(Sgd);

kernel_params! {
    struct Params { n: u32, rate: f32, momentum: f32, decay: f32 }
}

/// Refuses a number that is negative or none.
pub(super) fn check_factor(op: &str, name: &str, value: f32) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(err!(InvalidArgument, "{op}: {name} is {value}; it must be a finite number that is not negative"))
}

impl Sgd {
    /// Of `n` parameters, with steps of `rate` times the gradient.
    pub fn new(n: usize, rate: f32) -> Self {
        Self { n, rate, momentum: 0.0, decay: 0.0, nesterov: false, variant: "auto".into() }
    }

    /// How much of a parameter is added to its gradient; the default is 0.
    #[must_use]
    pub fn decay(mut self, decay: f32) -> Self {
        self.decay = decay;
        self
    }

    /// Whether momentum looks ahead; by default it does not.
    #[must_use]
    pub fn nesterov(mut self, nesterov: bool) -> Self {
        self.nesterov = nesterov;
        self
    }

    /// The same with momentum; `velocity` becomes the last operand. Call it last.
    #[must_use]
    pub fn with_momentum(mut self, momentum: f32) -> SgdMomentum {
        self.momentum = momentum;
        SgdMomentum(self)
    }

    /// Runs the variant of this name instead of `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Every way to run it: the walks of the elementwise ops.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// Rate, momentum, decay, and whether it looks ahead.
    pub(crate) fn parts(&self) -> (f32, f32, f32, bool) {
        (self.rate, self.momentum, self.decay, self.nesterov)
    }

    fn lower_with(&self, momentum: bool, profile: &DeviceProfile) -> Result<Program> {
        check_factor("sgd", "rate", self.rate)?;
        check_factor("sgd", "momentum", self.momentum)?;
        check_factor("sgd", "decay", self.decay)?;
        let operands =
            [("parameters", Access::ReadWrite), ("gradients", Access::Read), ("velocity", Access::ReadWrite)];
        Sweep {
            op: "sgd",
            shader: "nn/sgd",
            variant: &self.variant,
            dtype: DType::F32,
            n: self.n,
            operands: &operands[..if momentum { 3 } else { 2 }],
            spec: Spec::new().flag("MOMENTUM", momentum).flag("NESTEROV", self.nesterov),
            flop_per_element: if momentum { 6.0 } else { 4.0 },
        }
        .lower(profile, |n| Params {
            n,
            rate: self.rate,
            momentum: self.momentum,
            decay: self.decay,
        })
    }
}

impl SgdMomentum {
    /// What it is made of.
    pub fn sgd(&self) -> &Sgd {
        &self.0
    }

    /// The same of `n` parameters.
    pub(super) fn of(&self, n: usize) -> Self {
        Self(Sgd { n, ..self.0.clone() })
    }
}

impl Op<f32> for Sgd {
    type Operands = (InOut<f32>, In<f32>);

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.lower_with(false, profile)
    }
}

impl Op<f32> for SgdMomentum {
    type Operands = (InOut<f32>, In<f32>, InOut<f32>);

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.0.lower_with(true, profile)
    }
}

pub(super) const INFO: OpInfo = OpInfo {
    name: "sgd",
    about: "a step down the gradient, with momentum and weight decay",
    inputs: "parameters, gradients, [velocity]",
    keys: "rate (0.01), momentum (0), decay (0), nesterov",
    variants: Sgd::variants,
    samples,
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Sgd::new(1001, 0.1).variant(variant);
    let ahead = op.clone().nesterov(true).with_momentum(0.9);
    Ok(vec![op.lower(profile)?, op.with_momentum(0.9).lower(profile)?, ahead.lower(profile)?])
}

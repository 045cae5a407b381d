use super::BatchNorm;
use super::batch_channels::BatchChannels;
use super::batch_program::{begin, built};
use super::batch_resident::{RESIDENT, VARIANTS, leave_out_posts};
use super::by_name::EPS;
use crate::dense::Activation;
use crate::program::prelude::*;
use crate::shader::Fragment;

/// Normalises channels by the statistics of the batch, as in training:
/// `y[n, c, i] = (x[n, c, i] - mean[c]) / sqrt(variance[c] + eps) * gamma[c] + beta[c]`, with the mean and the biased
/// variance of channel `c` over all images.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::BatchNormTrain;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 3.0, 5.0, 7.0])?; // 2 images of 1 channel of 1 x 2
/// let [gamma, beta, mean, variance] = [2.0f32, 1.0, 0.0, 1.0].map(|v| gpu.upload(&[v]));
/// let (y, new_mean, new_variance) = (gpu.alloc::<f32>(4)?, gpu.alloc::<f32>(1)?, gpu.alloc::<f32>(1)?);
/// let plan = BatchNormTrain::new([2, 1, 1, 2]).eps(0.0).momentum(0.5).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &gamma?, &beta?, &mean?, &variance?, &y, &new_mean, &new_variance)?;
/// rec.submit()?;
/// assert_eq!(new_mean.read()?, [2.0]); // half of 0 and of 4
/// assert!((new_variance.read()?[0] - (0.5 + 10.0 / 3.0)).abs() < 1e-5); // half of 1 and of 20 / 3
/// assert!((y.read()?[0] - (1.0 - 6.0 / 5f32.sqrt())).abs() < 1e-5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// The running statistics, which [`BatchNorm`] takes in inference, become
/// `(1 - momentum) running + momentum of_the_batch`. The variance of the batch is the unbiased one there, over one
/// element less, as in PyTorch; with [`population`](BatchNormTrain::population) the biased one, as in ONNX. With
/// [`in_place`](BatchNormTrain::in_place) they are updated in place, and plans are recorded by `record_in_place`.
///
/// # Shapes
/// `x` and `y` are N x C x H x W; the others have C elements. No extent may be 0. Every output must be a wgpu buffer of
/// its own.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// `parts` joins mean and squared differences pairwise by Chan's formula; `resident` adds the squared differences from
/// the mean of each tile, then joins tiles. Neither cancels, however far the mean is from 0. The same device gives the
/// same bits in `parts`; in `resident`, which [`deterministic`](Self::deterministic) rules out, a workgroup that waited
/// in vain for another may round the statistics otherwise.
/// [`reference::batch_norm_train_bound`](crate::reference::batch_norm_train_bound) bounds the error. A NaN or infinity
/// makes the results of its channel NaN or infinite, and no others.
///
/// # Cost
/// About 15 operations an element. `y` is written once. `parts` reads `x` twice, in three dispatches (more for an `x`
/// above the largest binding), with scratch of 16 bytes for each part of a channel, at most about 2048 parts, and 8
/// bytes a channel. `resident` reads `x` once, in two dispatches, with scratch of 8 bytes a tile and a channel; in one
/// dispatch without scratch if a workgroup holds a channel.
///
/// # Variants
/// `parts` takes any shape. `resident` takes channels of up to 2,457,600 elements (half of that unless planes are a
/// multiple of 4), cut into at most 200 tiles, and an `x` within one binding. `auto` (the default) takes it on cards
/// and, where a workgroup holds a channel, on every device.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): an extent of 0; one element a channel, which has no unbiased variance.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, an image above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant, an `eps` that is negative or not
///   finite, a `momentum` outside 0 to 1.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): `resident` by name for a channel or an `x` that is too large.
///
/// # Algorithm
/// S. Ioffe and C. Szegedy, *Batch Normalization*, 2015; T. Chan, G. Golub and R. LeVeque, *Updating Formulae and a
/// Pairwise Algorithm for Computing Sample Variances*, 1979. `shaders/nn/batch_norm_train_partials.wgsl`,
/// `batch_norm_train_join.wgsl`, then `batch_norm.wgsl`; or `batch_norm_train_resident.wgsl`, whose workgroups wait for
/// each other as in T. Smith, R. Levien and J. D. Owens, *Decoupled Fallback*, 2025.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormTrain {
    shape: [usize; 4],
    pub(super) eps: f32,
    momentum: f32,
    population: bool,
    running: RunningStatistics,
    activation: Activation,
    variant: String,
    deterministic: bool,
    leave_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunningStatistics {
    /// The new ones are operands of their own.
    Apart,
    InPlace,
    /// There are none.
    Absent,
}

impl BatchNormTrain {
    /// Normalises `x` of this shape (N, C, H, W), with an epsilon of 1e-5 and a momentum of 0.1.
    pub fn new(shape: [usize; 4]) -> Self {
        Self {
            shape,
            eps: 1e-5,
            momentum: 0.1,
            population: false,
            running: RunningStatistics::Apart,
            activation: Activation::None,
            variant: "auto".into(),
            deterministic: false,
            leave_out: false,
        }
    }

    /// Sets the number added to the variance. The default is 1e-5.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }

    /// Sets the share of the batch in the new running statistics, from 0 to 1. The default is 0.1.
    #[must_use]
    pub fn momentum(mut self, momentum: f32) -> Self {
        self.momentum = momentum;
        self
    }

    /// Averages the biased variance of the batch, as ONNX does.
    #[must_use]
    pub fn population(mut self) -> Self {
        self.population = true;
        self
    }

    /// Updates `running_mean` and `running_variance` in place: there are no operands for the new ones.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.running = RunningStatistics::InPlace;
        self
    }

    variants!(variant);

    deterministic!(deterministic);

    leave_out_posts!();

    /// Returns the same norm as a layer of a network.
    pub(super) fn within(&self, shape: [usize; 4], running: RunningStatistics, activation: Activation) -> Self {
        Self { shape, running, activation, ..self.clone() }
    }

    /// Shape, epsilon, momentum, and the factor from the variance to the one that is averaged.
    pub(crate) fn parts(&self) -> ([usize; 4], f32, f32, f64) {
        let [n, _, h, w] = self.shape;
        let count = (n * h * w) as f64;
        let correction = if self.population { 1.0 } else { count / (count - 1.0) };
        (self.shape, self.eps, self.momentum, correction)
    }
}

operands! {
    impl[] BatchNormTrain, f32 {
        fn record(
            x: f32,
            gamma: f32,
            beta: f32,
            running_mean: f32,
            running_variance: f32,
            y: f32,
            new_running_mean: f32,
            new_running_variance: f32,
        );
        fn record_in_place(
            x: f32,
            gamma: f32,
            beta: f32,
            running_mean: f32,
            running_variance: f32,
            y: f32,
        );
    }
}

impl Op<f32> for BatchNormTrain {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let op = INFO.name;
        let running = self.running;
        let (_, _, _, correction) = self.parts();
        let channels = BatchChannels {
            op,
            shape: self.shape,
            eps: self.eps,
            momentum: self.momentum,
            correction: correction as f32,
            profile,
        };
        let tiles = || channels.tiles(1);
        let policy = || channels.preferred(tiles());
        let mut program =
            begin(&INFO, self.shape, self.eps, (&self.variant, self.deterministic), 15.0, profile, policy)?;
        if !(0.0..=1.0).contains(&self.momentum) {
            return Err(err!(
                InvalidArgument,
                "{op}: momentum is {:?}; it is the share of the batch, from 0 to 1, such as 0.1",
                self.momentum
            ));
        }
        if program.operands[0].len == self.shape[1] && !self.population && running != RunningStatistics::Absent {
            return Err(err!(
                Shape,
                "{op}: x of {:?} has one element a channel, which has no unbiased variance; take more, or `population`",
                self.shape
            ));
        }
        channels.check(&program.operands[0])?;
        let given = match running {
            RunningStatistics::Apart => &[3, 4, 6, 7][..],
            RunningStatistics::InPlace => {
                program.operands.truncate(6);
                program.operands[3..5].iter_mut().for_each(|o| o.access = Access::ReadWrite);
                &[3, 4]
            }
            RunningStatistics::Absent => {
                program.operands.truncate(6);
                program.operands.drain(3..5);
                &[]
            }
        };
        if program.variant() == RESIDENT {
            let bindings = program.operands.iter().enumerate();
            let bindings = bindings.map(|(i, _)| Binding::operand(i, &program.operands)).collect::<Vec<_>>();
            let spec = Spec::new()
                .slot("activation", Fragment::Library(self.activation.fragment()))
                .flag("RUNNING", !given.is_empty())
                .flag("IN_PLACE", running == RunningStatistics::InPlace)
                .constant("OUTPUT_BINDING", if given.is_empty() { 4 } else { 6 });
            channels.resident(&mut program, tiles(), spec, bindings, 2, self.leave_out)?;
            return Ok(program);
        }
        let bound: Vec<_> = given.iter().map(|&i| Binding::operand(i, &program.operands)).collect();
        let found = channels.statistics(&mut program, Resource::Operand(0), &bound);
        let normalise = BatchNorm::new(self.shape).eps(self.eps).activation(self.activation).lower(profile)?;
        let y = if running == RunningStatistics::Absent { 3 } else { 5 };
        let [x, gamma, beta, y] = [0, 1, 2, y].map(Resource::Operand);
        program.append(normalise, &[x, found.mean.resource, found.variance.resource, gamma, beta, y]);
        Ok(program)
    }
}

pub(super) const MOMENTUM: Setting = Setting::number("momentum", "0.1");
const POPULATION: Setting = Setting::flag("population");

pub(super) const INFO: Operation = Operation {
    name: "batch-norm-train",
    about: "every channel by its mean and variance over the batch; the new running mean and variance",
    inputs: &[
        Input::new("x", "(N, C, H, W)"),
        Input::new("gamma", "(C)"),
        Input::new("beta", "(C)"),
        Input::new("running_mean", "(C)"),
        Input::new("running_variance", "(C)"),
    ],
    outputs: &[("y", "as x"), ("new_running_mean", "(C)"), ("new_running_variance", "(C)")],
    types: &[DType::F32],
    options: &[EPS, MOMENTUM, POPULATION, Setting::flag("deterministic")],
    domains: &[("running_variance", Domain::NotNegative)],
    make: Some(make),
    variants: BatchNormTrain::variants,
    samples,
    example: Example { shape: &[2, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    built(asked, &INFO, |shape, asked| {
        let settings = asked.settings();
        let op = BatchNormTrain::new(shape).eps(settings.number("eps")?).momentum(settings.number("momentum")?);
        let op = op.when(settings.has("deterministic"), BatchNormTrain::deterministic);
        Ok(BatchNormTrain { population: settings.has("population"), ..op.variant(asked.variant()) })
    })
}

/// Shapes that reach every form of the kernels: of vec4s and not, one part and several.
pub(super) const SAMPLES: [[usize; 4]; 4] = [[2, 3, 4, 4], [2, 3, 3, 5], [3, 2, 64, 64], [5, 2, 51, 63]];

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let apart = |shape| BatchNormTrain::new(shape).variant(variant);
    let all = SAMPLES.into_iter().flat_map(|shape| [apart(shape), apart(shape).in_place()]);
    all.map(|op| op.lower(profile)).collect()
}

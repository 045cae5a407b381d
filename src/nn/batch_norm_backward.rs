use super::batch_channels::{BatchChannels, WORKGROUP};
use super::batch_norm_train::SAMPLES;
use super::batch_program::{begin, built};
use super::batch_resident::{RESIDENT, VARIANTS, leave_out_posts};
use super::by_name::EPS;
use crate::program::prelude::*;

/// Computes the gradients of [`BatchNormTrain`](super::BatchNormTrain) with respect to `x`, `gamma` and `beta`, from
/// the gradient `dy` by its result. With `z = (x - mean) / sqrt(variance + eps)` and `m` elements a channel:
/// `dgamma = sum dy z`, `dbeta = sum dy`, `dx = gamma / sqrt(variance + eps) (dy - dbeta / m - z dgamma / m)`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::BatchNormBackward;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?; // 4 images of one channel and one pixel
/// let (x, dy) = (gpu.upload(&[0.0f32, 0.0, 2.0, 2.0])?, gpu.upload(&[1.0f32, 0.0, 0.0, 0.0])?);
/// let (gamma, dx) = (gpu.upload(&[1.0f32])?, gpu.alloc::<f32>(4)?);
/// let (dgamma, dbeta) = (gpu.alloc::<f32>(1)?, gpu.alloc::<f32>(1)?);
/// let plan = BatchNormBackward::new([4, 1, 1, 1]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &gamma, &dy, &dx, &dgamma, &dbeta)?;
/// rec.submit()?;
/// assert_eq!(dbeta.read()?, [1.0]);
/// assert!((dx.read()?[0] - 0.5).abs() < 1e-4 && (dgamma.read()?[0] + 1.0).abs() < 1e-4);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x`, `dy` and `dx` are N x C x H x W; `gamma`, `dgamma` and `dbeta` have C elements. Operands are `x`, `gamma`,
/// `dy`, `dx`, `dgamma`, `dbeta`, in this order. No extent may be 0. Every
/// output must be a wgpu buffer of its own.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// Mean and variance are found anew, as by [`BatchNormTrain`](super::BatchNormTrain), with the same bits or not; sums
/// are f32, over parts of a channel and then over parts.
/// [`reference::batch_norm_backward_bound`](crate::reference::batch_norm_backward_bound) bounds the error.
///
/// # Cost
/// About 25 operations an element. `dx` is written once. `parts` reads `x` three times and `dy` twice, in five
/// dispatches (more for an `x` above the largest binding), with scratch of 32 bytes for each part of a channel, at most
/// about 2048 parts, and 8 bytes a channel. `resident` reads both once, in two dispatches, with scratch of 16 bytes a
/// tile; in one dispatch without scratch if a workgroup holds a channel.
///
/// # Variants
/// As [`BatchNormTrain`](super::BatchNormTrain), where `resident` takes channels of half as many elements.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): an extent of 0.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, an image above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant, an `eps` that is negative or not
///   finite.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): `resident` by name for a channel or an `x` that is too large.
///
/// # Algorithm
/// `shaders/nn/batch_norm_train_partials.wgsl` and `batch_norm_train_join.wgsl`, twice each, then
/// `batch_norm_backward.wgsl`; or `batch_norm_train_resident.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormBackward {
    shape: [usize; 4],
    eps: f32,
    variant: String,
    deterministic: bool,
    leave_out: bool,
}

kernel_params! {
    struct BatchNormBackwardParams { planes: u32, len: u32, origin: u32, channels: u32, count: f32, eps: f32 }
}

impl BatchNormBackward {
    /// Takes `x` of this shape (N, C, H, W), with an epsilon of 1e-5.
    pub fn new(shape: [usize; 4]) -> Self {
        Self { shape, eps: 1e-5, variant: "auto".into(), deterministic: false, leave_out: false }
    }

    /// Sets what was added to the variance. The default is 1e-5.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }

    variants!(variant);

    deterministic!(deterministic);

    leave_out_posts!();

    pub(crate) fn parts(&self) -> ([usize; 4], f32) {
        (self.shape, self.eps)
    }
}

operands! {
    impl[] BatchNormBackward, f32 {
        fn record(x: f32, gamma: f32, dy: f32, dx: f32, dgamma: f32, dbeta: f32);
    }
}

impl Op<f32> for BatchNormBackward {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let channels =
            BatchChannels { op: INFO.name, shape: self.shape, eps: self.eps, momentum: 0.0, correction: 1.0, profile };
        let tiles = || channels.tiles(2);
        let policy = || channels.preferred(tiles());
        let mut program =
            begin(&INFO, self.shape, self.eps, (&self.variant, self.deterministic), 25.0, profile, policy)?;
        channels.check(&program.operands[0])?;
        let [n, c, h, w] = self.shape;
        index_u32(INFO.name, "planes", n * c)?;
        let [x, dy, dx] = [0, 2, 3].map(Resource::Operand);
        let [gamma, dgamma, dbeta] = [1, 4, 5].map(|i| Binding::operand(i, &program.operands));
        if program.variant() == RESIDENT {
            let bindings = (0..6).map(|i| Binding::operand(i, &program.operands)).collect();
            let spec = Spec::new().flag("GRADIENTS", true);
            channels.resident(&mut program, tiles(), spec, bindings, 4, self.leave_out)?;
            return Ok(program);
        }
        let found = channels.statistics(&mut program, x, &[]);
        channels.gradients(&mut program, [x, dy], found, [dbeta, dgamma]);
        let spec = Spec::new().flag("VECTORS", channels.vectors());
        let kernel = program.kernel(Kernel::library("nn/batch_norm_backward", "batch_norm_backward", spec));
        let image = 4 * (c * h * w) as u64;
        for chunk in profile.chunks(n as u64, image) {
            let params = BatchNormBackwardParams {
                planes: (chunk.count * c as u64) as u32,
                len: channels.plane() as u32,
                origin: (chunk.span(image).before / 4) as u32,
                channels: c as u32,
                count: channels.count() as f32,
                eps: self.eps,
            };
            let [x, dy, dx] = [x, dy, dx].map(|images| chunk.of(images, image));
            let bindings = vec![x, gamma, dy, found.mean, found.variance, dgamma, dbeta, dx];
            let items = chunk.count * image / if channels.vectors() { 16 } else { 4 };
            program.dispatch(kernel, &params, bindings, Grid::fold(items.div_ceil(WORKGROUP)));
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "batch-norm-backward",
    about: "the gradients of batch norm in training: of x, gamma and beta",
    inputs: &[Input::new("x", "(N, C, H, W)"), Input::new("gamma", "(C)"), Input::new("dy", "(N, C, H, W)")],
    outputs: &[("dx", "as x"), ("dgamma", "(C)"), ("dbeta", "(C)")],
    types: &[DType::F32],
    options: &[EPS, Setting::flag("deterministic")],
    make: Some(make),
    variants: BatchNormBackward::variants,
    samples,
    example: Example { shape: &[2, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    built(asked, &INFO, |shape, asked| {
        let settings = asked.settings();
        let op = BatchNormBackward::new(shape).eps(settings.number("eps")?).variant(asked.variant());
        Ok(op.when(settings.has("deterministic"), BatchNormBackward::deterministic))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    SAMPLES.into_iter().map(|shape| BatchNormBackward::new(shape).variant(variant).lower(profile)).collect()
}

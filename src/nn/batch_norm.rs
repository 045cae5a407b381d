use super::batch_program::{begin, built};
use super::by_name::EPS;
use super::rows::check_rows;
use crate::dense::Activation;
use crate::program::prelude::*;

/// Normalises channels by given statistics, as in inference:
/// `output[n, c, i] = activation((x[n, c, i] - mean[c]) / sqrt(variance[c] + eps) * gamma[c] + beta[c])`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::BatchNorm;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, output) = (gpu.upload(&[3.0f32, 7.0])?, gpu.alloc::<f32>(2)?); // 1 x 1 x 1 x 2
/// let [mean, variance, gamma, beta] = [5.0f32, 4.0, 10.0, 1.0].map(|v| gpu.upload(&[v]));
/// let plan = BatchNorm::new([1, 1, 1, 2]).eps(0.0).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &mean?, &variance?, &gamma?, &beta?, &output)?;
/// rec.submit()?;
/// assert!((output.read()?[1] - 11.0).abs() < 1e-4);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `output` are N x C x H x W, every extent at least 1; the others have C elements. `output` must not share a
/// wgpu buffer with the others.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A difference, an inverse square root (2 ULP), two products and a sum;
/// [`reference::batch_norm_bound`](crate::reference::batch_norm_bound) bounds the error. A variance below `-eps` gives
/// NaN or the device's root of a negative number. The same device and inputs give the same bits.
///
/// # Cost
/// About 5 flop for each element, which is read and written once. One dispatch for each chunk of `x` that fits a
/// binding; no scratch.
///
/// # Variants
/// `planes`, the only one.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): an extent of 0.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, a plane above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant, an `eps` that is negative or not
///   finite.
///
/// # Algorithm
/// S. Ioffe and C. Szegedy, *Batch Normalization*, 2015: `shaders/nn/batch_norm.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNorm {
    shape: [usize; 4],
    eps: f32,
    activation: Activation,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("planes", "a thread computes one or four elements of a plane")];

kernel_params! {
    struct BatchNormParams { planes: u32, len: u32, origin: u32, first: u32, channels: u32, eps: f32 }
}

impl BatchNorm {
    /// Takes the shape of `x` (N, C, H, W). The default epsilon is 1e-5.
    pub fn new(shape: [usize; 4]) -> Self {
        Self { shape, eps: 1e-5, activation: Activation::None, variant: "auto".into() }
    }

    /// Sets the number added to the variance. The default is 1e-5.
    #[must_use]
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }

    /// Applies an activation to each result. The default is none.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    variants!(variant);

    pub(crate) fn parts(&self) -> ([usize; 4], f32, Activation) {
        (self.shape, self.eps, self.activation)
    }
}

operands! {
    impl[] BatchNorm, f32 {
        fn record(x: f32, mean: f32, variance: f32, gamma: f32, beta: f32, output: f32);
    }
}

impl Op<f32> for BatchNorm {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let [n, c, h, w] = self.shape;
        let only = || ("planes", "the only variant".to_owned());
        let mut program = begin(&INFO, self.shape, self.eps, (&self.variant, false), 5.0, profile, only)?;
        let plane = h * w;
        check_rows("batch-norm", &program.operands[0], plane, profile)?;
        index_u32("batch-norm", "planes", n * c)?;
        let vectors = plane.is_multiple_of(4);
        let spec =
            Spec::new().slot("activation", Fragment::Library(self.activation.fragment())).flag("VECTORS", vectors);
        let kernel = program.kernel(Kernel::library("nn/batch_norm", "batch_norm", spec));
        let plane_bytes = 4 * plane as u64;
        for chunk in profile.chunks((n * c) as u64, plane_bytes) {
            let params = BatchNormParams {
                planes: chunk.count as u32,
                len: plane as u32,
                origin: (chunk.span(plane_bytes).before / 4) as u32,
                first: (chunk.first % c as u64) as u32,
                channels: c as u32,
                eps: self.eps,
            };
            let mut bindings = vec![chunk.of(Resource::Operand(0), plane_bytes)];
            bindings.extend((1..5).map(|i| Binding::operand(i, &program.operands)));
            bindings.push(chunk.of(Resource::Operand(5), plane_bytes));
            let items = chunk.count * plane as u64 / if vectors { 4 } else { 1 };
            program.dispatch(kernel, &params, bindings, Grid::fold(items.div_ceil(256)));
        }
        Ok(program)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "batch-norm",
    about: "channels normalised by given means and variances, then scaled and shifted",
    inputs: &[
        Input::new("x", "(N, C, H, W)"),
        Input::new("mean", "(C)"),
        Input::new("variance", "(C)"),
        Input::new("gamma", "(C)"),
        Input::new("beta", "(C)"),
    ],
    outputs: &[("output", "as x")],
    types: &[DType::F32],
    options: &[EPS, Activation::SETTING],
    domains: &[("variance", Domain::NotNegative)],
    make: Some(make),
    variants: BatchNorm::variants,
    samples,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    built(asked, &INFO, |shape, asked| {
        let settings = asked.settings();
        let op = BatchNorm::new(shape).eps(settings.number("eps")?).activation(Activation::asked(settings)?);
        Ok(op.variant(asked.variant()))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let all = Activation::ALL.into_iter().flat_map(|activation| {
        [[2, 3, 4, 4], [2, 3, 3, 5]].map(|shape| {
            let op = BatchNorm::new(shape).activation(activation).variant(variant);
            Op::<f32>::lower(&op, profile)
        })
    });
    all.collect()
}

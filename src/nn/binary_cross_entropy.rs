use super::mean_loss::{MeanLoss, built};
use crate::elementwise::VARIANTS;
use crate::program::prelude::*;

/// Computes the loss of yes-or-no answers from logits: with `p[i] = 1 / (1 + exp(-x[i]))`,
/// `mean = sum over i of (-target[i] log p[i] - (1 - target[i]) log(1 - p[i])) / n`, and its gradient on request.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::BinaryCrossEntropy;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, target) = (gpu.upload(&[0.0f32, 0.0])?, gpu.upload(&[1.0f32, 0.0])?);
/// let (mean, dx) = (gpu.alloc::<f32>(1)?, gpu.alloc::<f32>(2)?);
/// let plan = BinaryCrossEntropy::new(2).with_gradient().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_dx(&dx).record(&mut rec, &x, &target, &mean)?;
/// rec.submit()?;
/// assert!((mean.read()?[0] - 2f32.ln()).abs() < 1e-5);
/// assert_eq!(dx.read()?, [-0.25, 0.25]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` (logits) and `target` (probabilities, from 0 to 1) have n elements each, `mean` has one; n must be at least 1.
/// [`with_gradient`](Self::with_gradient) adds `dx`, n elements. Outputs must not share wgpu buffers with other
/// operands.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// The loss is computed as `max(x, 0) - target x + log(1 + exp(-|x|))`, which neither overflows nor cancels; losses are
/// then summed as by [`Reduce`](crate::Reduce).
/// [`reference::binary_cross_entropy_bound`](crate::reference::binary_cross_entropy_bound) bounds the error. A target
/// outside 0 to 1, or a NaN, makes its gradient and the mean NaN. The same device and inputs give the same bits.
///
/// # Cost
/// About 20 flop for each element, and 4 n bytes of scratch for the losses. One or two dispatches, those of the
/// reduction, and one more.
///
/// # Variants
/// Those of [`Zip`](crate::Zip).
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): n is 0.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/binary_cross_entropy.wgsl`, then a reduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryCrossEntropy {
    n: usize,
    gradient: bool,
    variant: String,
}

impl BinaryCrossEntropy {
    /// Takes `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, gradient: false, variant: "auto".into() }
    }

    /// Adds the gradient of the mean: an operand `dx`, `dx[i] = (p[i] - target[i]) / n`, which plans take by
    /// `with_dx`.
    #[must_use]
    pub fn with_gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    variants!(variant);
}

operands! {
    impl[] BinaryCrossEntropy, f32 {
        fn record(x: f32, target: f32, mean: f32);
        /// Takes the buffer for the gradient of the mean.
        optional with_dx(dx: f32);
    }
}

impl Op<f32> for BinaryCrossEntropy {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let loss = MeanLoss {
            op: INFO.name,
            shader: "nn/binary_cross_entropy",
            n: self.n,
            gradient: self.gradient,
            factor: 1.0,
            flop_per_element: 20.0,
            variant: &self.variant,
        };
        loss.lower(profile)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "binary-cross-entropy",
    about: "the mean loss of yes-or-no answers from logits, and its gradient",
    inputs: &[Input::new("x", "any shape"), Input::new("target", "as x")],
    outputs: &[("loss", "()"), ("gradient", "as x")],
    types: &[DType::F32],
    domains: &[("target", Domain::Shares)],
    make: Some(|asked| {
        let op = BinaryCrossEntropy::new(0).variant(asked.variant()).with_gradient();
        built(asked, |n| BinaryCrossEntropy { n, ..op })
    }),
    variants: BinaryCrossEntropy::variants,
    samples,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    // 1001 is not a multiple of 4, so `vec4` has a rest.
    let op = BinaryCrossEntropy::new(1001).variant(variant);
    Ok(vec![op.lower(profile)?, op.with_gradient().lower(profile)?])
}

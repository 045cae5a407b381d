use super::mean_loss::{MeanLoss, built};
use crate::elementwise::VARIANTS;
use crate::program::prelude::*;

/// Computes the loss of a regression, `mean = sum over i of (x[i] - target[i])^2 / n`, and its gradient on request.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::SquaredError;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, target) = (gpu.upload(&[1.0f32, 4.0])?, gpu.upload(&[1.0f32, 2.0])?);
/// let (mean, dx) = (gpu.alloc::<f32>(1)?, gpu.alloc::<f32>(2)?);
/// let plan = SquaredError::new(2).with_gradient().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_dx(&dx).record(&mut rec, &x, &target, &mean)?;
/// rec.submit()?;
/// assert_eq!((mean.read()?, dx.read()?), (vec![2.0], vec![0.0, 2.0]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` and `target` have n elements each, at least 1; `mean` has one; [`with_gradient`](Self::with_gradient) adds `dx`,
/// n elements. Outputs must not share wgpu buffers with other operands.
///
/// # Types
/// f32.
///
/// # Precision and determinism
/// A difference and a square for each element, then the sums of [`Reduce`](crate::Reduce);
/// [`reference::squared_error_bound`](crate::reference::squared_error_bound) bounds the error. NaN and infinities
/// propagate as in f32 arithmetic. The same device and inputs give the same bits.
///
/// # Cost
/// 3 flop for each element, and 4 n bytes of scratch for the squares. One or two dispatches, those of the reduction,
/// and one more.
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
/// `shaders/nn/squared_error.wgsl`, then a reduction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SquaredError {
    n: usize,
    gradient: bool,
    variant: String,
}

impl SquaredError {
    /// Takes `n` elements.
    pub fn new(n: usize) -> Self {
        Self { n, gradient: false, variant: "auto".into() }
    }

    /// Adds the gradient of the mean: an operand `dx`, `dx[i] = 2 (x[i] - target[i]) / n`, which plans take by
    /// `with_dx`.
    #[must_use]
    pub fn with_gradient(mut self) -> Self {
        self.gradient = true;
        self
    }

    variants!(variant);
}

operands! {
    impl[] SquaredError, f32 {
        fn record(x: f32, target: f32, mean: f32);
        /// Takes the buffer for the gradient of the mean.
        optional with_dx(dx: f32);
    }
}

impl Op<f32> for SquaredError {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let loss = MeanLoss {
            op: INFO.name,
            shader: "nn/squared_error",
            n: self.n,
            gradient: self.gradient,
            factor: 2.0,
            flop_per_element: 3.0,
            variant: &self.variant,
        };
        loss.lower(profile)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "squared-error",
    about: "the mean of squared differences, and its gradient",
    inputs: &[Input::new("x", "any shape"), Input::new("target", "as x")],
    outputs: &[("loss", "()"), ("gradient", "as x")],
    types: &[DType::F32],
    make: Some(|asked| {
        let op = SquaredError::new(0).variant(asked.variant()).with_gradient();
        built(asked, |n| SquaredError { n, ..op })
    }),
    variants: SquaredError::variants,
    samples,
    ..Operation::UNDECLARED
};

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    // 1001 is not a multiple of 4, so `vec4` has a rest.
    let op = SquaredError::new(1001).variant(variant);
    Ok(vec![op.lower(profile)?, op.with_gradient().lower(profile)?])
}

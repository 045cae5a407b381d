use super::conv::{Conv2d, sample_layers};
use super::correlate::{VARIANTS, Whole};
use super::layer::{self, CHANNELS_LAST, DILATION, GROUPS, Layer, PAD, PAD_EACH, STRIDE};
use crate::dense::{Activation, Precision};
use crate::program::prelude::*;

/// Computes the gradient of a [`Conv2d`] with respect to its input: `dx[n, c, y, x]` is the sum of
/// `w[m, c, a, b] dy[n, m, i, j]` over all m, a, b, i, j with `i stride + a dilation - pad = y` and
/// `j stride + b dilation - pad = x`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::Conv2dBackwardData;
/// use tilework::prelude::*;
///
/// // The gradient of a layer from 1 x 3 to 1 x 2 cells with a window of 1 x 2.
/// let gpu = Gpu::new()?;
/// let layer = Conv2d::new([1, 1, 1, 3], 1, [1, 2]);
/// let (dy, w) = (gpu.upload(&[1.0f32, 10.0])?, gpu.upload(&[2.0f32, 3.0])?);
/// let dx = gpu.alloc::<f32>(3)?;
/// let gradient = Conv2dBackwardData::new(&layer).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// gradient.record(&mut rec, &dy, &w, &dx)?;
/// rec.submit()?;
/// assert_eq!(dx.read()?, [2.0, 23.0, 30.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::conv_backward_data`](crate::Gpu::conv_backward_data).
///
/// # Shapes
/// `dy` has the shape of the layer's output (N, M, P, Q), `w` that of its weights, `dx` that of its x. Operands are
/// `dy`, `w`, `dx`, in this order, of f32 or f16, in the layer's order of channels and with its precision. `dy` is the
/// gradient before the activation: bias and activation of the layer do not enter. `dx` must be a wgpu buffer of its
/// own.
///
/// # Precision and determinism
/// As [`Conv2d`], with sums of `M / groups R S` products. A weight that is not finite may make every output of its
/// filter NaN: variants multiply it by zeros beyond the edge.
///
/// # Cost
/// As [`Conv2d`]. `implicit`, `im2col` and `coop` first turn the weights, which takes scratch of the weights' size.
///
/// # Variants
/// Those of [`Conv2d`]: the gradient is a convolution of `dy`, its elements spread `stride` apart, with turned
/// windows. `winograd` and `depthwise` need a stride of 1.
///
/// # Errors
/// As [`Conv2d`].
///
/// # Algorithm
/// `shaders/conv/conv_backward_data_weight.wgsl` and `conv_transpose_turn.wgsl`, with the kernels of [`Conv2d`].
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2dBackwardData {
    layer: Layer,
    variant: String,
}

impl Conv2dBackwardData {
    /// Creates the gradient of this layer.
    pub fn new(layer: &Conv2d) -> Self {
        Self { layer: Layer { op: "conv-backward-data", ..layer.layer.clone() }, variant: "auto".into() }
    }

    variants!(variant);

    pub(crate) fn parts(&self) -> (&Layer, &str) {
        (&self.layer, &self.variant)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let [dx, w, dy] = self.layer.lengths()?;
        let whole = Whole {
            c: self.layer.backward()?.of(dtype, profile)?,
            names: ["dy", "w", "dx"],
            x: dy,
            w,
            bias: None,
            output: dx,
            flop: self.layer.flop()?,
            activation: Activation::None,
            slices: None,
            asked: &self.variant,
        };
        whole.program(profile)
    }
}

operands! {
    impl[T: Element,] Conv2dBackwardData, T {
        fn record(dy: T, w: T, dx: T);
    }
}

lowered_as!(Conv2dBackwardData: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "conv-backward-data",
    about: "the gradient of a convolution layer by its input",
    inputs: &[
        Input::new("dy", "(N, M, P, Q); (N, P, Q, M) with channels-last"),
        Input::new("w", "(M, C/groups, R, S); (M, R, S, C/groups) with channels-last"),
    ],
    outputs: &[("dx", "(shape)")],
    types: &[DType::F32, DType::F16],
    options: &[
        Setting::text("shape", SHAPE, ""),
        STRIDE,
        PAD,
        PAD_EACH,
        DILATION,
        GROUPS,
        CHANNELS_LAST,
        Precision::SETTING,
    ],
    make: Some(make),
    variants: Conv2dBackwardData::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: super::product::rows_of,
    example: Example { shape: &[1, 4, 6, 6], options: &[("shape", "1,4,8,8")] },
    ..Operation::UNDECLARED
};

/// The value of the option `shape`: the extents of the gradient, as they lie in memory.
const SHAPE: &str = "N,C,H,W";

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (dy, extents) = asked.array::<4>("dy")?;
    let ([_, m, ..], dtype) = (layer::by_channels(asked, extents), dy.dtype());
    let extents: [usize; 4] = settings.numbers("shape", SHAPE)?;
    let shape @ [_, c, ..] = layer::by_channels(asked, extents);
    asked.set("shape", &extents);
    let groups: usize = settings.number("groups")?;
    let usual = layer::in_memory(asked, [m, c / groups.max(1), 3, 3]);
    let (w, extents) = asked.free_of("w", usual, dtype)?;
    let [filters, _, r, s] = layer::by_channels(asked, extents);
    let layer = Layer::asked(asked, shape, filters, [r, s])?;
    asked.check("dy", &dy, &layer::in_memory(asked, layer.output_shape()?), dtype)?;
    asked.check("w", &w, &layer::in_memory(asked, layer.weights_shape()), dtype)?;
    let op = Conv2dBackwardData { layer, variant: asked.variant().to_owned() };
    let dx = Role::Result(layer::in_memory(asked, shape).to_vec());
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, vec![Role::Given(dy), Role::Given(w), dx])))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let fits = |layer: &Layer| layer.stride == [1, 1] || variant != "depthwise";
    let layers = sample_layers("conv-backward-data", variant, profile).into_iter().filter(|of| fits(&of.0));
    layers
        .map(|(layer, dtype)| Conv2dBackwardData { layer, variant: variant.into() }.lower_as(dtype, profile))
        .collect()
}

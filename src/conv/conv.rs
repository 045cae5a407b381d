use super::correlate::{VARIANTS, Whole};
use super::layer::{self, CHANNELS_LAST, DILATION, GROUPS, Layer, PAD, PAD_EACH, STRIDE, layer_builders};
use crate::dense::{Activation, Precision};
use crate::program::prelude::*;

/// Applies a convolution layer:
/// `output[n, m, i, j] = activation(bias[m] + sum over c, a, b of w[m, c, a, b] x[n, c, i stride + a dilation - pad,
/// j stride + b dilation - pad])`: correlation, as in every framework.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // One image of one channel, 3 x 3; one filter of 2 x 2.
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
/// let (w, bias) = (gpu.upload(&[1.0f32, 0.0, 0.0, 1.0])?, gpu.upload(&[-9.0f32])?);
/// let output = gpu.alloc::<f32>(4)?;
/// let layer = Conv2d::new([1, 1, 3, 3], 1, [2, 2]).activation(Activation::Relu).with_bias().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// layer.with_bias(&bias).record(&mut rec, &x, &w, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [0.0, 0.0, 3.0, 5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::conv`](crate::Gpu::conv).
///
/// # Shapes
/// `x` is N x C x H x W, `w` M x C / groups x R x S, `output` N x M x P x Q with
/// `P = (H + pads - dilation (R - 1) - 1) / stride + 1`, rounded down; Q likewise. With groups, output channel m
/// reads only the C / groups channels of its group; with groups = C the layer is depthwise. Operands are `x`, `w`,
/// `output`, in this order; [`with_bias`](Self::with_bias) adds `bias`, M elements. `output` must be a wgpu buffer
/// of its own. With [`channels_last`](Self::channels_last) the operands lie in memory as N x H x W x C, M x R x S x
/// C / groups and N x P x Q x M.
///
/// # Precision and determinism
/// Elements are f32 or f16; sums are of f32 and rounded once. An output is a sum of `C / groups R S` products in an
/// order that depends on variant, shape and device; the same device gives the same bits. The error is at most
/// `gamma(C / groups R S + 4)` times the sum of the products' magnitudes, in slices too, and four times that on
/// cooperative matrices, which truncate sums; f16 adds its rounding. [`Precision::Exact`] keeps f16 off cooperative
/// matrices. `winograd` computes with sums and differences of cells, whose magnitudes enter its error: at most 256
/// times as much if all cells and weights have one magnitude, and some 10 times as much on random data
/// ([`reference::conv_bound`](crate::reference::conv_bound)). With `winograd` a NaN or infinity reaches all outputs of
/// its tile of 4 x 4. A weight that is not finite may make every output of its filter NaN: variants multiply it by
/// zeros beyond the edge.
///
/// # Cost
/// `2 N M P Q C / groups R S` flop; `winograd` computes a quarter of the products. `direct`, `tiled` and
/// `depthwise` take no scratch; `implicit` keeps a result for each slice of its sums where one would leave the device
/// idle. `im2col` keeps columns of up to 256 MiB (16 MiB on software drivers) at a time,
/// `winograd` as much for some images at a time. `coop` packs what does not have its channels next to each other in
/// multiples of 8: with channels last and such channels neither x nor weights. The plan's report states the scratch.
///
/// # Variants
/// `direct`: the definition. `im2col`: windows unrolled to columns in scratch, then a matrix product. `implicit`:
/// the same product, whose kernel gathers the windows while it stages them, in slices of the sum where there
/// are few outputs. `tiled`: tiles of x with their halo in
/// workgroup memory, for stride and dilation 1. `winograd`: for 3 x 3 with stride and dilation 1. `depthwise`: for
/// one channel a group. `coop`: the product of `implicit` on cooperative matrices, for f16. f16 runs as `direct`,
/// `implicit`, `depthwise` or `coop`, channels last as the first two or `coop`. `auto` (the default) takes `depthwise`
/// where it fits, otherwise the variant that is predicted to be the fastest; `winograd` from 32 channels on, `tiled`
/// from 25 cells on. On processors it goes by the size.
///
/// # On CUDA
/// With the feature `cuda` the same descriptor plans on a `CudaGpu`, for f32, f16 and [`bf16`](half::bf16). Tensor
/// cores multiply elements of 16 bits, and those of f32 with a [`precision`](Self::precision); these and bf16 need
/// sm_80. The variants `fma`, `wmma` and `mma` run an implicit matrix product of packed x and weights. They take
/// scratch of the sizes of both, with each group's channels padded to 16 bytes and x in chunks of 2^29 elements.
/// Channels last do not run there. [`Precision::Tensor`] rounds f32 to tf32, and [`Precision::Split`] splits it into
/// two of tf32.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): groups that do not divide C and M; a window larger than the padded image;
///   a stride or dilation of 0; an extent of 0.
/// - [`Unsupported`](ErrorKind::Unsupported): a variant that does not fit the shape or the elements; f16 on a
///   device without it; on a [`Gpu`](crate::Gpu) [`Precision::Split`], and [`Precision::Tensor`] for f32.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer; an image or the weights above
///   the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/conv/conv_direct.wgsl`; `conv_im2col.wgsl` (Chellapilla, Puri and Simard, 2006); `conv_columns.wgsl`
/// and `conv_implicit.wgsl`, products as for [`Gemm`](crate::Gemm) (as in cuDNN, Chetlur et al., 2014);
/// `conv_tiled.wgsl`; `conv_winograd_*.wgsl` (Lavin and Gray, 2016, F(4 x 4, 3 x 3)); `conv_depthwise.wgsl`;
/// `conv_coop.wgsl` with `conv_pack.wgsl` and `conv_pack_weights.wgsl`. On CUDA: `conv_pack.cu` and `conv_wmma.cu`.
///
/// # Example: lowering without a device
/// ```
/// use tilework::conv::Conv2d;
/// use tilework::program::{DeviceProfile, Op};
///
/// let stem = Conv2d::new([8, 3, 224, 224], 64, [7, 7]).stride([2, 2]).pad([3, 3]);
/// assert_eq!(stem.output_shape()?, [8, 64, 112, 112]);
/// assert_eq!(Op::<f32>::lower(&stem, &DeviceProfile::h100())?.variant(), "implicit");
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2d {
    pub(super) layer: Layer,
    activation: Activation,
    pub(crate) bias: bool,
    slices: Option<u32>,
    pub(crate) variant: String,
}

impl Conv2d {
    /// Creates a layer for x of this shape (N, C, H, W), with `filters` output channels and windows of `kernel` (R,
    /// S).
    pub fn new(shape: [usize; 4], filters: usize, kernel: [usize; 2]) -> Self {
        let layer = Layer::new("conv", shape, filters, kernel);
        Self { layer, activation: Activation::None, bias: false, slices: None, variant: "auto".into() }
    }

    layer_builders!(layer);

    /// Sets the function applied to every output before it is stored; [`Activation::None`] by default.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Sets the number of slices that `implicit` cuts the sum of an output into, clamped to 1 to 1024; each has scratch
    /// of the size of the output. The default is predicted to be the fastest. Other variants ignore it.
    #[must_use]
    pub fn slices(mut self, slices: u32) -> Self {
        self.slices = Some(slices);
        self
    }

    /// Adds a bias for each channel of the output: an operand `bias` of M elements. A plan takes it with
    /// `with_bias`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    #[cfg(feature = "nn")]
    pub(crate) const NAME: &'static str = INFO.name;

    variants!(variant);

    /// Returns the shape of the output: N, M, P, Q.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) for windows that do not fit and groups that do not divide.
    pub fn output_shape(&self) -> Result<[usize; 4]> {
        self.layer.output_shape()
    }

    /// Returns the shape of the weights: M, C / groups, R, S.
    pub fn weights_shape(&self) -> [usize; 4] {
        self.layer.weights_shape()
    }

    #[cfg(feature = "nn")]
    pub(crate) fn with_bias_at(&self, shape: [usize; 4]) -> Self {
        let layer = Layer { shape, ..self.layer.clone() };
        Self { layer, ..self.clone() }.with_bias()
    }

    pub(crate) fn parts(&self) -> (&Layer, Activation, &str) {
        (&self.layer, self.activation, &self.variant)
    }

    fn lower_as(&self, biased: bool, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let [x, w, output] = self.layer.lengths()?;
        let whole = Whole {
            c: self.layer.forward()?.of(dtype, profile)?,
            names: ["x", "w", "output"],
            x,
            w,
            bias: biased.then_some(self.layer.filters),
            output,
            flop: self.layer.flop()?,
            activation: self.activation,
            slices: self.slices,
            asked: &self.variant,
        };
        whole.program(profile)
    }
}

operands! {
    impl[T: Element,] Conv2d, T [cuda] {
        fn record(x: T, w: T, output: T);
        /// The bias added to each channel of the output.
        optional with_bias(bias: T);
    }
}

lowers! {
    impl[] Conv2d as [f32, f16], |op, dtype, profile| op.lower_as(op.bias, dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "conv",
    about: "a convolution layer: output[n, m] = activation(bias[m] + sum over c of w[m, c] * x[n, c])",
    inputs: &[
        Input::new("x", "(N, C, H, W); (N, H, W, C) with channels-last"),
        Input::new("w", "(M, C/groups, R, S); (M, R, S, C/groups) with channels-last"),
        Input::optional("bias", "(M)"),
    ],
    outputs: &[(
        "output",
        "(N, M, (H + pads - dilation * (R - 1) - 1) / stride + 1, (W + pads - dilation * (S - 1) - 1) / stride + 1); \
         (N, (H + pads - dilation * (R - 1) - 1) / stride + 1, (W + pads - dilation * (S - 1) - 1) / stride + 1, M) \
         with channels-last",
    )],
    types: &[DType::F32, DType::F16],
    options: &[
        STRIDE,
        PAD,
        PAD_EACH,
        DILATION,
        GROUPS,
        CHANNELS_LAST,
        Activation::SETTING,
        Precision::SETTING,
        Setting::number("slices", ""),
    ],
    make: Some(make),
    variants: Conv2d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: super::product::rows_of,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (x, extents) = asked.array::<4>("x")?;
    let shape @ [_, c, ..] = layer::by_channels(asked, extents);
    let (groups, dtype): (usize, _) = (settings.number("groups")?, x.dtype());
    let usual = layer::in_memory(asked, [c, c / groups.max(1), 3, 3]);
    let (w, extents) = asked.free_of("w", usual, dtype)?;
    let [m, _, r, s] = layer::by_channels(asked, extents);
    let mut op = Conv2d::new(shape, m, [r, s]).variant(asked.variant());
    op.layer = Layer::asked(asked, shape, m, [r, s])?;
    op.activation = Activation::asked(settings)?;
    op.slices = settings.maybe("slices")?;
    let output = op.output_shape()?;
    asked.check("w", &w, &layer::in_memory(asked, op.weights_shape()), dtype)?;
    let (operands, biased) = layer::operands(asked, [x, w], m, output)?;
    op.bias = biased;
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

/// Layers that reach every form of a variant, with the types of their elements: rows of whole vec4s and not, strides,
/// both orders of channels.
pub(super) fn sample_layers(op: &'static str, variant: &str, profile: &DeviceProfile) -> Vec<(Layer, DType)> {
    let new = |shape: [usize; 4], filters, kernel: [usize; 2]| Layer {
        pads: [1; 4],
        ..Layer::new(op, shape, filters, kernel)
    };
    let layers = match variant {
        "depthwise" => {
            let of = |w, stride| Layer { groups: 4, stride: [stride; 2], ..new([2, 4, 8, w], 4, [3, 3]) };
            [of(8, 1), of(9, 1), of(8, 2)]
        }
        _ => [new([2, 4, 8, 8], 8, [3, 3]), new([2, 3, 7, 9], 5, [3, 3]), new([3, 16, 28, 28], 64, [3, 3])],
    };
    let strided = Layer { stride: [2, 2], ..layers[1].clone() };
    let many = matches!(variant, "direct" | "im2col" | "implicit" | "coop").then_some(strided.clone());
    let last = |layer: &Layer| Layer { last: true, ..layer.clone() };
    let ordered = if matches!(variant, "direct" | "implicit" | "coop") {
        vec![layers[0].clone(), strided.clone(), last(&layers[0]), last(&layers[2]), last(&strided)]
    } else {
        Vec::new()
    };
    let ordered = if variant == "depthwise" { layers.to_vec() } else { ordered };
    let halves = ordered.iter().map(|layer| (layer.clone(), DType::F16)).filter(|_| profile.features.f16);
    let ordered = ordered.iter().filter(|layer| layer.last).map(|layer| (layer.clone(), DType::F32));
    let plain = layers.into_iter().chain(many).map(|layer| (layer, DType::F32)).chain(ordered);
    plain.filter(|_| variant != "coop").chain(halves).collect()
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let of =
        |layer, activation| Conv2d { layer, activation, variant: variant.into(), ..Conv2d::new([1; 4], 1, [1, 1]) };
    let layers = sample_layers("conv", variant, profile);
    let Some((first, dtype)) = layers.first().cloned() else { return Ok(Vec::new()) };
    // Slices of channels, where the driver ends loops.
    let is_long = variant == "tiled" && profile.ends_loops();
    let widths: &[usize] = if is_long { &[4, 3] } else { &[] };
    let long = widths.iter().map(|w| (Layer::new("conv", [1, 70_000, 1, *w], 2, [1, 1]), DType::F32));
    let plain = layers
        .into_iter()
        .chain(long)
        .map(|(layer, dtype)| of(layer, Activation::None).lower_as(false, dtype, profile));
    // The epilogue is the same text in all variants.
    let some = if variant == "direct" { &Activation::ALL[..] } else { &[Activation::Relu] };
    let ended = some.iter().map(|activation| of(first.clone(), *activation).lower_as(true, dtype, profile));
    // k of 36 in slices, with and without bias.
    let sliced = matches!(variant, "implicit" | "coop").then(|| of(first.clone(), Activation::None).slices(3));
    let sliced = sliced.iter().flat_map(|op| [false, true].map(|biased| op.lower_as(biased, dtype, profile)));
    plain.chain(ended).chain(sliced).collect()
}

#[cfg(test)]
mod tests;

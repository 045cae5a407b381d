use super::conv::sample_layers;
use super::correlate::{VARIANTS, Whole};
use super::layer::{self, CHANNELS_LAST, DILATION, GROUPS, Layer, PAD, PAD_EACH, STRIDE, layer_builders};
use crate::dense::{Activation, Precision};
use crate::program::prelude::*;

/// Applies a transposed convolution layer, which enlarges: each element of `x` adds its window,
/// `x[n, c, i, j] w[c, m, a, b]`, to `output[n, m, i stride + a dilation - pad, j stride + b dilation - pad]`, then
/// bias and activation follow.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // From 1 x 2 to 1 x 4 cells: a window of 1 x 2 at every second place.
/// let gpu = Gpu::new()?;
/// let (x, w) = (gpu.upload(&[1.0f32, 10.0])?, gpu.upload(&[2.0f32, 3.0])?);
/// let output = gpu.alloc::<f32>(4)?;
/// let layer = ConvTranspose2d::new([1, 1, 1, 2], 1, [1, 2]).stride([1, 2]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// layer.record(&mut rec, &x, &w, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [2.0, 3.0, 20.0, 30.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::conv_transpose`](crate::Gpu::conv_transpose).
///
/// # Shapes
/// `x` is N x C x H x W, `w` C x M / groups x R x S, `output` N x M x P x Q with
/// `P = (H - 1) stride + dilation (R - 1) + 1 + output padding - pads`; Q likewise, as in ONNX and PyTorch.
/// Operands are `x`, `w`, `output`, of f32 or f16, in this order; [`with_bias`](Self::with_bias) adds `bias`, M
/// elements. `output` must be a wgpu buffer of its own.
///
/// # Precision and determinism
/// As [`Conv2d`](super::Conv2d), with sums of at most `C / groups R S` products. A weight that is not finite may
/// make every output of its filter NaN: variants multiply it by zeros beyond the edge.
///
/// # Cost
/// `2 N C H W M / groups R S` flop. Scratch as for [`Conv2dBackwardData`](super::Conv2dBackwardData).
///
/// # Variants
/// Those of [`Conv2d`](super::Conv2d), on `x` with its elements spread `stride` apart. `winograd` and `depthwise`
/// need a stride of 1.
///
/// # Errors
/// As [`Conv2d`](super::Conv2d). [`Shape`](ErrorKind::Shape) also for pads that leave an empty output, and
/// for an output padding that is below neither stride nor dilation.
///
/// # Algorithm
/// That of [`Conv2dBackwardData`](super::Conv2dBackwardData), with an epilogue.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvTranspose2d {
    /// The layer whose gradient this is, but with the shape of x here and M filters.
    given: Layer,
    output_padding: [usize; 2],
    activation: Activation,
    bias: bool,
    variant: String,
}

impl ConvTranspose2d {
    /// Creates a layer for x of this shape (N, C, H, W), with `filters` output channels and windows of `kernel` (R,
    /// S).
    pub fn new(shape: [usize; 4], filters: usize, kernel: [usize; 2]) -> Self {
        let given = Layer::new("conv-transpose", shape, filters, kernel);
        Self { given, output_padding: [0; 2], activation: Activation::None, bias: false, variant: "auto".into() }
    }

    layer_builders!(given);

    /// Adds rows and columns at the end of the output, which windows may reach; none by default.
    #[must_use]
    pub fn output_padding(mut self, padding: [usize; 2]) -> Self {
        self.output_padding = padding;
        self
    }

    /// Sets the function applied to every output before it is stored; [`Activation::None`] by default.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Adds a bias for each channel of the output: an operand `bias` of M elements. A plan takes it with
    /// `with_bias`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    variants!(variant);

    /// Returns the shape of the output: N, M, P, Q.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) for pads that leave nothing and groups that do not divide.
    pub fn output_shape(&self) -> Result<[usize; 4]> {
        Ok(self.layer()?.shape)
    }

    /// Returns the shape of the weights: C, M / groups, R, S.
    pub fn weights_shape(&self) -> [usize; 4] {
        let [r, s] = self.given.kernel;
        [self.given.shape[1], self.given.filters / self.given.groups.max(1), r, s]
    }

    pub(crate) fn layer(&self) -> Result<Layer> {
        let given = &self.given;
        let [n, c, h, w] = given.shape;
        let extent = |axis: usize, size: usize| {
            let along = given.axis(axis);
            // Checks kernel, stride and dilation, and that no extent is too large.
            super::WindowAxis { size: size.max(along.span()), pads: along.pads, ..along }.windows(given.op)?;
            let (more, [before, after]) = (self.output_padding[axis], along.pads);
            if more > 0 && more >= along.step.max(along.gap) {
                return Err(err!(
                    Shape,
                    "{}: an output padding of {more} {} must be below the stride {} or the dilation {}; take less",
                    given.op,
                    along.name,
                    along.step,
                    along.gap
                ));
            }
            let all = size.saturating_sub(1).saturating_mul(along.step).saturating_add(along.span() + more);
            match all.checked_sub(before + after) {
                Some(rest) if rest > 0 => Ok(rest),
                _ => Err(err!(
                    Shape,
                    "{}: padding of {before} and {after} {} leaves an output of {all} empty; take less",
                    given.op,
                    along.name
                )),
            }
        };
        let shape = [n, given.filters, extent(0, h)?, extent(1, w)?];
        let layer = Layer { shape, filters: c, ..given.clone() };
        layer.output_shape()?;
        if h == 0 || w == 0 {
            return Err(err!(Shape, "{}: images of {h} x {w}; neither may be 0", given.op));
        }
        Ok(layer)
    }

    pub(crate) fn end(&self) -> (Activation, &str) {
        (self.activation, &self.variant)
    }

    pub(crate) fn size(&self) -> [usize; 2] {
        let [.., h, w] = self.given.shape;
        [h, w]
    }

    fn lower_as(&self, biased: bool, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let layer = self.layer()?;
        let [output, w, _] = layer.lengths()?;
        let mut c = layer.backward()?.of(dtype, profile)?;
        // With output padding, windows could lie beyond those of x.
        c.size = self.size();
        let x = crate::shape::elements(c.op, "x", &self.given.shape)?;
        let [_, per_cell @ ..] = self.weights_shape();
        let whole = Whole {
            c,
            names: ["x", "w", "output"],
            x,
            w,
            bias: biased.then_some(self.given.filters),
            output,
            flop: 2.0 * x as f64 * per_cell.iter().map(|x| *x as f64).product::<f64>(),
            activation: self.activation,
            slices: None,
            asked: &self.variant,
        };
        whole.program(profile)
    }
}

operands! {
    impl[T: Element,] ConvTranspose2d, T {
        fn record(x: T, w: T, output: T);
        /// The bias added to each channel of the output.
        optional with_bias(bias: T);
    }
}

lowers! {
    impl[] ConvTranspose2d as [f32, f16], |op, dtype, profile| op.lower_as(op.bias, dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "conv-transpose",
    about: "transposed convolution: every element of x adds its window, then bias and activation",
    inputs: &[
        Input::new("x", "(N, C, H, W); (N, H, W, C) with channels-last"),
        Input::new("w", "(C, M/groups, R, S); (C, R, S, M/groups) with channels-last"),
        Input::optional("bias", "(M)"),
    ],
    outputs: &[(
        "output",
        "(N, M, (H - 1) * stride + dilation * (R - 1) + 1 - pads + output-padding, \
             (W - 1) * stride + dilation * (S - 1) + 1 - pads + output-padding); \
         (N, (H - 1) * stride + dilation * (R - 1) + 1 - pads + output-padding, \
             (W - 1) * stride + dilation * (S - 1) + 1 - pads + output-padding, M) with channels-last",
    )],
    types: &[DType::F32, DType::F16],
    options: &[
        STRIDE,
        PAD,
        PAD_EACH,
        DILATION,
        GROUPS,
        CHANNELS_LAST,
        Setting::pair("output-padding", "0"),
        Activation::SETTING,
        Precision::SETTING,
    ],
    make: Some(make),
    variants: ConvTranspose2d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: super::product::rows_of,
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (x, extents) = asked.array::<4>("x")?;
    let (shape @ [_, c, ..], dtype) = (layer::by_channels(asked, extents), x.dtype());
    let (w, extents) = asked.free_of("w", layer::in_memory(asked, [c, c, 3, 3]), dtype)?;
    let [_, m, r, s] = layer::by_channels(asked, extents);
    let filters = m.saturating_mul(settings.number("groups")?);
    let mut op = ConvTranspose2d::new(shape, filters, [r, s]).variant(asked.variant());
    op.given = Layer::asked(asked, shape, filters, [r, s])?;
    op.output_padding = settings.pair("output-padding")?;
    op.activation = Activation::asked(settings)?;
    let output = op.output_shape()?;
    asked.check("w", &w, &layer::in_memory(asked, op.weights_shape()), dtype)?;
    let (operands, biased) = layer::operands(asked, [x, w], filters, output)?;
    op.bias = biased;
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let layers = sample_layers("conv-transpose", variant, profile).into_iter();
    let fits =
        |(layer, _): &(Layer, DType)| layer.stride == [1, 1] || !matches!(variant, "depthwise" | "tiled" | "winograd");
    let of = |given: Layer, activation| {
        let output_padding = given.stride.map(|stride| stride - 1);
        ConvTranspose2d { given, output_padding, activation, bias: false, variant: variant.into() }
    };
    let layers: Vec<_> = layers.filter(fits).collect();
    let ended: Vec<_> = layers.first().cloned().into_iter().collect();
    let ended = ended.into_iter().map(|(given, dtype)| of(given, Activation::Relu).lower_as(true, dtype, profile));
    let plain = layers.into_iter().map(|(given, dtype)| of(given, Activation::None).lower_as(false, dtype, profile));
    plain.chain(ended).collect()
}

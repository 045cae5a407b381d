use super::conv::{Conv2d, sample_layers};
use super::coop::CoopLayer;
use super::correlate::{COOP, unfit, wrong_variant};
use super::layer::{
    self, CHANNELS_LAST, Correlation, DILATION, GROUPS, ImageChunk, Layer, PAD, PAD_EACH, STRIDE, add_operands,
};
use super::product::{LayerProduct, ProductBindings};
use super::winograd;
use crate::dense::Precision;
use crate::program::prelude::*;
use std::ops::Range;

/// Computes the gradient of a [`Conv2d`] with respect to its weights,
/// `dw[m, c, a, b] = sum over n, i, j of dy[n, m, i, j] x[n, c, i stride + a dilation - pad, j stride + b dilation -
/// pad]`, and its bias, `db[m] = sum over n, i, j of dy[n, m, i, j]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::Conv2dBackwardWeights;
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let layer = Conv2d::new([1, 1, 1, 3], 1, [1, 2]);
/// let (x, dy) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[1.0f32, 10.0])?);
/// let (dw, db) = (gpu.alloc::<f32>(2)?, gpu.alloc::<f32>(1)?);
/// let gradient = Conv2dBackwardWeights::new(&layer).with_bias().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// gradient.with_db(&db).record(&mut rec, &x, &dy, &dw)?;
/// rec.submit()?;
/// assert_eq!(dw.read()?, [21.0, 32.0]);
/// assert_eq!(db.read()?, [11.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::conv_backward_weights`](crate::Gpu::conv_backward_weights).
///
/// # Shapes
/// `x` has the shape of the layer's x, `dy` that of its output (N, M, P, Q), `dw` that of its weights (M, C /
/// groups, R, S), in the layer's order of channels. Operands are `x`, `dy`, `dw`, in this order;
/// [`with_bias`](Self::with_bias) adds `db`, M elements. `dy` is the gradient before the activation.
///
/// # Precision and determinism
/// Elements are f32 or f16, with the layer's precision; sums are of f32 and rounded once. Each gradient is a sum of
/// `N P Q` products in an order that depends on variant, shape and device, never by atomics; the same device gives the
/// same bits. The error is at most `gamma(N P Q + 4)` times the sum of the products' magnitudes, four times that on
/// cooperative matrices; with `winograd` up to 256 times as much, as for [`Conv2d`]. A NaN or infinity
/// reaches the weights whose products it enters; one in `dy` also through the zeros around x.
///
/// # Cost
/// As [`Conv2d`]. The sum is split into slices that fill the device. Each slice takes a slab of scratch of the size
/// of `dw`, and a second dispatch adds the slabs. `db` takes scratch of N M elements.
///
/// # Variants
/// `direct`: the definition, slice by slice. `implicit`: a product of dy and the windows of x, which its kernel
/// gathers. `winograd`: for 3 x 3 with stride and dilation 1; transforms tiles of gradients and of cells and
/// computes a quarter of the products, with up to 256 MiB of scratch. `coop`: the product of `implicit` on cooperative
/// matrices, for f16. f16 and channels last run as `direct`, `implicit` or `coop`, and a last pass rounds or orders the
/// sums. `auto` (the default) takes `coop` for f16 where the device has it, `winograd` from 32 channels on, `direct`
/// for groups of few filters and short windows, and `implicit` otherwise.
///
/// # Errors
/// As [`Conv2d`].
///
/// # Algorithm
/// `shaders/conv/conv_backward_weights_direct.wgsl`; `conv_gradients.wgsl`, a product as for [`Gemm`](crate::Gemm);
/// `conv_backward_weights_winograd.wgsl`; `conv_coop.wgsl`; `conv_backward_weights_sum.wgsl`,
/// `conv_backward_weights_bias.wgsl`, `conv_round.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2dBackwardWeights {
    layer: Layer,
    bias: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("direct", "one thread for each weight and slice, by the definition"),
    Variant::portable("implicit", "a matrix product of dy and windows of x, gathered while they are staged"),
    Variant::portable("winograd", "3 x 3 with stride 1: tiles of 4 x 4 gradients, 36 matrix products"),
    COOP,
];

kernel_params! {
    struct SumParams {
        len: u32, slabs: u32, first: u32,
    }
}

kernel_params! {
    struct RoundParams {
        count: u32, slabs: u32, slab: u32, channels: u32, cells: u32, row: u32, channel_step: u32, cell_step: u32,
    }
}

enum GradientWay {
    Direct,
    Implicit,
    Winograd,
    Coop,
}

/// Outputs that a thread of `direct` adds.
const SLICE: usize = 1 << 12;

/// Maximum bytes of slabs.
const SLABS: u64 = 128 << 20;

impl Conv2dBackwardWeights {
    /// Creates the gradient of this layer.
    pub fn new(layer: &Conv2d) -> Self {
        Self {
            layer: Layer { op: "conv-backward-weights", ..layer.layer.clone() },
            bias: false,
            variant: "auto".into(),
        }
    }

    /// Adds the gradient with respect to the bias: an operand `db` of M elements. A plan takes it with `with_db`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    variants!(variant);

    pub(crate) fn parts(&self) -> (&Layer, &str) {
        (&self.layer, &self.variant)
    }

    fn lower_as(&self, biased: bool, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let [x, dw, dy] = self.layer.lengths()?;
        let c = self.layer.forward()?.of(dtype, profile)?;
        let (variant, decision) = choose(c.op, &self.variant, VARIANTS, profile, || {
            if c.precision == Precision::Tensor {
                ("coop", "Precision::Tensor runs on cooperative matrices".to_owned())
            } else if CoopLayer::suits(&c, profile) {
                ("coop", "f16 is multiplied on cooperative matrices".to_owned())
            } else if c.to * c.terms() < 64 {
                ("direct", format!("groups of {} filters of {} cells are too few for a tile", c.to, c.terms()))
            } else if c.is_plain() && winograd::fits(&c) && c.from.min(c.to) >= 32 && c.images * c.pixels() >= 1 << 10 {
                ("winograd", format!("windows of 3 x 3 over {} channels: a quarter of the products", c.from))
            } else {
                ("implicit", "each loaded window serves several filters".to_owned())
            }
        })?;
        if let Some(wrong) = wrong_variant(&c, variant.name) {
            return Err(unfit(&c, variant, &wrong));
        }
        let way = match variant.name {
            "direct" => GradientWay::Direct,
            "coop" => GradientWay::Coop,
            "winograd" => {
                winograd::check(&c).map(|()| GradientWay::Winograd).map_err(|wrong| unfit(&c, variant, &wrong))?
            }
            _ => GradientWay::Implicit,
        };
        let mut program = Program::new(c.op, decision);
        let mut operands = vec![("x", x, Access::Read), ("dy", dy, Access::Read), ("dw", dw, Access::Write)];
        if biased {
            operands.push(("db", self.layer.filters, Access::Write));
        }
        add_operands(&mut program, dtype, &operands, profile)?;
        program.cost = Cost::of(self.layer.flop()?, &program.operands);
        let chunks = c.chunks(Resource::Operand(0), Resource::Operand(1), profile)?;
        let whole = Binding::operand(2, &program.operands);
        let bias = biased.then(|| Binding::operand(3, &program.operands));
        // Sums of f32 in the order of a layer, where the result is neither.
        let sums = |program: &mut Program, output: Binding, len: usize| {
            if c.is_plain() { output } else { program.scratch(4 * len as u64) }
        };
        let slabs = |output| GradientSlabs { c: &c, output, held: None, profile };
        if let GradientWay::Coop = way {
            let (slabs, count, row, channel_pad) = CoopLayer::gradients(&mut program, &c, profile)?;
            round(
                &mut program,
                &c,
                (slabs, whole),
                RoundParams {
                    slabs: count as u32,
                    row: row as u32,
                    channel_step: 1,
                    cell_step: channel_pad as u32,
                    slab: (c.groups * c.to * row) as u32,
                    ..whole_of(&c)
                },
            );
        } else {
            let sum = sums(&mut program, whole, dw);
            let mut all = slabs(sum);
            match way {
                GradientWay::Direct => chunks.iter().try_for_each(|chunk| all.direct(&mut program, chunk))?,
                GradientWay::Winograd => winograd::weights(&mut program, &c, &chunks, whole, profile)?,
                _ => chunks.iter().try_for_each(|chunk| all.implicit(&mut program, chunk))?,
            }
            if !c.is_plain() {
                round(&mut program, &c, (sum, whole), whole_of(&c));
            }
        }
        if let Some(bias) = bias {
            let sum = sums(&mut program, bias, self.layer.filters);
            let mut all = slabs(sum);
            chunks.iter().try_for_each(|chunk| all.planes(&mut program, chunk))?;
            if !c.is_plain() {
                let count = self.layer.filters as u32;
                let one = RoundParams { count, channels: 1, cells: 1, row: 1, ..whole_of(&c) };
                round(&mut program, &c, (sum, bias), one);
            }
        }
        Ok(program)
    }
}

/// One slab of the gradient in the order of a layer.
fn whole_of(c: &Correlation) -> RoundParams {
    let cells = c.kernel[0] * c.kernel[1];
    RoundParams {
        count: (c.groups * c.to * c.terms()) as u32,
        slabs: 1,
        slab: 0,
        channels: c.from as u32,
        cells: cells as u32,
        row: c.terms() as u32,
        channel_step: cells as u32,
        cell_step: 1,
    }
}

/// Writes the sum of slabs in the type and the order of the result.
fn round(program: &mut Program, c: &Correlation, (slabs, to): (Binding, Binding), params: RoundParams) {
    let spec = Spec::new().alias("R", c.wgsl()).flag("F16", c.dtype == DType::F16).flag("LAST", c.last);
    let kernel = program.kernel(Kernel::of_file("conv/conv_round", spec));
    let grid = Grid::fold(u64::from(params.count).div_ceil(256));
    program.dispatch(kernel, &params, vec![slabs, to], grid);
}

/// Slabs of a gradient, each the sum over a slice of the outputs, and the gradient that they add up to.
struct GradientSlabs<'a> {
    c: &'a Correlation,
    output: Binding,
    /// The scratch of the chunk before.
    held: Option<Binding>,
    profile: &'a DeviceProfile,
}

impl GradientSlabs<'_> {
    /// Returns scratch of `size` bytes: that of the chunk before, if it is as large.
    fn scratch(&mut self, program: &mut Program, size: u64) -> Binding {
        let binding = self.held.filter(|held| held.size >= size).unwrap_or_else(|| program.scratch(size));
        self.held = Some(binding);
        Binding { size, ..binding }
    }

    /// Adds `count` slabs to the output, overwriting it if they are the `first`. A thread walks over all slabs, in as
    /// many dispatches as its loop needs.
    fn sum(&self, program: &mut Program, slabs: Binding, count: usize, first: bool) -> Result<()> {
        let Self { output, profile, .. } = *self;
        let kernel = Kernel::of_file("conv/conv_backward_weights_sum", Spec::new());
        let kernel = program.kernel(kernel);
        let grid = Grid::fold((output.size / 4).div_ceil(256));
        // A multiple of 64 slabs, so that bindings begin at multiples of 256 bytes.
        for Range { start, end } in program.chunks(count as u64, profile.loop_steps(1, 1 << 31))? {
            let (offset, size) = (slabs.offset + start * output.size, (end - start) * output.size);
            let first = first && start == 0;
            let params = SumParams { len: (output.size / 4) as u32, slabs: (end - start) as u32, first: first.into() };
            program.dispatch(kernel, &params, vec![Binding { offset, size, ..slabs }, output], grid);
        }
        Ok(())
    }

    fn direct(&mut self, program: &mut Program, chunk: &ImageChunk) -> Result<()> {
        let Self { c, output, profile, .. } = *self;
        let (weights, all) = ((output.size / 4) as usize, chunk.images * c.pixels());
        let most = (profile.limits.max_storage_binding.min(SLABS) / output.size).max(1) as usize;
        let slice = SLICE.max(all.div_ceil(most));
        if !profile.runs_rounds(2 * slice as u64) {
            return Err(err!(
                TooLarge,
                "{}: slabs of {} bytes leave slices of {slice} outputs, but {} adds at most {}; take `implicit` or fewer \
                 images",
                c.op,
                output.size,
                profile.name,
                profile.max_rounds() / 2
            ));
        }
        let slices = all.div_ceil(slice);
        let slabs = self.scratch(program, output.size * slices as u64);
        let spec = Spec::new().constant("SLICE", slice as u32).constant("UP_H", 1u32).constant("UP_W", 1u32);
        let spec = c.elements(spec);
        let kernel = Kernel::of_file("conv/conv_backward_weights_direct", spec);
        let kernel = program.kernel(kernel);
        let count = weights * slices;
        let bindings = vec![chunk.x, chunk.y, slabs];
        // Threads of a bounded time.
        let each = (crate::dense::dispatch_flop(profile.class) / 8 / slice as u64).max(256) / 256 * 256;
        for Range { start, end } in program.chunks(count as u64, each)? {
            let mut params = c.params(chunk, end as usize);
            params.first = start as u32;
            program.dispatch(kernel, &params, bindings.clone(), Grid::fold((end - start).div_ceil(256)));
        }
        self.sum(program, slabs, slices, chunk.first == 0)
    }

    fn implicit(&mut self, program: &mut Program, chunk: &ImageChunk) -> Result<()> {
        let Self { c, output, profile, .. } = *self;
        let product = LayerProduct::weights(c, chunk, profile);
        let all = chunk.images * c.pixels();
        let slice = product.slice(output.size, profile);
        let slices = all.div_ceil(slice);
        if chunk.first == 0 {
            program.decision.because(format_args!("{}, {slices} slices", product.text()));
        }
        let bound = |c| ProductBindings { a: chunk.y, b: chunk.x, c: vec![c] };
        if slices == 1 && chunk.first == 0 && chunk.images == c.images {
            return product.gradients(program, (c, chunk, slice), bound(output), profile);
        }
        let bytes = output.size * slices as u64;
        let what = format_args!("the slabs of {slices} slices");
        profile.check_scratch(c.op, what, bytes, "take fewer images at a time")?;
        let slabs = self.scratch(program, bytes);
        product.gradients(program, (c, chunk, slice), bound(slabs), profile)?;
        self.sum(program, slabs, slices, chunk.first == 0)
    }

    /// Writes the gradient with respect to the bias: each plane of dy adds to a slab of its image.
    fn planes(&mut self, program: &mut Program, chunk: &ImageChunk) -> Result<()> {
        let Self { c, profile, .. } = *self;
        let count = chunk.images * c.groups * c.to;
        // A workgroup of 256 walks over a plane.
        let rounds = (c.pixels() as u64).div_ceil(256) + 16;
        if !profile.runs_rounds(rounds) {
            return Err(err!(
                TooLarge,
                "{}: planes of {} outputs need {rounds} loop rounds to add; {} ends the loops of a thread after {}; \
                 split the planes",
                c.op,
                c.pixels(),
                profile.name,
                profile.max_rounds()
            ));
        }
        let slabs = self.scratch(program, 4 * count as u64);
        let kernel = Kernel::of_file("conv/conv_backward_weights_bias", c.elements(Spec::new()));
        let kernel = program.kernel(kernel);
        program.dispatch(kernel, &c.params(chunk, count), vec![chunk.y, slabs], Grid::fold(count as u64));
        self.sum(program, slabs, chunk.images, chunk.first == 0)
    }
}

operands! {
    impl[T: Element,] Conv2dBackwardWeights, T {
        fn record(x: T, dy: T, dw: T);
        /// The gradient with respect to the bias.
        optional with_db(db: T);
    }
}

lowers! {
    impl[] Conv2dBackwardWeights as [f32, f16], |op, dtype, profile| op.lower_as(op.bias, dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "conv-backward-weights",
    about: "the gradient of a convolution layer by its weights",
    inputs: &[
        Input::new("x", "(N, C, H, W); (N, H, W, C) with channels-last"),
        Input::new("dy", "(N, M, P, Q); (N, P, Q, M) with channels-last"),
    ],
    outputs: &[("dw", "(shape)"), ("[db]", "(M)")],
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
        Setting::flag("with-bias"),
    ],
    make: Some(make),
    variants: Conv2dBackwardWeights::variants,
    samples,
    comparison: Some(Comparison::Sums),
    tiles: super::product::rows_of,
    example: Example { shape: &[1, 4, 8, 8], options: &[("shape", "4,4,3,3")] },
    ..Operation::UNDECLARED
};

/// The value of the option `shape`: the extents of the gradient, as they lie in memory.
const SHAPE: &str = "M,C/groups,R,S";

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (x, extents) = asked.array("x")?;
    let (shape, dtype) = (layer::by_channels(asked, extents), x.dtype());
    let extents: [usize; 4] = settings.numbers("shape", SHAPE)?;
    let weights @ [filters, _, r, s] = layer::by_channels(asked, extents);
    let layer = Layer::asked(asked, shape, filters, [r, s])?;
    let (output, wanted) = (layer.output_shape()?, layer.weights_shape());
    if wanted != weights {
        return Err(err!(
            Shape,
            "{}: --shape gives weights of {}, but this x needs {}",
            asked.name(),
            shape_text(&weights),
            shape_text(&wanted)
        ));
    }
    let dy = asked.of("dy", &layer::in_memory(asked, output), dtype)?;
    let op = Conv2dBackwardWeights { layer, bias: settings.has("with-bias"), variant: asked.variant().to_owned() };
    asked.set("shape", &extents);
    let mut operands = vec![Role::Given(x), Role::Given(dy), Role::Result(extents.to_vec())];
    if op.bias {
        operands.push(Role::Result(vec![filters]));
    }
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let layers = sample_layers("conv-backward-weights", variant, profile).into_iter();
    layers
        .filter(|(layer, _)| layer.stride == [1, 1] || variant != "winograd")
        .map(|(layer, dtype)| {
            Conv2dBackwardWeights { layer, bias: true, variant: variant.into() }.lower_as(true, dtype, profile)
        })
        .collect()
}

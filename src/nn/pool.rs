use super::by_name::pooling;
use super::by_name::{COUNT_INCLUDE_PAD, DILATION, FLOATS, KERNEL, KIND, PAD, STRIDE, WEIGHTS};
use super::windows::{ChunkedOperands, MAX_STEPS, Windows, WindowsParams, window_methods};
use crate::dense::Activation;
use crate::program::prelude::*;

/// The function that reduces a window to one number.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PoolKind {
    /// The maximum: NaN if a cell is NaN, -infinity if all cells are padding.
    Max,
    /// The mean of the cells inside the image, or of all cells: see [`Pool2d::count_include_pad`].
    Average,
    /// The square root of the sum of squares.
    L2,
    /// The weighted sum, with a weight for each cell of a window, row by row.
    Weighted(Vec<f32>),
}

impl PoolKind {
    /// Returns `max`, `avg`, `l2` or `weighted`, as on the command line of the `op` example.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Average => "avg",
            Self::L2 => "l2",
            Self::Weighted(_) => "weighted",
        }
    }

    /// Fails unless there is a weight for each cell.
    pub(super) fn check(&self, windows: &Windows) -> Result<()> {
        let [r, s] = windows.kernel;
        let cells = r.saturating_mul(s);
        match self {
            Self::Weighted(weights) if weights.len() != cells => Err(err!(
                Shape,
                "{}: there are {} weights for a window of {r} x {s}; there must be {cells}",
                windows.op,
                weights.len()
            )),
            _ => Ok(()),
        }
    }

    /// Adds the weights of a program of this op, if any, and returns their binding: the operand `given` or a constant.
    pub(super) fn weights(&self, program: &mut Program, given: Option<usize>) -> Option<Binding> {
        match (self, given) {
            (Self::Weighted(_), Some(operand)) => Some(Binding::operand(operand, &program.operands)),
            (Self::Weighted(weights), None) => Some(program.constant(bytemuck::cast_slice(weights).to_vec())),
            _ => None,
        }
    }

    /// Returns the operand `weights`, for windows of these extents.
    ///
    /// Fails for a kind that has no weights.
    pub(super) fn weights_operand(&self, op: &str, [r, s]: [usize; 2]) -> Result<Operand> {
        if !matches!(self, Self::Weighted(_)) {
            return Err(err!(
                InvalidArgument,
                "{op}: {} takes no weights; leave out `with_weights`, or take PoolKind::Weighted",
                self.name()
            ));
        }
        Ok(Operand { name: "weights", dtype: DType::F32, len: r * s, access: Access::Read })
    }

    /// Adds the flag of this kind to `spec`.
    pub(super) fn flagged(&self, spec: Spec) -> Spec {
        spec.flag("MAX", *self == Self::Max).flag("AVERAGE", *self == Self::Average).flag("L2", *self == Self::L2)
    }
}

/// Pools windows of each plane: `output[n, c, i, j] = activation(pool(window) + bias[c])` over the window of `x[n,
/// c]` that begins at row `i stride - pad` and column `j stride - pad`; `pool` is a maximum, mean, root of squares or
/// weighted sum.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, output) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.alloc::<f32>(1)?);
/// let plan = Pool2d::new(PoolKind::Max, [1, 1, 2, 2], [2, 2]).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [4.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` is N x C x H x W, `output` N x C x P x Q. For windows of R x S, `P = (H + pads - dilation (R - 1) - 1) /
/// stride + 1`, rounded down, and Q likewise. [`with_bias`](Self::with_bias) adds `bias`, C elements;
/// [`with_weights`](Self::with_weights) adds `weights`, R x S. Every extent is at least 1. `output`
/// must not share a wgpu buffer with the others.
///
/// # Types
/// f32 and f16; f16 is computed in f32. Weights are f32.
///
/// # Precision and determinism
/// Maxima are exact; sums are f32, of at most R S terms. Squares above 3.4e38 are infinite, and below 1.2e-38 they
/// may be 0. NaN and infinities propagate as in f32 arithmetic. The same device and inputs give the same bits.
///
/// # Cost
/// One flop for each cell of each window. One dispatch for each chunk of `x` that fits a binding; no scratch.
///
/// # Variants
/// `direct`: a thread for each window, up to 32767 cells. `large`: a workgroup for each window, as for pooling whole
/// planes. `pairs`: windows of 2 x 2 that do not overlap, without padding, in rows of a multiple of 4. `auto` (the
/// default) takes `pairs` where it can, else `large` from 256 cells on, else `direct`.
///
/// # Errors
/// - [`Shape`](ErrorKind::Shape): an extent of 0, a window larger than the padded image, a stride or dilation of
///   0, padding as wide as a window, a wrong number of weights.
/// - [`Unsupported`](ErrorKind::Unsupported): windows that the variant does not support.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, a plane above the largest binding,
///   windows too large for the loops of `large`.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): `units` outside 1 to 16,
///   [`with_weights`](Self::with_weights) for a kind without weights, an unknown variant.
///
/// # Algorithm
/// `shaders/nn/pool_direct.wgsl`; `pool_large.wgsl`, which reduces a window in a tree; `pool_pairs.wgsl`, which reads
/// each vec4 once.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool2d {
    pub(super) kind: PoolKind,
    pub(super) windows: Windows,
    activation: Activation,
    pub(super) bias: bool,
    pub(super) weights: bool,
    variant: String,
    units: u32,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("direct", "a thread for each window; any stride, dilation and padding"),
    Variant::portable("large", "a workgroup for each window, for windows of many cells"),
    Variant::portable("pairs", "adjacent windows of 2 x 2: vec4 loads, several in flight"),
];

/// Cells from which `auto` gives a window a workgroup.
const LARGE: usize = 256;

impl Pool2d {
    /// Takes the shape of `x` (N, C, H, W) and of the windows (R, S). The default stride makes windows adjacent.
    pub fn new(kind: PoolKind, shape: [usize; 4], kernel: [usize; 2]) -> Self {
        let windows = Windows::new("pool", shape, kernel);
        Self {
            kind,
            windows,
            activation: Activation::None,
            bias: false,
            weights: false,
            variant: "auto".into(),
            units: 4,
        }
    }

    window_methods!();

    /// Sets the padding of each side: top, left, bottom, right.
    #[must_use]
    pub fn pad_each(mut self, pads: [usize; 4]) -> Self {
        self.windows.pads = pads;
        self
    }

    /// Applies an activation to each result. The default is none.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Adds a bias for each channel: an operand `bias` of C elements, which plans take by `with_bias`.
    #[must_use]
    pub fn with_bias(mut self) -> Self {
        self.bias = true;
        self
    }

    /// Reads the weights of [`Weighted`](PoolKind::Weighted) from an operand `weights` of R x S elements of f32, which
    /// plans take by `with_weights`, instead of those given. [`Pool2dBackwardWeights`](super::Pool2dBackwardWeights) is
    /// their gradient.
    #[must_use]
    pub fn with_weights(mut self) -> Self {
        self.weights = true;
        self
    }

    /// Sets how many pairs of results a thread of `pairs` computes with all loads in flight: 1 to 16, 4 by default.
    #[must_use]
    pub fn units(mut self, units: u32) -> Self {
        self.units = units;
        self
    }

    pub(crate) const NAME: &'static str = INFO.name;

    variants!(variant);

    /// Returns the shape of `output`: N, C, P, Q.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the windows do not fit.
    pub fn output_shape(&self) -> Result<[usize; 4]> {
        self.windows.output_shape()
    }

    pub(crate) fn parts(&self) -> (&PoolKind, &Windows, Activation) {
        (&self.kind, &self.windows, self.activation)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let (windows, biased) = (&self.windows, self.bias);
        let [_, c, ..] = windows.shape;
        let [.., p, q] = windows.output_shape()?;
        let [r, s] = windows.kernel;
        self.kind.check(windows)?;
        if !(1..=16).contains(&self.units) {
            return Err(err!(InvalidArgument, "pool: units is {}; it must be from 1 to 16", self.units));
        }
        let pairs = windows.are_pairs();
        let (variant, decision) = choose("pool", &self.variant, VARIANTS, profile, || {
            if pairs {
                ("pairs", "adjacent windows of 2 x 2: reads each vec4 once".to_owned())
            } else if r * s >= LARGE {
                ("large", format!("windows of {r} x {s} occupy a workgroup each"))
            } else {
                ("direct", format!("windows of {r} x {s} overlap, leave gaps or are not aligned"))
            }
        })?;
        // A workgroup of 256 walks a window, and with f16 two, one after the other.
        let per_word = 4 / dtype.size() as u64;
        let rounds = per_word * ((r * s) as u64).div_ceil(256).saturating_add(16);
        let counted = Spec::new().flag("PADDING_COUNTS", windows.padding_counts);
        let (file, per_workgroup, spec) = match variant.name {
            "pairs" if !pairs => {
                return Err(err!(
                    Unsupported,
                    "pool: the variant `pairs` needs windows of 2 x 2 with stride 2, no padding or dilation, and rows \
                     of a multiple of 4; these are {r} x {s} with stride {:?} in rows of {}; use `direct` or `auto`",
                    windows.stride,
                    windows.shape[3]
                ));
            }
            "pairs" => {
                let units = self.units;
                ("nn/pool_pairs", 2 * 256 * u64::from(units), Spec::new().constant("UNITS", units))
            }
            "large" if !profile.runs_rounds(rounds) => {
                return Err(err!(
                    TooLarge,
                    "pool: windows of {r} x {s} take {rounds} loop rounds; {} ends loops after {}; pool smaller \
                     windows, then pool the result",
                    profile.name,
                    profile.max_rounds()
                ));
            }
            "large" => ("nn/pool_large", per_word, counted),
            _ if r * s > MAX_STEPS => {
                return Err(err!(
                    Unsupported,
                    "pool: the variant `direct` takes windows of at most {} cells, not {r} x {s}; use `large` or `auto`",
                    MAX_STEPS
                ));
            }
            _ => ("nn/pool_direct", 256 * per_word, counted),
        };
        let mut program = Program::new("pool", decision);
        let (wide, narrow) = windows.lengths()?;
        program.operands.push(Operand { name: "x", dtype, len: wide, access: Access::Read });
        if biased {
            program.operands.push(Operand { name: "bias", dtype, len: c, access: Access::Read });
        }
        let given = self.weights.then_some(program.operands.len());
        if given.is_some() {
            program.operands.push(self.kind.weights_operand("pool", windows.kernel)?);
        }
        let output = program.operands.len();
        program.operands.push(Operand { name: "output", dtype, len: narrow, access: Access::Write });
        program.cost = Cost::of(narrow as f64 * (r * s) as f64, &program.operands);
        windows.check_sizes(&program, profile)?;
        let output_binding = 2 + u32::from(biased);
        let weighted = matches!(self.kind, PoolKind::Weighted(_));
        let mut spec = self
            .kind
            .flagged(spec)
            .slot("element", element_fragment(dtype))
            .slot("activation", Fragment::Library(self.activation.fragment()))
            .constant("OUTPUT_BINDING", output_binding)
            .flag("HALVES", dtype == DType::F16)
            .flag("BIASED", biased)
            .flag("WEIGHTED", weighted);
        if weighted {
            spec = spec.constant("WEIGHTS_BINDING", output_binding + 1);
        }
        let kernel = program.kernel(Kernel::of_file(file, spec));
        let more = self.kind.weights(&mut program, given);
        let plane = (p * q) as u64;
        let operands = ChunkedOperands { dtype, wide: &[0], narrow: &[output], profile };
        windows.each_chunk(&mut program, &operands, |program, params: WindowsParams, wide, narrow| {
            let mut bindings = vec![wide[0]];
            if biased {
                bindings.push(Binding::operand(1, &program.operands));
            }
            bindings.push(narrow[0]);
            bindings.extend(more);
            // With f16 a chunk may begin inside a word, so one more word is written.
            let numbers = u64::from(params.planes) * plane + if dtype == DType::F16 { 2 } else { 0 };
            let grid = Grid::fold(numbers.div_ceil(per_workgroup));
            program.dispatch(kernel, &params, bindings, grid);
        });
        if variant.name != "pairs" {
            // Overlapping windows load a cell again.
            let loads = (narrow as f64 * (r * s) as f64 - wide as f64).max(0.0) * dtype.size() as f64;
            program.traffic = program.requested().map(|bytes| bytes + loads);
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Pool2d, T {
        fn record(x: T, output: T);
        /// Takes the bias of each channel.
        optional with_bias(bias: T);
        /// Takes the weights of a window.
        optional with_weights(weights: f32);
    }
}

lowered_as!(Pool2d: f32, f16);

pub(super) const INFO: Operation = Operation {
    name: "pool",
    about: "the maximum, mean, root of squares or weighted sum of each window",
    inputs: &[Input::new("x", "(N, C, H, W)")],
    outputs: &[(
        "output",
        "(N, C, (H + pads - dilation * (kernel - 1) - 1) / stride + 1, \
             (W + pads - dilation * (kernel - 1) - 1) / stride + 1)",
    )],
    types: &FLOATS,
    options: &[
        KIND,
        WEIGHTS,
        Setting::array("bias", "(C)"),
        Activation::SETTING,
        KERNEL,
        STRIDE,
        PAD,
        Setting::text("pad-each", "T,L,B,R", ""),
        DILATION,
        COUNT_INCLUDE_PAD,
        Setting::number("units", "4"),
    ],
    domains: &[("weights", Domain::Finite)],
    make: Some(make),
    variants: Pool2d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[1, 4, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let settings = asked.settings();
    let (x, shape) = asked.array("x")?;
    asked.check_type(&x)?;
    let (kind, windows) = pooling(asked, shape)?;
    let mut op = Pool2d { windows, ..Pool2d::new(kind, shape, [1, 1]) }
        .activation(Activation::asked(asked.settings())?)
        .units(settings.number("units")?)
        .variant(asked.variant());
    if settings.has("pad-each") {
        if settings.has("pad") {
            return Err(err!(InvalidArgument, "pool: --pad and --pad-each exclude each other; give one of them"));
        }
        op = op.pad_each(settings.numbers("pad-each", "T,L,B,R")?);
    }
    asked.set("kernel", &op.windows.kernel);
    asked.set("stride", &op.windows.stride);
    let (dtype, output) = (x.dtype(), Role::Result(op.output_shape()?.to_vec()));
    let mut operands = vec![Role::Given(x)];
    if let Some(bias) = asked.named("bias", &shape[1..2])? {
        op = op.with_bias();
        operands.push(Role::Given(bias));
    }
    if let PoolKind::Weighted(weights) = &op.kind {
        // As an operand, in a program that serves every weights of these extents.
        let weights = HostArray::new(&op.windows.kernel, weights.clone())?;
        op = op.with_weights();
        operands.push(Role::Given(weights));
    }
    operands.push(output);
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let kinds = [PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(vec![0.25; 4])];
    let mut programs = Vec::new();
    for (kind, activation) in kinds.into_iter().flat_map(|k| Activation::ALL.map(|a| (k.clone(), a))) {
        let op = Pool2d::new(kind, [2, 3, 8, 8], [2, 2]).activation(activation).variant(variant);
        let counted = op.clone().count_include_pad();
        programs.extend([
            Op::<f32>::lower(&op, profile)?,
            Op::<f16>::lower(&op, profile)?,
            Op::<f32>::lower(&counted.with_bias(), profile)?,
            Op::<f16>::lower(&op.with_bias(), profile)?,
        ]);
    }
    let weighted = Pool2d::new(PoolKind::Weighted(vec![0.25; 4]), [2, 3, 8, 8], [2, 2]).variant(variant);
    for op in [weighted.clone().with_weights(), weighted.with_weights().with_bias()] {
        programs.push(Op::<f32>::lower(&op, profile)?);
    }
    Ok(programs)
}

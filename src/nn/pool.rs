//! Pooling: one number from every window of a plane.

use super::form::pooling;
use super::form::{COUNT_INCLUDE_PAD, DILATION, FLOATS, KERNEL, KIND, PAD, STRIDE, WEIGHTS};
use super::windows::{Forms, MAX_STEPS, Windows, WindowsParams};
use crate::dense::Activation;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Domain, Example, Form, Grid, Input, Kernel, Op,
    Operand, Operation, Program, Role, Setting, Variant, by_type, choose, element_fragment, operands,
};
use crate::shader::{Fragment, Spec};
use half::f16;

/// How the cells of a window become one number.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PoolKind {
    /// The largest, NaN where there is one; of padding alone -infinity.
    Max,
    /// The mean of the cells that lie in the image, or of all: [`Pool2d::count_include_pad`].
    Average,
    /// The square root of the sum of squares.
    L2,
    /// The sum of cells, each times the weight of its place in the window, row by row.
    Weighted(Vec<f32>),
}

impl PoolKind {
    /// Name, as on the command line of the `op` example.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Average => "avg",
            Self::L2 => "l2",
            Self::Weighted(_) => "weighted",
        }
    }

    /// Refuses weights that are not those of a window.
    pub(super) fn check(&self, windows: &Windows) -> Result<()> {
        let [r, s] = windows.kernel;
        let cells = r.saturating_mul(s);
        match self {
            Self::Weighted(weights) if weights.len() != cells => Err(err!(
                Shape,
                "{}: {} weights for a window of {r} x {s}; there must be {cells}",
                windows.op,
                weights.len()
            )),
            _ => Ok(()),
        }
    }

    /// The weights, if there are any, as a constant of the program.
    pub(super) fn weights(&self, program: &mut Program) -> Option<Binding> {
        match self {
            Self::Weighted(weights) => Some(program.constant(bytemuck::cast_slice(weights).to_vec())),
            _ => None,
        }
    }

    /// With the flag of its formulas.
    pub(super) fn flagged(&self, spec: Spec) -> Spec {
        spec.flag("MAX", *self == Self::Max)
            .flag("AVERAGE", *self == Self::Average)
            .flag("L2", *self == Self::L2)
    }
}

/// Pooling of planes: `output[n, c, i, j]` is the largest, the mean, the root of squares or a weighted sum of the window
/// of `x[n, c]` that begins at row `i stride - pad` and column `j stride - pad`; then `activation(that + bias[c])`.
///
/// # Shapes
/// `x` is N x C x H x W, `output` N x C x P x Q with `P = (H + pads - dilation (R - 1) - 1) / stride + 1`, rounded down, of
/// windows of R x S; Q likewise. Operands are `x`, `output`; [`with_bias`](Self::with_bias) adds `bias`, C elements.
/// N and C may be 0. `output` must be a wgpu buffer of its own.
///
/// # Types
/// f32, and f16 with arithmetic in f32. Weights are f32.
///
/// # Precision and determinism
/// Maxima are exact; sums are in f32, of at most R S additions. Same device, same bits. NaN and infinities reach what they
/// are a term of, and nothing else. Squares above 3.4e38 are infinite, below 1.2e-38 they may be 0.
///
/// # Cost
/// One operation a cell of each window. One dispatch (one for each part of `x` that a binding holds), no scratch.
///
/// # Variants
/// `direct` takes windows of up to 32767 cells; `large` gives each a workgroup, as for pooling of whole planes; `pairs` takes windows of 2 x 2 that do not overlap, without padding, of rows of a multiple of 4.
/// `auto` (the default) takes `pairs` where it can, and `large` from 256 cells on.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): no images, a window larger than the padded image, of no cells, a stride or dilation of 0,
/// a padding as wide as a window, weights that are not R S; [`Unsupported`](crate::ErrorKind::Unsupported): `pairs`
/// or `direct` where it cannot; [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest buffer, a plane above the
/// largest binding; [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/nn/pool_direct.wgsl`; `pool_large.wgsl`; `pool_pairs.wgsl` reads vec4s and moves every byte once.
///
/// # Example
/// ```
/// use tilework::nn::{Pool2d, PoolKind};
/// use tilework::program::{DeviceProfile, Op};
///
/// let halves = Pool2d::new(PoolKind::Max, [32, 64, 224, 224], [2, 2]);
/// assert_eq!(halves.output_shape()?, [32, 64, 112, 112]);
/// assert_eq!(Op::<f32>::lower(&halves, &DeviceProfile::h100())?.variant(), "pairs");
/// let overlapping = Pool2d::new(PoolKind::Average, [1, 3, 7, 7], [3, 3]).stride([2, 2]).pad([1, 1]);
/// assert_eq!(overlapping.output_shape()?, [1, 3, 4, 4]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Pool2d {
    kind: PoolKind,
    windows: Windows,
    activation: Activation,
    bias: bool,
    variant: String,
    units: u32,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("direct", "one invocation a window; any window, stride, dilation and padding"),
    Variant::portable("large", "one workgroup a window; any window, for those of many cells"),
    Variant::portable("pairs", "windows of 2 x 2 side by side: vec4 loads, several in flight"),
];

/// Cells from which on a window is work for a workgroup.
const LARGE: usize = 256;

impl Pool2d {
    /// Of x of this shape (N, C, H, W), in windows of `kernel` (R, S), one beside the other.
    pub fn new(kind: PoolKind, shape: [usize; 4], kernel: [usize; 2]) -> Self {
        let windows = Windows::new("pool", shape, kernel);
        Self { kind, windows, activation: Activation::None, bias: false, variant: "auto".into(), units: 4 }
    }

    /// From one window to the next, down and across; the default is the window's own extent.
    #[must_use]
    pub fn stride(mut self, stride: [usize; 2]) -> Self {
        self.windows.stride = stride;
        self
    }

    /// Rows above and below, and columns to the left and right, that belong to windows and hold nothing; the default
    /// is none.
    #[must_use]
    pub fn pad(self, [h, w]: [usize; 2]) -> Self {
        self.pad_each([h, w, h, w])
    }

    /// As [`pad`](Self::pad), on each side: top, left, bottom, right.
    #[must_use]
    pub fn pad_each(mut self, pads: [usize; 4]) -> Self {
        self.windows.pads = pads;
        self
    }

    /// From one cell of a window to the next, down and across; the default is 1.
    #[must_use]
    pub fn dilation(mut self, dilation: [usize; 2]) -> Self {
        self.windows.dilation = dilation;
        self
    }

    /// [`Average`](PoolKind::Average) divides by all cells of a window, padding included. By default it divides by the
    /// cells inside the image.
    #[must_use]
    pub fn count_include_pad(mut self) -> Self {
        self.windows.padding_counts = true;
        self
    }

    /// Applied to every number before it is stored; the default is none.
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

    /// The op's name.
    pub(crate) const NAME: &'static str = INFO.name;

    crate::program::variants!(variant);

    /// How many times two numbers an invocation of `pairs` computes, its loads in flight together: 1 to 16, 4 by
    /// default.
    #[must_use]
    pub fn units(mut self, units: u32) -> Self {
        self.units = units;
        self
    }

    /// N, C, P, Q.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) for windows that do not fit.
    pub fn output_shape(&self) -> Result<[usize; 4]> {
        self.windows.output_shape()
    }

    pub(crate) fn parts(&self) -> (&PoolKind, &Windows, Activation) {
        (&self.kind, &self.windows, self.activation)
    }

    fn lower_as(&self, dtype: DType, biased: bool, profile: &DeviceProfile) -> Result<Program> {
        let windows = &self.windows;
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
                ("pairs", "windows of 2 x 2 side by side are read by vec4, each cell once".to_owned())
            } else if r * s >= LARGE {
                ("large", format!("windows of {r} x {s} are work for a workgroup each"))
            } else {
                ("direct", format!("windows of {r} x {s} that overlap, leave gaps or are not aligned"))
            }
        })?;
        if variant.name == "direct" && r * s > MAX_STEPS {
            return Err(err!(
                Unsupported,
                "pool: the variant `direct` takes windows of at most {} cells, these have {r} x {s}; take `large` or `auto`",
                MAX_STEPS
            ));
        }
        // A workgroup of 256 walks a window, for two windows of f16 after each other.
        let rounds = 4 / dtype.size() as u64 * ((r * s) as u64).div_ceil(256).saturating_add(16);
        if variant.name == "large" && !profile.runs_rounds(rounds) {
            return Err(err!(
                TooLarge,
                "pool: windows of {r} x {s} take {rounds} rounds of loops; {} ends the loops of an invocation after {}; pool \
                 smaller windows, and these again",
                profile.name,
                profile.max_rounds()
            ));
        }
        if variant.name == "pairs" && !pairs {
            return Err(err!(
                Unsupported,
                "pool: the variant `pairs` takes windows of 2 x 2 with stride 2, without padding or dilation, in rows of a \
                 multiple of 4; these are {r} x {s} with stride {:?} in rows of {}; take `direct` or `auto`",
                windows.stride,
                windows.shape[3]
            ));
        }
        let mut program = Program::new("pool", decision);
        let (wide, narrow) = windows.lengths()?;
        program.operands.push(Operand { name: "x", dtype, len: wide, access: Access::Read });
        if biased {
            program.operands.push(Operand { name: "bias", dtype, len: c, access: Access::Read });
        }
        program.operands.push(Operand { name: "output", dtype, len: narrow, access: Access::Write });
        program.cost = Cost {
            flop: narrow as f64 * (r * s) as f64,
            bytes: program.operands.iter().map(|o| o.bytes() as f64).sum(),
        };
        windows.check_sizes(&program, profile)?;
        let output = program.operands.len() as u32;
        let weighted = matches!(self.kind, PoolKind::Weighted(_));
        let mut spec = self
            .kind
            .flagged(Spec::new())
            .slot("element", element_fragment(dtype))
            .slot("activation", Fragment::Library(self.activation.fragment()))
            .constant("OUTPUT_BINDING", output)
            .flag("HALVES", dtype == DType::F16)
            .flag("BIASED", biased)
            .flag("WEIGHTED", weighted);
        if weighted {
            spec = spec.constant("WEIGHTS_BINDING", output + 1);
        }
        let per_word = 4 / dtype.size() as u64;
        let counted = |spec: Spec| spec.flag("PADDING_COUNTS", windows.padding_counts);
        let (kernel, per_workgroup) = match variant.name {
            "pairs" => {
                let spec = spec.constant("UNITS", self.units);
                (Kernel::library("nn/pool_pairs", "pool_pairs", spec), 2 * 256 * u64::from(self.units))
            }
            "large" => (Kernel::library("nn/pool_large", "pool_large", counted(spec)), per_word),
            _ => (Kernel::library("nn/pool_direct", "pool_direct", counted(spec)), 256 * per_word),
        };
        let kernel = program.kernel(kernel);
        let more = self.kind.weights(&mut program);
        let plane = (p * q) as u64;
        let forms = Forms { dtype, wide: &[0], narrow: &[output as usize - 1], profile };
        windows.each_chunk(&mut program, &forms, |program, params: WindowsParams, wide, narrow| {
            let mut bindings = vec![wide[0]];
            if biased {
                bindings.push(Binding::operand(1, &program.operands));
            }
            bindings.push(narrow[0]);
            bindings.extend(more);
            // A word more, where the first is shared with what lies before.
            let numbers = u64::from(params.planes) * plane + if dtype == DType::F16 { 2 } else { 0 };
            let grid = Grid::fold(numbers.div_ceil(per_workgroup));
            program.dispatch(kernel, &params, bindings, grid);
        });
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Pool2d, T {
        fn record(x: T, output: T);
        /// What is added to each channel.
        optional with_bias(bias: T);
    }
}

crate::program::lowers! {
    impl[] Pool2d as [f32, f16], |op, dtype, profile| op.lower_as(dtype, op.bias, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "pool",
    about: "the largest, the mean, the root of squares or a weighted sum of every window",
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

fn make(asked: &mut Asked<'_>) -> Result<Form> {
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
            return Err(err!(InvalidArgument, "pool: --pad and --pad-each are given; give one of them"));
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
    operands.push(output);
    by_type!(asked, dtype, [f32, f16], T => Ok(Form::new::<T>(op, operands)))
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
    Ok(programs)
}

use super::permute_axes::{MAX_AXES, packed, six, words_of};
use super::strided_copy::list;
use crate::program::prelude::*;
use std::str::FromStr;

/// The elements that [`PadAxes`] adds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PadMode {
    /// This number, as the type of the elements: floats are rounded, integers cut to their range.
    Constant(f64),
    /// The nearest element of the array.
    Edge,
    /// The array, repeated.
    Wrap,
    /// The array, mirrored at its first and last element, which are not repeated.
    Reflect,
}

impl PadMode {
    /// The name, as [`FromStr`] reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant(_) => "constant",
            Self::Edge => "edge",
            Self::Wrap => "wrap",
            Self::Reflect => "reflect",
        }
    }
}

impl FromStr for PadMode {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Self::Constant(0.0), Self::Edge, Self::Wrap, Self::Reflect]
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| {
                err!(InvalidArgument, "pad-axes: the mode `{name}` is unknown; use constant, edge, wrap or reflect")
            })
    }
}

/// Adds elements before the first and behind the last of each axis, as `numpy.pad`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::dense::{PadAxes, PadMode};
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.alloc::<f32>(12)?); // 2 x 2, 3 x 4
/// let pad = PadAxes::new(&[2, 2], &[[0, 1], [1, 1]], PadMode::Constant(9.0)).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// pad.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [9.0, 1.0, 2.0, 9.0, 9.0, 3.0, 4.0, 9.0, 9.0, 9.0, 9.0, 9.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has 1 to 6 axes, row-major without gaps; each extent of `output` is larger by what is added. Any extent may
/// be 0 with a constant; the other modes need an element to repeat. Elements are of any type of at most 4 bytes. The
/// operands must be different wgpu buffers.
///
/// # Precision and determinism
/// Bits are moved unchanged.
///
/// # Cost
/// No flop. Every element of `output` is written once. One dispatch, no scratch.
///
/// # Variants
/// `items`: a thread makes 4 bytes.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no axes or more than 6, other numbers of axes in both
///   lists, an extent of 0 where elements are repeated, an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// `shaders/dense/pad_axes.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct PadAxes {
    shape: Vec<usize>,
    added: Vec<[usize; 2]>,
    mode: PadMode,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("items", "a thread makes an element of 4 bytes, or those of a word")];

kernel_params! {
    struct PadAxesParams {
        n: u32, constant: u32,
        extent_0: u32, inner_0: u32, before_0: u32, extent_1: u32, inner_1: u32, before_1: u32,
        extent_2: u32, inner_2: u32, before_2: u32, extent_3: u32, inner_3: u32, before_3: u32,
        extent_4: u32, inner_4: u32, before_4: u32, extent_5: u32, inner_5: u32, before_5: u32,
    }
}

fn bits(dtype: DType, x: f64) -> u32 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_bits().into(),
        DType::I32 => x as i32 as u32,
        DType::U32 => x as u32,
        DType::U8 => (x as u8).into(),
        DType::I8 => (x as i8 as u8).into(),
        _ => (x as f32).to_bits(),
    }
}

impl PadAxes {
    /// Takes the extents of the input, and for each axis the elements added before and behind.
    pub fn new(shape: &[usize], added: &[[usize; 2]], mode: PadMode) -> Self {
        Self { shape: shape.to_vec(), added: added.to_vec(), mode, variant: "auto".into() }
    }

    variants!(variant);

    /// Extents of the input, what is added, and how.
    pub(crate) fn parts(&self) -> (&[usize], &[[usize; 2]], PadMode) {
        (&self.shape, &self.added, self.mode)
    }

    pub(crate) fn output(&self) -> Result<Vec<usize>> {
        let Self { shape, added, mode, .. } = self;
        if !(1..=MAX_AXES).contains(&shape.len()) || shape.len() != added.len() {
            return Err(err!(
                InvalidArgument,
                "pad-axes: an input {shape:?} and {added:?} to add; there must be 1 to {MAX_AXES} axes, each with two numbers"
            ));
        }
        if !matches!(mode, PadMode::Constant(_)) && shape.contains(&0) {
            return Err(err!(
                InvalidArgument,
                "pad-axes: an input {shape:?} has no element for the mode `{}`; use a constant",
                mode.name()
            ));
        }
        let sum = |(extent, [before, behind]): (&usize, &[usize; 2])| extent.checked_add(*before)?.checked_add(*behind);
        let output: Option<Vec<usize>> = shape.iter().zip(added).map(sum).collect();
        let output =
            output.ok_or_else(|| err!(TooLarge, "pad-axes: {shape:?} with {added:?} added; no memory holds that"))?;
        elements(INFO.name, "output", &output)?;
        Ok(output)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let output = self.output()?;
        let (from, len) = (elements(INFO.name, "input", &self.shape)?, elements(INFO.name, "output", &output)?);
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let operand = |name, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("input", from, Access::Read), operand("output", len, Access::Write)];
        profile.check_bindings(INFO.name, &program.operands, "pad parts in separate calls")?;
        program.cost = Cost::of(0.0, &program.operands);
        let n = index_u32(INFO.name, "elements", len)?;
        if n == 0 {
            return Ok(program);
        }
        let [extent_0, extent_1, extent_2, extent_3, extent_4, extent_5] = six(output.iter().map(|x| *x as u32), 1);
        let [inner_0, inner_1, inner_2, inner_3, inner_4, inner_5] = six(self.shape.iter().map(|x| *x as u32), 1);
        let [before_0, before_1, before_2, before_3, before_4, before_5] =
            six(self.added.iter().map(|x| x[0] as u32), 0);
        let constant = if let PadMode::Constant(x) = self.mode { bits(dtype, x) } else { 0 };
        let params = PadAxesParams {
            n,
            constant,
            extent_0,
            inner_0,
            before_0,
            extent_1,
            inner_1,
            before_1,
            extent_2,
            inner_2,
            before_2,
            extent_3,
            inner_3,
            before_3,
            extent_4,
            inner_4,
            before_4,
            extent_5,
            inner_5,
            before_5,
        };
        let spec = match self.mode {
            PadMode::Constant(_) => packed(dtype).flag("EMPTY", from == 0),
            PadMode::Edge => packed(dtype).flag("EDGE", true),
            PadMode::Wrap => packed(dtype).flag("WRAP", true),
            PadMode::Reflect => packed(dtype).flag("REFLECT", true),
        };
        let kernel = program.kernel(Kernel::of_file("dense/pad_axes", spec));
        let all = if from == 0 { 1..2 } else { 0..2 };
        let bindings = all.map(|i| Binding::operand(i, &program.operands)).collect();
        program.dispatch(kernel, &params, bindings, words_of(n, dtype));
        Ok(program)
    }
}

operands! {
    impl[T: Element,] PadAxes, T {
        fn record(input: T, output: T);
    }
}

lowered_as!(PadAxes: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "pad-axes",
    about: "elements before and behind each axis: a constant, or those of the array",
    inputs: &[Input::new("input", "1 to 6 axes")],
    outputs: &[("output", "(padded)")],
    types: &HostData::TYPES,
    options: &[
        Setting::text("before", "N,N,...", ""),
        Setting::text("behind", "N,N,...", ""),
        Setting::word("mode", || vec!["constant", "edge", "wrap", "reflect"]),
        Setting::number("value", "0"),
    ],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: PadAxes::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[5, 6, 7], options: &[("before", "1,0,2")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let input = asked.any("input")?;
    let axes = input.shape().len();
    let before = list(asked, "before")?.unwrap_or_else(|| vec![1; axes]);
    let behind = list(asked, "behind")?.unwrap_or_else(|| vec![1; axes]);
    if before.len() != axes || behind.len() != axes {
        return Err(err!(
            InvalidArgument,
            "pad-axes: {} numbers before and {} behind for {input}, which has {axes} axes",
            before.len(),
            behind.len()
        ));
    }
    let mode = match asked.settings().choice("mode")?.parse()? {
        PadMode::Constant(_) => PadMode::Constant(asked.settings().number("value")?),
        mode => mode,
    };
    let added: Vec<[usize; 2]> = before.into_iter().zip(behind).map(|(before, behind)| [before, behind]).collect();
    let op = PadAxes::new(input.shape(), &added, mode).variant(asked.variant());
    let shape = op.output()?;
    asked.set("padded", &shape);
    let (dtype, operands) = (input.dtype(), vec![Role::Given(input), Role::Result(shape)]);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for mode in [PadMode::Constant(1.0), PadMode::Edge, PadMode::Wrap, PadMode::Reflect] {
        let op = PadAxes::new(&[5, 7], &[[1, 3], [2, 0]], mode).variant(variant);
        for dtype in [DType::F32, DType::F16, DType::U8] {
            programs.push(op.lower_as(dtype, profile)?);
        }
    }
    programs.push(PadAxes::new(&[0], &[[2, 3]], PadMode::Constant(1.0)).variant(variant).lower_as(DType::U8, profile)?);
    Ok(programs)
}

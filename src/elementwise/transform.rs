use crate::program::prelude::*;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A function of the operands of a [`Transform`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransformFn {
    /// `a` as the output's type. Floats are cut to whole numbers and to the range of integers, and NaN gives 0;
    /// integers keep their low bits.
    Convert,
    /// `b` where `a` is not 0, else `c`.
    Where,
    /// 1 where `a < b`, else 0.
    Less,
    /// 1 where `a <= b`, else 0.
    LessEqual,
    /// 1 where `a == b`, else 0.
    Equal,
    /// 1 where `a != b`, else 0. NaN differs from everything; in the other comparisons it gives 0.
    NotEqual,
    /// 1 where `a > b`, else 0.
    Greater,
    /// 1 where `a >= b`, else 0.
    GreaterEqual,
    /// `a + b`; integers wrap, also in the next two.
    Add,
    /// `a - b`.
    Sub,
    /// `a b`.
    Mul,
    /// `a / b`; integers as [`ZipFn::Div`](crate::ZipFn::Div).
    Div,
    /// The smaller of `a` and `b`; NaN if one is NaN.
    Min,
    /// The larger of `a` and `b`; NaN if one is NaN.
    Max,
    /// `param(0) a + param(1)`, of any type, as floats.
    Affine,
    /// `a / (1 + exp(-a))`, also known as swish.
    Silu,
    /// The gradient of [`Silu`](Self::Silu): `b silu'(a)`, where `a` was its input and `b` is the gradient of its
    /// result.
    SiluBackward,
    /// `a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2`, the tanh form of GELU.
    GeluTanh,
    /// The gradient of [`GeluTanh`](Self::GeluTanh), with `a` and `b` as in [`SiluBackward`](Self::SiluBackward).
    GeluTanhBackward,
    /// `silu(a) b`, the gate of a SwiGLU layer. With the gradient of the result in place of `b` it is the gradient for
    /// `b`.
    SwiGlu,
    /// The gradient of [`SwiGlu`](Self::SwiGlu) for `a`: `c b silu'(a)`, where `c` is the gradient of the result.
    SwiGluBackward,
    /// Your WGSL function; see [`custom`](Self::custom).
    Custom(Arc<str>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransformTakes {
    /// Any.
    Any,
    /// Operands from this one on, and the output, of one kind: floats, signed or unsigned integers.
    From(usize),
    /// Operands of one kind, and any output.
    OneKind,
    /// Floats only.
    Floats,
}

impl TransformFn {
    /// Every function but custom ones.
    pub const BUILT_IN: [Self; 21] = [
        Self::Convert,
        Self::Where,
        Self::Less,
        Self::LessEqual,
        Self::Equal,
        Self::NotEqual,
        Self::Greater,
        Self::GreaterEqual,
        Self::Add,
        Self::Sub,
        Self::Mul,
        Self::Div,
        Self::Min,
        Self::Max,
        Self::Affine,
        Self::Silu,
        Self::SiluBackward,
        Self::GeluTanh,
        Self::GeluTanhBackward,
        Self::SwiGlu,
        Self::SwiGluBackward,
    ];

    /// Makes a function from WGSL text: `fn apply(i: u32, a: A, b: B) -> R`, with as many operands as there are, up
    /// to `d`. `i` is the number of the element, and `columns()` that of columns. `A` to `D` and `R` are the types:
    /// `f32` for floats, `i32` for `i32` and `i8`, `u32` for `u32` and `u8`. `param(k)` is number k of
    /// [`Transform::params`], `is_nan` tells NaN. The text is validated, and runs as
    /// [`MapFn::custom`](crate::MapFn::custom) says.
    pub fn custom(wgsl: &str) -> Self {
        Self::Custom(wgsl.into())
    }

    /// Returns the name that [`FromStr`] reads; `custom` for your own function.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Convert => "convert",
            Self::Where => "where",
            Self::Less => "less",
            Self::LessEqual => "less-equal",
            Self::Equal => "equal",
            Self::NotEqual => "not-equal",
            Self::Greater => "greater",
            Self::GreaterEqual => "greater-equal",
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Min => "min",
            Self::Max => "max",
            Self::Affine => "affine",
            Self::Silu => "silu",
            Self::SiluBackward => "silu-backward",
            Self::GeluTanh => "gelu-tanh",
            Self::GeluTanhBackward => "gelu-tanh-backward",
            Self::SwiGlu => "swiglu",
            Self::SwiGluBackward => "swiglu-backward",
            Self::Custom(_) => "custom",
        }
    }

    /// Operands of a built-in function.
    pub(crate) fn inputs(&self) -> Option<usize> {
        match self {
            Self::Convert | Self::Affine | Self::Silu | Self::GeluTanh => Some(1),
            Self::Where | Self::SwiGluBackward => Some(3),
            Self::Custom(_) => None,
            _ => Some(2),
        }
    }

    fn takes(&self) -> TransformTakes {
        match self {
            Self::Convert | Self::Affine | Self::Custom(_) => TransformTakes::Any,
            Self::Where => TransformTakes::From(1),
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Min | Self::Max => TransformTakes::From(0),
            _ if self.relation().is_some() => TransformTakes::OneKind,
            _ => TransformTakes::Floats,
        }
    }

    /// The outcomes of a comparison that give 1: 1 for less, 2 for equal, 4 for greater, 8 with a NaN.
    fn relation(&self) -> Option<u32> {
        match self {
            Self::Less => Some(1),
            Self::Equal => Some(2),
            Self::LessEqual => Some(3),
            Self::Greater => Some(4),
            Self::GreaterEqual => Some(6),
            Self::NotEqual => Some(13),
            _ => None,
        }
    }

    fn specialise(&self, spec: Spec, floats: bool) -> Spec {
        if let Some(outcomes) = self.relation() {
            let spec = spec.flag("COMPARE", true).constant("OUTCOMES", outcomes);
            return if floats { spec.flag("FROM_FLOAT", true) } else { spec };
        }
        let flag = match self {
            Self::Custom(text) => return spec.slot("function", Fragment::of_user(text)),
            Self::Convert => "CONVERT",
            Self::Where => "WHERE",
            Self::Add => "ADD",
            Self::Sub => "SUB",
            Self::Mul => "MUL",
            Self::Div => "DIV",
            Self::Min => "MIN",
            Self::Max => "MAX",
            Self::Affine => "AFFINE",
            Self::Silu => "SILU",
            Self::SiluBackward => "SILU_BACKWARD",
            Self::GeluTanh => "GELU_TANH",
            Self::GeluTanhBackward => "GELU_TANH_BACKWARD",
            Self::SwiGluBackward => "SWIGLU_BACKWARD",
            _ => "SWIGLU",
        };
        let reads = matches!(self, Self::Convert | Self::Where | Self::Div | Self::Min | Self::Max);
        let spec = spec.flag(flag, true);
        if floats && reads { spec.flag("FROM_FLOAT", true) } else { spec }
    }
}

impl fmt::Display for TransformFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TransformFn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::BUILT_IN.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let names = Self::BUILT_IN.map(|f| f.name()).join(", ");
            err!(InvalidArgument, "transform: the function `{name}` is unknown; use one of {names}")
        })
    }
}

/// How the elements of an operand of a [`Transform`] meet those of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Broadcast {
    /// One for each element of the output.
    Each,
    /// One row, which every row of the output uses.
    Row,
    /// One column, which every column of the output uses.
    Column,
    /// One element for all.
    Scalar,
}

impl Broadcast {
    /// How an array of this shape meets an output of `rows` x `columns`.
    pub(crate) fn of(shape: &[usize], [rows, columns]: [usize; 2]) -> Option<Self> {
        match shape {
            [] | [1] => Some(Self::Scalar),
            [m, n] if [*m, *n] == [rows, columns] => Some(Self::Each),
            [n] | [1, n] if *n == columns => Some(Self::Row),
            [m, 1] if *m == rows => Some(Self::Column),
            _ => None,
        }
    }

    /// Elements of the operand.
    fn len(self, [rows, columns]: [usize; 2]) -> Result<usize> {
        match self {
            Self::Each => elements(INFO.name, "the output", &[rows, columns]),
            Self::Row => Ok(columns),
            Self::Column => Ok(rows),
            Self::Scalar => Ok(1),
        }
    }
}

/// Applies a function to the elements of up to four operands: `output[i] = f(i, a[i], b[i], c[i], d[i])`. Each operand
/// has a type of its own, and may be a row, a column or a single number that all elements share.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::DType;
///
/// let gpu = Gpu::new()?;
/// let (a, bias) = (gpu.upload(&[1u8, 2, 3, 4, 5, 6])?, gpu.upload(&[0.5f32, 0.25, 0.0])?);
/// let output = gpu.alloc::<f32>(6)?;
/// let function = TransformFn::custom("fn apply(i: u32, a: A, b: B) -> R { return param(0) * f32(a) + b; }");
/// let scale = Transform::new([2, 3], function)
///     .input(DType::U8, Broadcast::Each)
///     .input(DType::F32, Broadcast::Row)
///     .params(&[10.0]);
/// let plan = scale.plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_a(&a).with_b(&bias).record(&mut rec, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [10.5, 20.25, 30.0, 40.5, 50.25, 60.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `output` has rows x columns elements; an operand as many, or as [`Broadcast`] says. Operands are `a`, `b`, `c` and
/// `d`, in the order of [`input`](Self::input), and plans take them by `with_a` to `with_d`. There may be none: numbers
/// that follow from their places, such as 0, 1, 2, ... Either extent may be 0. `output` must be another wgpu buffer
/// than the operands, which may share one. With [`counted`](Self::counted) an operand `length` of one u32 holds the
/// number of rows; a vector of such a length is a column, `[n, 1]`.
///
/// # Types
/// f32, f16, i32, u32, u8 and i8 for each operand and the output. f16 is computed in f32 and rounded to nearest, ties
/// to even; 8-bit integers are computed in 32 bits, of which the output keeps the low ones.
///
/// # Precision and determinism
/// Comparisons, `where`, `min`, `max` and functions of integers are exact; sums, differences and products of floats are
/// rounded once, `affine` twice, quotients within 3 ULP. `silu`, `gelu-tanh`, `swiglu` and their gradients err by a few
/// units in the last place; [`reference::transform_bound`](crate::reference::transform_bound) has the numbers. Integers
/// above 2^24 are rounded where they become floats. Devices may flush subnormal numbers to 0 in arithmetic. The same
/// device gives the same bits in every run.
///
/// # Cost
/// Each operand is read once, and the output written once. One dispatch, no scratch. Other [`params`](Self::params)
/// make a new plan without a compilation.
///
/// # Variants
/// `words`: a thread makes the elements of a word.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): an element type of 64 bits; an activation, or `affine` as the
///   output, of integers.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): more than four operands, another number than a built-in
///   function takes, operands of other types than it compares, more than 8 parameters; an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Shader`](ErrorKind::Shader): your function's text; the error names the line.
///
/// # Algorithm
/// `shaders/elementwise/transform.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    shape: [usize; 2],
    function: TransformFn,
    inputs: Vec<(DType, Broadcast)>,
    params: Vec<f32>,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread makes the elements of a word")];

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const MAX_PARAMS: usize = 8;

kernel_params! { struct TransformParams { rows: u32, columns: u32, pad: [u32; 2], given: [f32; 8] } }

/// How kernels name a type, and the type in which they compute with it.
fn form(dtype: DType) -> Result<(usize, &'static str)> {
    Ok(match dtype {
        DType::F32 => (0, "f32"),
        DType::F16 => (1, "f32"),
        DType::I32 => (2, "i32"),
        DType::U32 => (3, "u32"),
        DType::U8 => (4, "u32"),
        DType::I8 => (5, "i32"),
        other => {
            return Err(err!(Unsupported, "transform: elements of {other}; use f32, f16, i32, u32, u8 or i8"));
        }
    })
}

/// Flags of each operand by its type, and by how it repeats.
const TYPES: [[&str; 6]; 4] = [
    ["F32_0", "F16_0", "I32_0", "U32_0", "U8_0", "I8_0"],
    ["F32_1", "F16_1", "I32_1", "U32_1", "U8_1", "I8_1"],
    ["F32_2", "F16_2", "I32_2", "U32_2", "U8_2", "I8_2"],
    ["F32_3", "F16_3", "I32_3", "U32_3", "U8_3", "I8_3"],
];
const OUTPUT_TYPES: [&str; 6] = ["OUT_F32", "OUT_F16", "OUT_I32", "OUT_U32", "OUT_U8", "OUT_I8"];
const ROWS: [&str; 4] = ["ROW_0", "ROW_1", "ROW_2", "ROW_3"];
const COLUMNS: [&str; 4] = ["COLUMN_0", "COLUMN_1", "COLUMN_2", "COLUMN_3"];
const SCALARS: [&str; 4] = ["SCALAR_0", "SCALAR_1", "SCALAR_2", "SCALAR_3"];
const ALIASES: [&str; 4] = ["A", "B", "C", "D"];

impl Transform {
    /// Makes an output of `[rows, columns]` elements.
    pub fn new(shape: [usize; 2], function: TransformFn) -> Self {
        let (inputs, params) = (Vec::new(), Vec::new());
        Self { shape, function, inputs, params, counted: false, variant: "auto".into() }
    }

    /// Adds an operand of this type: `a`, then `b`, `c` and `d`.
    #[must_use]
    pub fn input(mut self, dtype: DType, broadcast: Broadcast) -> Self {
        self.inputs.push((dtype, broadcast));
        self
    }

    /// Sets the numbers that the function reads by `param(k)`, up to 8; the others are 0.
    #[must_use]
    pub fn params(mut self, params: &[f32]) -> Self {
        self.params = params.to_vec();
        self
    }

    counted!(counted, "rows", "Here `n` is the number of rows; those behind it are not written.");
    variants!(variant);

    /// The function, the extents of the output, and the parameters.
    pub(crate) fn parts(&self) -> (&TransformFn, [usize; 2], &[f32]) {
        (&self.function, self.shape, &self.params)
    }

    /// How the operands repeat.
    pub(crate) fn inputs(&self) -> &[(DType, Broadcast)] {
        &self.inputs
    }

    /// Rejects operands that the function does not take.
    fn check(&self, dtype: DType) -> Result<()> {
        let (name, given) = (&self.function, self.inputs.len());
        if given > NAMES.len() || self.function.inputs().is_some_and(|wanted| wanted != given) {
            let wanted = self.function.inputs().map_or("at most 4".to_owned(), |wanted| wanted.to_string());
            return Err(err!(InvalidArgument, "transform: {given} operands for `{name}`, which takes {wanted}"));
        }
        if self.params.len() > MAX_PARAMS {
            return Err(err!(
                InvalidArgument,
                "transform: {} parameters; the maximum is {MAX_PARAMS}; pass a table as an operand",
                self.params.len()
            ));
        }
        let inputs = self.inputs.iter().map(|(dtype, _)| *dtype);
        let same: Vec<DType> = match self.function.takes() {
            TransformTakes::Any => Vec::new(),
            TransformTakes::From(first) => inputs.skip(first).chain([dtype]).collect(),
            TransformTakes::OneKind => inputs.collect(),
            TransformTakes::Floats => inputs.chain([dtype]).collect(),
        };
        let floats = self.function.takes() == TransformTakes::Floats;
        if let Some(other) = same.iter().find(|dtype| floats && !dtype.is_float()) {
            return Err(err!(Unsupported, "transform: `{name}` of {other}; it takes f32 and f16"));
        }
        if self.function == TransformFn::Affine && !dtype.is_float() {
            return Err(err!(Unsupported, "transform: `affine` as {dtype}; its output is f32 or f16"));
        }
        let kinds = same.iter().map(|dtype| form(*dtype).map(|(_, kind)| kind)).collect::<Result<Vec<_>>>()?;
        if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(err!(
                InvalidArgument,
                "transform: `{name}` takes operands of one kind, and these are of {same:?}; convert them first"
            ));
        }
        Ok(())
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let (output, result) = form(dtype)?;
        self.check(dtype)?;
        let floats = self.inputs.first().is_some_and(|(dtype, _)| dtype.is_float());
        let mut spec = self.function.specialise(Spec::new().constant("INPUTS", self.inputs.len() as u32), floats);
        spec = spec.alias("R", result).flag(OUTPUT_TYPES[output], true);
        for (i, &(dtype, broadcast)) in self.inputs.iter().enumerate() {
            let (at, ty) = form(dtype)?;
            spec = spec.alias(ALIASES[i], ty).flag(TYPES[i][at], true);
            spec = match broadcast {
                Broadcast::Each => spec,
                Broadcast::Row => spec.flag(ROWS[i], true),
                Broadcast::Column => spec.flag(COLUMNS[i], true),
                Broadcast::Scalar => spec.flag(SCALARS[i], true),
            };
            let len = broadcast.len(self.shape)?;
            program.operands.push(Operand { name: NAMES[i], dtype, len, access: Access::Read });
        }
        let at = self.inputs.len();
        let length = Operand { name: LENGTH.name, dtype: DType::U32, len: 1, access: Access::Read };
        program.operands.extend(self.counted.then_some(length));
        let len = Broadcast::Each.len(self.shape)?;
        program.operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        profile.check_bindings(INFO.name, &program.operands, "split the rows between calls")?;
        program.cost = Cost::of(len as f64, &program.operands);
        if index_u32(INFO.name, "elements", len)? == 0 {
            return Ok(program);
        }
        let mut given = [0.0; MAX_PARAMS];
        given[..self.params.len()].copy_from_slice(&self.params);
        // Neither extent is 0 here, so both are at most `n`.
        let [rows, columns] = self.shape.map(|extent| extent as u32);
        let params = TransformParams { rows, columns, pad: [0; 2], given };
        let spec = limited(spec, self.counted, 1 + at as u32);
        let spec = spec.constant("OUTPUT_BINDING", program.operands.len() as u32);
        let kernel = program.kernel(Kernel::of_file("elementwise/transform", spec));
        let bindings = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        let each = 256 * (4 / dtype.size());
        program.dispatch(kernel, &params, bindings, Grid::fold(len.div_ceil(each) as u64));
        if self.counted {
            let length = Binding::operand(at, &program.operands);
            let of = Covered { width: columns, ..Covered::new(0, rows, each as u32) };
            launch_for(&mut program, length, &[(0, of)]);
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Transform, T {
        fn record(output: T);
        /// Takes the first operand.
        optional with_a<S>(a: S);
        /// Takes the second operand.
        optional with_b<S>(b: S);
        /// Takes the third operand.
        optional with_c<S>(c: S);
        /// Takes the fourth operand.
        optional with_d<S>(d: S);
        /// Takes the number of rows from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Transform: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "transform",
    about: "output = f(a, b, c), of any types; rows, columns and single numbers repeat",
    inputs: &[
        Input::new("a", "(m, n)"),
        Input::optional("b", "any type (m, n), (n), (m, 1) or ()"),
        Input::optional("c", "any type (m, n), (n), (m, 1) or ()"),
        Input::optional("d", "any type (m, n), (n), (m, 1) or ()"),
    ],
    outputs: &[("output", "(m, n)")],
    types: &HostData::TYPES,
    options: &[
        Setting::word("fn", || TransformFn::BUILT_IN.map(|f| f.name()).to_vec()),
        Setting::wgsl("apply"),
        Setting::word("to", || vec!["same", "f32", "f16", "i32", "u32", "u8", "i8"]),
        Setting::number("alpha", "1"),
        Setting::number("beta", "0"),
        LENGTH,
    ],
    domains: &[("a", Domain::Finite), ("b", Domain::Finite), ("c", Domain::Finite), ("d", Domain::Finite)],
    make: Some(make),
    variants: Transform::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (a, shape) = asked.array::<2>("a")?;
    asked.check_type(&a)?;
    let settings = asked.settings();
    let function: TransformFn = match settings.word("apply") {
        Some(_) if settings.has("fn") => {
            return Err(err!(InvalidArgument, "transform: both --fn and --apply are given; give one of them"));
        }
        Some(wgsl) => TransformFn::custom(wgsl),
        None => settings.choice("fn")?.parse()?,
    };
    let mut op = Transform::new(shape, function.clone()).variant(asked.variant());
    if function == TransformFn::Affine {
        op = op.params(&[settings.number("alpha")?, settings.number("beta")?]);
    }
    let mut arrays = vec![a];
    for (i, name) in NAMES.iter().enumerate().skip(1) {
        // A function in WGSL takes as many operands as there are.
        if function.inputs().map_or(asked.has_more(), |inputs| i < inputs) {
            let types: Vec<_> = [arrays[0].dtype()].into_iter().chain(HostData::TYPES).collect();
            arrays.push(asked.of_types(name, &shape, &types)?);
        }
    }
    // That of the elements to choose from, not of the conditions.
    let same = arrays[usize::from(function == TransformFn::Where)].dtype();
    let to = settings.choice("to")?;
    let to = HostData::TYPES.into_iter().find(|dtype| dtype.name() == to).unwrap_or(same);
    for (name, array) in NAMES.iter().zip(&arrays) {
        let broadcast = Broadcast::of(array.shape(), shape).ok_or_else(|| no_broadcast(name, array, shape))?;
        op = op.input(array.dtype(), if *name == "a" { Broadcast::Each } else { broadcast });
    }
    let (length, output) = asked.length(1, shape.to_vec())?;
    op = op.when(length.is_some(), Transform::counted);
    let operands = arrays.into_iter().map(Role::Given).chain(length).chain([output]).collect();
    by_type!(asked, to, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn no_broadcast(name: &str, array: &HostArray, [rows, columns]: [usize; 2]) -> Error {
    err!(Shape, "transform: {name} is {array}; it must be ({rows}, {columns}), ({columns},), ({rows}, 1) or one number")
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    let of = |function: &TransformFn| Transform::new([7, 143], function.clone()).variant(variant);
    let broadcasts = [Broadcast::Each, Broadcast::Row, Broadcast::Column, Broadcast::Scalar];
    for from in HostData::TYPES {
        for to in HostData::TYPES {
            let op = of(&TransformFn::Convert).input(from, Broadcast::Each);
            programs.push(op.lower_as(to, profile)?);
        }
    }
    for function in &TransformFn::BUILT_IN[1..] {
        let floats = function.takes() == TransformTakes::Floats || *function == TransformFn::Affine;
        for dtype in HostData::TYPES.into_iter().filter(|dtype| dtype.is_float() || !floats) {
            let inputs = broadcasts.into_iter().take(function.inputs().unwrap_or(1));
            programs.push(inputs.fold(of(function), |op, b| op.input(dtype, b)).lower_as(dtype, profile)?);
        }
    }
    let sum = "fn apply(i: u32, a: A, b: B, c: C, d: D) -> R { return f32(a + b) + c + d + param(1); }";
    let types = [DType::I8, DType::I32, DType::F16, DType::F32].into_iter().zip(broadcasts);
    let op = of(&TransformFn::custom(sum)).params(&[0.0, 1.0]);
    programs.push(types.fold(op, |op, (dtype, b)| op.input(dtype, b)).lower_as(DType::F32, profile)?);
    let iota = TransformFn::custom("fn apply(i: u32) -> R { return i / columns(); }");
    programs.push(of(&iota).lower_as(DType::U32, profile)?);
    programs.push(of(&iota).counted().lower_as(DType::U8, profile)?);
    Ok(programs)
}

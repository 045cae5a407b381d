//! A function of one to four operands of any types, which may repeat along rows or columns.

use crate::array::{HostArray, HostData};
use crate::element::{DType, Element};
use crate::error::{Error, Result, err};
use crate::program::{
    Access, Asked, Binding, Comparison, Cost, DeviceProfile, Domain, Grid, Input, Kernel, OpCall, Operand,
    Operation, Program, Role, Setting, Variant, by_type, kernel_params, lowered_as, operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::{elements, index_u32};
use half::f16;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A function of the operands of a [`Transform`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransformFn {
    /// `a` as the output's type. Floats are cut to whole numbers and to the range of integers, and NaN gives 0; integers
    /// keep their low bits.
    Convert,
    /// `b` where `a` is not 0, else `c`.
    Where,
    /// 1 where `a < b`, else 0.
    Less,
    /// 1 where `a == b`, else 0.
    Equal,
    /// `a / (1 + exp(-a))`, also known as swish.
    Silu,
    /// `silu(a) b`, the gate of a SwiGLU layer.
    SwiGlu,
    /// Your WGSL function; see [`custom`](Self::custom).
    Custom(Arc<str>),
}

impl TransformFn {
    /// Every function but custom ones.
    pub const BUILT_IN: [Self; 6] =
        [Self::Convert, Self::Where, Self::Less, Self::Equal, Self::Silu, Self::SwiGlu];

    /// Makes a function from WGSL text: `fn apply(i: u32, a: A, b: B) -> R`, with as many operands as there are, up
    /// to `d`. `i` is the number of the element, and `columns()` that of columns. `A` to `D` and `R` are the types: `f32`
    /// for floats, `i32` for `i32` and `i8`, `u32` for `u32` and `u8`. `param(k)` is number k of
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
            Self::Equal => "equal",
            Self::Silu => "silu",
            Self::SwiGlu => "swiglu",
            Self::Custom(_) => "custom",
        }
    }

    /// Operands of a built-in function.
    pub(crate) fn inputs(&self) -> Option<usize> {
        match self {
            Self::Convert | Self::Silu => Some(1),
            Self::Less | Self::Equal | Self::SwiGlu => Some(2),
            Self::Where => Some(3),
            Self::Custom(_) => None,
        }
    }

    fn specialise(&self, spec: Spec) -> Spec {
        match self {
            Self::Convert => spec.flag("CONVERT", true),
            Self::Where => spec.flag("WHERE", true),
            Self::Less => spec.flag("LESS", true),
            Self::Equal => spec.flag("EQUAL", true),
            Self::Silu => spec.flag("SILU", true),
            Self::SwiGlu => spec.flag("SWIGLU", true),
            Self::Custom(text) => spec.slot("function", Fragment::of_user(text)),
        }
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
/// than the operands, which may share one.
///
/// # Types
/// f32, f16, i32, u32, u8 and i8 for each operand and the output. f16 is computed in f32 and rounded to nearest, ties to
/// even; 8-bit integers are computed in 32 bits, of which the output keeps the low ones.
///
/// # Precision and determinism
/// That of the function: `silu` and `swiglu` err by a few units in the last place, the other built-in functions are exact,
/// but for integers above 2^24 as f32. The same device gives the same bits in every run.
///
/// # Cost
/// Each operand is read once, and the output written once. One dispatch, no scratch. Other [`params`](Self::params) make
/// a new plan without a compilation.
///
/// # Variants
/// `words`: a thread makes the elements of a word.
///
/// # Errors
/// - [`Unsupported`](crate::ErrorKind::Unsupported): an element type of 64 bits, `silu` and `swiglu` of integers.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): more than four operands, another number than a built-in
///   function takes, operands of other types than it compares, more than 8 parameters; an unknown variant.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): an operand above the largest binding.
/// - [`Shader`](crate::ErrorKind::Shader): your function's text; the error names the line.
///
/// # Algorithm
/// `shaders/elementwise/transform.wgsl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    shape: [usize; 2],
    function: TransformFn,
    inputs: Vec<(DType, Broadcast)>,
    params: Vec<f32>,
    variant: String,
}

const VARIANTS: &[Variant] = &[Variant::portable("words", "a thread makes the elements of a word")];

/// Names of the operands.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Maximum of parameters.
const MAX_PARAMS: usize = 8;

kernel_params! { struct TransformParams { n: u32, columns: u32, pad: [u32; 2], given: [f32; 8] } }

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
            return Err(err!(
                Unsupported,
                "transform: elements of {other}; use f32, f16, i32, u32, u8 or i8"
            ));
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
        Self { shape, function, inputs: Vec::new(), params: Vec::new(), variant: "auto".into() }
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

    crate::program::variants!(variant);

    /// The function, and the extents of the output.
    pub(crate) fn parts(&self) -> (&TransformFn, [usize; 2]) {
        (&self.function, self.shape)
    }

    /// Rejects operands that the function does not take.
    fn check(&self, dtype: DType) -> Result<()> {
        let (name, given) = (&self.function, self.inputs.len());
        if given > NAMES.len() || self.function.inputs().is_some_and(|wanted| wanted != given) {
            let wanted = self.function.inputs().map_or("at most 4".to_owned(), |wanted| wanted.to_string());
            return Err(err!(
                InvalidArgument,
                "transform: {given} operands for `{name}`, which takes {wanted}"
            ));
        }
        if self.params.len() > MAX_PARAMS {
            return Err(err!(
                InvalidArgument,
                "transform: {} parameters; the maximum is {MAX_PARAMS}; pass a table as an operand",
                self.params.len()
            ));
        }
        let of = |i: usize| self.inputs[i].0;
        let (same, floats) = match self.function {
            TransformFn::Where => (vec![of(1), of(2), dtype], false),
            TransformFn::Less | TransformFn::Equal => (vec![of(0), of(1)], false),
            TransformFn::Silu => (vec![of(0), dtype], true),
            TransformFn::SwiGlu => (vec![of(0), of(1), dtype], true),
            _ => (Vec::new(), false),
        };
        let (_, first) = same.first().map_or(Ok((0, "")), |dtype| form(*dtype))?;
        for dtype in &same {
            if form(*dtype)?.1 != first {
                return Err(err!(
                    InvalidArgument,
                    "transform: `{name}` takes operands of one kind, and these are of {same:?}; convert them first"
                ));
            }
            if floats && !dtype.is_float() {
                return Err(err!(Unsupported, "transform: `{name}` of {dtype}; it takes f32 and f16"));
            }
        }
        Ok(())
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::of_only_variant(INFO.name, &self.variant, VARIANTS, profile)?;
        let (output, result) = form(dtype)?;
        self.check(dtype)?;
        let mut spec = self.function.specialise(Spec::new()).constant("INPUTS", self.inputs.len() as u32);
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
        let from_float = self.inputs.first().is_some_and(|(dtype, _)| dtype.is_float());
        let compares =
            !matches!(self.function, TransformFn::Silu | TransformFn::SwiGlu | TransformFn::Custom(_));
        if from_float && compares {
            spec = spec.flag("FROM_FLOAT", true);
        }
        let len = Broadcast::Each.len(self.shape)?;
        program.operands.push(Operand { name: "output", dtype, len, access: Access::Write });
        profile.check_bindings(INFO.name, &program.operands, "split the rows between calls")?;
        program.cost = Cost::of(len as f64, &program.operands);
        let n = index_u32(INFO.name, "elements", len)?;
        if n == 0 {
            return Ok(program);
        }
        let mut given = [0.0; MAX_PARAMS];
        given[..self.params.len()].copy_from_slice(&self.params);
        let params = TransformParams { n, columns: self.shape[1] as u32, pad: [0; 2], given };
        let spec = spec.constant("OUTPUT_BINDING", 1 + self.inputs.len() as u32);
        let kernel = program.kernel(Kernel::of_file("elementwise/transform", spec));
        let bindings = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        let words = (len * dtype.size()).div_ceil(4) as u64;
        program.dispatch(kernel, &params, bindings, Grid::fold(words.div_ceil(256)));
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
    }
}

lowered_as!(Transform: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "transform",
    about: "output = f(a, b, c), of any types; rows, columns and single numbers repeat",
    inputs: &[
        Input::new("a", "(m, n)"),
        Input::optional("b", "(m, n), (n), (m, 1) or ()"),
        Input::optional("c", "(m, n), (n), (m, 1) or ()"),
    ],
    outputs: &[("output", "(m, n)")],
    types: &HostData::TYPES,
    options: &[
        Setting::word("fn", || TransformFn::BUILT_IN.map(|f| f.name()).to_vec()),
        Setting::word("to", || vec!["same", "f32", "f16", "i32", "u32", "u8", "i8"]),
    ],
    domains: &[("a", Domain::Finite), ("b", Domain::Finite), ("c", Domain::Finite)],
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
    let function: TransformFn = settings.choice("fn")?.parse()?;
    let (dtype, to) = (a.dtype(), settings.choice("to")?);
    let to = HostData::TYPES.into_iter().find(|dtype| dtype.name() == to).unwrap_or(dtype);
    let mut op = Transform::new(shape, function.clone()).variant(asked.variant());
    let mut arrays = vec![a];
    for name in &NAMES[1..function.inputs().unwrap_or(1)] {
        arrays.push(asked.any_of(name, &shape, dtype)?);
    }
    for (name, array) in NAMES.iter().zip(&arrays) {
        let broadcast =
            Broadcast::of(array.shape(), shape).ok_or_else(|| no_broadcast(name, array, shape))?;
        op = op.input(dtype, if *name == "a" { Broadcast::Each } else { broadcast });
    }
    let operands = arrays.into_iter().map(Role::Given).chain([Role::Result(shape.to_vec())]).collect();
    by_type!(asked, to, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn no_broadcast(name: &str, array: &HostArray, [rows, columns]: [usize; 2]) -> Error {
    err!(
        Shape,
        "transform: {name} is {array}; it must be ({rows}, {columns}), ({columns},), ({rows}, 1) or one number"
    )
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
        for dtype in [DType::F32, DType::F16] {
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
    Ok(programs)
}

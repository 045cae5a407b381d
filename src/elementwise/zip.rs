use super::{DTYPES, Sweep, VARIANTS, bind_length};
use crate::program::prelude::*;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub(super) const INFO: Operation = Operation {
    name: "zip",
    about: "z = f(x, y), element by element",
    inputs: &[Input::new("x", "any shape"), Input::new("y", "that of x")],
    outputs: &[("z", "as x")],
    types: &DTYPES,
    options: &[Setting::word("fn", || ZipFn::BUILT_IN.map(|f| f.name()).to_vec()), LENGTH],
    domains: &[("x", Domain::Bits), ("y", Domain::Bits)],
    make: Some(make),
    variants: Zip::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    let y = asked.like("y", x.shape())?;
    let function: ZipFn = asked.settings().choice("fn")?.parse()?;
    let (length, z) = asked.length(x.shape().len(), x.shape().to_vec())?;
    let op = Zip::new(function, x.len()).when(length.is_some(), Zip::counted).variant(asked.variant());
    by_type!(asked, x.dtype(), [f32, f16, i32, u32], T => {
        let operands = [Role::Given(x), Role::Given(y), z].into_iter().chain(length).collect();
        Ok(OpCall::new::<T>(op, operands))
    })
}

/// A function of two elements, for [`Zip`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ZipFn {
    /// `x + y`; integers wrap.
    Add,
    /// `x - y`; integers wrap.
    Sub,
    /// `x y`; integers wrap.
    Mul,
    /// `x / y`. Integers round towards zero, `x / 0` is `x`, and the smallest `i32` over -1 is itself.
    Div,
    /// The smaller one; NaN if either is NaN, and `x` if both are zeros.
    Min,
    /// The larger one; NaN if either is NaN, and `x` if both are zeros.
    Max,
    /// Your function, as WGSL text that defines `fn zip(x: T, y: T) -> T` and every function it calls.
    ///
    /// `T` is `f32`, `i32` or `u32`; for `f16` buffers it is `f32`, and the kernel converts. The text may call
    /// `is_nan(x)`; it must not reuse the names of the kernel's functions and variables. It is checked when the op
    /// is planned, and runs as [`CustomOp`](crate::CustomOp) says.
    Custom(Arc<str>),
}

impl ZipFn {
    /// All functions except [`Custom`](Self::Custom).
    pub const BUILT_IN: [ZipFn; 6] = [Self::Add, Self::Sub, Self::Mul, Self::Div, Self::Min, Self::Max];

    /// Creates your own function from the text of [`Custom`](Self::Custom).
    pub fn custom(wgsl: &str) -> Self {
        Self::Custom(wgsl.into())
    }

    /// Returns the name that [`FromStr`] reads; `custom` for your own function.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Sub => "sub",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::Min => "min",
            Self::Max => "max",
            Self::Custom(_) => "custom",
        }
    }

    pub(crate) fn specialise(&self, spec: Spec) -> Spec {
        match self {
            Self::Add => spec.flag("ADD", true),
            Self::Sub => spec.flag("SUB", true),
            Self::Mul => spec.flag("MUL", true),
            Self::Div => spec.flag("DIV", true),
            Self::Min => spec.flag("MIN", true),
            Self::Max => spec.flag("MAX", true),
            Self::Custom(text) => spec.slot("function", Fragment::of_user(text)),
        }
    }
}

impl fmt::Display for ZipFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ZipFn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::BUILT_IN.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let names = Self::BUILT_IN.map(|f| f.name()).join(", ");
            err!(InvalidArgument, "zip: the function `{name}` is unknown; use one of {names}")
        })
    }
}

kernel_params! {
    struct ZipParams { n: u32, first: u32 }
}

/// Applies a function to every pair of elements: `z[i] = f(x[i], y[i])`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1i32, 5, -3])?, gpu.upload(&[4i32, 2, -7])?);
/// let z = gpu.alloc::<i32>(3)?;
/// let max = Zip::new(ZipFn::Max, 3).plan::<i32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// max.record(&mut rec, &x, &y, &z)?;
/// rec.submit()?;
/// assert_eq!(z.read()?, [4, 5, -3]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x`, `y` (in) and `z` (out) have `n` elements each; `n` may be 0. `z` must be another wgpu buffer than `x` and
/// `y`, which may be the same.
///
/// # Types
/// `f32`, `f16`, `i32` and `u32`, with every function.
///
/// # Precision and determinism
/// `add`, `sub` and `mul` round once; `min` and `max` are exact; `div` has the precision of the device (WGSL
/// promises 2.5 ULP while `|y|` lies between 2^-126 and 2^126). Integers wrap modulo 2^32. `f16` is computed in
/// `f32` and rounded to nearest, ties to even. Devices may flush subnormal `f32` numbers to 0. The same device and
/// inputs give the same bits.
///
/// # Cost
/// `n` operations; `3 n` elements moved; no scratch; one dispatch for each chunk of at most the device's largest
/// binding, and one workgroup for a rest of less than 256 bytes.
///
/// # Variants
/// `plain`, `grid-stride` and `vec4`; `auto` (the default) takes `vec4`, or another if few elements end in part of one.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest buffer.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/elementwise/zip.wgsl`, which imports the walk of the variant and the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zip {
    function: ZipFn,
    n: usize,
    counted: bool,
    variant: String,
}

impl Zip {
    /// Applies `function` to `n` pairs.
    pub fn new(function: ZipFn, n: usize) -> Self {
        Self { function, n, counted: false, variant: "auto".to_owned() }
    }

    #[cfg(feature = "stream")]
    pub(crate) const NAME: &'static str = INFO.name;

    counted!(counted, "elements", "Elements behind it stay as they are.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let sweep = Sweep {
            op: "zip",
            shader: "elementwise/zip",
            variant: &self.variant,
            dtype,
            n: self.n,
            operands: &[("x", Access::Read), ("y", Access::Read), ("z", Access::Write)],
            spec: limited(self.function.specialise(Spec::new()), self.counted, 4),
            flop_per_element: 1.0,
        };
        let mut program = sweep.lower(profile, |n, first| ZipParams { n, first })?;
        if self.counted {
            bind_length(&mut program, dtype);
        }
        Ok(program)
    }
}

#[cfg(feature = "cuda")]
impl Zip {
    /// Whether the number of pairs comes from the device.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted
    }

    /// Returns the function, the number of pairs, and the variant selected by name.
    pub(crate) fn parts(&self) -> (&ZipFn, usize, &str) {
        (&self.function, self.n, &self.variant)
    }
}

operands! {
    impl[T: Element,] Zip, T [cuda] {
        fn record(x: T, y: T, z: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Zip);

/// Takes 1001 elements: the `vec4` variant then has a rest, and `f16` a half-filled word.
fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut functions = Vec::from(ZipFn::BUILT_IN);
    functions.push(ZipFn::custom("fn zip(x: T, y: T) -> T { return x * x + y; }"));
    let mut programs = Vec::new();
    for dtype in DTYPES {
        for function in &functions {
            programs.push(Zip::new(function.clone(), 1001).variant(variant).lower_as(dtype, profile)?);
        }
        programs.push(Zip::new(ZipFn::Add, 1001).counted().variant(variant).lower_as(dtype, profile)?);
    }
    Ok(programs)
}

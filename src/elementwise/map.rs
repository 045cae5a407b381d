use super::{DTYPES, Sweep, VARIANTS, bind_length};
use crate::program::prelude::*;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub(super) const INFO: Operation = Operation {
    name: "map",
    about: "y = f(x), element by element",
    inputs: &[Input::new("x", "any shape")],
    outputs: &[("y", "as x")],
    types: &DTYPES,
    options: &[Setting::word("fn", || MapFn::BUILT_IN.map(|f| f.name()).to_vec()), Setting::flag("in-place"), LENGTH],
    domains: &[("x", Domain::Bits)],
    make: Some(make),
    variants: Map::variants,
    samples,
    comparison: Some(Comparison::Sums),
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let x = asked.any("x")?;
    let function: MapFn = asked.settings().choice("fn")?.parse()?;
    let (length, y) = asked.length(x.shape().len(), x.shape().to_vec())?;
    let mut op = Map::new(function, x.len()).when(length.is_some(), Map::counted).variant(asked.variant());
    let dtype = x.dtype();
    let mut operands = if asked.settings().has("in-place") {
        op = op.in_place();
        vec![Role::Updated(x)]
    } else {
        vec![Role::Given(x), y]
    };
    operands.extend(length);
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

/// The option by which other ops take a function of their elements.
#[cfg(feature = "primitives")]
pub(crate) const MAPPED: Setting = Setting::wgsl(INFO.name);

/// The function of [`MAPPED`], if it is given.
#[cfg(feature = "primitives")]
pub(crate) fn asked_map(asked: &Asked<'_>) -> Option<MapFn> {
    asked.settings().word(MAPPED.name).map(MapFn::custom)
}

/// A function of one element, for [`Map`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapFn {
    /// `-x`; integers wrap.
    Neg,
    /// `|x|`; the smallest `i32` stays unchanged.
    Abs,
    /// `e^x`.
    Exp,
    /// The square root; NaN below 0.
    Sqrt,
    /// `x` where it is positive or NaN, else 0.
    Relu,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `x Phi(x)` with the normal distribution `Phi`: the exact form of GELU.
    Gelu,
    /// 1 above 0, -1 below; 0 keeps its sign.
    Sign,
    /// Your function, as WGSL text that defines `fn map(x: T) -> T` and every function it calls.
    ///
    /// `T` is `f32`, `i32` or `u32`; for `f16` buffers it is `f32`, and the kernel converts. The text may call
    /// `is_nan(x)`; it must not reuse the names of the kernel's functions and variables. It is checked when the op
    /// is planned, and runs as [`CustomOp`](crate::CustomOp) says.
    Custom(Arc<str>),
}

impl MapFn {
    /// Rejects element types that the function of a fused map does not take.
    #[cfg(feature = "primitives")]
    pub(crate) fn check_fused(&self, op: &str, dtype: DType) -> Result<()> {
        if self.supports(dtype) {
            return Ok(());
        }
        Err(err!(Unsupported, "{op}: `{self}` is not defined on {dtype}; map the elements in a pass of its own"))
    }

    /// All functions except [`Custom`](Self::Custom).
    pub const BUILT_IN: [MapFn; 9] =
        [Self::Neg, Self::Abs, Self::Exp, Self::Sqrt, Self::Relu, Self::Sigmoid, Self::Tanh, Self::Gelu, Self::Sign];

    /// Creates your own function from the text of [`Custom`](Self::Custom).
    pub fn custom(wgsl: &str) -> Self {
        Self::Custom(wgsl.into())
    }

    /// Returns the name that [`FromStr`] reads; `custom` for your own function.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Neg => "neg",
            Self::Abs => "abs",
            Self::Exp => "exp",
            Self::Sqrt => "sqrt",
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::Sign => "sign",
            Self::Custom(_) => "custom",
        }
    }

    /// Returns true if the function is defined on elements of type `dtype`.
    pub fn supports(&self, dtype: DType) -> bool {
        match dtype {
            DType::F32 | DType::F16 => true,
            DType::I32 => matches!(self, Self::Neg | Self::Abs | Self::Relu | Self::Sign | Self::Custom(_)),
            DType::U32 => matches!(self, Self::Custom(_)),
            _ => false,
        }
    }

    /// Chooses the function of `elementwise/map_functions`.
    pub(crate) fn specialise(&self, spec: Spec) -> Spec {
        match self {
            Self::Neg => spec.flag("NEG", true),
            Self::Abs => spec.flag("ABS", true),
            Self::Exp => spec.flag("EXP", true),
            Self::Sqrt => spec.flag("SQRT", true),
            Self::Relu => spec.flag("RELU", true),
            Self::Sigmoid => spec.flag("SIGMOID", true),
            Self::Tanh => spec.flag("TANH", true),
            Self::Gelu => spec.flag("GELU", true),
            Self::Sign => spec.flag("SIGN", true),
            Self::Custom(text) => spec.slot("function", Fragment::of_user(text)),
        }
    }
}

impl fmt::Display for MapFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MapFn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::BUILT_IN.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let names = Self::BUILT_IN.map(|f| f.name()).join(", ");
            err!(InvalidArgument, "map: the function `{name}` is unknown; use one of {names}")
        })
    }
}

kernel_params! {
    struct MapParams { n: u32, first: u32 }
}

/// Applies a function to every element: `y[i] = f(x[i])`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[-1.0f32, 2.0, 3.0])?, gpu.alloc::<f32>(3)?);
/// let relu = Map::new(MapFn::Relu, 3).plan::<f32>(&gpu)?;
/// let cube = MapFn::custom("fn map(x: T) -> T { return x * x * x; }");
/// let cube = Map::new(cube, 3).in_place().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// relu.record(&mut rec, &x, &y)?;
/// cube.record_in_place(&mut rec, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [0.0, 8.0, 27.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `x` (in) and `y` (out) have `n` elements each; `n` may be 0. They must be different wgpu buffers;
/// [`in_place`](Self::in_place) takes one operand for both.
///
/// # Types
/// `f32` and `f16` with every function; `i32` with [`Neg`](MapFn::Neg), [`Abs`](MapFn::Abs), [`Relu`](MapFn::Relu),
/// [`Sign`](MapFn::Sign) and [`Custom`](MapFn::Custom); `u32` with `Custom`.
///
/// # Precision and determinism
/// `neg`, `abs`, `relu` and `sign` are exact. `exp` and `sqrt` have the precision of the device (WGSL promises `3 +
/// 2 |x|` ULP for `exp`). `sigmoid` is exactly 0 and 1 far from 0, and `tanh` has a small relative error near 0
/// too. `gelu` is within 2.4e-7 of `x Phi(x)`, or a few ULP if that is larger. Every function returns NaN for NaN.
/// `f16` is computed in `f32` and rounded to nearest, ties to even. Devices may flush subnormal `f32` numbers to 0.
/// The same device and inputs give the same bits.
///
/// # Cost
/// `n` operations; `2 n` elements moved; no scratch; one dispatch for each chunk of at most the device's largest
/// binding, and one workgroup for a rest of less than 256 bytes.
///
/// # Variants
/// `plain`, `grid-stride` and `vec4`; `auto` (the default) takes `vec4`, or another if few elements end in part of one.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type, or a function that is not defined on it.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest buffer.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/elementwise/map.wgsl`, which imports the walk of the variant and the function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    function: MapFn,
    n: usize,
    in_place: bool,
    counted: bool,
    variant: String,
}

impl Map {
    /// Applies `function` to `n` elements.
    pub fn new(function: MapFn, n: usize) -> Self {
        Self { function, n, in_place: false, counted: false, variant: "auto".to_owned() }
    }

    #[cfg(feature = "stream")]
    pub(crate) const NAME: &'static str = INFO.name;

    variants!(variant);

    counted!(counted, "elements", "Elements behind it stay as they are.");

    /// Overwrites the operand: plans have one operand and are recorded by `record_in_place`.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.in_place = true;
        self
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { function, n, in_place, counted, variant } = self;
        if !function.supports(dtype) {
            return Err(err!(
                Unsupported,
                "map: `{function}` is not defined on {dtype}; floats take every function, i32 neg, abs, relu, \
                 sign and custom, u32 custom"
            ));
        }
        let spec = function.specialise(Spec::new().flag("IN_PLACE", *in_place));
        let sweep = Sweep {
            op: "map",
            shader: "elementwise/map",
            variant,
            dtype,
            n: *n,
            operands: if *in_place {
                &[("x", Access::ReadWrite)]
            } else {
                &[("x", Access::Read), ("y", Access::Write)]
            },
            spec: limited(spec, *counted, if *in_place { 2 } else { 3 }),
            flop_per_element: 1.0,
        };
        let mut program = sweep.lower(profile, |n, first| MapParams { n, first })?;
        if *counted {
            bind_length(&mut program, dtype);
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Map, T {
        fn record(x: T, y: T);
        fn record_in_place(x: T);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Map);

/// Takes 1001 elements: the `vec4` variant then has a rest, and `f16` a half-filled word.
fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut functions = Vec::from(MapFn::BUILT_IN);
    functions.push(MapFn::custom("fn map(x: T) -> T { return x * x + T(1); }"));
    let mut programs = Vec::new();
    for dtype in DTYPES {
        for function in functions.iter().filter(|f| f.supports(dtype)) {
            let map = Map::new(function.clone(), 1001).variant(variant);
            programs.push(map.lower_as(dtype, profile)?);
            programs.push(map.in_place().lower_as(dtype, profile)?);
        }
        let counted = Map::new(MapFn::custom("fn map(x: T) -> T { return x; }"), 1001).variant(variant).counted();
        programs.push(counted.lower_as(dtype, profile)?);
        programs.push(counted.in_place().lower_as(dtype, profile)?);
    }
    Ok(programs)
}

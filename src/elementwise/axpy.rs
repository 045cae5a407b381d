use super::{DTYPES, Sweep, VARIANTS, bind_length, bind_scalar};
use crate::program::prelude::*;

pub(super) const INFO: Operation = Operation {
    name: "axpy",
    about: "y = alpha x + y",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)")],
    outputs: &[("y", "(n)")],
    types: &DTYPES,
    options: &[Setting::number("alpha", "1"), Setting::array("device-alpha", "(1)"), LENGTH, INCX, INCY],
    domains: &[("x", Domain::Bits), ("y", Domain::Bits)],
    make: Some(make),
    variants: Axpy::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    let y = asked.like("y", &[n])?;
    let mut op = Axpy::new(n, asked.settings().number("alpha")?).variant(asked.variant());
    let dtype = x.dtype();
    let mut operands = vec![Role::Given(x), Role::Updated(y)];
    if let Some(alpha) = asked.named_of("device-alpha", &[1], scalar(dtype))? {
        op = op.with_alpha();
        operands.push(Role::Given(alpha));
    }
    if let (Some(length), _) = asked.length(1, vec![n])? {
        op = op.counted();
        operands.push(length);
    }
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

pub(super) fn scalar(dtype: DType) -> DType {
    if dtype == DType::F16 { DType::F32 } else { dtype }
}

/// Returns the bits of `alpha` in the type in which the kernel computes.
pub(super) fn alpha_word(op: &str, alpha: f64, dtype: DType) -> Result<u32> {
    let word = match dtype {
        DType::I32 => alpha as i32 as u32,
        DType::U32 => alpha as u32,
        _ => return Ok((alpha as f32).to_bits()),
    };
    let back = if dtype == DType::I32 { f64::from(word as i32) } else { f64::from(word) };
    if back == alpha {
        return Ok(word);
    }
    Err(err!(InvalidArgument, "{op}: alpha = {alpha:?} is not a value of {dtype}; give a whole number in its range"))
}

kernel_params! {
    /// `alpha` is the bits of an `f32`, `i32` or `u32`.
    struct AxpyParams { n: u32, first: u32, alpha: u32 }
}

/// Adds a multiple of a vector to another, in place: `y[i] = alpha x[i] + y[i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[10.0f32, 10.0, 10.0])?);
/// let axpy = Axpy::new(3, 0.5).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// axpy.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [10.5, 11.0, 11.5]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// `alpha` may be an operand, to change it without planning again: [`with_alpha`](Self::with_alpha).
///
/// # Shapes
/// `x` (in) and `y` (in and out) have `n` elements each; `n` may be 0. They must be different wgpu buffers. The
/// operand `alpha` has one element. [`incx`](Self::incx) and [`incy`](Self::incy) are BLAS's increments.
///
/// # Types
/// `f32`, `f16`, `i32` and `u32`. `alpha` is rounded to `f32` for the floats; for the integers it must be a value
/// of the type. The operand `alpha` is f32 for the floats, and of the same type for the integers.
///
/// # Precision and determinism
/// One or two roundings in `f32`: a device may fuse the multiplication with the addition; if it does not, `alpha x`
/// may overflow by itself. `f16` is computed in `f32` and rounded to nearest, ties to even. Integers wrap modulo
/// 2^32. Devices may flush subnormal `f32` numbers to 0. The same device and inputs give the same bits. NaN and
/// infinities propagate as in f32 arithmetic, within their own element.
///
/// # Cost
/// `2 n` flop; `3 n` elements moved; no scratch; one dispatch for each chunk of at most the device's largest
/// binding, and one workgroup for a rest of less than 256 bytes.
///
/// # Variants
/// `plain`, `grid-stride` and `vec4`; `auto` (the default) takes `vec4`, or another if few elements end in part of one.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an `alpha` that is not a value of an integer type, or
///   an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest buffer.
///
/// # Algorithm
/// `shaders/elementwise/axpy.wgsl`, which imports the walk of the variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Axpy {
    n: usize,
    alpha: f64,
    given: bool,
    counted: bool,
    increments: Increments,
    variant: String,
}

impl Axpy {
    /// Adds `alpha` times `n` elements of `x` to `y`.
    ///
    /// An `f64` holds every value of the element types, so one descriptor serves all of them.
    pub fn new(n: usize, alpha: f64) -> Self {
        let increments = Increments::default();
        Self { n, alpha, given: false, counted: false, increments, variant: "auto".to_owned() }
    }

    /// Reads `alpha` from an operand of one element, which plans take by `with_alpha`, instead of the one given.
    #[must_use]
    pub fn with_alpha(mut self) -> Self {
        self.given = true;
        self
    }

    counted!(counted, "elements", "Elements behind it stay as they are.");

    increments!(incx x, incy y);
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let alpha = alpha_word(INFO.name, self.alpha, dtype)?;
        let sweep = Sweep {
            op: "axpy",
            shader: "elementwise/axpy",
            variant: &self.variant,
            dtype,
            n: self.n,
            operands: &[("x", Access::Read), ("y", Access::ReadWrite)],
            spec: limited(Spec::new().flag("GIVEN", self.given), self.counted, 3 + u32::from(self.given)),
            flop_per_element: 2.0,
        };
        let mut program = sweep.lower(profile, |n, first| AxpyParams { n, first, alpha })?;
        if self.given {
            bind_scalar(&mut program, "alpha", scalar(dtype));
        }
        if self.counted {
            bind_length(&mut program, dtype);
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Axpy, T {
        fn record(x: T, y: T);
        /// Takes the factor, one element.
        optional with_alpha<S>(alpha: S);
        /// Takes the number of elements from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(Axpy);

/// Takes 1001 elements: the `vec4` variant then has a rest, and `f16` a half-filled word.
fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Axpy::new(1001, 2.0).variant(variant);
    let apart = op.clone().incx(-1).incy(2);
    let all = [op.clone(), op.clone().counted(), op.with_alpha(), apart];
    all.iter().flat_map(|op| DTYPES.map(|dtype| op.lower_as(dtype, profile))).collect()
}

use super::axpy::{alpha_word, scalar};
use super::{DTYPES, Sweep, VARIANTS, bind_scalar};
use crate::program::prelude::*;

/// Multiplies a vector by a number, in place: `x[i] = alpha x[i]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
/// let scal = Scal::new(3, 0.5).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// scal.record(&mut rec, &x)?;
/// rec.submit()?;
/// assert_eq!(x.read()?, [0.5, 1.0, 1.5]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// `alpha` may be an operand, to change it without planning again: [`with_alpha`](Self::with_alpha).
///
/// # Shapes
/// `x` has `n` elements; `n` may be 0. [`incx`](Self::incx) is BLAS's increment. The operand `alpha` has one element.
///
/// # Types
/// `f32`, `f16`, `i32` and `u32`; of `alpha` as in [`Axpy`](crate::Axpy).
///
/// # Precision and determinism
/// One rounding in f32, and for f16 another; as in BLAS an alpha of 0 makes NaN of NaN and infinities. Integers wrap
/// modulo 2^32. Devices may flush subnormal numbers to 0. The same device gives the same bits in every run.
///
/// # Cost
/// `n` flop; `x` is read and written. One dispatch for each chunk of at most the largest binding, and one workgroup for
/// a rest of less than 256 bytes. No scratch.
///
/// # Variants
/// `plain`, `grid-stride` and `vec4`; `auto` (the default) takes `vec4`, or another if few elements end in part of one.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): another element type.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an `alpha` that is not a value of an integer type; an
///   unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): `x` is above the device's largest buffer.
///
/// # Algorithm
/// `shaders/elementwise/scal.wgsl`, which imports the walk of the variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Scal {
    n: usize,
    alpha: f64,
    given: bool,
    increments: Increments,
    variant: String,
}

kernel_params! {
    /// `alpha` is the bits of an `f32`, `i32` or `u32`.
    struct ScalParams { n: u32, first: u32, alpha: u32 }
}

impl Scal {
    /// Multiplies `n` elements by `alpha`.
    pub fn new(n: usize, alpha: f64) -> Self {
        Self { n, alpha, given: false, increments: Increments::default(), variant: "auto".into() }
    }

    /// Reads `alpha` from an operand of one element, which plans take by `with_alpha`, instead of the one given.
    #[must_use]
    pub fn with_alpha(mut self) -> Self {
        self.given = true;
        self
    }

    increments!(incx x);
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        self.increments.lower(INFO.name, 1, profile, || self.lower_unit(dtype, profile))
    }

    fn lower_unit(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let alpha = alpha_word(INFO.name, self.alpha, dtype)?;
        let sweep = Sweep {
            op: INFO.name,
            shader: "elementwise/scal",
            variant: &self.variant,
            dtype,
            n: self.n,
            operands: &[("x", Access::ReadWrite)],
            spec: Spec::new().flag("GIVEN", self.given),
            flop_per_element: 1.0,
        };
        let mut program = sweep.lower(profile, |n, first| ScalParams { n, first, alpha })?;
        if self.given {
            bind_scalar(&mut program, "alpha", scalar(dtype));
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Scal, T {
        fn record(x: T);
        /// Takes the factor, one element.
        optional with_alpha<S>(alpha: S);
    }
}

lowered_as!(Scal);

pub(super) const INFO: Operation = Operation {
    name: "scal",
    about: "x = alpha x",
    inputs: &[Input::new("x", "(n)")],
    outputs: &[("x", "(n)")],
    types: &DTYPES,
    options: &[Setting::number("alpha", "1"), Setting::array("device-alpha", "(1)"), INCX],
    domains: &[("x", Domain::Bits)],
    make: Some(make),
    variants: Scal::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (x, [n]) = asked.array("x")?;
    let dtype = x.dtype();
    let alpha = asked.named_of("device-alpha", &[1], scalar(dtype))?;
    let op = Scal::new(n, asked.settings().number("alpha")?).variant(asked.variant());
    let op = op.when(alpha.is_some(), Scal::with_alpha);
    let operands = [Role::Updated(x)].into_iter().chain(alpha.map(Role::Given)).collect();
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = Scal::new(1001, 2.0).variant(variant);
    [op.clone(), op.with_alpha()].iter().flat_map(|op| DTYPES.map(|d| op.lower_as(d, profile))).collect()
}

//! BLAS's axpy.

use super::{DTYPES, Sweep, VARIANTS};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::{
    Access, Asked, Comparison, DeviceProfile, Example, Form, Input, Op, Operation, Program, Role,
};
use crate::program::{Setting, Variant, by_type, kernel_params, operands};
use crate::shader::Spec;
use half::f16;

pub(super) const INFO: Operation = Operation {
    name: "axpy",
    about: "y = alpha x + y",
    inputs: &[Input::new("x", "(n)"), Input::new("y", "(n)")],
    types: &DTYPES,
    options: &[Setting::number("alpha", "1")],
    make: Some(make),
    variants: Axpy::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (x, [n]) = asked.array("x")?;
    let y = asked.like("y", &[n])?;
    let op = Axpy::new(n, asked.settings().number("alpha")?).variant(asked.variant());
    by_type!(asked, x.dtype(), [f32, f16, i32, u32], T => Ok(Form::new::<T>(op, vec![Role::Given(x), Role::Updated(y)])))
}

kernel_params! {
    /// `alpha` is the bits of an `f32`, `i32` or `u32`.
    struct AxpyParams { n: u32, alpha: u32 }
}

/// Adds a multiple of a vector to another, in place: `y[i] = alpha x[i] + y[i]`.
///
/// # Shapes
/// Operands `x` (in) and `y` (in and out), `n` elements each; `n` may be 0. They must lie in different
/// wgpu buffers.
///
/// # Types
/// `f32`, `f16`, `i32` and `u32`. `alpha` is rounded to `f32` for the floats; for the integers it must
/// be a value of the type.
///
/// # Precision and determinism
/// One or two roundings in `f32`, since a device may fuse the multiplication with the addition; where it
/// does not, `alpha x` may overflow by itself. `f16` is computed in `f32` and rounded to nearest, ties to
/// even. Integers wrap modulo 2^32. Devices may take subnormal `f32` numbers for 0. Same device, same
/// inputs, same bits.
/// NaN and infinities go the way of f32 arithmetic: they reach what they are a term of, and nothing else.
///
/// # Cost
/// `2 n` flop; `3 n` elements moved; no scratch; one dispatch for each piece of at most the device's
/// largest binding, and one of one workgroup for the rest that is no multiple of 256 bytes.
///
/// # Errors
/// From `lower`: [`Unsupported`](crate::ErrorKind::Unsupported) for another element type;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an `alpha` that is no value of an integer
/// type, or for a variant that does not exist; [`TooLarge`](crate::ErrorKind::TooLarge) above the
/// device's largest buffer.
///
/// # Algorithm
/// `shaders/elementwise/axpy.wgsl`, with the walk of the variant imported.
///
/// # Example
/// ```
/// use tilework::elementwise::Axpy;
/// use tilework::program::{DeviceProfile, Op};
///
/// let profile = DeviceProfile::webgpu_defaults();
/// let program = Op::<f32>::lower(&Axpy::new(1 << 20, 0.5), &profile)?;
/// assert_eq!(program.cost.flop, 2.0 * f64::from(1 << 20));
/// assert!(Op::<i32>::lower(&Axpy::new(1 << 20, 0.5), &profile).is_err());
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Axpy {
    n: usize,
    alpha: f64,
    variant: String,
}

impl Axpy {
    /// `alpha` times the first `n` elements, added to the second `n`.
    ///
    /// An `f64` holds every value of the element types, so that one descriptor serves all of them.
    pub fn new(n: usize, alpha: f64) -> Self {
        Self { n, alpha, variant: "auto".to_owned() }
    }

    /// Runs the variant of that name; `auto`, the default, lets the device decide.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Every way to run the op.
    pub fn variants() -> &'static [Variant] {
        VARIANTS
    }

    /// The bits of `alpha` in the type that the kernel computes in.
    fn alpha_word(&self, dtype: DType) -> Result<u32> {
        let alpha = self.alpha;
        let word = match dtype {
            DType::I32 => alpha as i32 as u32,
            DType::U32 => alpha as u32,
            _ => return Ok((alpha as f32).to_bits()),
        };
        let back = if dtype == DType::I32 { f64::from(word as i32) } else { f64::from(word) };
        if back == alpha {
            Ok(word)
        } else {
            Err(err!(
                InvalidArgument,
                "axpy: alpha = {alpha:?} is no {dtype}; give a whole number in its range"
            ))
        }
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let alpha = self.alpha_word(dtype)?;
        Sweep {
            op: "axpy",
            shader: "elementwise/axpy",
            variant: &self.variant,
            dtype,
            n: self.n,
            operands: &[("x", Access::Read), ("y", Access::ReadWrite)],
            spec: Spec::new(),
            flop_per_element: 2.0,
        }
        .lower(profile, |n| AxpyParams { n, alpha })
    }
}

operands! {
    impl[T: Element,] Axpy, T {
        fn record(x: T, y: T);
    }
}

impl<T: Element> Op<T> for Axpy {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.lower_as(T::DTYPE, profile)
    }
}

/// 1001 elements: the `vec4` variant then has a rest, and `f16` a word filled in half.
fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    DTYPES.iter().map(|&dtype| Axpy::new(1001, 2.0).variant(variant).lower_as(dtype, profile)).collect()
}

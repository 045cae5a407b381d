//! Stencils over an image.

use super::stencil::{Boundary, Stencil, stencil_builders};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Asked, Comparison, DeviceProfile, Form, Input, Op, Operation, Program, Role, by_type, operands,
};

/// `output[y, x] = sum over j, i of input[y + j - ry, x + i - rx] * filter[j, i]`, of `t = (2 ry + 1) (2 rx + 1)` weights.
///
/// # Shapes
/// `input` and `output` are `h` x `w`, row-major without gaps. The filter has odd extents, none above the input's, and belongs to the descriptor: for another filter
/// of the same shape plan again, which finds the compiled kernels. An empty input gives an empty output. The two
/// buffers must be different wgpu buffers.
///
/// # Boundary
/// Outside of the input lies 0, or by [`boundary`](Self::boundary) the nearest element or the other side's.
///
/// # Types, precision and determinism
/// f32 and u8, the filter always f32. A sum of `t` products is fused multiply-adds in an order that depends on the variant only:
/// the same device gives the same bits.
/// Elements of u8 are multiplied and summed in f32, then rounded to the nearest whole number, ties to even, and
/// saturated to 0 ... 255. Weights that are multiples of one power of 2 make every sum exact where none is above
/// 2^24 of it: all variants then agree bit by bit (`separable` where the filter is a product of lines without rounding).
///
/// # Cost
/// `2 t` operations an output; with `register` each input is read about once. One dispatch, no scratch.
///
/// # Variants
/// `naive`, `constant`, `strategy1`, `strategy2`, `strategy3`, `register`, `separable`: see [the family](crate::conv). `auto` (the
/// default) takes `register` up to 256 weights, then `strategy1` while a tile with its halo fits workgroup memory,
/// then `constant` up to 16376 weights (WebGPU's 64 KiB), then `naive`; on processors `register` up to 64 weights, then
/// `constant`. `separable` takes a filter that is a product of lines, one an axis: every weight within
/// 2^-20 of the largest one of the product of the lines through that, in f32. It runs as sums along one axis after the
/// other, unrounded between them: in the registers of one kernel, by tiles, or (`separable` of long lines) a dispatch an
/// axis with 4 bytes an element of scratch; the report says which. Another filter is refused.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): an even extent of the filter, a filter larger than the
/// input, a weight that is not finite, an unknown variant; [`Shape`](crate::ErrorKind::Shape): a number of weights
/// that is not the filter's; [`TooLarge`](crate::ErrorKind::TooLarge): an input above the largest binding or buffer;
/// [`Unsupported`](crate::ErrorKind::Unsupported): another element type, or a variant that this filter or device
/// does not fit, with the numbers.
///
/// # Algorithm
/// Tiles as in Kirk and Hwu, *Programming Massively Parallel Processors*: `shaders/conv/stencil_*.wgsl`. In that
/// of `register` each row of inputs is loaded once by vec4s with its neighbours and added to every sum of the invocation
/// that it is part of.
///
/// # Example
/// ```
/// use tilework::conv::{Boundary, Filter2d};
/// use tilework::program::{DeviceProfile, Op};
///
/// let sharpen = Filter2d::new([1080, 1920], [3, 3], &[0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0]);
/// let tiled = sharpen.boundary(Boundary::Clamp).variant("strategy1");
/// let program = Op::<u8>::lower(&tiled, &DeviceProfile::h100())?;
/// assert!(program.decision.why.contains("reuse"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filter2d {
    stencil: Stencil,
}

impl Filter2d {
    /// Filters an image of `h` rows of `w` pixels. `filter` has `rows` x `columns` weights, row by row.
    pub fn new([h, w]: [usize; 2], [rows, columns]: [usize; 2], filter: &[f32]) -> Self {
        Self { stencil: Stencil::new("filter2d", 2, [1, h, w], [1, rows, columns], filter) }
    }
}

stencil_builders!(Filter2d, super::stencil::VARIANTS);

operands! {
    impl[T: Element,] Filter2d, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Filter2d {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.stencil.lower(T::DTYPE, profile)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "filter2d",
    aliases: &["conv2d"],
    about: "each element becomes a weighted sum of its neighbours over an image",
    inputs: &[Input::new("input", "(h, w)"), Input::new("filter", "f32 (fh, fw), odd extents")],
    types: &[DType::F32, DType::U8],
    options: super::stencil::OPTIONS,
    make: Some(make),
    variants: Filter2d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts: super::stencil::facts,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (input, stencil) = super::stencil::asked::<2>(asked)?;
    let (op, output) = (Filter2d { stencil }, Role::Result(input.shape().to_vec()));
    by_type!(asked, input.dtype(), [f32, u8], T => Ok(Form::new::<T>(op, vec![Role::Given(input), output])))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for boundary in Boundary::ALL {
        for (w, f) in [(64, [5, 5]), (63, [3, 7])] {
            let desc = Filter2d::new([50, w], f, &vec![1.0; f[0] * f[1]]).boundary(boundary).variant(variant);
            programs.push(Op::<f32>::lower(&desc, profile)?);
            programs.push(Op::<u8>::lower(&desc, profile)?);
        }
        if variant == "separable" {
            // By tiles, and a dispatch an axis.
            for (w, side) in [(120, 21), (119, 21), (120, 75), (119, 75)] {
                let desc = Filter2d::new([100, w], [side; 2], &vec![1.0; side * side])
                    .boundary(boundary)
                    .variant(variant);
                programs.push(Op::<f32>::lower(&desc, profile)?);
                programs.push(Op::<u8>::lower(&desc, profile)?);
            }
        }
    }
    Ok(programs)
}

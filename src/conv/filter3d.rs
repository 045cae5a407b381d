//! Stencils in a volume.

use super::stencil::{Boundary, Stencil, stencil_builders};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Asked, Comparison, DeviceProfile, Example, Form, Input, Op, Operation, Program, Role, by_type, operands,
};

/// `output[z, y, x] = sum over k, j, i of input[z + k - rz, y + j - ry, x + i - rx] * filter[k, j, i]`, of `t` weights.
///
/// # Shapes
/// `input` and `output` have the extents given, planes of rows without gaps. The filter has odd extents, none above the input's, and belongs to the descriptor: for another filter
/// of the same shape plan again, which finds the compiled kernels. An empty input gives an empty output. The two
/// buffers must be different wgpu buffers.
///
/// # Boundary
/// Outside of the input lies 0, or by [`boundary`](Self::boundary) the nearest element or the other side's.
///
/// # Types, precision and determinism
/// f32. A sum of `t` products is fused multiply-adds in an order that depends on the variant only:
/// the same device gives the same bits.
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
/// use tilework::conv::{Boundary, Filter3d};
/// use tilework::program::{DeviceProfile, Op};
///
/// let mean = Filter3d::new([64, 64, 64], [3, 3, 3], &[1.0 / 27.0; 27]).boundary(Boundary::Wrap);
/// let program = Op::<f32>::lower(&mean, &DeviceProfile::webgpu_defaults())?;
/// assert_eq!(program.cost.flop, 2.0 * 27.0 * 64f64.powi(3));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Filter3d {
    stencil: Stencil,
}

impl Filter3d {
    /// Of a volume of these extents (planes, rows, columns), by a filter of these, given in the same order.
    pub fn new(extents: [usize; 3], shape: [usize; 3], filter: &[f32]) -> Self {
        Self { stencil: Stencil::new("filter3d", 3, extents, shape, filter) }
    }
}

stencil_builders!(Filter3d, super::stencil::VARIANTS);

operands! {
    impl[T: Element,] Filter3d, T {
        fn record(input: T, output: T);
    }
}

impl<T: Element> Op<T> for Filter3d {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.stencil.lower(T::DTYPE, profile)
    }
}

pub(super) const INFO: Operation = Operation {
    name: "filter3d",
    aliases: &["conv3d"],
    about: "each element becomes a weighted sum of its neighbours in a volume",
    inputs: &[Input::new("input", "(d, h, w)"), Input::new("filter", "f32 (fd, fh, fw), odd extents")],
    types: &[DType::F32],
    options: super::stencil::OPTIONS,
    make: Some(make),
    variants: Filter3d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts: super::stencil::facts,
    example: Example { shape: &[8, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<Form> {
    let (input, stencil) = super::stencil::asked::<3>(asked)?;
    let (op, output) = (Filter3d { stencil }, Role::Result(input.shape().to_vec()));
    by_type!(asked, input.dtype(), [f32], T => Ok(Form::new::<T>(op, vec![Role::Given(input), output])))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for boundary in Boundary::ALL {
        for (w, f) in [(24, [3, 3, 3]), (23, [1, 3, 5])] {
            let weights = vec![1.0; f.iter().product()];
            let desc = Filter3d::new([9, 10, w], f, &weights).boundary(boundary).variant(variant);
            programs.push(Op::<f32>::lower(&desc, profile)?);
        }
        if variant == "separable" {
            // A dispatch an axis.
            for w in [40, 41] {
                let desc = Filter3d::new([40, 40, w], [17; 3], &vec![1.0; 17 * 17 * 17]).boundary(boundary);
                programs.push(Op::<f32>::lower(&desc.variant(variant), profile)?);
            }
        }
    }
    Ok(programs)
}

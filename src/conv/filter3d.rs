use super::stencil::{Boundary, Stencil, stencil_builders};
use crate::program::prelude::*;

/// Filters a volume:
/// `output[z, y, x] = sum over k, j, i of input[z + k - rz, y + j - ry, x + i - rx] * filter[k, j, i]`, with `t`
/// weights.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// // The sum of each element and its neighbours along z, in a volume of 3 x 1 x 2.
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?, gpu.alloc::<f32>(6)?);
/// let sum = Filter3d::new([3, 1, 2], [3, 1, 1], &[1.0; 3]).boundary(Boundary::Wrap).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// sum.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [9.0, 12.0, 9.0, 12.0, 9.0, 12.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::filter3d`](crate::Gpu::filter3d).
///
/// # Shapes
/// `input` and `output` have the given extents, planes of rows without gaps. The filter has odd extents and may be
/// larger than the input. An empty input gives an empty output. The operands must be different wgpu buffers.
///
/// # The filter as an operand, boundary, precision, cost, errors, algorithm
/// As [`Filter2d`](super::Filter2d), for elements of f32 and f16.
///
/// # Variants
/// Those of [`Filter2d`](super::Filter2d).
#[derive(Debug, Clone, PartialEq)]
pub struct Filter3d {
    stencil: Stencil,
}

impl Filter3d {
    /// Filters a volume of these extents (planes, rows, columns) with a filter of this shape, in the same order.
    pub fn new(extents: [usize; 3], shape: [usize; 3], filter: &[f32]) -> Self {
        Self { stencil: Stencil::new("filter3d", 3, extents, shape, Some(filter.to_vec())) }
    }

    /// Filters a volume with a filter of this shape that is an operand: it may change from call to call, or be
    /// learnt. `plan.with_filter(&filter).record(..)`.
    pub fn with_filter(extents: [usize; 3], shape: [usize; 3]) -> Self {
        Self { stencil: Stencil::new("filter3d", 3, extents, shape, None) }
    }
}

stencil_builders!(Filter3d, super::stencil::VARIANTS);

operands! {
    impl[T: Element,] Filter3d, T {
        fn record(input: T, output: T);
        /// Adds the filter that [`Filter3d::with_filter`] asks for.
        optional with_filter(filter: f32);
    }
}

lowers! {
    impl[T: Element] Filter3d as [T], |op, dtype, profile| op.stencil.lower(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "filter3d",
    aliases: &["conv3d"],
    about: "each element becomes a weighted sum of its neighbours in a volume",
    inputs: &[Input::new("input", "(d, h, w)"), Input::new("filter", "f32 (fd, fh, fw), odd extents")],
    outputs: &[("output", "as input")],
    types: &[DType::F32, DType::F16],
    options: super::stencil::OPTIONS,
    domains: &[("filter", Domain::Eighths)],
    make: Some(make),
    variants: Filter3d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts: super::stencil::facts,
    example: Example { shape: &[8, 8, 8], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (dtype, operands, stencil) = super::stencil::asked::<3>(asked)?;
    let op = Filter3d { stencil };
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for boundary in Boundary::ALL {
        for (w, f) in [(24, [3, 3, 3]), (23, [1, 3, 5])] {
            let weights = vec![1.0; f.iter().product()];
            let desc = Filter3d::new([9, 10, w], f, &weights).boundary(boundary).variant(variant);
            programs.push(Op::<f32>::lower(&desc, profile)?);
            programs.push(Op::<f16>::lower(&desc, profile)?);
            if variant != "separable" {
                let desc = Filter3d::with_filter([9, 10, w], f).boundary(boundary).variant(variant);
                programs.push(Op::<f32>::lower(&desc, profile)?);
                programs.push(Op::<f16>::lower(&desc, profile)?);
            }
        }
        if variant == "separable" {
            // One dispatch for each axis.
            for w in [40, 41] {
                let desc = Filter3d::new([40, 40, w], [17; 3], &vec![1.0; 17 * 17 * 17]).boundary(boundary);
                programs.push(Op::<f32>::lower(&desc.variant(variant), profile)?);
            }
        }
    }
    Ok(programs)
}

use super::stencil::{Boundary, Stencil, stencil_builders};
use crate::program::prelude::*;

/// Filters a signal: `output[i] = sum over j of input[i + j - r] * filter[j]`, with `t = 2 r + 1` weights.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (x, y) = (gpu.upload(&[0.0f32, 4.0, 8.0, 4.0])?, gpu.alloc::<f32>(4)?);
/// let smooth = Filter1d::new(4, &[0.25, 0.5, 0.25]).boundary(Boundary::Clamp).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// smooth.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1.0, 4.0, 6.0, 5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// In one call: [`Gpu::filter1d`](crate::Gpu::filter1d).
///
/// # Shapes
/// `input` and `output` have `n` elements. The filter has an odd extent and may be longer than the input. An empty
/// input gives an empty output. The operands must be different wgpu buffers.
///
/// # The filter as an operand, boundary, precision, cost, errors, algorithm
/// As [`Filter2d`](super::Filter2d), for elements of f32 and f16.
///
/// # Variants
/// Those of [`Filter2d`](super::Filter2d) but `separable`, since a line has nothing to separate.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter1d {
    stencil: Stencil,
}

impl Filter1d {
    /// Filters `n` elements with a filter of odd length.
    pub fn new(n: usize, filter: &[f32]) -> Self {
        Self { stencil: Stencil::new("filter1d", 1, [1, 1, n], [1, 1, filter.len()], Some(filter.to_vec())) }
    }

    /// Filters `n` elements with a filter of odd length `t` that is an operand: it may change from call to call, or
    /// be learnt. `plan.with_filter(&filter).record(..)`.
    pub fn with_filter(n: usize, t: usize) -> Self {
        Self { stencil: Stencil::new("filter1d", 1, [1, 1, n], [1, 1, t], None) }
    }
}

stencil_builders!(Filter1d, super::stencil::VARIANTS_OF_LINES);

operands! {
    impl[T: Element,] Filter1d, T {
        fn record(input: T, output: T);
        /// Adds the filter that [`Filter1d::with_filter`] asks for.
        optional with_filter(filter: f32);
    }
}

lowers! {
    impl[T: Element] Filter1d as [T], |op, dtype, profile| op.stencil.lower(dtype, profile)
}

pub(super) const INFO: Operation = Operation {
    name: "filter1d",
    aliases: &["conv1d"],
    about: "each element becomes a weighted sum of its neighbours along a line",
    inputs: &[Input::new("input", "(n)"), Input::new("filter", "f32 (f), odd")],
    outputs: &[("output", "as input")],
    types: &[DType::F32, DType::F16],
    options: super::stencil::OPTIONS,
    domains: &[("filter", Domain::Eighths)],
    make: Some(make),
    variants: Filter1d::variants,
    samples,
    comparison: Some(Comparison::Sums),
    facts: super::stencil::facts,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (dtype, operands, stencil) = super::stencil::asked::<1>(asked)?;
    let op = Filter1d { stencil };
    by_type!(asked, dtype, [f32, f16], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for boundary in Boundary::ALL {
        let forms: &[(usize, usize)] = match variant {
            "register" | "strategy2" => &[(1000, 5), (1001, 9)],
            "strategy1" => &[(1000, 5), (1001, 99), (9999, 2001)],
            _ => &[(1000, 5), (1001, 99), (9999, 2001), (20_000, 9001)],
        };
        for &(n, f) in forms {
            let desc = Filter1d::new(n, &vec![1.0; f]).boundary(boundary).variant(variant);
            programs.push(Op::<f32>::lower(&desc, profile)?);
            programs.push(Op::<f16>::lower(&desc, profile)?);
        }
        let operand = |n, t| Filter1d::with_filter(n, t).boundary(boundary).variant(variant);
        for op in [operand(1000, 5), operand(1001, 9), operand(7, 17)] {
            programs.push(Op::<f32>::lower(&op, profile)?);
            programs.push(Op::<f16>::lower(&op, profile)?);
        }
        if matches!(variant, "naive" | "strategy3") {
            let desc = Filter1d::new(40_000, &vec![1.0; 20_001]).boundary(boundary).variant(variant);
            programs.push(Op::<f32>::lower(&desc, profile)?);
        }
    }
    Ok(programs)
}

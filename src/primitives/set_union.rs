//! The elements of two sorted arrays.

use super::compact::VARIANTS;
use super::merge::MergeJob;
use super::sets::{self, SETS};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::program::{
    Access, Asked, Binding, Cost, DeviceProfile, Op, OpCall, Operand, Operation, Program, by_type,
    element_fragment, lowered_as, operands,
};
use crate::shader::{Fragment, Spec};
use half::f16;

/// Unites two sorted arrays, as `std::set_union`: an element that is `j` times in `a` and `k` times in `b` comes
/// `max(j, k)` times, first those of `a`, then the last `max(k - j, 0)` of `b`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1u32, 4, 4, 9])?, gpu.upload(&[1u32, 4, 5])?);
/// let (output, count) = (gpu.alloc::<u32>(7)?, gpu.alloc::<u32>(1)?);
/// let plan = SetUnion::new(4, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &output, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(output.slice(..n)?.read()?, [1, 4, 4, 5, 9]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` has `n` elements, `b` has `m`, `output` has `n + m`, and `count` has one `u32`; each may be 0. Elements of
/// `output` behind the union are not written. Inputs may share a wgpu buffer with each other, and not with outputs.
///
/// # Types and order
/// f32, f16, i32, u32, both arrays ascending, as [`RadixSort`](crate::RadixSort) leaves them. Floats are compared by
/// value: -0 equals +0; NaN equals NaN and is above all numbers. If an input is not sorted, `count` has all of `a` and
/// those of `b` that [`SetDifference`](crate::SetDifference) keeps; which elements the output has is unspecified.
///
/// # Precision and determinism
/// Bits are moved unchanged. Every variant gives the same result in every run.
///
/// # Cost
/// The set difference of `b` and `a`, and a [`Merge`](crate::Merge) of `a` with it. Scratch: `m` elements, and that of
/// both.
///
/// # Variants
/// As [`Select`](crate::Select).
///
/// # Errors
/// As [`SetIntersection`](crate::SetIntersection).
///
/// # Algorithm
/// As [`SetDifference`](crate::SetDifference) and [`Merge`](crate::Merge): `shaders/primitives/set_union.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUnion {
    n: usize,
    m: usize,
    variant: String,
}

impl SetUnion {
    /// Unites sorted arrays of `n` and `m` elements.
    pub fn new(n: usize, m: usize) -> Self {
        Self { n, m, variant: "auto".into() }
    }

    crate::program::variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, m, .. } = *self;
        let difference = sets::lower(INFO.name, true, [m, n], &self.variant, dtype, profile)?;
        let mut program = Program::new(INFO.name, difference.decision.clone());
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![
            operand("a", dtype, n, Access::Read),
            operand("b", dtype, m, Access::Read),
            operand("output", dtype, n.saturating_add(m), Access::Write),
            operand("count", DType::U32, 1, Access::Write),
        ];
        profile.check_bindings(INFO.name, &program.operands, "unite parts in separate calls")?;
        program.cost = Cost { flop: (n + m) as f64, bytes: 4.0 * (n + m) as f64 };
        let [a, b, output, count] = [0, 1, 2, 3].map(|i| Binding::operand(i, &program.operands));
        let (kept, of_b) = (program.scratch(4 * m.max(1) as u64), program.scratch(4));
        program.append(difference, &[b, a, kept, of_b].map(|binding| binding.resource));
        let spec = Spec::new().slot("order", Fragment::Library("primitives/set_union"));
        let spec = spec
            .slot("element", element_fragment(dtype))
            .flag("FLOAT", dtype.is_float())
            .flag("HALVES", dtype == DType::F16)
            .flag("SIGNED", dtype == DType::I32);
        let (inputs, outputs) = ([a, kept], vec![output]);
        let job = MergeJob { inputs, lens: [n, m], counts: vec![of_b, count], begins: None, outputs };
        job.add(&mut program, spec, profile)?;
        Ok(program)
    }
}

operands! {
    impl[T: Element,] SetUnion, T {
        fn record(a: T, b: T, output: T, count: u32);
    }
}

lowered_as!(SetUnion: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "set-union",
    about: "the sorted elements of a, and those of b that a lacks, counted with repeats",
    make: Some(make),
    samples,
    ..SETS
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let ([n, m], dtype, operands) = sets::asked(asked)?;
    let op = SetUnion::new(n, m).variant(asked.variant());
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = SetUnion::new(10_000, 3000).variant(variant);
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<i32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<u32>::lower(&op, profile)?,
    ])
}

//! What the operations on sorted multisets have in common: elements are kept by whether they have a partner.

use super::DTYPES;
use super::compact::{Compaction, Keep, VARIANTS};
use crate::element::DType;
use crate::error::Result;
use crate::program::{Asked, DeviceProfile, Domain, Example, Input, Operation, Program, Role};

/// What these ops have in common.
pub(super) const SETS: Operation = Operation {
    inputs: &[Input::new("a", "(n)"), Input::new("b", "(m)")],
    outputs: &[("output", "(count)")],
    types: &DTYPES,
    domains: &[("a", Domain::Increasing), ("b", Domain::Increasing)],
    variants: || VARIANTS,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

/// Keeps the elements of `a` that have a partner in `b`, or none (`alone`).
pub(super) fn lower(
    op: &'static str,
    alone: bool,
    [n, others]: [usize; 2],
    variant: &str,
    dtype: DType,
    profile: &DeviceProfile,
) -> Result<Program> {
    let compaction = Compaction {
        op,
        scatter: "primitives/select",
        keep: &Keep::Partner { others, alone },
        variant,
        variants: VARIANTS,
        leave_out: 0,
        n,
        counted: false,
        dtype,
        outputs: &[("output", dtype)],
    };
    let mut c = compaction.lower(profile)?;
    (c.program.operands[0].name, c.program.operands[1].name) = ("a", "b");
    let output = c.operand("output");
    c.scatter(output);
    Ok(c.program)
}

/// The inputs of a request, their lengths, and the operands.
pub(super) fn asked(asked: &mut Asked<'_>) -> Result<([usize; 2], DType, Vec<Role>)> {
    let (a, [n]) = asked.array("a")?;
    asked.check_type(&a)?;
    let dtype = a.dtype();
    let (b, [m]) = asked.free_of("b", [n], dtype)?;
    Ok(([n, m], dtype, vec![Role::Given(a), Role::Given(b), Role::Counted, Role::Count]))
}

/// Implements an op that keeps elements of `a`: those with a partner in `b`, or those without.
macro_rules! kept_of_a {
    ($op:ident, $name:literal, $about:literal, alone: $alone:literal) => {
        impl $op {
            /// Takes sorted arrays of `n` and `m` elements.
            pub fn new(n: usize, m: usize) -> Self {
                Self { n, m, variant: "auto".into() }
            }

            $crate::program::variants!(choose variant);
            $crate::program::variants!(list $crate::primitives::compact::VARIANTS);

            fn lower_as(
                &self,
                dtype: $crate::element::DType,
                profile: &$crate::program::DeviceProfile,
            ) -> $crate::error::Result<$crate::program::Program> {
                let lens = [self.n, self.m];
                $crate::primitives::sets::lower($name, $alone, lens, &self.variant, dtype, profile)
            }
        }

        $crate::program::operands! {
            impl[T: $crate::Element,] $op, T {
                fn record(a: T, b: T, output: T, count: u32);
            }
        }

        $crate::program::lowered_as!($op: f32, half::f16, i32, u32);

        pub(super) const INFO: $crate::program::Operation = $crate::program::Operation {
            name: $name,
            about: $about,
            make: Some(make),
            samples,
            ..$crate::primitives::sets::SETS
        };

        fn make(asked: &mut $crate::program::Asked<'_>) -> $crate::error::Result<$crate::program::OpCall> {
            let ([n, m], dtype, operands) = $crate::primitives::sets::asked(asked)?;
            let op = $op::new(n, m).variant(asked.variant());
            $crate::program::by_type!(asked, dtype, [f32, half::f16, i32, u32], T => {
                Ok($crate::program::OpCall::new::<T>(op, operands))
            })
        }

        fn samples(
            profile: &$crate::program::DeviceProfile,
            variant: &'static str,
        ) -> $crate::error::Result<Vec<$crate::program::Program>> {
            let op = $op::new(10_000, 3000).variant(variant);
            $crate::primitives::DTYPES.iter().map(|dtype| op.lower_as(*dtype, profile)).collect()
        }
    };
}
pub(super) use kept_of_a;

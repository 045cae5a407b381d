//! Reductions of one vector that BLAS names: the two-stage reduction with an operator of the op's own.

use super::operator::Operator;
use super::reduce::reduced;
use crate::program::prelude::*;

pub(super) const VARIANTS: &[Variant] =
    &[Variant::portable("coarsened", "a bounded number of workgroups walks the vector by vec4; two passes")];

/// What these ops have in common.
pub(super) const VECTOR: Operation = Operation {
    inputs: &[Input::new("x", "(n)")],
    outputs: &[("result", "()")],
    types: &[DType::F32, DType::F16],
    options: &[LENGTH, INCX],
    variants: || VARIANTS,
    example: Example { shape: &[1000], options: &[] },
    ..Operation::UNDECLARED
};

pub(super) fn lower(
    name: &'static str, operator: &Operator, (n, counted): (usize, bool), variant: &str, dtype: DType,
    profile: &DeviceProfile,
) -> Result<Program> {
    let decision = Program::of_only_variant(name, variant, VARIANTS, profile)?.decision;
    if n == 0 && !operator.has_identity() {
        return Err(err!(Shape, "{name}: the {} of 0 elements is not defined; pass one at least", operator.name()));
    }
    let mut program = reduced(operator, (n, counted), dtype, profile).map_err(|e| e.context(name))?;
    (program.op, program.decision) = (name, decision);
    let last = program.operands.len() - 1;
    (program.operands[0].name, program.operands[last].name) = ("x", "result");
    Ok(program)
}

/// Implements such an op for its element types, each with the type of the result.
macro_rules! vector_reduction {
    ($op:ident, $name:literal, $about:literal, $operator:ident, $($t:ty => $out:ty),+) => {
        impl $op {
            /// Takes a vector of `n` elements.
            pub fn new(n: usize) -> Self {
                let increments = $crate::program::Increments::default();
                Self { n, counted: false, increments, variant: "auto".into() }
            }

            $crate::program::counted!(
                counted,
                "elements",
                "Elements behind it are ignored. A position of no element is any number."
            );
            $crate::program::increments!(incx x);
            $crate::program::variants!(choose variant);
            $crate::program::variants!(list $crate::primitives::vectors::VARIANTS);

            fn lower_as(
                &self,
                dtype: $crate::element::DType,
                profile: &$crate::program::DeviceProfile,
            ) -> $crate::error::Result<$crate::program::Program> {
                let operator = $crate::primitives::Operator::$operator;
                let unit = || {
                    let (n, variant) = ((self.n, self.counted), &self.variant);
                    $crate::primitives::vectors::lower($name, &operator, n, variant, dtype, profile)
                };
                self.increments.lower($name, 1, profile, unit)
            }
        }

        $($crate::program::operands! {
            impl[] $op, $t {
                fn record(x: $t, result: $out);
                /// Takes the number of elements from the device.
                optional with_length(length: u32);
            }
        })+

        $crate::program::lowered_as!($op: $($t),+);

        pub(super) const INFO: $crate::program::Operation = $crate::program::Operation {
            name: $name,
            about: $about,
            make: Some(make),
            samples,
            ..$crate::primitives::vectors::VECTOR
        };

        fn make(asked: &mut $crate::program::Asked<'_>) -> $crate::error::Result<$crate::program::OpCall> {
            use $crate::program::{Role, When};
            let (x, [n]) = asked.array("x")?;
            let length = asked.length(1, vec![n])?.0;
            let op = $op::new(n).when(length.is_some(), $op::counted).variant(asked.variant());
            let (dtype, result) = (x.dtype(), Role::Result(Vec::new()));
            let operands = [Role::Given(x)].into_iter().chain(length).chain([result]).collect();
            $crate::program::by_type!(asked, dtype, [$($t),+], T => Ok($crate::program::OpCall::new::<T>(op, operands)))
        }

        fn samples(
            profile: &$crate::program::DeviceProfile,
            variant: &'static str,
        ) -> $crate::error::Result<Vec<$crate::program::Program>> {
            let mut programs = Vec::new();
            for n in [1 << 20, 3] {
                let op = $op::new(n).variant(variant);
                $(programs.push($crate::program::Op::<$t>::lower(&op, profile)?);)+
                programs.push(op.counted().lower_as($crate::element::DType::F32, profile)?);
            }
            Ok(programs)
        }
    };
}
pub(super) use vector_reduction;

//! What the operations on sorted multisets have in common: elements are kept by whether they have a partner.

use super::DTYPES;
use super::compact::{Compaction, Keep, VARIANTS};
use super::merge::{LENGTHS, asked_lengths};
use super::select_columns::{MovedColumn, PositionsOf, check_column};
use crate::program::prelude::*;

/// Sizes and options of an operation on sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetForm {
    pub(super) n: usize,
    pub(super) m: usize,
    /// The device counts the elements of both arrays.
    pub(super) counted: bool,
    /// Type and width of the rows that move with the elements.
    pub(super) values: Option<(DType, usize)>,
    pub(super) variant: String,
}

impl SetForm {
    pub(super) fn new(n: usize, m: usize) -> Self {
        Self { n, m, counted: false, values: None, variant: "auto".into() }
    }
}

/// What these ops have in common.
pub(super) const SETS: Operation = Operation {
    inputs: &[Input::new("a", "(n)"), Input::new("b", "(m)"), Input::optional("values", "(n), any type")],
    outputs: &[("output", "(count)"), ("[values]", "(count)")],
    types: &DTYPES,
    options: &LENGTHS,
    domains: &[("a", Domain::Increasing), ("b", Domain::Increasing), ("values", Domain::Bits)],
    variants: || VARIANTS,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

/// Keeps the elements of `a` that have a partner in `b`, or none (`alone`).
pub(super) fn lower(
    op: &'static str,
    alone: bool,
    form: &SetForm,
    dtype: DType,
    profile: &DeviceProfile,
) -> Result<Program> {
    let SetForm { n, m, counted, values, .. } = *form;
    let mut outputs = vec![("output", dtype)];
    if let Some((of, _)) = values {
        check_column(op, of)?;
        outputs = vec![("values", of), ("output", dtype), ("values_out", of)];
    }
    let compaction = Compaction {
        op,
        scatter: "primitives/select",
        keep: &Keep::Partner { others: m, alone },
        variant: &form.variant,
        variants: VARIANTS,
        leave_out: 0,
        n,
        counted,
        dtype,
        outputs: &outputs,
    };
    let mut c = compaction.lower(profile)?;
    (c.program.operands[0].name, c.program.operands[1].name) = ("a", "b");
    let Some((of, width)) = values else {
        let output = c.operand("output");
        c.scatter(output);
        return Ok(c.program);
    };
    let len = elements(op, "values", &[n, width])?;
    for operand in &mut c.program.operands {
        match operand.name {
            "values" => (operand.len, operand.access) = (len, Access::Read),
            "values_out" => operand.len = len,
            _ => {}
        }
    }
    profile.check_bindings(op, &c.program.operands, "split the arrays into chunks, a call each")?;
    let places = places(&mut c.program, n, profile)?;
    c.spec = c.spec.flag("PLACES", true);
    let outputs = c.operand("output").into_iter().chain([places]);
    c.scatter(outputs);
    if let (Some(column), Some(output)) = (c.operand("values"), c.operand("values_out")) {
        let (columns, length) = ((column, n, None), Some(c.total));
        c.program.cost.bytes += column.size as f64;
        let moved = MovedColumn {
            dtype: of,
            width,
            columns,
            rows: n,
            positions: places,
            output,
            length,
            positions_of: PositionsOf::Column,
        };
        move_values(&mut c.program, moved)?;
    }
    Ok(c.program)
}

/// Scratch for the places of the kept elements, of at most `n`.
pub(super) fn places(program: &mut Program, n: usize, profile: &DeviceProfile) -> Result<Binding> {
    let places = program.scratch(4 * n.max(1) as u64);
    profile.check_scratch(
        program.op,
        format_args!("places of {n} elements"),
        places.size,
        "split the arrays into chunks, a call each",
    )?;
    Ok(places)
}

/// Moves values to the places that earlier dispatches found, as many as they counted.
pub(super) fn move_values(program: &mut Program, moved: MovedColumn) -> Result<()> {
    let length = moved.length;
    if let (Some(moved), Some(length)) = (moved.add(program)?, length) {
        launch_for(program, length, &[moved]);
    }
    Ok(())
}

/// The arrays of a request, their lengths, and the operands so far.
pub(super) fn asked(asked: &mut Asked<'_>) -> Result<(SetForm, DType, Vec<Role>)> {
    let (a, [n]) = asked.array("a")?;
    asked.check_type(&a)?;
    let dtype = a.dtype();
    let (b, [m]) = asked.free_of("b", [n], dtype)?;
    let mut form = SetForm { variant: asked.variant().into(), ..SetForm::new(n, m) };
    let mut operands = vec![Role::Given(a), Role::Given(b)];
    if let Some(lengths) = asked_lengths(asked, [n, m])? {
        form.counted = true;
        operands.extend(lengths);
    }
    Ok((form, dtype, operands))
}

/// Adds the outputs of a request.
pub(super) fn with_outputs(form: &SetForm, mut operands: Vec<Role>) -> Vec<Role> {
    operands.push(Role::Counted);
    operands.extend(form.values.map(|_| Role::Counted));
    operands.push(Role::Count);
    operands
}

/// Implements the option by which the device counts the elements.
macro_rules! set_lengths {
    () => {
        /// Reads the numbers of elements, at most `n` and `m`, from the device: operands `a_length` and `b_length` of
        /// one u32 each, which plans take by `with_lengths`. Larger numbers count as `n` and `m`.
        #[must_use]
        pub fn counted(mut self) -> Self {
            self.form.counted = true;
            self
        }
    };
}
pub(super) use set_lengths;

/// Implements an op that keeps elements of `a`: those with a partner in `b`, or those without.
macro_rules! kept_of_a {
    ($op:ident, $name:literal, $about:literal, alone: $alone:literal) => {
        impl $op {
            /// Takes sorted arrays of `n` and `m` elements.
            pub fn new(n: usize, m: usize) -> Self {
                Self { form: $crate::primitives::sets::SetForm::new(n, m) }
            }

            $crate::primitives::sets::set_lengths!();

            /// Moves a row of `width` elements of `dtype` with each element of `a`: operands `values`, of `n` rows, and
            /// `values_out`, which plans take by `with_values`.
            #[must_use]
            pub fn with_values(mut self, dtype: $crate::element::DType, width: usize) -> Self {
                self.form.values = Some((dtype, width));
                self
            }

            $crate::program::variants!(choose form.variant);
            $crate::program::variants!(list $crate::primitives::compact::VARIANTS);

            fn lower_as(
                &self,
                dtype: $crate::element::DType,
                profile: &$crate::program::DeviceProfile,
            ) -> $crate::error::Result<$crate::program::Program> {
                $crate::primitives::sets::lower($name, $alone, &self.form, dtype, profile)
            }
        }

        $crate::program::operands! {
            impl[T: $crate::Element,] $op, T {
                fn record(a: T, b: T, output: T, count: u32);
                /// Takes the numbers of elements from the device.
                optional with_lengths(a_length: u32, b_length: u32);
                /// Takes rows that move with the elements.
                optional with_values<V>(values: V, values_out: V);
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
            use $crate::primitives::sets;
            let (mut form, dtype, mut operands) = sets::asked(asked)?;
            if asked.has_more() {
                let values = asked.of_own_type("values", &[form.n])?;
                form.values = Some((values.dtype(), 1));
                operands.push($crate::program::Role::Given(values));
            }
            let operands = sets::with_outputs(&form, operands);
            $crate::program::by_type!(asked, dtype, [f32, half::f16, i32, u32], T => {
                Ok($crate::program::OpCall::new::<T>($op { form }, operands))
            })
        }

        fn samples(
            profile: &$crate::program::DeviceProfile,
            variant: &'static str,
        ) -> $crate::error::Result<Vec<$crate::program::Program>> {
            use $crate::element::DType;
            let op = $op::new(10_000, 3000).variant(variant);
            let counted = op.clone().counted();
            let moved = counted.clone().with_values(DType::F16, 3);
            let mut all = vec![
                counted.lower_as(DType::F32, profile)?,
                moved.lower_as(DType::F16, profile)?,
                op.clone().with_values(DType::U32, 1).lower_as(DType::U32, profile)?,
            ];
            for dtype in $crate::primitives::DTYPES {
                all.push(op.lower_as(dtype, profile)?);
            }
            Ok(all)
        }
    };
}
pub(super) use kept_of_a;

//! What the operations on sorted multisets have in common: elements are kept by whether they have a partner.

use super::DTYPES;
use super::compact::{self, Compaction, Keep};
use super::lookback::clear_words;
use super::merge::{LENGTHS, asked_lengths, find_tiles};
use super::select_columns::{MovedColumn, PositionsOf, check_column};
use super::set_union::{SetUnionParams, walk_specs};
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

const MERGE_PATH: Variant =
    Variant::portable("merge-path", "a walk of the merge marks what is kept, and a second pass moves it");

/// Those of selections, which search for the partner of each element, and a walk of both arrays.
const VARIANTS: &[Variant] = &[compact::VARIANTS[0], compact::VARIANTS[1], compact::VARIANTS[2], MERGE_PATH];

/// Elements of b for one of a up to which a GPU walks both arrays; by count, not measured.
const WALKED: usize = 4;

/// Threads of a workgroup that marks, and elements of a thread. Intersection of 2^26 and 2^26 u32 on an H100 (Vulkan,
/// driver 580.159.04): 256 x 9 in 543 us, 256 x 15 565; searches for partners take 663 us.
fn mark_tile(profile: &DeviceProfile) -> [u32; 2] {
    if profile.quirks.serial_workgroups { [64, 7] } else { [256, 9] }
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
    op: &'static str, alone: bool, form: &SetForm, dtype: DType, profile: &DeviceProfile,
) -> Result<Program> {
    let SetForm { n, m, counted, values, .. } = *form;
    let mut outputs = vec![("output", dtype)];
    if let Some((of, _)) = values {
        check_column(op, of)?;
        outputs = vec![("values", of), ("output", dtype), ("values_out", of)];
    }
    let (variant, decision) = choose(op, &form.variant, VARIANTS, profile, || {
        let is_near = m / WALKED <= n && n.saturating_add(m) <= u32::MAX as usize;
        if is_near && !profile.quirks.serial_workgroups && !profile.quirks.waiting_starves {
            ("merge-path", "reads both arrays once, without searches in memory".into())
        } else {
            compact::policy(n, true, profile)
        }
    })?;
    let walks = variant.name == "merge-path";
    let compaction = Compaction {
        op,
        scatter: "primitives/select",
        keep: &if walks { Keep::Marked { others: m, alone } } else { Keep::Partner { others: m, alone } },
        variant: if walks { "lookback" } else { variant.name },
        variants: compact::VARIANTS,
        leave_out: 0,
        n,
        counted,
        dtype,
        outputs: &outputs,
    };
    let mut c = compaction.lower(profile)?;
    c.program.decision = decision;
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

/// Marks elements of the first operand, of `n`, that have a partner in the second, of `m`, or none (`alone`): a bit for
/// each. `counted`, the next operands are the lengths of both.
pub(super) fn mark(
    program: &mut Program, [n, m]: [usize; 2], dtype: DType, (alone, counted): (bool, bool), profile: &DeviceProfile,
) -> Result<Binding> {
    let len = u64::from(index_u32(program.op, "n + m", n.saturating_add(m))?);
    let bound: Vec<_> = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
    let (a, b) = (bound[0], bound[1]);
    let [threads, items] = mark_tile(profile);
    let tiles = len.div_ceil(u64::from(threads * items));
    let (spec, order) = walk_specs(dtype);
    // Of equal elements those of b come first, so that each of a knows whether it has a partner.
    let (firsts, seconds, all_tiles) = (m as u32, n as u32, tiles as u32);
    let lens = ([firsts, seconds], counted.then(|| [bound[3], bound[2]]));
    let begins = find_tiles(program, order, [b, a], lens, [threads, items]);
    let words = n.div_ceil(32) as u64;
    let marks = program.scratch(4 * words);
    clear_words(program, marks, words);
    let spec = spec.flag("MARKS", true).flag("ALONE", alone).flag("LIMITED", counted);
    let spec = spec.constant("WORKGROUP_SIZE", threads).constant("ITEMS", items);
    let kernel = program.kernel(Kernel::library("primitives/set_union", "set_union_marks", spec));
    let params = SetUnionParams { firsts, seconds, tiles: all_tiles, first_tile: 0, all_tiles, piece: 0 };
    program.dispatch(kernel, &params, vec![b, a, begins, marks], Grid::fold(tiles));
    Ok(marks)
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

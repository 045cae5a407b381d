//! Stable selection from several arrays by the same flags.

use super::Select;
use crate::array::HostData;
use crate::element::DType;
use crate::error::{Result, err};
use crate::primitives::Predicate;
use crate::program::{
    Access, Asked, Binding, Cost, Covered, DeviceProfile, Domain, Example, Grid, Input, Kernel, OpCall,
    Operand, Operation, Program, Resource, Role, Variant, kernel_params, launch_for, limited, operands,
};
use crate::shader::Spec;
use crate::shape::{elements, index_u32};

/// Copies the rows with a nonzero flag of up to four arrays to the front of as many outputs, in order: `a_out[k] =
/// a[i]`, where `i` is the position of the `k`-th flag that is not 0, and so for `b`, `c` and `d`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::DType;
///
/// let gpu = Gpu::new()?;
/// let flags = gpu.upload(&[1u32, 0, 1])?;
/// let (id, point) = (gpu.upload(&[7u8, 8, 9])?, gpu.upload(&[0.5f32, 1.0, 2.0, 3.0, 4.0, 5.0])?);
/// let (ids, points, count) = (gpu.alloc::<u8>(3)?, gpu.alloc::<f32>(6)?, gpu.alloc::<u32>(1)?);
/// let plan = SelectColumns::new(3).column(DType::U8, 1).column(DType::F32, 2).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.with_a(&id, &ids).with_b(&point, &points).record(&mut rec, &flags, &count)?;
/// rec.submit()?;
/// assert_eq!(count.read()?, [2]);
/// assert_eq!(ids.slice(..2)?.read()?, [7, 9]);
/// assert_eq!(points.slice(..4)?.read()?, [0.5, 1.0, 4.0, 5.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `flags` (u32) has `n` elements, `count` one. Each [`column`](Self::column) has `n` rows of a width of its own and a
/// type of its own; plans take it with its output by `with_a` to `with_d`. An output has as many elements as its
/// column; those behind the kept rows may hold anything. Outputs and `count` must not share a buffer with the others.
/// `n` may be
/// 0.
///
/// # Precision and determinism
/// Elements move as bits. Every variant gives the same result in every run.
///
/// # Cost
/// That of [`Select::positions`](crate::Select::positions), and a dispatch that moves the kept rows of each column,
/// launched for the count. Scratch: 4 bytes a row, and that of the selection.
///
/// # Variants
/// Those of [`Select`](crate::Select), chosen as there.
///
/// # Errors
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): no columns or more than four, an unknown variant.
/// - [`Unsupported`](crate::ErrorKind::Unsupported): a column of 64-bit elements, a variant that the device cannot run.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): flags or a column above the largest binding.
///
/// # Algorithm
/// As [`Select`](crate::Select), then `shaders/primitives/select_columns.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectColumns {
    n: usize,
    columns: Vec<(DType, usize)>,
    variant: String,
}

const VARIANTS: &[Variant] = super::compact::VARIANTS;
const NAMES: [[&str; 2]; 4] = [["a", "a_out"], ["b", "b_out"], ["c", "c_out"], ["d", "d_out"]];

kernel_params! { struct SelectColumnsParams { rows: u32, width: u32 } }

impl SelectColumns {
    /// Selects from `n` rows.
    pub fn new(n: usize) -> Self {
        Self { n, columns: Vec::new(), variant: "auto".into() }
    }

    /// Adds a column of rows of `width` elements: `a`, then `b`, `c` and `d`.
    #[must_use]
    pub fn column(mut self, dtype: DType, width: usize) -> Self {
        self.columns.push((dtype, width));
        self
    }

    crate::program::variants!(variant);

    fn lower_columns(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, columns, .. } = self;
        if !(1..=NAMES.len()).contains(&columns.len()) {
            return Err(err!(
                InvalidArgument,
                "select-columns: {} columns; there must be 1 to 4",
                columns.len()
            ));
        }
        if let Some((dtype, _)) = columns.iter().find(|(dtype, _)| !HostData::TYPES.contains(dtype)) {
            return Err(err!(
                Unsupported,
                "select-columns: a column of {dtype}; use f32, f16, i32, u32, u8, i8, or rows of two u32"
            ));
        }
        let select = Select::positions(*n, Predicate::NonZero).variant(&self.variant);
        let select = select.lower_as(DType::U32, profile).map_err(|e| e.context(INFO.name))?;
        let mut program = Program::new(INFO.name, select.decision.clone());
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("flags", DType::U32, *n, Access::Read));
        for ([name, _], (dtype, width)) in NAMES.iter().zip(columns) {
            program.operands.push(operand(
                name,
                *dtype,
                elements(INFO.name, name, &[*n, *width])?,
                Access::Read,
            ));
        }
        for ([_, name], (dtype, width)) in NAMES.iter().zip(columns) {
            program.operands.push(operand(
                name,
                *dtype,
                elements(INFO.name, name, &[*n, *width])?,
                Access::Write,
            ));
        }
        let count = Resource::Operand(program.operands.len());
        program.operands.push(operand("count", DType::U32, 1, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "select from chunks in separate calls")?;
        program.cost = Cost::of(*n as f64, &program.operands);
        let positions = program.scratch(4 * (*n).max(1) as u64);
        program.append(select, &[Resource::Operand(0), positions.resource, count]);
        let length = Binding::operand(program.operands.len() - 1, &program.operands);
        let mut covered = Vec::new();
        for (k, &(dtype, width)) in columns.iter().enumerate() {
            let [from, to] = [1 + k, 1 + columns.len() + k].map(|i| Binding::operand(i, &program.operands));
            if from.size == 0 {
                continue;
            }
            let pack = (4 / dtype.size()) as u32;
            let spec = limited(Spec::new().constant("PACK", pack).flag("PACKED", pack > 1), true, 4);
            let kernel = program.kernel(Kernel::of_file("primitives/select_columns", spec));
            let all = index_u32(INFO.name, "elements of a column", *n * width)?;
            let params = SelectColumnsParams { rows: *n as u32, width: width as u32 };
            let of = Covered { before: 0, held: *n as u32, width: width as u32, skip: 0, each: 256 * pack };
            covered.push((program.dispatches.len(), of));
            let grid = Grid::fold(u64::from(all).div_ceil(256 * u64::from(pack)));
            program.dispatch(kernel, &params, vec![from, positions, to, length], grid);
        }
        launch_for(&mut program, length, &covered);
        Ok(program)
    }
}

impl crate::program::Op<u32> for SelectColumns {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.lower_columns(profile)
    }
}

operands! {
    impl[] SelectColumns, u32 {
        fn record(flags: u32, count: u32);
        /// Takes the first column and its output.
        optional with_a<S>(a: S, a_out: S);
        /// Takes the second column and its output.
        optional with_b<S>(b: S, b_out: S);
        /// Takes the third column and its output.
        optional with_c<S>(c: S, c_out: S);
        /// Takes the fourth column and its output.
        optional with_d<S>(d: S, d_out: S);
    }
}

pub(super) const INFO: Operation = Operation {
    name: "select-columns",
    about: "the rows of several arrays whose flag is not 0, in order",
    inputs: &[
        Input::new("flags", "u32 (n)"),
        Input::new("a", "(n), any type"),
        Input::optional("b", "(n), any type"),
        Input::optional("c", "(n), any type"),
        Input::optional("d", "(n), any type"),
    ],
    outputs: &[("a", "(count)"), ("[b]", "(count)"), ("[c]", "(count)"), ("[d]", "(count)")],
    types: &[DType::U32],
    domains: &[("a", Domain::Bits), ("b", Domain::Bits), ("c", Domain::Bits), ("d", Domain::Bits)],
    make: Some(make),
    variants: SelectColumns::variants,
    samples,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let flags = asked.any_indices("flags", &[16], 2)?;
    let [n] = asked.dims("flags", &flags)?;
    let mut op = SelectColumns::new(n).variant(asked.variant());
    let mut operands = vec![Role::Given(flags)];
    for [name, _] in NAMES {
        if name == "a" || asked.has_more() {
            let column = asked.of_own_type(name, &[n])?;
            op = op.column(column.dtype(), 1);
            operands.push(Role::Given(column));
        }
    }
    operands.extend(op.columns.iter().map(|_| Role::Counted));
    operands.push(Role::Count);
    Ok(OpCall::new::<u32>(op, operands))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = SelectColumns::new(10_000).variant(variant);
    let two = op.clone().column(DType::F32, 4).column(DType::U8, 3);
    Ok(vec![op.column(DType::F16, 1).lower_columns(profile)?, two.lower_columns(profile)?])
}

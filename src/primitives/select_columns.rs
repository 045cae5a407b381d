use super::Select;
use crate::primitives::Predicate;
use crate::program::prelude::*;

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
/// `n` may be 0. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of rows, at most `n`.
///
/// # Precision and determinism
/// Elements move as bits. Every variant gives the same result in every run.
///
/// # Cost
/// That of [`Select::positions`](crate::Select::positions), and a dispatch that moves the kept rows of each column,
/// launched for the count. Scratch: 4 bytes a row, and that of the selection.
///
/// # Variants
/// Those of [`Select`], chosen as there.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): no columns or more than four, an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): a column of 64-bit elements, a variant that the device cannot run.
/// - [`TooLarge`](ErrorKind::TooLarge): flags or a column above the largest binding.
///
/// # Algorithm
/// As [`Select`], then `shaders/primitives/select_columns.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectColumns {
    n: usize,
    columns: Vec<(DType, usize)>,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = super::compact::VARIANTS;
const NAMES: [[&str; 2]; 4] = [["a", "a_out"], ["b", "b_out"], ["c", "c_out"], ["d", "d_out"]];

kernel_params! { struct SelectColumnsParams { rows: u32, width: u32, firsts: u32, best: u32, apart: u32 } }

/// Rejects columns of a type that cannot be moved.
pub(super) fn check_column(op: &str, dtype: DType) -> Result<()> {
    if HostData::TYPES.contains(&dtype) {
        return Ok(());
    }
    Err(err!(Unsupported, "{op}: a column of {dtype}; use f32, f16, i32, u32, u8, i8, or rows of two u32"))
}

/// The rows of one column, or of two, that move to the places where their positions stand.
pub(super) struct MovedColumn {
    pub(super) dtype: DType,
    pub(super) width: usize,
    /// The column, its rows, and the second column: its positions begin behind these rows.
    pub(super) columns: (Binding, usize, Option<Binding>),
    pub(super) rows: usize,
    pub(super) positions: Binding,
    pub(super) output: Binding,
    /// The number of rows that move; all if `None`.
    pub(super) length: Option<Binding>,
    pub(super) positions_of: PositionsOf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PositionsOf {
    /// Rows of the column.
    Column,
    /// The same; those behind the column stand for rows of zeros.
    Padded,
    /// Each `best` positions: the next `apart` rows.
    Rows { best: usize, apart: usize },
}

impl MovedColumn {
    /// Adds the dispatch. Returns its place in the program and what it covers, if there is one.
    pub(super) fn add(self, program: &mut Program) -> Result<Option<(usize, Covered)>> {
        let Self { dtype, width, columns: (column, firsts, second), rows, .. } = self;
        if self.output.size == 0 {
            return Ok(None);
        }
        let pack = (4 / dtype.size()) as u32;
        let spec = Spec::new().constant("PACK", pack).flag("PACKED", pack > 1).flag("BOTH", second.is_some());
        let (best, apart) = match self.positions_of {
            PositionsOf::Rows { best, apart } => (best as u32, apart as u32),
            _ => (1, 0),
        };
        let spec = spec.flag("OF_ROWS", apart > 0).flag("PADDED", self.positions_of == PositionsOf::Padded);
        let kernel = limited(spec, self.length.is_some(), 4);
        let kernel = program.kernel(Kernel::of_file("primitives/select_columns", kernel));
        let all = index_u32(program.op, "elements of a column", rows.saturating_mul(width))?;
        let firsts = index_u32(program.op, "rows of a column", firsts)?;
        let params = SelectColumnsParams { rows: rows as u32, width: width as u32, firsts, best, apart };
        let of = Covered { before: 0, held: rows as u32, width: width as u32, skip: 0, each: 256 * pack };
        let at = program.dispatches.len();
        let mut bindings = vec![column, self.positions, self.output];
        // The second column is bound behind the length.
        bindings.extend(self.length.into_iter().chain(second));
        program.dispatch(kernel, &params, bindings, Grid::fold(u64::from(all).div_ceil(256 * u64::from(pack))));
        Ok(Some((at, of)))
    }
}

impl SelectColumns {
    /// Selects from `n` rows.
    pub fn new(n: usize) -> Self {
        Self { n, columns: Vec::new(), counted: false, variant: "auto".into() }
    }

    /// Adds a column of rows of `width` elements: `a`, then `b`, `c` and `d`.
    #[must_use]
    pub fn column(mut self, dtype: DType, width: usize) -> Self {
        self.columns.push((dtype, width));
        self
    }

    counted!(counted, "rows", "Rows and flags behind it are ignored.");

    variants!(variant);

    fn lower_columns(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, columns, .. } = self;
        if !(1..=NAMES.len()).contains(&columns.len()) {
            return Err(err!(InvalidArgument, "select-columns: {} columns; there must be 1 to 4", columns.len()));
        }
        columns.iter().try_for_each(|(dtype, _)| check_column(INFO.name, *dtype))?;
        let select = Select::positions(*n, Predicate::NonZero).when(self.counted, Select::counted);
        let select = select.variant(&self.variant);
        let select = select.lower_as(DType::U32, profile).map_err(|e| e.context(INFO.name))?;
        let mut program = Program::new(INFO.name, select.decision.clone());
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("flags", DType::U32, *n, Access::Read));
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let first = program.operands.len();
        for ([name, _], (dtype, width)) in NAMES.iter().zip(columns) {
            program.operands.push(operand(name, *dtype, elements(INFO.name, name, &[*n, *width])?, Access::Read));
        }
        for ([_, name], (dtype, width)) in NAMES.iter().zip(columns) {
            program.operands.push(operand(name, *dtype, elements(INFO.name, name, &[*n, *width])?, Access::Write));
        }
        let count = Resource::Operand(program.operands.len());
        program.operands.push(operand("count", DType::U32, 1, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "select from chunks in separate calls")?;
        program.cost = Cost::of(*n as f64, &program.operands);
        let positions = program.scratch(4 * (*n).max(1) as u64);
        let inputs = (0..first).map(Resource::Operand);
        program.append(select, &inputs.chain([positions.resource, count]).collect::<Vec<_>>());
        let length = Binding::operand(program.operands.len() - 1, &program.operands);
        let mut covered = Vec::new();
        for (k, &(dtype, width)) in columns.iter().enumerate() {
            let [from, to] = [first + k, first + columns.len() + k].map(|i| Binding::operand(i, &program.operands));
            let moved = MovedColumn {
                dtype,
                width,
                columns: (from, *n, None),
                rows: *n,
                positions,
                output: to,
                length: Some(length),
                positions_of: PositionsOf::Column,
            };
            covered.extend(moved.add(&mut program)?);
        }
        launch_for(&mut program, length, &covered);
        Ok(program)
    }
}

impl crate::program::Op<u32> for SelectColumns {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        self.lower_columns(profile)
    }
}

operands! {
    impl[] SelectColumns, u32 {
        fn record(flags: u32, count: u32);
        /// Takes the number of rows from the device.
        optional with_length(length: u32);
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
    options: &[LENGTH],
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
    let length = asked.length(1, vec![n])?.0;
    let mut op = SelectColumns::new(n).when(length.is_some(), SelectColumns::counted);
    op = op.variant(asked.variant());
    let mut operands: Vec<_> = [Role::Given(flags)].into_iter().chain(length).collect();
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
    let two = op.clone().counted().column(DType::F32, 4).column(DType::U8, 3);
    Ok(vec![op.column(DType::F16, 1).lower_columns(profile)?, two.lower_columns(profile)?])
}

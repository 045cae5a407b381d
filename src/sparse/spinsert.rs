use super::spconvert::insert_slots;
use super::{Described, Format, MatrixLayout};
use crate::primitives::clear_words;
use crate::program::prelude::*;

/// Inserts entries into a sparse matrix of coordinates, or into free slots of an ELL matrix.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::sparse::{Coo, Spinsert};
///
/// let entry = |row, col, value| {
///     Coo { rows: 2, cols: 2, row_idxs: vec![row], col_idxs: vec![col], values: vec![value] }
/// };
/// let gpu = Gpu::new()?;
/// let (mut a, new) = (gpu.upload_matrix(&entry(1, 1, 2.0))?, gpu.upload_matrix(&entry(0, 1, 3.0))?);
/// gpu.insert_entries(&mut a, &new)?; // plans, grows the matrix and records
/// assert_eq!(a.read()?.to_csr()?.values, [3.0, 2.0]);
/// # let program = Spinsert::new(a.layout(), 1).plan::<f32>(&gpu)?;
/// # assert_eq!(program.program().operands.len(), 7);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// [`Gpu::insert_entries`](crate::Gpu::insert_entries) runs this op on a [`DeviceMatrix`](crate::DeviceMatrix).
///
/// # Shapes
/// The matrix has the [`MatrixLayout`] given, in [`Format::Coo`] or [`Format::Ell`], with values of f32 or f16.
/// Operands of an [`Executable`](crate::gpu::Executable) are its lists, the rows, columns and values of the `n` new
/// entries, and `missing`, one word. Lists of coordinates have room for the new entries behind the old ones. Rows and
/// columns must lie inside the matrix. Any extent may be 0.
///
/// Coordinates are appended in their order. ELL puts each entry into the first free slot of its row, in their order. If
/// rows lack slots, the matrix stays as it is, and `missing` holds the number of slots that lack; otherwise 0. A
/// position may get several entries, whose values add up in products.
///
/// # Precision and determinism
/// Values move as bits. The same inputs give the same result on every device.
///
/// # Cost
/// No flop. `coo` reads and writes the new entries once, in four dispatches. `ell` sorts the new entries by row
/// ([`RadixSort`](crate::RadixSort)), counts the entries of every row and places them; scratch is two keys and a value
/// for each new entry, two words for each row, and a word for each f16 value.
///
/// # Variants
/// `coo` and `ell`, for the format of that name; `auto` (the default) takes that of the matrix.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): a matrix of another format, values other than f32 and f16,
///   an unknown variant, or that of the other format.
/// - [`TooLarge`](ErrorKind::TooLarge): a list above the device's largest binding, or 2^32 entries or more.
///
/// # Algorithm
/// `shaders/sparse/spinsert_append.wgsl`; `spinsert_missing.wgsl` and `spinsert_slots.wgsl` after a stable sort by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spinsert {
    pub(crate) matrix: MatrixLayout,
    pub(crate) n: usize,
    variant: String,
}

kernel_params! {
    struct AppendParams { first: u32, count: u32 }
}

const VARIANTS: &[Variant] = &[
    Variant::portable("coo", "appends the entries"),
    Variant::portable("ell", "a stable sort by row; each entry finds its free slot"),
];

impl Spinsert {
    /// Inserts `n` entries into a matrix of this layout.
    pub fn new(matrix: MatrixLayout, n: usize) -> Self {
        Self { matrix, n, variant: "auto".into() }
    }

    variants!(variant);

    /// Returns the operands: the lists of the matrix, the new entries, and the number of missing slots.
    fn operands(&self) -> Result<Vec<Operand>> {
        let Self { matrix, n, .. } = *self;
        let room = match matrix.format {
            Format::Coo { .. } => MatrixLayout { entries: matrix.entries.saturating_add(n), ..matrix },
            _ => matrix,
        };
        let written = |list: Operand| Operand { access: Access::ReadWrite, ..list };
        let new = MatrixLayout { entries: n, format: Format::Coo { sorted: false }, ..matrix };
        let named = |(list, name): (Operand, _)| Operand { name, ..list };
        let names = ["new.row_idxs", "new.col_idxs", "new.values"];
        let mut operands: Vec<_> = room.operands("spinsert")?.into_iter().map(written).collect();
        operands.extend(new.operands("spinsert")?.into_iter().zip(names).map(named));
        operands.push(Operand { name: "missing", dtype: DType::U32, len: 1, access: Access::Write });
        Ok(operands)
    }

    /// Appends the new entries to each list of coordinates.
    fn append(&self, program: &mut Program) {
        const WORKGROUP_SIZE: u32 = 256;
        let params = AppendParams { first: self.matrix.entries as u32, count: self.n as u32 };
        for list in 0..3 {
            let halves = program.operands[list].dtype == DType::F16;
            let spec = Spec::new().constant("WORKGROUP_SIZE", WORKGROUP_SIZE).flag("HALVES", halves);
            let kernel = program.kernel(Kernel::library("sparse/spinsert_append", "spinsert_append", spec));
            let [to, added] = [list, 3 + list].map(|i| Binding::operand(i, &program.operands));
            let words = if halves { self.n / 2 + 1 } else { self.n };
            let grid = Grid::fold((words as u64).div_ceil(WORKGROUP_SIZE.into()));
            program.dispatch(kernel, &params, vec![added, to], grid);
        }
    }
}

impl Op<f32> for Spinsert {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { matrix, n, .. } = *self;
        let format = matrix.format.name();
        if !matches!(matrix.format, Format::Coo { .. } | Format::Ell { .. }) {
            return Err(err!(
                InvalidArgument,
                "insert: a matrix of {format} has no room for new entries; convert it to coo or ell"
            ));
        }
        let (variant, decision) = choose("spinsert", &self.variant, VARIANTS, profile, || {
            (format, "the variant for this format".to_owned())
        })?;
        matrix.suits("spinsert", variant)?;
        let operands = self.operands()?;
        let all = MatrixLayout { entries: matrix.entries.saturating_add(n), ..matrix };
        all.check("spinsert", profile, &operands)?;
        let mut program = Program::new("spinsert", decision);
        // Each new entry is read, and written once.
        let bytes = n as u64 * (8 + matrix.values.size() as u64);
        let slots = if format == "ell" { operands[0].bytes() } else { 0 };
        program.cost = Cost { flop: 0.0, bytes: (2 * bytes + slots) as f64 };
        program.operands = operands;
        let missing = Binding::operand(program.operands.len() - 1, &program.operands);
        clear_words(&mut program, missing, 1);
        match matrix.format {
            Format::Ell { width } if n > 0 && matrix.rows > 0 => insert_slots(program, &matrix, width, n, profile),
            Format::Coo { .. } if n > 0 => {
                self.append(&mut program);
                Ok(program)
            }
            _ => Ok(program),
        }
    }
}

pub(super) const INFO: Operation = Operation {
    name: "spinsert",
    about: "new entries in a sparse matrix of coordinates or in free slots of ELL",
    matrix: true,
    inputs: &[Input::new("row_idxs", "u32 (n)"), Input::new("col_idxs", "u32 (n)"), Input::new("values", "(n)")],
    types: &[DType::F32, DType::F16],
    options: &[Setting::word("format", || vec!["coo", "ell"])],
    make: Some(make),
    variants: Spinsert::variants,
    samples,
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (lists, Described { layout, .. }) = asked.sparse::<Described>()?;
    let rows = asked.any_indices("row_idxs", &[40], layout.rows)?;
    let n = rows.len();
    let cols = asked.any_indices("col_idxs", &[n], layout.cols)?;
    asked.check("col_idxs", &cols, rows.shape(), DType::U32)?;
    let values = asked.of_own_type("values", &[n])?;
    asked.check_type(&values)?;
    // The matrix has values of the type of the new ones.
    let layout = MatrixLayout { values: values.dtype(), ..*layout };
    let op = Spinsert::new(layout, n).variant(asked.variant());
    let more = if matches!(layout.format, Format::Coo { .. }) { n } else { 0 };
    let lists: Vec<_> = lists.iter().map(|list| longer(list, more, layout.values)).collect::<Result<_>>()?;
    let new = [rows, cols, values].map(Role::Given);
    let operands = lists.into_iter().map(Role::Updated).chain(new).chain([Role::Result(vec![1])]).collect();
    Ok(OpCall::new::<f32>(op, operands))
}

/// Returns a list with `more` zeros behind it. Values become of type `values`.
fn longer(list: &HostArray, more: usize, values: DType) -> Result<HostArray> {
    let len = list.len().saturating_add(more);
    let dtype = if list.dtype() == DType::U32 { DType::U32 } else { values };
    let mut longer = HostData::zeros(dtype, len)?;
    match (&mut longer, list.data()) {
        (HostData::U32(to), HostData::U32(from)) => to[..from.len()].copy_from_slice(from),
        (HostData::F32(to), HostData::F32(from)) => to[..from.len()].copy_from_slice(from),
        (HostData::F16(to), HostData::F32(from)) => {
            to.iter_mut().zip(from).for_each(|(to, x)| *to = f16::from_f32(*x));
        }
        _ => {}
    }
    HostArray::new(&[len], longer)
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let format = if variant == VARIANTS[0].name { Format::Coo { sorted: true } } else { Format::Ell { width: 9 } };
    let mut programs = Vec::new();
    for (cols, values) in [(900, DType::F32), (1 << 24, DType::F32), (900, DType::F16)] {
        let matrix = MatrixLayout { rows: 1000, cols, entries: 3001, longest: 9, format, values };
        programs.push(Spinsert::new(matrix, 100).variant(variant).lower(profile)?);
    }
    Ok(programs)
}

use crate::program::prelude::*;
use crate::program::rows::check_rows;

/// Copies rows of a table by index, as in `numpy.take` or an embedding lookup: `output[i, :] = table[indices[i], :]`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let table = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 3 rows of 2 elements
/// let (indices, output) = (gpu.upload(&[2u32, 0])?, gpu.alloc::<f32>(4)?);
/// let plan = Gather::new([3, 2], 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &table, &indices, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [5.0, 6.0, 1.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// A permutation of all rows reorders them, for example from tokens x heads to heads x tokens.
///
/// # Shapes
/// `table` is rows x n, row-major, `indices` (u32) has any length, `output` has n elements for each index. Any extent
/// may be 0. Indices may repeat. An index of `rows` or more gives a row of zeros;
/// [`checked`](Self::checked) counts them. `output` must not share a wgpu buffer
/// with the others. With [`counted`](Self::counted) an operand `length` of one u32 holds the number of indices, at most
/// as many as planned.
///
/// # Types
/// f32, f16, i32, u32, u8, i8.
///
/// # Precision and determinism
/// Bits are copied unchanged.
///
/// # Cost
/// No flop. Each index and each row that it names is read once, `output` is written once. One dispatch for each pair of
/// chunks of the table and the output that fit a binding; no scratch.
///
/// # Variants
/// `items`: a thread copies 16 bytes if a row is a multiple of that, else a word, element by element where rows share
/// words.
///
/// # Errors
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest buffer, a row above the largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// `shaders/primitives/gather.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gather {
    rows: usize,
    n: usize,
    indices: usize,
    counted: bool,
    checked: bool,
    variant: String,
}

const VARIANTS: &[Variant] =
    &[Variant::portable("items", "a thread copies 16 bytes, a word, or the elements of a word")];

kernel_params! {
    struct GatherRowsParams {
        count: u32,
        width: u32,
        first: u32,
        rows: u32,
        total: u32,
        table_origin: u32,
        index_origin: u32,
        output_origin: u32,
        before: u32,
    }
}

/// Single words that a thread copies, of a table of so many bytes, so that it reads its parameters and a length on the
/// device once. On an H100 (Vulkan, driver 580.159.04) 2^26 words of 4 KiB take 286, 218, 203 us by 1, 2, 4 words; 2^24
/// random words of 64 MiB 360, 359, 376.
fn words_of_thread(table: u64) -> u32 {
    if table <= 16 << 20 { 4 } else { 2 }
}

impl Gather {
    /// Takes the shape of the table, `rows` rows of `n` elements, and the number of indices.
    pub fn new([rows, n]: [usize; 2], indices: usize) -> Self {
        Self { rows, n, indices, counted: false, checked: false, variant: "auto".into() }
    }

    /// Counts the indices of `rows` or more: an operand `invalid` of one u32, which plans take by `with_invalid`.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }

    counted!(counted, "indices", "Here `n` is the number of indices; rows of the output behind it may hold anything.");

    variants!(variant);

    pub(super) fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { rows, n, indices, .. } = *self;
        let len = elements("gather", "table", &[rows, n])?;
        let output = elements("gather", "output", &[indices, n])?;
        let mut program = Program::of_only_variant("gather", &self.variant, VARIANTS, profile)?;
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands =
            vec![operand("table", dtype, len, Access::Read), operand("indices", DType::U32, indices, Access::Read)];
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        let to = program.operands.len();
        program.operands.push(operand("output", dtype, output, Access::Write));
        let moved = (indices.min(rows) + indices) as f64 * (n * dtype.size()) as f64;
        program.cost = Cost { flop: 0.0, bytes: moved + 4.0 * indices as f64 };
        for (operand, n) in [(0, n), (1, 1), (to, n)] {
            check_rows("gather", &program.operands[operand], n, profile)?;
        }
        index_u32("gather", "rows of the table", rows)?;
        index_u32("gather", "indices", indices)?;
        if self.checked {
            count_invalid(&mut program, self.counted, rows, profile)?;
        }
        if output == 0 {
            return Ok(program);
        }
        let size = dtype.size() as u64;
        let row = n as u64 * size;
        let vectors = row.is_multiple_of(16) && rows > 0;
        let split = !row.is_multiple_of(4);
        // The bytes that a thread copies.
        let item = if vectors { 16 } else { 4 };
        let unit = if split { size } else { item };
        let mut spec = Spec::new().flag("VECTORS", vectors).flag("SPLIT", split);
        let of_thread = if split || vectors { 1 } else { words_of_thread(rows as u64 * row) };
        if split {
            spec = spec.constant("PACK", (4 / size) as u32);
        } else {
            spec = spec.constant("ITEMS", of_thread);
        }
        let spec = limited(spec, self.counted, 4);
        let kernel = program.kernel(Kernel::library("primitives/gather", "gather", spec));
        // An empty table still needs a dispatch, which writes zeros.
        let none = (rows == 0).then_some(BoundChunk { first: 0, count: 0 });
        let of_table: Vec<_> = profile.chunks(rows as u64, row).chain(none).collect();
        let length = self.counted.then(|| Binding::operand(2, &program.operands));
        let mut covered = Vec::new();
        // The indices of a chunk must fit a binding too.
        for chunk in profile.chunks(indices as u64, row.max(4)) {
            let (numbers, output) = (chunk.span(4), chunk.span(row));
            for part in &of_table {
                let table = part.span(row);
                let params = GatherRowsParams {
                    count: chunk.count as u32,
                    width: (row / unit) as u32,
                    first: part.first as u32,
                    rows: part.count as u32,
                    total: rows as u32,
                    table_origin: (table.before / unit) as u32,
                    index_origin: (numbers.before / 4) as u32,
                    output_origin: (output.before / unit) as u32,
                    before: chunk.first as u32,
                };
                let items = if split { output.size } else { chunk.count * row }.div_ceil(item);
                let spans = [(table, 0), (numbers, 1), (output, to)].into_iter();
                let bindings = spans.map(|(span, operand)| span.of(Resource::Operand(operand)));
                let bindings = bindings.chain(length).collect();
                let GatherRowsParams { before, count: held, width, .. } = params;
                let (skip, each) =
                    if split { (params.output_origin, 1024 / size as u32) } else { (0, 256 * of_thread) };
                covered.push((program.dispatches.len(), Covered { before, held, width, skip, each }));
                program.dispatch(kernel, &params, bindings, Grid::fold(items.div_ceil(256 * u64::from(of_thread))));
            }
        }
        if let Some(length) = length {
            launch_for(&mut program, length, &covered);
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] Gather, T {
        fn record(table: T, indices: u32, output: T);
        /// Takes the number of indices from the device.
        optional with_length(length: u32);
        /// Takes the number of indices that are out of range.
        optional with_invalid(invalid: u32);
    }
}

lowered_as!(Gather: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "gather",
    about: "rows of x by index; zeros for an index out of range, which check reports",
    inputs: &[Input::new("table", "(V, ...)"), Input::new("indices", "u32 (any shape)")],
    outputs: &[("output", "(indices, ...)")],
    types: &HostData::TYPES,
    domains: &[("table", Domain::Bits)],
    options: &[Setting::flag("check"), LENGTH],
    make: Some(make),
    variants: Gather::variants,
    samples,
    ..Operation::UNDECLARED
};

pub(super) fn rows_of(asked: &Asked<'_>, name: &str, array: &HostArray) -> Result<(usize, Vec<usize>)> {
    let first = array.shape().split_first();
    let (rows, width) = first.ok_or_else(|| err!(Shape, "{}: {name} is {array}; it has no rows", asked.name()))?;
    Ok((*rows, width.to_vec()))
}

kernel_params! { struct GatherCheckParams { count: u32, rows: u32, before: u32 } }

/// Adds an operand `invalid`, and counts in it the indices of operand 1 that are not below `rows`: all, or as many as
/// operand 2 says, if they are `counted`.
pub(super) fn count_invalid(program: &mut Program, counted: bool, rows: usize, profile: &DeviceProfile) -> Result<()> {
    let invalid = program.operands.len();
    program.operands.push(Operand { name: "invalid", dtype: DType::U32, len: 1, access: Access::Write });
    program.append(fill(1, [0; 2], profile)?, &[Resource::Operand(invalid)]);
    let spec = limited(Spec::new(), counted, 3);
    let kernel = program.kernel(Kernel::of_file("primitives/gather_check", spec));
    for chunk in profile.aligned_chunks(program.operands[1].len as u64, 4) {
        let before = chunk.first as u32;
        let params = GatherCheckParams { count: chunk.count as u32, rows: rows as u32, before };
        let whole = |operand| Binding::operand(operand, &program.operands);
        let bindings = [chunk.of(Resource::Operand(1), 4), whole(invalid)].into_iter();
        let bindings = bindings.chain(counted.then(|| whole(2))).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(chunk.count.div_ceil(1024)));
    }
    Ok(())
}

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let table = asked.any("table")?;
    let (rows, width) = rows_of(asked, "table", &table)?;
    let n = elements(INFO.name, "a row", &width)?;
    let indices = asked.any_indices("indices", &[rows], rows)?;
    let check = asked.settings().has("check");
    let (length, output) = asked.length(indices.shape().len(), [indices.shape(), &width].concat())?;
    let op = Gather::new([rows, n], indices.len()).variant(asked.variant()).when(check, Gather::checked);
    let op = op.when(length.is_some(), Gather::counted);
    let dtype = table.dtype();
    let inputs = [table, indices].map(Role::Given).into_iter().chain(length);
    let mut operands: Vec<_> = inputs.chain([output]).collect();
    operands.extend(check.then_some(Role::Invalid { op: INFO.name, below: rows }));
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = |n| Gather::new([5, n], 7).variant(variant);
    let all = [4, 3].map(|n| Op::<f32>::lower(&op(n), profile));
    let checked = Op::<f32>::lower(&op(4).checked(), profile);
    let counted = Op::<u8>::lower(&op(3).counted().checked(), profile);
    all.into_iter()
        .chain([Op::<f32>::lower(&op(4).counted(), profile), counted])
        .chain([checked, Op::<f16>::lower(&op(3), profile), Op::<u8>::lower(&op(3), profile)])
        .collect()
}

#[cfg(test)]
mod tests;

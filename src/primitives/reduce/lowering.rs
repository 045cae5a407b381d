use super::Reduce;
use crate::primitives::operator::{Accumulator, Operator};
use crate::primitives::state::Monoid;
use crate::program::fit::BoundSpan;
use crate::program::prelude::*;

kernel_params! {
    struct ReduceParams {
        rows: u32, row_stride: u32, len: u32, column: u32, origin: u32, parts: u32, part_len: u32,
        part_stride: u32, first: u32,
    }
}

kernel_params! {
    struct ReduceAtomicParams { rows: u32, row_stride: u32, len: u32, origin: u32, parts: u32, first: u32 }
}

kernel_params! { struct ReducePackParams { elements: u32 } }

const WORKGROUP_SIZE: u64 = 256;

/// Elements of a single row up to which barriers are most of the time on software drivers. SwiftShader, us: 375 f32
/// 133 by `coarsened`, 58 by `two-stage-subgroup`; 196 u8 138 by `sequential`, 62; 388 i8 by arg-min 187, 137; 1386
/// u32 no faster.
const FEW: usize = 512;

/// Constants that depend on the device.
struct ReducePolicy {
    /// Workgroups that share the input in the variant `coarsened`.
    workgroups: u64,
}

fn policy(profile: &DeviceProfile) -> ReducePolicy {
    if profile.quirks.few_cores {
        // More workgroups than a processor has cores gain nothing.
        ReducePolicy { workgroups: 64 }
    } else {
        // Six a multiprocessor. GB/s of sum, min, arg-max of 2^28 f32 on an H100 80GB HBM3, Vulkan, driver
        // 580.159.04: 792 gives 3069, 3049, 3008; 1056 gives 3070, 3058, 2664.
        ReducePolicy { workgroups: 792 }
    }
}

/// A chunk of the input that fits one binding: some whole rows, or a range of columns of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReduceChunk {
    first_row: u64,
    rows: u64,
    column: u64,
    len: u64,
}

/// Workgroups that share the input of a reduction.
pub(crate) fn workgroups(profile: &DeviceProfile) -> u64 {
    policy(profile).workgroups
}

#[derive(Clone, Copy)]
enum ReduceWay {
    Coarsened,
    Atomic,
    /// Level by level with this tree in workgroup memory, of elements of each thread.
    Ladder {
        tree: &'static str,
        items: u64,
        subgroups: bool,
    },
}

impl ReduceWay {
    /// Resolves a variant. Rejects operators that it cannot combine.
    fn of(variant: &str, monoid: &Monoid<'_>) -> Result<Self> {
        let op = monoid.op;
        let ladder = |tree, items, subgroups| Ok(Self::Ladder { tree, items, subgroups });
        match variant {
            "coarsened" => Ok(Self::Coarsened),
            "interleaved" => ladder("workgroup/reduce_interleaved", 1, false),
            _ if !op.commutes() => Err(err!(
                Unsupported,
                "reduce: the variant `{variant}` changes the order of operands, and this operator is not declared \
                 commutative; declare it, or use `interleaved` or `coarsened`"
            )),
            "atomic" if monoid.has_state() || op.accumulator() == Accumulator::Pair => Err(err!(
                Unsupported,
                "reduce: the variant `atomic` keeps one value of 32 bits a row, and {} needs more; use `coarsened`",
                op.name()
            )),
            "atomic" => Ok(Self::Atomic),
            "sequential" => ladder("workgroup/reduce_sequential", 1, false),
            "shared" => ladder("workgroup/reduce_sequential", 2, false),
            "subgroup" => ladder("workgroup/reduce_shuffle", 2, true),
            _ => ladder("workgroup/reduce_two_stage", 2, true),
        }
    }
}

pub(super) struct ReduceLowering<'a> {
    monoid: Monoid<'a>,
    dtype: DType,
    output: DType,
    rows: u64,
    n: u64,
    counted: bool,
    way: ReduceWay,
    profile: &'a DeviceProfile,
    chunks: Vec<ReduceChunk>,
    program: Program,
}

impl<'a> ReduceLowering<'a> {
    pub(super) fn new<O>(desc: &Reduce<O>, op: &'a Operator, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        let name = op.name();
        let output = op.output(dtype).map_err(|e| e.context("reduce"))?;
        let monoid = Monoid::new(op, dtype).map_err(|e| e.context("reduce"))?;
        let len = elements("reduce", "input", &[desc.rows, desc.n, monoid.inputs()])?;
        let results = elements("reduce", "output", &[desc.rows, monoid.outputs()])?;
        if desc.counted && desc.rows != 1 {
            let rows = desc.rows;
            return Err(err!(
                Unsupported,
                "reduce: {rows} rows with a length from the device; it counts the elements of one row"
            ));
        }
        if desc.n == 0 && desc.rows > 0 && !op.has_identity() {
            return Err(err!(
                Shape,
                "reduce: the {name} of 0 elements is not defined (input {} x 0); only sum, prod and custom operators reduce \
                 0 elements",
                desc.rows
            ));
        }
        let bits = Bits { rounds: op.rounds(dtype), deterministic: desc.deterministic };
        let (variant, decision) = choose_with("reduce", &desc.variant, Reduce::variants(), profile, bits, || {
            if desc.rows == 1
                && len <= FEW
                && op.commutes()
                && profile.features.subgroups
                && profile.quirks.serial_workgroups
            {
                ("two-stage-subgroup", "few elements: shuffles replace barriers, which are slow here".into())
            } else if len <= WORKGROUP_SIZE as usize && op.commutes() {
                ("sequential", "one workgroup with one element a thread".into())
            } else {
                ("coarsened", "reads by vec4 at the speed of memory".into())
            }
        })?;
        let determinism = variant.determinism(bits.rounds);
        let way = ReduceWay::of(variant.name, &monoid)?;
        if desc.counted && matches!(way, ReduceWay::Atomic) {
            return Err(err!(
                Unsupported,
                "reduce: the variant `atomic` takes no length from the device; use `coarsened`"
            ));
        }
        let (rows, n) = (desc.rows as u64, desc.n as u64);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let mut program = Program::new("reduce", decision);
        program.operands.push(operand("input", dtype, len, Access::Read));
        if desc.counted {
            program.operands.push(operand("length", DType::U32, 1, Access::Read));
        }
        program.operands.push(operand("output", output, results, Access::Write));
        profile.check_buffers("reduce", &program.operands, "reduce chunks, then their results")?;
        let what = format_args!("{rows} results");
        profile.check_scratch("reduce", what, results as u64 * 4, "reduce fewer rows at a time")?;
        if op.accumulator() == Accumulator::Pair {
            index_u32("reduce", "positions up to n", desc.n)?;
        }
        program.cost = Cost::of(rows as f64 * n.saturating_sub(1) as f64, &program.operands);
        program.determinism = determinism;
        let size = (dtype.size() * monoid.inputs()) as u64;
        // Up to 767 bytes may precede a chunk of elements of 12, where `chunk_room` has counted 255.
        let before = if size == 12 { 512 } else { 0 };
        let chunks = split(rows, n, profile.chunk_room().saturating_sub(before) / size);
        let counted = desc.counted;
        Ok(Self { monoid, dtype, output, rows, n, counted, way, profile, chunks, program })
    }

    pub(super) fn run(mut self) -> Result<Program> {
        if self.rows == 0 {
            return Ok(self.program);
        }
        let narrow = self.output.size() < 4;
        let results = self.rows * self.monoid.outputs() as u64;
        let words = if narrow { self.program.scratch(results * 4) } else { self.result() };
        match self.way {
            ReduceWay::Coarsened => self.coarsened(words)?,
            ReduceWay::Atomic => self.atomic(words)?,
            ReduceWay::Ladder { tree, items, subgroups } => self.ladder(tree, items, subgroups, words)?,
        }
        if narrow {
            let spec = Spec::new().slot("element", element_fragment(self.output)).flag("FLOAT", self.output.is_float());
            let kernel = self.program.kernel(Kernel::library("primitives/reduce_pack", "reduce_pack", spec));
            let bindings = vec![words, self.result()];
            let grid = Grid::fold((results * self.output.size() as u64).div_ceil(4 * WORKGROUP_SIZE));
            self.program.dispatch(kernel, &ReducePackParams { elements: results as u32 }, bindings, grid);
        }
        Ok(self.program)
    }

    fn result(&self) -> Binding {
        Binding::operand(self.program.operands.len() - 1, &self.program.operands)
    }

    fn length(&self) -> Option<Binding> {
        self.counted.then(|| Binding::operand(1, &self.program.operands))
    }

    fn spec(&self) -> Spec {
        self.monoid.spec()
    }

    fn bind(&self, chunk: ReduceChunk) -> (Binding, u32) {
        let size = (self.dtype.size() * self.monoid.inputs()) as u64;
        let first = chunk.first_row * self.n + chunk.column;
        let count = if chunk.rows == 1 { chunk.len } else { chunk.rows * self.n };
        let span = if size == 12 { BoundSpan::of_threes } else { BoundSpan::new };
        let span = span(first * size, count * size);
        (span.of(Resource::Operand(0)), (span.before / size) as u32)
    }

    /// Allocates scratch for one accumulator for each of `count` results.
    fn partials(&mut self, count: u64) -> Result<Binding> {
        let bytes = count * self.monoid.bytes();
        let variant = self.program.variant();
        let what = format_args!("the partial results of `{variant}`");
        self.profile.check_scratch("reduce", what, bytes, "use `coarsened`")?;
        Ok(self.program.scratch(bytes))
    }

    /// Reduces one or two elements a thread, level by level.
    fn ladder(&mut self, tree: &'static str, items: u64, subgroups: bool, words: Binding) -> Result<()> {
        let tile = WORKGROUP_SIZE * items;
        let spec = self
            .spec()
            .slot("tree", Fragment::Library(tree))
            .constant("ITEMS_PER_THREAD", items as u32)
            .flag("SUBGROUPS", subgroups);
        let counted = self.counted;
        let kernel = |program: &mut Program, from_partials, last| {
            let spec = spec.clone().flag("FROM_PARTIALS", from_partials).flag("FINAL", last);
            let spec = limited(spec, counted && !from_partials, 3);
            program.kernel(Kernel::library("primitives/reduce_tree", "reduce_tree", spec))
        };
        let parts_of = |len: u64| len.div_ceil(tile).max(1);
        let mut parts: u64 = self.parts_per_row(parts_of);
        let mut source = if parts == 1 { words } else { self.partials(self.rows * parts)? };
        let first = kernel(&mut self.program, false, parts == 1);
        self.each_chunk(first, &[], source, parts, parts_of, |_, _| 0);
        while parts > 1 {
            let next = parts.div_ceil(tile);
            let target = if next == 1 { words } else { self.partials(self.rows * next)? };
            let k = kernel(&mut self.program, true, next == 1);
            let params = ReduceParams {
                rows: self.rows as u32,
                row_stride: parts as u32,
                len: parts as u32,
                column: 0,
                origin: 0,
                parts: next as u32,
                part_len: 0,
                part_stride: next as u32,
                first: 0,
            };
            self.program.dispatch(k, &params, vec![source, target], Grid::fold(self.rows * next));
            (source, parts) = (target, next);
        }
        Ok(())
    }

    /// Partial results of one row, over all chunks that hold a part of it.
    fn parts_per_row(&self, parts_of: impl Fn(u64) -> u64) -> u64 {
        let of_row_0 = self.chunks.iter().filter(|p| p.first_row == 0);
        of_row_0.map(|p| parts_of(p.len)).sum()
    }

    /// Dispatches `kernel` over every chunk, one workgroup for each part of each row. `extra` follows the output and
    /// binds the input again.
    fn each_chunk(
        &mut self, kernel: usize, extra: &[fn(Binding) -> Binding], target: Binding, part_stride: u64,
        parts_of: impl Fn(u64) -> u64, rows_per_workgroup: impl Fn(&ReduceChunk, u64) -> u64,
    ) {
        let mut done = 0; // parts of the current row that earlier chunks wrote
        for chunk in self.chunks.clone() {
            if chunk.column == 0 {
                done = 0;
            }
            let parts = parts_of(chunk.len);
            let (input, origin) = self.bind(chunk);
            let params = ReduceParams {
                rows: chunk.rows as u32,
                row_stride: if chunk.rows == 1 { 0 } else { self.n as u32 },
                len: chunk.len as u32,
                column: chunk.column as u32,
                origin,
                parts: parts as u32,
                part_len: chunk.len.div_ceil(parts) as u32,
                part_stride: part_stride as u32,
                first: (chunk.first_row * part_stride + done) as u32,
            };
            let rows = chunk.rows.div_ceil(rows_per_workgroup(&chunk, parts).max(1));
            let views = extra.iter().map(|view| view(input));
            let bindings = [input, target].into_iter().chain(views).chain(self.length()).collect();
            self.program.dispatch(kernel, &params, bindings, Grid::fold(rows * parts));
            done += parts;
        }
    }

    /// Reduces the input by a bounded number of workgroups; a second pass joins their results.
    fn coarsened(&mut self, words: Binding) -> Result<()> {
        let ordered = !self.monoid.op.commutes();
        let size = (self.dtype.size() * self.monoid.inputs()) as u64;
        let vectors = self.n * self.rows * size >= 16 && !ordered && self.monoid.inputs() == 1;
        let per_vector = (16 / size).max(1);
        let lanes = lanes_per_row(self.rows, self.n.div_ceil(per_vector));
        let subgroups = self.profile.features.subgroups && !ordered;
        let workgroups = policy(self.profile).workgroups;
        let rows = self.rows;
        let parts_of = move |len: u64| {
            if lanes < WORKGROUP_SIZE {
                return 1;
            }
            // Fewer than two steps of four vec4 a thread do not pay for a second pass.
            let useful = len.div_ceil(per_vector * WORKGROUP_SIZE * 8);
            (workgroups / rows).clamp(1, useful.max(1))
        };
        let kernel = |me: &mut Self, lanes: u64, vectors: bool, from_partials: bool, last: bool| {
            let two_stage = subgroups && lanes == WORKGROUP_SIZE;
            let spec = me
                .spec()
                .constant("LANES_PER_ROW", lanes as u32)
                .flag("VECTORS", vectors)
                .flag("ORDERED", ordered)
                .flag("TWO_STAGE", two_stage)
                .flag("FROM_PARTIALS", from_partials)
                .flag("FINAL", last);
            let spec = limited(spec, me.counted && !from_partials, 3 + u32::from(vectors));
            me.program.kernel(Kernel::library("primitives/reduce_coarsened", "reduce_coarsened", spec))
        };
        let parts = self.parts_per_row(parts_of);
        let target = if parts == 1 { words } else { self.partials(rows * parts)? };
        let first = kernel(self, lanes, vectors, false, parts == 1);
        let whole_vectors: fn(Binding) -> Binding = |b| Binding { size: b.size / 16 * 16, ..b };
        let extra: &[_] = if vectors { &[whole_vectors] } else { &[] };
        self.each_chunk(first, extra, target, parts, parts_of, |_, _| WORKGROUP_SIZE / lanes);
        if parts > 1 {
            let lanes = lanes_per_row(rows, parts.div_ceil(4));
            let k = kernel(self, lanes, false, true, true);
            let params = ReduceParams {
                rows: rows as u32,
                row_stride: parts as u32,
                len: parts as u32,
                column: 0,
                origin: 0,
                parts: 1,
                part_len: parts as u32,
                part_stride: 1,
                first: 0,
            };
            self.program.dispatch(k, &params, vec![target, words], Grid::fold(rows.div_ceil(WORKGROUP_SIZE / lanes)));
        }
        Ok(())
    }

    /// Writes the identity, combines totals by atomics, and converts the result.
    fn atomic(&mut self, words: Binding) -> Result<()> {
        let native = match (self.monoid.op, self.dtype.is_float()) {
            (Operator::Sum, false) => Some("NATIVE_ADD"),
            (Operator::Min, true) => Some("NATIVE_MIN"),
            (Operator::Max, true) => Some("NATIVE_MAX"),
            (Operator::Min, _) if matches!(self.dtype, DType::U32 | DType::U8) => Some("NATIVE_MIN"),
            (Operator::Max, _) if matches!(self.dtype, DType::U32 | DType::U8) => Some("NATIVE_MAX"),
            _ => None,
        };
        let spec = native.into_iter().fold(self.spec(), |spec, flag| spec.flag(flag, true));
        let mut kernel = |entry| self.program.kernel(Kernel::library("primitives/reduce_atomic", entry, spec.clone()));
        let [begin, combine, end] =
            ["reduce_atomic_begin", "reduce_atomic_combine", "reduce_atomic_finish"].map(&mut kernel);
        let totals = self.partials(self.rows)?;
        let workgroups = policy(self.profile).workgroups;
        let all = ReduceAtomicParams { rows: self.rows as u32, row_stride: 0, len: 0, origin: 0, parts: 1, first: 0 };
        let by_row = Grid::fold(self.rows.div_ceil(WORKGROUP_SIZE));
        self.program.dispatch(begin, &all, vec![totals], by_row);
        for chunk in self.chunks.clone() {
            let (input, origin) = self.bind(chunk);
            let parts = chunk.len.div_ceil(2 * WORKGROUP_SIZE).min((workgroups / self.rows).max(1));
            let params = ReduceAtomicParams {
                rows: chunk.rows as u32,
                row_stride: if chunk.rows == 1 { 0 } else { self.n as u32 },
                len: chunk.len as u32,
                origin,
                parts: parts as u32,
                first: chunk.first_row as u32,
            };
            if parts > 0 {
                self.program.dispatch(combine, &params, vec![totals, input], Grid::fold(chunk.rows * parts));
            }
        }
        self.program.dispatch(end, &all, vec![totals, words], by_row);
        Ok(())
    }
}

/// Threads that share a row of `vectors` vec4: each has at least four in flight; one row takes all 256.
fn lanes_per_row(rows: u64, vectors: u64) -> u64 {
    if rows == 1 { WORKGROUP_SIZE } else { (vectors / 4).next_power_of_two().min(WORKGROUP_SIZE) }
}

fn split(rows: u64, n: u64, most: u64) -> Vec<ReduceChunk> {
    if rows * n <= most || n == 0 {
        return vec![ReduceChunk { first_row: 0, rows, column: 0, len: n }];
    }
    // Chunks of about equal size, so that none is too small for a vec4.
    if n <= most {
        let of = |c: BoundChunk| ReduceChunk { first_row: c.first, rows: c.count, column: 0, len: n };
        return BoundChunk::even(rows, most / n).map(of).collect();
    }
    let of_row = |row| {
        let of = move |c: BoundChunk| ReduceChunk { first_row: row, rows: 1, column: c.first, len: c.count };
        BoundChunk::even(n, most).map(of)
    };
    (0..rows).flat_map(of_row).collect()
}

#[cfg(test)]
mod tests;

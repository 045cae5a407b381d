use super::Gemv;
use crate::dense::DenseLayout;
use crate::program::fit::BoundSpan;
use crate::program::prelude::*;

kernel_params! {
    /// Parameters of every kernel of the product.
    struct GemvParams {
        rows: u32, cols: u32, ld: u32, origin: u32, first_row: u32, parts: u32, part_len: u32,
        first_part: u32, outputs: u32, read_y: u32, alpha: f32, beta: f32,
    }
}

const WORKGROUP_SIZE: u64 = 256;

/// Rows that a team of `gemv_columns` reads at once.
const COLUMNS_UNROLL: u64 = 8;

/// Constants of `tiled` that depend on the device.
struct GemvPolicy {
    /// Workgroups that fill the device; with fewer, rows are split.
    workgroups: u64,
    /// Rows that share each load of x, if there are enough rows: 1, 2 or 4.
    rows: u64,
    /// Loads of A that a thread has in flight: steps along a row are unrolled 2 or 4 times for it.
    loads: u64,
    /// Lanes of a workgroup side by side along a row of A transposed.
    column_lanes: u64,
    /// Workgroups that A transposed is cut into.
    column_workgroups: u64,
}

fn policy(profile: &DeviceProfile) -> GemvPolicy {
    if profile.quirks.few_cores {
        GemvPolicy { workgroups: 64, rows: 4, loads: 4, column_lanes: 64, column_workgroups: 64 }
    } else {
        // Six workgroups a multiprocessor of an H100, as for reductions. GB/s there (Vulkan, driver 580.159.04), plain
        // and transposed: 16384 x 16384 3077 and 3011, 4096 x 4096 2303 and 2100, 2^18 x 1024 3127 and 2980.
        GemvPolicy { workgroups: 792, rows: 2, loads: 4, column_lanes: 64, column_workgroups: 2112 }
    }
}

/// The longest sum of one thread of `naive`.
fn naive_terms(profile: &DeviceProfile) -> u64 {
    profile.loop_steps(1, 1 << 20)
}

/// One dispatch over a chunk of the rows of A.
struct GemvLaunch {
    chunk: BoundChunk,
    parts: u64,
    /// Terms of a part, where parts are contiguous.
    part_len: u64,
    workgroups: u64,
}

pub(in crate::dense) struct GemvLowering<'a> {
    pub(in crate::dense) gemv: &'a Gemv,
    pub(in crate::dense) name: String,
    pub(in crate::dense) profile: &'a DeviceProfile,
    pub(in crate::dense) program: Program,
}

impl GemvLowering<'_> {
    fn element_size(&self) -> u64 {
        self.program.operands[0].dtype.size() as u64
    }

    fn spec(&self) -> Spec {
        let f16 = self.program.operands[0].dtype == DType::F16;
        Spec::new().alias("T", if f16 { "f16" } else { "f32" }).flag("F16", f16)
    }

    fn params(&self) -> GemvParams {
        let Gemv { alpha, beta, .. } = *self.gemv;
        GemvParams {
            rows: 0,
            cols: 0,
            ld: 0,
            origin: 0,
            first_row: 0,
            parts: 0,
            part_len: 0,
            first_part: 0,
            outputs: self.gemv.lengths().1 as u32,
            read_y: u32::from(beta != 0.0),
            alpha,
            beta,
        }
    }

    /// Returns y and, if alpha and beta are an operand, that: the last bindings of a kernel that ends in y.
    fn result(&self) -> Vec<Binding> {
        let operand = |i| Binding::operand(i, &self.program.operands);
        if self.gemv.scalars { vec![operand(3), operand(2)] } else { vec![operand(2)] }
    }

    /// Returns the spec of a kernel that ends in y, bound here.
    fn ending(&self, spec: Spec, result: u32) -> Spec {
        if self.gemv.scalars { spec.flag("SCALARS", true).constant("SCALARS_BINDING", result + 1) } else { spec }
    }

    /// Writes `y = beta y`.
    pub(in crate::dense) fn scale(mut self) -> Result<Program> {
        let spec = self.spec().constant("SHARE", 1u32).constant("RESULT_BINDING", 1u32);
        let spec = self.ending(spec, 1);
        let kernel = self.program.kernel(Kernel::library("dense/gemv_finish", "gemv_finish", spec));
        // Without parts the sum is 0, which an infinite or absent alpha must not turn into NaN.
        let params = GemvParams { alpha: 0.0, ..self.params() };
        let workgroups = u64::from(params.outputs).div_ceil(WORKGROUP_SIZE);
        let bindings = self.result();
        self.program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        Ok(self.program)
    }

    pub(super) fn product(mut self) -> Result<Program> {
        let DenseLayout { cols, ld, .. } = self.gemv.layout();
        index_u32(&self.name, "lda", ld)?;
        let naive = self.program.variant() == "naive";
        let vectors = !naive && cols.is_multiple_of(4) && ld.is_multiple_of(4);
        let per_load = if vectors { 4 } else { 1 };
        let loads = cols as u64 / per_load;
        let chunks = self.chunks()?;
        let (kernel, launches) = match (naive, self.gemv.trans) {
            (true, _) => self.naive(&chunks),
            (_, false) => self.rows(&chunks, loads, vectors),
            (_, true) => self.columns(&chunks, loads, vectors),
        };
        // Chunks of rows are parts of a transposed sum, and different sums otherwise.
        let trans = self.gemv.trans;
        let parts = match trans {
            true => launches.iter().map(|l| l.parts).sum(),
            false => launches.first().map_or(1, |l| l.parts),
        };
        let target = if parts > 1 { vec![self.partials(parts)?] } else { self.result() };
        let spec = kernel.spec.flag("SPLIT", parts > 1);
        let spec = if parts > 1 { spec } else { self.ending(spec, 3) };
        let kernel = Kernel { spec, ..kernel };
        let kernel = self.program.kernel(kernel);
        let x = Binding::operand(1, &self.program.operands);
        let mut first_part = 0;
        for launch in launches {
            let (a, origin) = self.bind(launch.chunk);
            let params = GemvParams {
                rows: launch.chunk.count as u32,
                cols: loads as u32,
                ld: (ld as u64 / per_load) as u32,
                origin: (origin / per_load) as u32,
                first_row: launch.chunk.first as u32,
                parts: launch.parts as u32,
                part_len: launch.part_len as u32,
                first_part: first_part as u32,
                ..self.params()
            };
            let bindings = [a, x].into_iter().chain(target.iter().copied()).collect();
            self.program.dispatch(kernel, &params, bindings, Grid::fold(launch.workgroups));
            first_part += if trans { launch.parts } else { 0 };
        }
        if parts > 1 {
            self.finish(parts, target[0]);
        }
        Ok(self.program)
    }

    /// Cuts A into chunks of rows that each fit one binding.
    fn chunks(&self) -> Result<Vec<BoundChunk>> {
        let DenseLayout { rows, cols, ld } = self.gemv.layout();
        let (rows, row, stride) = (rows as u64, cols as u64 * self.element_size(), ld as u64 * self.element_size());
        if self.profile.binds_all(1, self.program.operands[0].bytes()) {
            return Ok(vec![BoundChunk { first: 0, count: rows }]);
        }
        self.profile.check_row(
            &self.name,
            format_args!("a row of a"),
            row,
            "multiply blocks of columns in separate calls",
        )?;
        // The last row of a chunk ends with its columns.
        Ok(BoundChunk::even(rows, (self.profile.chunk_room() - row) / stride + 1).collect())
    }

    /// Binds a chunk; returns the binding and the element of it where the chunk begins.
    fn bind(&self, chunk: BoundChunk) -> (Binding, u64) {
        let DenseLayout { cols, ld, .. } = self.gemv.layout();
        let size = self.element_size();
        let stride = ld as u64 * size;
        let span = BoundSpan::new(chunk.first * stride, (chunk.count - 1) * stride + cols as u64 * size);
        (span.of(Resource::Operand(0)), span.before / size)
    }

    fn naive(&self, chunks: &[BoundChunk]) -> (Kernel, Vec<GemvLaunch>) {
        let kernel = Kernel::library("dense/gemv_naive", "gemv_naive", self.spec().flag("TRANS", self.gemv.trans));
        let (cols, part_len) = (self.gemv.k as u64, naive_terms(self.profile));
        let launch = |&chunk: &BoundChunk| {
            let (outputs, terms) = if self.gemv.trans { (cols, chunk.count) } else { (chunk.count, cols) };
            let parts = terms.div_ceil(part_len);
            GemvLaunch { chunk, parts, part_len, workgroups: parts * outputs.div_ceil(WORKGROUP_SIZE) }
        };
        (kernel, chunks.iter().map(launch).collect())
    }

    fn rows(&self, chunks: &[BoundChunk], loads: u64, vectors: bool) -> (Kernel, Vec<GemvLaunch>) {
        let policy = policy(self.profile);
        let m = self.gemv.m as u64;
        // Enough lanes that each has two loads.
        let lanes = (loads / 2).next_power_of_two().min(WORKGROUP_SIZE);
        let teams = WORKGROUP_SIZE / lanes;
        // Rows share loads if that leaves two workgroups for each place.
        let shared = |rows: &u64| *rows == 1 || m.div_ceil(teams * rows) >= 2 * policy.workgroups;
        let rows = [policy.rows, 2, 1].into_iter().find(shared).unwrap_or(1);
        let unroll = if policy.loads / rows >= 4 { 4 } else { 2 };
        // At least eight steps a lane, or the second pass costs more than it saves.
        let useful = (loads / (lanes * unroll * 8)).max(1);
        let parts = (policy.workgroups / m.div_ceil(teams * rows)).clamp(1, useful);
        let spec = self
            .spec()
            .constant("LANES", lanes as u32)
            .flag("VECTORS", vectors)
            .flag("ROWS_2", rows == 2)
            .flag("ROWS_4", rows == 4)
            .flag("DEEP", unroll == 4)
            .flag("TWO_STAGE", lanes == WORKGROUP_SIZE && self.profile.features.subgroups);
        let launch = |&chunk: &BoundChunk| {
            let workgroups = chunk.count.div_ceil(teams * rows) * parts;
            GemvLaunch { chunk, parts, part_len: 0, workgroups }
        };
        let kernel = Kernel::library("dense/gemv_rows", "gemv_rows", spec);
        (kernel, chunks.iter().map(launch).collect())
    }

    fn columns(&self, chunks: &[BoundChunk], loads: u64, vectors: bool) -> (Kernel, Vec<GemvLaunch>) {
        let policy = policy(self.profile);
        let lanes = loads.next_power_of_two().min(policy.column_lanes);
        let step = WORKGROUP_SIZE / lanes * COLUMNS_UNROLL;
        let strips = loads.div_ceil(lanes);
        let wanted = policy.column_workgroups.div_ceil(strips).div_ceil(chunks.len() as u64);
        let launch = |&chunk: &BoundChunk| {
            // At least four steps a team, or the second pass costs more than it saves.
            let parts = wanted.clamp(1, chunk.count.div_ceil(4 * step));
            let part_len = round_up(chunk.count.div_ceil(parts), step);
            let parts = chunk.count.div_ceil(part_len);
            GemvLaunch { chunk, parts, part_len, workgroups: strips * parts }
        };
        let spec = self.spec().constant("LANES", lanes as u32).flag("VECTORS", vectors);
        let kernel = Kernel::library("dense/gemv_columns", "gemv_columns", spec);
        (kernel, chunks.iter().map(launch).collect())
    }

    /// Allocates scratch for `parts` sums for each element of y.
    fn partials(&mut self, parts: u64) -> Result<Binding> {
        let outputs = self.gemv.lengths().1 as u64;
        let bytes = 4 * outputs * parts;
        let what = format_args!("{parts} parts of {outputs} sums");
        self.profile.check_scratch(&self.name, what, bytes, "multiply blocks of columns in separate calls")?;
        Ok(self.program.scratch(bytes))
    }

    pub(in crate::dense) fn finish(&mut self, parts: u64, partial: Binding) {
        let share = (parts / 4).next_power_of_two().min(WORKGROUP_SIZE);
        let spec = self.spec().constant("SHARE", share as u32).constant("RESULT_BINDING", 2u32).flag("PARTS", true);
        let spec = self.ending(spec, 2);
        let kernel = self.program.kernel(Kernel::library("dense/gemv_finish", "gemv_finish", spec));
        let params = GemvParams { parts: parts as u32, ..self.params() };
        let workgroups = u64::from(params.outputs).div_ceil(WORKGROUP_SIZE / share);
        let bindings = [partial].into_iter().chain(self.result()).collect();
        self.program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
    }
}

use super::Spmm;
use crate::program::prelude::*;
use crate::sparse::by_row::order_of;
use crate::sparse::matrix_layout::windows;
use crate::sparse::{Format, MatrixLayout, spmv};

kernel_params! {
    /// Parameters of every kernel that reads or writes a dense matrix.
    struct SpmmParams {
        rows: u32,
        cols: u32,
        entries: u32,
        parts: u32,
        slice: u32,
        begin: u32,
        end: u32,
        read_c: u32,
        chunks: u32,
        blocks: u32,
        stride_b: u32,
        stride_c: u32,
        alpha: f32,
        beta: f32,
    }
}

/// Constants that depend on the device.
struct SpmmPolicy {
    workgroup_size: u32,
    max_lanes: u32,
    /// Entries, or steps of a merge, of a team.
    items: u32,
    /// The maximum number of slots of a row in one dispatch.
    max_slots: u32,
}

fn policy(profile: &DeviceProfile) -> SpmmPolicy {
    // Leaves room for the other work of a thread.
    let max_slots = profile.loop_steps(3, 1 << 20) as u32;
    if profile.quirks.serial_workgroups {
        SpmmPolicy { workgroup_size: 64, max_lanes: 8, items: 64, max_slots }
    } else {
        // NVIDIA H100, 2^20 rows, 32 columns, `csr-merge`, GFLOP/s with 32, 64, 128 items: 1143, 1128, 1077 for 16
        // random entries in a row; 774, 711, 589 for an arrow. Workgroups of 64 to 256 are alike.
        SpmmPolicy { workgroup_size: 256, max_lanes: 32, items: 32, max_slots }
    }
}

/// Returns the lanes of a team, a power of two. Idle lanes cost time, and so do several teams for one row, which read
/// the same entries: as much as [`ENTRY_COST`] lanes each.
fn lanes(chunks: u32, max: u32) -> u32 {
    let numbers = (0..=max.ilog2()).map(|bits| 1 << bits);
    numbers.min_by_key(|&lanes| chunks.div_ceil(lanes) * (lanes + ENTRY_COST)).unwrap_or(1)
}

/// NVIDIA H100, 16 entries in a row, 33 columns: 863 GFLOP/s with 16 lanes, 723 with 32, 622 with 8.
const ENTRY_COST: u32 = 12;

struct SpmmTerms {
    row_idxs: Binding,
    /// `None` if `values` are rows of products.
    col_idxs: Option<Binding>,
    values: Binding,
    /// The index of each value, if values are in another order.
    order: Option<Binding>,
    len: u64,
}

pub(super) struct SpmmLowering<'a> {
    spmm: &'a Spmm,
    matrix: MatrixLayout,
    profile: &'a DeviceProfile,
    policy: SpmmPolicy,
    program: Program,
    /// Elements of a row that a thread computes: 4 or 1.
    chunk: u32,
    /// Chunks of a row; then chunks from one row of B, and of C, to the next.
    chunks: u32,
    stride_b: u32,
    stride_c: u32,
    lanes: u32,
}

impl<'a> SpmmLowering<'a> {
    /// Strides fit 32 bits if operands do; with a single row they do not matter.
    pub(super) fn new(spmm: &'a Spmm, profile: &'a DeviceProfile, program: Program, ldb: usize, ldc: usize) -> Self {
        let mut policy = policy(profile);
        let n = spmm.n as u32;
        let (stride_b, stride_c) = (ldb as u32, ldc as u32);
        let vec4 = [spmm.n, ldb, ldc].iter().all(|extent| extent % 4 == 0);
        let chunk = if vec4 && program.variant() != "csr-scalar" { 4 } else { 1 };
        let chunks = n / chunk;
        let mut team = lanes(chunks, policy.max_lanes);
        if let Some((workgroup_size, lanes, items)) = spmm.tile {
            (policy.workgroup_size, policy.items, team) = (workgroup_size, items, lanes);
        }
        let matrix = spmm.matrix;
        let (stride_b, stride_c) = (stride_b / chunk, stride_c / chunk);
        Self { spmm, matrix, profile, policy, program, chunk, chunks, stride_b, stride_c, lanes: team }
    }

    pub(super) fn lower(mut self, product: bool) -> Program {
        if !product || self.matrix.adds() {
            self.scale();
        }
        if !product {
            return self.program;
        }
        match (self.matrix.format, self.program.variant()) {
            (Format::Csr, "csr-scalar") => self.scalar(),
            (Format::Csr, "csr-merge") => self.merge(),
            (Format::Csr, _) => {
                self.rows("sparse/spmm_csr_vector", "spmm_csr_vector", self.values_at(3), 3, u32::MAX);
            }
            (Format::Ell { width }, _) => self.ell(width),
            (Format::Jds, _) => {
                let longest = self.matrix.longest as u32;
                self.rows("sparse/spmm_jds", "spmm_jds", self.values_at(4), 4, longest);
            }
            (Format::Sell { .. }, _) => {
                self.rows("sparse/spmm_sell", "spmm_sell", self.values_at(4), 4, u32::MAX);
            }
            (Format::Hybrid { width, list, .. }, _) => {
                if width > 0 {
                    self.ell(width);
                }
                if list > 0 {
                    self.coo(2, list);
                }
            }
            (Format::Coo { .. } | Format::Csc, _) => self.coo(0, self.matrix.entries),
        }
        self.program
    }

    /// Returns the spec of a kernel that writes C at this binding.
    fn spec(&self, result: u32) -> Spec {
        Spec::new()
            .constant("WORKGROUP_SIZE", self.policy.workgroup_size)
            .constant("LANES", self.lanes)
            .constant("RESULT_BINDING", result)
            .alias("Chunk", if self.chunk == 4 { "vec4<f32>" } else { "f32" })
    }

    fn values_at(&self, binding: u32) -> Spec {
        let spec = self.spec(binding + 2).constant("DENSE_BINDING", binding + 1);
        self.matrix.values_at(binding, spec)
    }

    fn params(&self) -> SpmmParams {
        let spmv::SpmvParams { rows, cols, entries, parts, slice, begin, end, .. } = spmv::SpmvParams::of(self.matrix);
        SpmmParams {
            rows,
            cols,
            entries,
            parts,
            slice,
            begin,
            end,
            read_c: u32::from(self.spmm.beta != 0.0),
            chunks: self.chunks,
            blocks: self.chunks.div_ceil(self.lanes),
            stride_b: self.stride_b,
            stride_c: self.stride_c,
            alpha: self.spmm.alpha,
            beta: self.spmm.beta,
        }
    }

    fn operand(&self, index: usize) -> Binding {
        Binding::operand(index, &self.program.operands)
    }

    fn b(&self) -> Binding {
        self.operand(self.program.operands.len() - 2)
    }

    fn c(&self) -> Binding {
        self.operand(self.program.operands.len() - 1)
    }

    /// Returns the workgroups for this many teams, for each block of columns.
    fn teams(&self, teams: u64) -> Grid {
        let at_once = u64::from(self.policy.workgroup_size / self.lanes);
        Grid::fold(teams.div_ceil(at_once) * u64::from(self.chunks.div_ceil(self.lanes)))
    }

    fn threads(&self, threads: u64) -> Grid {
        Grid::fold(threads.div_ceil(u64::from(self.policy.workgroup_size)))
    }

    /// Appends C = beta C.
    fn scale(&mut self) {
        let kernel = self.program.kernel(Kernel::library("sparse/spmm_scale", "spmm_scale", self.spec(1)));
        let (params, c, grid) = (self.params(), self.c(), self.teams(self.matrix.rows as u64));
        self.program.dispatch(kernel, &params, vec![c], grid);
    }

    /// Appends the product of an ELL matrix, or of the ELL part of a hybrid.
    fn ell(&mut self, width: usize) {
        self.rows("sparse/spmm_ell", "spmm_ell", self.values_at(2), 2, width as u32);
    }

    /// Appends a product with one team for each row.
    fn rows(&mut self, file: &'static str, entry: &'static str, spec: Spec, lists: usize, end: u32) {
        let grid = self.teams(self.matrix.rows as u64);
        self.over_slots(Kernel::library(file, entry, spec), grid, lists, end);
    }

    /// Appends a product with one thread for each element.
    fn scalar(&mut self) {
        let kernel = Kernel::library("sparse/spmm_csr_scalar", "spmm_csr_scalar", self.values_at(3));
        let grid = self.threads(self.matrix.rows as u64 * self.spmm.n as u64);
        self.over_slots(kernel, grid, 3, u32::MAX);
    }

    /// Appends dispatches over slots of rows; those after the first add to C. `lists` lists precede B and C.
    fn over_slots(&mut self, kernel: Kernel, grid: Grid, lists: usize, end: u32) {
        let kernel = self.program.kernel(kernel);
        for (begin, end) in windows(self.matrix.longest as u32, end, self.policy.max_slots) {
            let first = SpmmParams { begin, end, ..self.params() };
            let params = if begin == 0 { first } else { SpmmParams { read_c: 1, beta: 1.0, ..first } };
            let bindings = (0..lists).map(|i| self.operand(i)).chain([self.b(), self.c()]).collect();
            self.program.dispatch(kernel, &params, bindings, grid);
        }
    }

    /// Appends C = alpha A B + beta C for compressed rows.
    fn merge(&mut self) {
        let (items, teams) = self.share(self.matrix.rows as u64 + self.matrix.entries as u64);
        let bounds = spmv::split(&mut self.program, self.matrix, items);
        let carries = self.carries(teams);
        let spec = self.values_at(3).constant("ITEMS", items);
        let kernel = self.program.kernel(Kernel::library("sparse/spmm_csr_merge", "spmm_csr_merge", spec));
        let params = SpmmParams { parts: teams as u32, ..self.params() };
        let lists = [0, 1, 2].map(|i| self.operand(i));
        let bindings = lists.into_iter().chain([self.b(), self.c()]).chain(carries).chain([bounds]).collect();
        let grid = self.teams(teams);
        self.program.dispatch(kernel, &params, bindings, grid);
        if teams > 1 {
            let [row_idxs, values] = carries;
            self.add_terms(SpmmTerms { row_idxs, col_idxs: None, values, order: None, len: teams });
        }
    }

    /// Returns the steps of a team and the number of teams. The policy decides, unless the carries would exceed a
    /// binding.
    fn share(&self, steps: u64) -> (u32, u64) {
        let max = self.profile.limits.max_storage_binding / (4 * self.spmm.n as u64);
        let items = u64::from(self.policy.items).max(steps.div_ceil(max.max(1)));
        (items as u32, steps.div_ceil(items))
    }

    /// Adds scratch for a row index and its sums, for each team.
    fn carries(&mut self, teams: u64) -> [Binding; 2] {
        let sums = 4 * teams * self.spmm.n as u64;
        [4 * teams, sums].map(|bytes| self.program.scratch(bytes))
    }

    /// Appends C += alpha A B for entries: coordinates, whose lists start at operand `first`, or by the order by row if
    /// there is one.
    fn coo(&mut self, first: usize, entries: usize) {
        let [rows, cols, values] = [0, 1, 2].map(|i| self.operand(first + i));
        let order = order_of(&self.program.operands);
        let [row_idxs, col_idxs] = order.map_or([rows, cols], |[rows, cols, _]| [rows, cols]);
        let (col_idxs, order, len) = (Some(col_idxs), order.map(|lists| lists[2]), entries as u64);
        self.add_terms(SpmmTerms { row_idxs, col_idxs, values, order, len });
    }

    /// Appends the addition of row sums to C, then of what teams carry, until one team is left.
    fn add_terms(&mut self, mut terms: SpmmTerms) {
        while terms.len > 0 {
            let (items, teams) = self.share(terms.len);
            let spec = if terms.col_idxs.is_some() { self.values_at(3) } else { self.spec(3).flag("PRODUCTS", true) };
            let mut spec = spec.constant("ITEMS", items);
            let mut bindings = vec![terms.row_idxs];
            bindings.extend(terms.col_idxs);
            bindings.push(terms.values);
            if terms.col_idxs.is_some() {
                bindings.push(self.b());
            }
            bindings.push(self.c());
            if let Some(order) = terms.order {
                bindings.push(order);
                spec = spec.flag("ORDERED", true);
            }
            let mut next = SpmmTerms { col_idxs: None, order: None, len: 0, ..terms };
            if teams > 1 {
                let first = bindings.len() as u32 + 1;
                let carries = self.carries(teams);
                spec = spec
                    .flag("CARRIES", true)
                    .constant("CARRY_ROWS_BINDING", first)
                    .constant("CARRY_SUMS_BINDING", first + 1);
                bindings.extend(carries);
                let [row_idxs, values] = carries;
                next = SpmmTerms { row_idxs, values, len: teams, ..next };
            }
            let kernel = self.program.kernel(Kernel::library("sparse/spmm_coo", "spmm_coo", spec));
            let params = SpmmParams { entries: terms.len as u32, parts: teams as u32, ..self.params() };
            let grid = self.teams(teams);
            self.program.dispatch(kernel, &params, bindings, grid);
            terms = next;
        }
    }
}

#[cfg(test)]
mod tests;

//! Variants that share entries evenly whatever the row lengths, with carries between tiles: `coo`, `csc`, `csr-merge`,
//! `csr-segmented`.

use super::{SpmvLowering, SpmvParams, shuffled};
use crate::program::prelude::*;
use crate::sparse::MatrixLayout;
use crate::sparse::by_row::order_of;

struct RowTerms {
    row_idxs: Binding,
    /// `None` if values are products already.
    col_idxs: Option<Binding>,
    values: Binding,
    /// The index of each value, if values are in another order.
    order: Option<Binding>,
    len: u64,
}

/// Appends a search for the tiles of a merge of row ends and entries. Returns, for each `tile` steps and at the end,
/// the number of rows that have ended.
pub(in crate::sparse) fn split(program: &mut Program, matrix: MatrixLayout, tile: u32) -> Binding {
    // Small, so that many multiprocessors share the searches.
    let workgroup_size = 64;
    let tiles = (matrix.rows as u64 + matrix.entries as u64).div_ceil(u64::from(tile));
    let bounds = program.scratch(4 * (tiles + 1));
    let spec = Spec::new().constant("WORKGROUP_SIZE", workgroup_size).constant("TILE", tile);
    let kernel = program.kernel(Kernel::library("sparse/spmv_csr_merge_split", "spmv_csr_merge_split", spec));
    let params = SpmvParams { parts: tiles as u32, ..SpmvParams::of(matrix) };
    let row_ptrs = Binding::operand(0, &program.operands);
    let grid = Grid::fold((tiles + 1).div_ceil(u64::from(workgroup_size)));
    program.dispatch(kernel, &params, vec![row_ptrs, bounds], grid);
    bounds
}

impl SpmvLowering<'_> {
    /// Appends y += alpha A x for entries: coordinates, whose lists start at operand `first`, or by the order by row if
    /// there is one.
    pub(super) fn coo(&mut self, first: usize, entries: usize) {
        let [rows, cols, values] = [0, 1, 2].map(|i| self.operand(first + i));
        let order = order_of(&self.program.operands);
        let [row_idxs, col_idxs] = order.map_or([rows, cols], |[rows, cols, _]| [rows, cols]);
        let (col_idxs, order, len) = (Some(col_idxs), order.map(|lists| lists[2]), entries as u64);
        self.add_terms(RowTerms { row_idxs, col_idxs, values, order, len });
    }

    /// Appends y = alpha A x + beta y for compressed rows.
    pub(super) fn merge(&mut self) {
        let steps = self.matrix.rows as u64 + self.matrix.entries as u64;
        let items = self.policy.merge_items;
        let tile = self.policy.tile_size * items;
        let tiles = steps.div_ceil(u64::from(tile));
        let params = SpmvParams { parts: tiles as u32, ..self.params() };
        let bounds = split(&mut self.program, self.matrix, tile);
        let spec =
            self.values_at(3).constant("WORKGROUP_SIZE", self.policy.tile_size).constant("ITEMS_PER_THREAD", items);
        let spec = spec.constant("MAX_LANES", self.max_lanes()).flag("SUBGROUPS", self.shuffles());
        let kernel = self.program.kernel(Kernel::library("sparse/spmv_csr_merge", "spmv_csr_merge", spec));
        let carries = self.share(kernel, &params, bounds);
        self.join_carries(&params, carries);
    }

    /// As [`merge`](Self::merge), with segmented sums within tiles.
    pub(super) fn segmented(&mut self) {
        let steps = self.matrix.rows as u64 + self.matrix.entries as u64;
        let (size, items) = (self.policy.tile_size, self.policy.segment_items);
        let tiles = steps.div_ceil(u64::from(size * items));
        let params = SpmvParams { parts: tiles as u32, ..self.params() };
        let bounds = split(&mut self.program, self.matrix, size * items);
        let shuffles = self.profile.features.subgroups && size >= self.profile.subgroup_sizes.1;
        let spec = self.values_at(3).constant("WORKGROUP_SIZE", size).constant("ITEMS_PER_THREAD", items);
        let spec = spec.flag("SUBGROUPS", shuffles);
        let spec = if shuffles { spec.flag("SEGMENTED", true) } else { spec };
        let kernel = Kernel::library("sparse/spmv_csr_segmented", "spmv_csr_segmented", spec);
        let kernel = self.program.kernel(kernel);
        let carries = self.share(kernel, &params, bounds);
        self.join_carries(&params, carries);
    }

    /// Appends the kernel over tiles. Returns the row and the sum that each tile carries.
    fn share(&mut self, kernel: usize, params: &SpmvParams, bounds: Binding) -> [Binding; 2] {
        let parts = u64::from(params.parts);
        let carries = [4 * parts, 4 * parts].map(|bytes| self.program.scratch(bytes));
        let lists = [0, 1, 2].map(|i| self.operand(i));
        let bindings = lists.into_iter().chain([self.x(), self.y()]).chain(carries).chain([bounds]).collect();
        self.program.dispatch(kernel, params, bindings, Grid::fold(parts));
        carries
    }

    fn join_carries(&mut self, params: &SpmvParams, [rows, sums]: [Binding; 2]) {
        let parts = u64::from(params.parts);
        if parts <= 1 {
            return;
        }
        let lanes = self.max_lanes();
        let spec = Spec::new()
            .constant("WORKGROUP_SIZE", self.policy.tile_size)
            .constant("RESULT_BINDING", 3u32)
            .constant("LANES", lanes)
            .flag("SUBGROUPS", self.shuffles());
        let kernel = Kernel::library("sparse/spmv_csr_merge_join", "spmv_csr_merge_join", spec);
        let kernel = self.program.kernel(kernel);
        let grid = Grid::fold(parts.div_ceil(u64::from(self.policy.tile_size / lanes)));
        let y = self.y();
        self.program.dispatch(kernel, params, vec![rows, sums, y], grid);
    }

    fn shuffles(&self) -> bool {
        shuffled(self.profile).min(self.policy.tile_size) > 1
    }

    /// Returns the maximum number of lanes of a tile that sum together.
    fn max_lanes(&self) -> u32 {
        let shuffled = shuffled(self.profile).min(self.policy.tile_size);
        if shuffled > 1 { shuffled } else { self.policy.tile_size }
    }

    /// Appends the addition of row sums to y, then of what tiles carry, until one tile is left.
    fn add_terms(&mut self, mut terms: RowTerms) {
        let tile = u64::from(self.policy.tile_size * self.policy.coo_items);
        while terms.len > 0 {
            let tiles = terms.len.div_ceil(tile);
            let products = terms.col_idxs.is_none();
            let carries = tiles > 1;
            // Products are f32, even of f16 values.
            let spec = if products { self.spec().constant("VALUES_BINDING", 2u32) } else { self.values_at(3) };
            let mut spec = spec
                .constant("WORKGROUP_SIZE", self.policy.tile_size)
                .constant("ITEMS_PER_THREAD", self.policy.coo_items)
                .constant("RESULT_BINDING", if products { 3u32 } else { 5 })
                .flag("PRODUCTS", products)
                .flag("CARRIES", carries);
            let mut bindings = vec![terms.row_idxs];
            bindings.extend(terms.col_idxs);
            bindings.push(terms.values);
            if !products {
                bindings.push(self.x());
            }
            bindings.push(self.y());
            if let Some(order) = terms.order {
                bindings.push(order);
                spec = spec.flag("ORDERED", true);
            }
            let params = SpmvParams { entries: terms.len as u32, parts: tiles as u32, ..self.params() };
            let mut next = RowTerms { col_idxs: None, order: None, len: 0, ..terms };
            if carries {
                let first = bindings.len() as u32 + 1;
                spec = spec.constant("CARRY_ROWS_BINDING", first).constant("CARRY_SUMS_BINDING", first + 1);
                let [row_idxs, values] = [4 * tiles, 4 * tiles].map(|bytes| self.program.scratch(bytes));
                bindings.extend([row_idxs, values]);
                next = RowTerms { row_idxs, values, len: tiles, ..next };
            }
            let kernel = self.program.kernel(Kernel::library("sparse/spmv_coo", "spmv_coo", spec));
            self.program.dispatch(kernel, &params, bindings, Grid::fold(tiles));
            terms = next;
        }
    }
}

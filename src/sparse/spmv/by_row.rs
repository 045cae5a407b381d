//! Variants in which a thread or a team of lanes owns a row: `csr-scalar`, `csr-vector`, `ell`, `jds`, `sell`.

use super::{SpmvLowering, SpmvParams, shuffled};
use crate::program::prelude::*;

impl SpmvLowering<'_> {
    pub(super) fn csr(&mut self, lanes: u32) {
        let end = u32::MAX;
        if lanes == 1 {
            return self.rows("sparse/spmv_csr_scalar", "spmv_csr_scalar", self.values_at(3), 3, 1, end);
        }
        let spec = self.values_at(3).constant("LANES", lanes).flag("SUBGROUPS", lanes <= shuffled(self.profile));
        self.rows("sparse/spmv_csr_vector", "spmv_csr_vector", spec, 3, lanes, end);
    }

    /// Appends the product of an ELL matrix, or of the ELL part of a hybrid.
    pub(super) fn ell(&mut self, width: usize) {
        let spec = self.values_at(2).constant("VECTOR_BINDING", 3u32).constant("RESULT_BINDING", 4u32);
        self.rows("sparse/spmv_ell", "spmv_ell", spec, 2, 1, width as u32);
    }

    pub(super) fn jds(&mut self) {
        let spec = self.ordered();
        self.rows("sparse/spmv_jds", "spmv_jds", spec, 4, 1, self.matrix.longest as u32);
    }

    pub(super) fn sell(&mut self) {
        let spec = self.ordered();
        self.rows("sparse/spmv_sell", "spmv_sell", spec, 4, 1, u32::MAX);
    }

    /// Returns the spec for formats that sort their rows: two more lists come first.
    fn ordered(&self) -> Spec {
        self.values_at(4).constant("VECTOR_BINDING", 5u32).constant("RESULT_BINDING", 6u32)
    }

    /// Appends dispatches over slots of rows; those after the first add to y. `lists` lists precede x and y.
    fn rows(&mut self, file: &'static str, entry: &'static str, spec: Spec, lists: usize, lanes: u32, end: u32) {
        let kernel = self.program.kernel(Kernel::library(file, entry, spec));
        let rows_at_once = u64::from(self.policy.workgroup_size / lanes);
        let grid = Grid::fold((self.matrix.rows as u64).div_ceil(rows_at_once));
        let longest = self.matrix.longest as u32;
        for (begin, end) in self.windows(longest, end) {
            let first = SpmvParams { begin, end, ..self.params() };
            let params = if begin == 0 { first } else { SpmvParams { read_y: 1, beta: 1.0, ..first } };
            let mut bindings: Vec<_> = (0..lists).map(|i| self.operand(i)).collect();
            bindings.extend([self.x(), self.y()]);
            self.program.dispatch(kernel, &params, bindings, grid);
        }
    }
}

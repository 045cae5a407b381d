//! Variants that add to y by atomics: `coo-atomic`, `csc-atomic`.

use super::{SpmvLowering, SpmvParams};
use crate::program::{Binding, Determinism, Kernel};

impl SpmvLowering<'_> {
    /// Appends y += alpha A x, a thread for each entry.
    pub(super) fn coo_atomic(&mut self) {
        let bindings = vec![self.operand(0), self.operand(1), self.operand(2), self.x(), self.y()];
        let kernel = Kernel::library("sparse/spmv_coo_atomic", "spmv_coo_atomic", self.values_at(3));
        self.add_atomically(kernel, bindings, self.matrix.entries, (0, u32::MAX));
    }

    /// Appends y += alpha A x, a thread for each column.
    pub(super) fn csc_atomic(&mut self) {
        for window in self.windows(self.matrix.longest as u32, u32::MAX) {
            let bindings = vec![self.operand(0), self.operand(2), self.x(), self.operand(1), self.y()];
            let kernel = Kernel::library("sparse/spmv_csc_atomic", "spmv_csc_atomic", self.values_at(2));
            self.add_atomically(kernel, bindings, self.matrix.cols, window);
        }
    }

    fn add_atomically(&mut self, kernel: Kernel, bindings: Vec<Binding>, of: usize, (begin, end): (u32, u32)) {
        self.program.determinism = Determinism::RoundingVaries;
        let kernel = self.program.kernel(kernel);
        let grid = self.grid(of as u64);
        let params = SpmvParams { begin, end, ..self.params() };
        self.program.dispatch(kernel, &params, bindings, grid);
    }
}

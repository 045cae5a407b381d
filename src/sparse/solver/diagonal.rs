//! The inverse of the diagonal of a matrix in any format.

use super::SolverBuilder;
use crate::program::prelude::*;
use crate::sparse::{Format, MatrixLayout};

kernel_params! {
    struct DiagonalParams {
        rows: u32,
        places: u32,
        segments: u32,
        slice: u32,
    }
}

/// The lists of a matrix, or of one part of a hybrid, and how its slots find their row.
struct Part {
    /// The lists that give the row, bound first.
    rows: Vec<usize>,
    /// The list of columns, before that of values. For CSC this is the list of rows; the diagonal is the same.
    cols: usize,
    flags: &'static [&'static str],
    segments: usize,
    slice: usize,
}

impl SolverBuilder<'_> {
    /// Appends `inverse` = 1 / diagonal. The state records the first element that is not positive.
    pub(crate) fn inverse_diagonal(&mut self, inverse: Binding) -> Result<()> {
        let bytes = 4 * self.n as u64;
        let [ones, diagonal] = [0, 1].map(|_| self.program.scratch(bytes));
        let params = DiagonalParams { rows: self.n as u32, places: 0, segments: 0, slice: 0 };
        let mut lists: Vec<_> = (0..self.lists).map(Resource::Operand).collect();
        for part in self.parts() {
            let places = self.program.operands[part.cols].len;
            if places == 0 {
                continue;
            }
            let kept = self.program.scratch(4 * places as u64);
            let column = part.rows.len() as u32 + 1;
            let spec = self.spec().flag("ENTRIES", true).constant("COL_BINDING", column);
            let mut spec = self.common.matrix.values_at(column + 1, spec);
            for &flag in part.flags {
                spec = spec.flag(flag, true);
            }
            if part.flags.contains(&"SEARCHED") {
                // Pointers follow the row order, if there is one.
                spec = spec.constant("PTRS_BINDING", part.rows.len() as u32);
            }
            let operand = |i: usize| Binding::operand(i, &self.program.operands);
            let mut bindings: Vec<_> = part.rows.iter().map(|&i| operand(i)).collect();
            bindings.extend([operand(part.cols), operand(part.cols + 1), kept]);
            let params = DiagonalParams {
                places: places as u32,
                segments: part.segments as u32,
                slice: part.slice as u32,
                ..params
            };
            self.launch_slots(Kernel::library("sparse/diagonal", "diagonal_keep", spec), &params, bindings, places);
            lists[part.cols + 1] = kept.resource;
        }
        let fill = Kernel::library("sparse/diagonal", "diagonal_fill", self.spec());
        self.launch_slots(fill, &params, vec![ones], self.n);
        // The kept values are f32, even of f16 values.
        self.product_of(MatrixLayout { values: DType::F32, ..self.common.matrix }, &lists, ones, diagonal)?;
        let invert = Kernel::library("sparse/diagonal", "diagonal_invert", self.spec());
        self.launch_slots(invert, &params, vec![diagonal, inverse, self.state], self.n);
        Ok(())
    }

    fn launch_slots(&mut self, kernel: Kernel, params: &DiagonalParams, bindings: Vec<Binding>, places: usize) {
        let index = self.program.kernel(kernel);
        let size = u64::from(self.workgroup_size());
        self.program.dispatch(index, params, bindings, Grid::fold((places as u64).div_ceil(size).max(1)));
    }

    fn parts(&self) -> Vec<Part> {
        let matrix = self.common.matrix;
        let n = self.n;
        let part =
            |rows: &[usize], cols, flags, segments, slice| Part { rows: rows.to_vec(), cols, flags, segments, slice };
        match matrix.format {
            Format::Coo { .. } => vec![part(&[0], 1, &["LISTED"], 0, 0)],
            Format::Csr | Format::Csc => vec![part(&[0], 1, &["SEARCHED"], n, 0)],
            Format::Ell { .. } => vec![part(&[], 0, &[], 0, 0)],
            Format::Hybrid { .. } => vec![part(&[], 0, &[], 0, 0), part(&[2], 3, &["LISTED"], 0, 0)],
            Format::Jds => vec![part(&[0, 1], 2, &["SEARCHED", "ORDERED"], matrix.longest, 0)],
            Format::Sell { slice, .. } => {
                let slices = n.div_ceil(slice.max(1));
                vec![part(&[0, 1], 2, &["SEARCHED", "ORDERED", "SLICES"], slices, slice)]
            }
        }
    }
}

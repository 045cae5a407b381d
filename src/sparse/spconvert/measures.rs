//! Measuring a matrix before conversion, or to choose a format.

use super::steps::{ConvertParams, ConvertSteps, NO_PARAMS, step};
use crate::program::prelude::*;
use crate::sparse::matrix_layout::index_list;
use crate::sparse::{Format, MatrixLayout, Statistics};

pub(crate) const MEASURES: usize = 8;

/// Measures read back from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured([u32; MEASURES]);

impl Measured {
    pub(crate) fn new(words: &[u32]) -> Self {
        let mut measured = [0; MEASURES];
        for (to, from) in measured.iter_mut().zip(words) {
            *to = *from;
        }
        Self(measured)
    }

    pub(crate) fn longest(self) -> usize {
        self.0[0] as usize
    }

    pub(crate) fn statistics(self, layout: &MatrixLayout) -> Statistics {
        let [longest, empty_rows, low, high, median, four_fifths, bandwidth, sides] = self.0;
        Statistics::from_sums(&crate::sparse::statistics::Sums {
            rows: layout.rows,
            cols: layout.cols,
            entries: layout.entries,
            squares: u128::from(high) << 32 | u128::from(low),
            longest: longest as usize,
            empty_rows: empty_rows as usize,
            bandwidth: bandwidth as usize,
            one_side: sides != 3,
            median: median as usize,
            hybrid_width: four_fifths as usize,
            hybrid_list: 0,
        })
    }
}

fn measures() -> Operand {
    Operand { name: "measures", dtype: DType::U32, len: MEASURES, access: Access::ReadWrite }
}

impl ConvertSteps<'_> {
    fn measure_rows(&mut self, row_ptrs: Binding, rows: usize, measures: Binding) {
        self.clear(measures);
        let params = ConvertParams { count: rows as u32, ..NO_PARAMS };
        let spec = self.tile_spec();
        let kernel = ("sparse/spconvert_measure_rows", "spconvert_measure_rows");
        self.tiles(kernel, spec, params, rows, vec![measures, row_ptrs]);
    }

    fn measure_all(&mut self, from: &MatrixLayout, [ptrs, idxs]: [Binding; 2], measures: Binding) -> Result<()> {
        let MatrixLayout { rows, entries, longest, .. } = *from;
        self.measure_rows(ptrs, rows, measures);
        if rows == 0 {
            return Ok(());
        }
        let params = ConvertParams { count: entries as u32, segments: rows as u32, ..NO_PARAMS };
        let spec = self.tile_spec().constant("POINTERS_BINDING", 2u32);
        let kernel = ("sparse/spconvert_measure_entries", "spconvert_measure_entries");
        self.tiles(kernel, spec, params, entries, vec![measures, ptrs, idxs]);
        let order = self.words("sorted rows", rows)?;
        let (keys, packing) = self.order_rows(ptrs, rows, longest, rows, order)?;
        let params = ConvertParams {
            rows: rows as u32,
            longest: longest as u32,
            minor_bits: packing.minor_bits,
            begin: (rows / 2) as u32,
            end: (rows * 4 / 5) as u32,
            ..NO_PARAMS
        };
        let spec = crate::shader::Spec::new().flag("WIDE", packing.wide);
        let kernel = ("sparse/spconvert_measure_order", "spconvert_measure_order");
        self.each(kernel, spec, params, 1, vec![measures, keys]);
        Ok(())
    }
}

/// Takes all measures of CSR rows whose longest is known. Operands: row pointers, columns; measures.
pub(crate) fn measure(from: &MatrixLayout, profile: &DeviceProfile) -> Result<Program> {
    let mut operands = MatrixLayout { format: Format::Csr, ..*from }.operands("spconvert")?;
    operands.retain(|o| o.dtype == DType::U32);
    operands.push(measures());
    let mut steps = ConvertSteps::new(profile, "spconvert: measuring", step("row statistics"), operands)?;
    let lists = steps.bindings("spconvert: measuring")?;
    steps.measure_all(from, [lists[0], lists[1]], lists[2])?;
    Ok(steps.program)
}

/// Finds the longest of rows (or columns). Operands: pointers; measures.
pub(crate) fn measure_longest(rows: usize, profile: &DeviceProfile) -> Result<Program> {
    let operands = vec![index_list("row_ptrs", rows + 1), measures()];
    let mut steps = ConvertSteps::new(profile, "spconvert: measuring", step("the longest row"), operands)?;
    let lists = steps.bindings("spconvert: measuring")?;
    steps.measure_rows(lists[0], rows, lists[1]);
    Ok(steps.program)
}

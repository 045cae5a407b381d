use super::sorted::Packing;
use super::steps::{ConvertParams, ConvertSteps, NO_PARAMS, step};
use crate::program::prelude::*;
use crate::sparse::MatrixLayout;
use crate::sparse::matrix_layout::index_list;

pub(super) struct Slices {
    pub(super) rows: usize,
    pub(super) longest: usize,
    pub(super) slice: usize,
    pub(super) window: usize,
}

impl ConvertSteps<'_> {
    /// Sorts rows by falling length within windows. Returns the sorted keys.
    pub(super) fn order_rows(
        &mut self, row_ptrs: Binding, rows: usize, longest: usize, window: usize, order: Binding,
    ) -> Result<(Binding, Packing)> {
        // A larger window equals one of all rows.
        let window = window.clamp(1, rows.max(1));
        let packing = Packing::new([rows.div_ceil(window), longest + 1]);
        let keys = self.words("row keys", rows * packing.words())?;
        let sorted = self.words("sorted row keys", rows * packing.words())?;
        let unsorted = self.words("rows", rows)?;
        let params = ConvertParams {
            count: rows as u32,
            window: window as u32,
            longest: longest as u32,
            minor_bits: packing.minor_bits,
            ..NO_PARAMS
        };
        let spec = self.spec().flag("WIDE", packing.wide);
        let kernel = ("sparse/spconvert_order", "spconvert_order");
        self.each(kernel, spec, params, rows, vec![row_ptrs, keys, unsorted]);
        self.sort(rows, packing.wide, 0..packing.bits, [keys, unsorted, sorted, order])?;
        Ok((sorted, packing))
    }

    /// Sorts rows by falling length and finds the diagonals.
    pub(super) fn order_diagonals(
        &mut self, row_ptrs: Binding, rows: usize, longest: usize, [order, ptrs]: [Binding; 2],
    ) -> Result<()> {
        let (keys, packing) = self.order_rows(row_ptrs, rows, longest, rows, order)?;
        let lengths = self.words("diagonal lengths", longest + 1)?;
        let params = ConvertParams {
            count: longest as u32 + 1,
            rows: rows as u32,
            longest: longest as u32,
            minor_bits: packing.minor_bits,
            ..NO_PARAMS
        };
        let spec = self.spec().flag("WIDE", packing.wide);
        let kernel = ("sparse/spconvert_diagonals", "spconvert_diagonals");
        self.each(kernel, spec, params, longest + 1, vec![keys, lengths]);
        self.offsets(longest + 1, lengths, ptrs)
    }

    /// Sorts rows by falling length within windows; finds the slices and their total width.
    pub(super) fn order_slices(
        &mut self, row_ptrs: Binding, slices: &Slices, [order, ptrs, width]: [Binding; 3],
    ) -> Result<()> {
        let Slices { rows, longest, slice, window } = *slices;
        let count = rows.div_ceil(slice);
        let sorted = self.words("sorted rows", rows)?;
        self.order_rows(row_ptrs, rows, longest, window, sorted)?;
        let widths = self.words("slice widths", count + 1)?;
        let before = self.words("slice offsets", count + 1)?;
        self.clear(widths);
        let params =
            ConvertParams { count: (count * slice) as u32, rows: rows as u32, width: slice as u32, ..NO_PARAMS };
        let bindings = vec![row_ptrs, sorted, order, widths];
        let spec = self.spec();
        let kernel = ("sparse/spconvert_slices", "spconvert_slices");
        self.each(kernel, spec.clone(), params, count * slice, bindings);
        self.offsets(count + 1, widths, before)?;
        let params = ConvertParams { count: count as u32 + 1, ..params };
        let kernel = ("sparse/spconvert_slice_pointers", "spconvert_slice_pointers");
        self.each(kernel, spec, params, count + 1, vec![before, ptrs, width]);
        Ok(())
    }
}

/// Finds the row order, the slice pointers and the total width of the slices of a CSR matrix. Operands: row pointers;
/// order, pointers, width.
pub(crate) fn order_slices(
    from: &MatrixLayout, slice: usize, window: usize, profile: &DeviceProfile,
) -> Result<Program> {
    if slice == 0 || window == 0 {
        return Err(err!(
            InvalidArgument,
            "spconvert: slices of {slice} rows in windows of {window}; both must be at least 1"
        ));
    }
    let count = from.rows.div_ceil(slice);
    let written = |name, len| Operand { name, dtype: DType::U32, len, access: Access::Write };
    let operands = vec![
        index_list("row_ptrs", from.rows + 1),
        written("row_order", crate::shape::elements("spconvert", "row_order", &[count, slice])?),
        written("slice_ptrs", count + 1),
        written("width", 1),
    ];
    let program = step("row order");
    let mut steps = ConvertSteps::new(profile, "spconvert csr to sell", program, operands)?;
    let lists = steps.bindings("spconvert csr to sell")?;
    let shape = Slices { rows: from.rows, longest: from.longest, slice, window };
    steps.order_slices(lists[0], &shape, [lists[1], lists[2], lists[3]])?;
    Ok(steps.program)
}

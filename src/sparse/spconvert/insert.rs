use super::sorted::Entries;
use super::steps::{ConvertParams, ConvertSteps, NO_PARAMS, not_its_lists};
use crate::program::prelude::*;
use crate::sparse::MatrixLayout;

/// Appends to a program, whose operands are those of [`Spinsert`](crate::sparse::Spinsert), the insertion of `n`
/// entries into free slots of rows: all of them, or none if slots are missing.
pub(crate) fn insert_slots(
    program: Program, to: &MatrixLayout, width: usize, n: usize, profile: &DeviceProfile,
) -> Result<Program> {
    let MatrixLayout { rows, cols, .. } = *to;
    let mut steps = ConvertSteps::on(profile, program);
    let lists = steps.lists()?;
    let &[idxs, values, row_idxs, col_idxs, from_values, missing] = lists.as_slice() else {
        return Err(not_its_lists(to));
    };
    let values_out = steps.words("sorted values", n)?;
    let coordinates = [row_idxs, col_idxs, from_values];
    let sorted = steps.sort_entries(&Entries::coordinates(n, coordinates, [rows, cols], values_out))?;
    let ptrs = steps.words("row pointers", rows + 1)?;
    steps.pointers(sorted.keys, Some(sorted.packing), n, rows, ptrs);
    let lengths = steps.words("row lengths", rows)?;
    steps.lengths_of_slots(rows, width, lengths, idxs);
    let params = ConvertParams {
        count: rows as u32,
        rows: rows as u32,
        width: width as u32,
        minor_bits: sorted.packing.minor_bits,
        ..NO_PARAMS
    };
    let spec = steps.spec();
    let kernel = ("sparse/spinsert_missing", "spinsert_missing");
    steps.each(kernel, spec.clone(), params, rows, vec![lengths, ptrs, missing]);
    let params = ConvertParams { count: n as u32, ..params };
    let bindings = vec![sorted.keys, values_out, ptrs, lengths, missing, idxs, values];
    let spec = spec.flag("WIDE", sorted.packing.wide);
    steps.each(("sparse/spinsert_slots", "spinsert_slots"), spec, params, n, bindings);
    Ok(steps.finish())
}

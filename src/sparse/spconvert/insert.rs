//! Inserting entries into an existing matrix.

use super::sorted::Entries;
use super::steps::{ConvertParams, ConvertSteps, NO_PARAMS, not_its_lists, step};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{Access, DeviceProfile, Operand, Program};
use crate::sparse::{Format, MatrixLayout};

/// Puts `n` entries into free slots of rows: all of them, or none if slots are missing. Operands: rows, columns and
/// values of the entries; columns and values of the slots; the number of missing slots.
pub(crate) fn insert_places(to: &MatrixLayout, n: usize, profile: &DeviceProfile) -> Result<Program> {
    let MatrixLayout { rows, cols, format: Format::Ell { width }, .. } = *to else {
        return Err(err!(Shape, "insert: {} has no free slots; convert the matrix to ell", to.format.name()));
    };
    let entries = MatrixLayout { entries: n, format: Format::Coo { sorted: false }, ..*to };
    let mut operands = entries.operands("insert")?;
    let placed = |operand| Operand { access: Access::ReadWrite, ..operand };
    operands.extend(to.operands("insert")?.iter().map(super::written).map(placed));
    operands.push(Operand { name: "missing", dtype: DType::U32, len: 1, access: Access::ReadWrite });
    let program = step("into free slots");
    let mut steps = ConvertSteps::new(profile, "insert", program, operands)?;
    let lists = steps.bindings("insert")?;
    let &[row_idxs, col_idxs, from_values, idxs, values, missing] = lists.as_slice() else {
        return Err(not_its_lists(to));
    };
    let values_out = steps.words("sorted values", n)?;
    let coordinates = [row_idxs, col_idxs, from_values];
    let sorted = steps.sort_entries(&Entries::coordinates(n, coordinates, [rows, cols], values_out))?;
    let ptrs = steps.words("row pointers", rows + 1)?;
    steps.pointers(sorted.keys, Some(sorted.packing), n, rows, ptrs);
    let lengths = steps.words("row lengths", rows)?;
    steps.lengths_of_slots(rows, width, lengths, idxs);
    steps.clear(missing);
    let params = ConvertParams {
        count: rows as u32,
        rows: rows as u32,
        width: width as u32,
        minor_bits: sorted.packing.minor_bits,
        ..NO_PARAMS
    };
    let spec = steps.spec();
    let kernel = ("sparse/spconvert_missing", "spconvert_missing");
    steps.each(kernel, spec.clone(), params, rows, vec![lengths, ptrs, missing]);
    let params = ConvertParams { count: n as u32, ..params };
    let bindings = vec![sorted.keys, values_out, ptrs, lengths, missing, idxs, values];
    let spec = spec.flag("WIDE", sorted.packing.wide);
    steps.each(("sparse/spconvert_insert", "spconvert_insert"), spec, params, n, bindings);
    Ok(steps.program)
}

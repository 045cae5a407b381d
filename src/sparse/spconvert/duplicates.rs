use super::sorted::{Entries, Packing};
use super::steps::{ConvertParams, ConvertSteps, NO_PARAMS, not_its_lists, step};
use crate::program::prelude::*;
use crate::sparse::matrix_layout::index_list;
use crate::sparse::{Format, MatrixLayout};

/// Sorts entries by row and column and finds runs of equal positions. Operands: the lists of COO or CSR; keys, values,
/// starts of runs, row pointers of runs, and two sizes (number of runs, length of the longest).
pub(crate) fn find_runs(from: &MatrixLayout, profile: &DeviceProfile) -> Result<Program> {
    let (n, rows) = (from.entries, from.rows);
    let extents = [rows, from.cols];
    let packing = Packing::new(extents);
    let mut operands = from.operands("spconvert")?;
    let written = |name, dtype, len| Operand { name, dtype, len, access: Access::Write };
    operands.extend([
        written("keys", DType::U32, n * packing.words()),
        written("sorted", DType::F32, n),
        written("starts", DType::U32, n + 1),
        written("to.row_ptrs", DType::U32, rows + 1),
        written("sizes", DType::U32, 2),
    ]);
    let mut steps = ConvertSteps::new(profile, "spconvert: duplicates", step("duplicate entries"), operands)?;
    let lists = steps.bindings("spconvert: duplicates")?;
    let &[other, idxs, values, keys, values_out, starts, ptrs, sizes] = lists.as_slice() else {
        return Err(not_its_lists(from));
    };
    let segments = (from.format == Format::Csr).then_some(rows);
    let entries = Entries { n, other, segments, other_above: true, idxs, values, extents, by_minor: true, values_out };
    let sorted = steps.sort_entries_into(&entries, keys)?;
    let heads = steps.words("run heads", n + 1)?;
    let ranks = steps.words("run ranks", n + 1)?;
    let params = ConvertParams { count: n as u32, minor_bits: packing.minor_bits, ..NO_PARAMS };
    let (spec, wide) = (steps.spec(), steps.spec().flag("WIDE", packing.wide));
    steps.each(("sparse/spconvert_heads", "spconvert_heads"), wide, params, n, vec![keys, heads]);
    steps.offsets(n + 1, heads, ranks)?;
    steps.clear(sizes);
    let bindings = vec![ranks, starts, sizes];
    steps.each(("sparse/spconvert_runs", "spconvert_runs"), spec.clone(), params, n + 1, bindings);
    let kernel = ("sparse/spconvert_longest_run", "spconvert_longest_run");
    steps.each(kernel, spec, params, n, vec![starts, sizes]);
    steps.find_pointers(keys, Some(sorted.packing), n, rows, ptrs, Some(ranks));
    Ok(steps.program)
}

/// Adds up the runs of [`find_runs`]. Operands: starts of runs, keys, values; columns, values.
pub(crate) fn sum_runs(from: &MatrixLayout, runs: usize, longest: usize, profile: &DeviceProfile) -> Result<Program> {
    let n = from.entries;
    let packing = Packing::new([from.rows, from.cols]);
    let value = |name, len, access| Operand { name, dtype: DType::F32, len, access };
    let operands = vec![
        index_list("starts", n + 1),
        index_list("keys", n * packing.words()),
        value("sorted", n, Access::Read),
        Operand { access: Access::Write, ..index_list("col_idxs", runs) },
        value("values", runs, Access::ReadWrite),
    ];
    let mut steps = ConvertSteps::new(profile, "spconvert: duplicates", step("duplicate entries"), operands)?;
    let lists = steps.bindings("spconvert: duplicates")?;
    let max = steps.policy.max_steps as usize;
    for begin in (0..longest).step_by(max) {
        let params = ConvertParams {
            count: runs as u32,
            sources: n as u32,
            minor_bits: packing.minor_bits,
            begin: begin as u32,
            end: (begin + max).min(longest) as u32,
            ..NO_PARAMS
        };
        let spec = steps.spec().flag("WIDE", packing.wide);
        steps.each(("sparse/spconvert_sum", "spconvert_sum"), spec, params, runs, lists.clone());
    }
    Ok(steps.program)
}

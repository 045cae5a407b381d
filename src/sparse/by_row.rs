//! The entries of a matrix by row, for products with formats that store them in another order.

use super::matrix_layout::index_list;
use super::spconvert::step;
use super::spmv::SpmvParams;
use super::{Format, MatrixLayout};
use crate::primitives::RadixSort;
use crate::program::prelude::*;

/// The lists of an order: the row, the column and the index of each entry, sorted by row.
pub(crate) const BY_ROW: [&str; 3] = ["by_row.row_idxs", "by_row.col_idxs", "by_row.order"];

impl MatrixLayout {
    /// Returns the number of entries that are in another order than by row; `None` for formats that go by row.
    pub(crate) fn unordered(&self) -> Option<usize> {
        match self.format {
            Format::Csc | Format::Coo { sorted: false } => Some(self.entries),
            Format::Hybrid { list, sorted: false, .. } => Some(list),
            _ => None,
        }
    }

    /// Returns the lists that a variant of a product takes: those of the format, and the order by row if it needs one.
    pub(super) fn product_lists(&self, op: &str, variant: &Variant) -> Result<Vec<Operand>> {
        let mut operands = self.operands(op)?;
        if let (Some(n), false) = (self.unordered(), variant.any_order) {
            operands.extend(BY_ROW.map(|name| index_list(name, n)));
        }
        Ok(operands)
    }

    /// Returns the two lists of indices that give the row and column of unordered entries.
    pub(crate) fn unordered_lists(&self) -> std::ops::Range<usize> {
        if matches!(self.format, Format::Hybrid { .. }) { 2..4 } else { 0..2 }
    }
}

pub(super) fn order_of(operands: &[Operand]) -> Option<[Binding; 3]> {
    let first = operands.iter().position(|operand| operand.name == BY_ROW[0])?;
    Some([0, 1, 2].map(|i| Binding::operand(first + i, operands)))
}

/// Finds the order by row. Operands: two lists of indices; the three lists of the order.
pub(crate) fn order_by_row(matrix: &MatrixLayout, profile: &DeviceProfile) -> Result<Program> {
    const WORKGROUP_SIZE: u32 = 256;
    let n = matrix.unordered().unwrap_or(0);
    let mut program = step("the entries by row");
    program.operands = matrix.operands("order by row")?.drain(matrix.unordered_lists()).collect();
    let written = |name| Operand { access: Access::Write, ..index_list(name, n) };
    program.operands.extend(BY_ROW.map(written));
    let remedy = "multiply chunks of rows, one call each";
    profile.check_bindings("order by row", &program.operands, remedy)?;
    if n == 0 || matrix.cols == 0 {
        return Ok(program);
    }
    let operand = |i| Binding::operand(i, &program.operands);
    let (mut rows, mut cols, out) = (operand(0), operand(1), [2, 3, 4].map(operand));
    let numbers = program.scratch(4 * n as u64);
    let columns = matrix.format == Format::Csc;
    let mut bindings = vec![numbers];
    if columns {
        let col_ptrs = rows;
        (rows, cols) = (cols, program.scratch(4 * n as u64));
        bindings.extend([cols, col_ptrs]);
    }
    let spec = Spec::new().constant("WORKGROUP_SIZE", WORKGROUP_SIZE).flag("COLUMNS", columns);
    let kernel = program.kernel(Kernel::library("sparse/by_row_number", "by_row_number", spec));
    let params = SpmvParams { entries: n as u32, ..SpmvParams::of(*matrix) };
    program.dispatch(kernel, &params, bindings, Grid::fold((n as u64).div_ceil(WORKGROUP_SIZE.into())));
    let bits = (usize::BITS - matrix.rows.saturating_sub(1).leading_zeros()).max(1);
    // Both sorts are stable, so that they give the same order.
    for (list, sorted) in [(cols, out[1]), (numbers, out[2])] {
        let sort = Op::<u32>::lower(&RadixSort::new(n).with_values().bits(0..bits), profile)?;
        let resources: [Resource; 4] = [rows, list, out[0], sorted].map(|binding| binding.resource);
        program.append(sort, &resources);
    }
    Ok(program)
}

/// Finds the order by row on the host, from the lists of a matrix: no lists for formats that go by row.
pub(super) fn order_on_host(matrix: &MatrixLayout, lists: &[&[u32]]) -> Result<Vec<Vec<u32>>> {
    let Some(n) = matrix.unordered() else { return Ok(Vec::new()) };
    let csc = matrix.format == Format::Csc;
    let (rows, other) = match *lists {
        [col_ptrs, rows] if csc => (rows, col_ptrs),
        [rows, cols] if cols.len() == n => (rows, cols),
        _ => (&[][..], &[][..]),
    };
    if rows.len() != n {
        return Err(err!(Shape, "{}: the lists of indices have other lengths", matrix.name("order by row of")));
    }
    let mut cols = copied("the order by row", if csc { rows } else { other })?;
    if csc {
        for (col, ends) in other.windows(2).enumerate() {
            let entries = cols.get_mut(ends[0] as usize..ends[1] as usize);
            entries.into_iter().flatten().for_each(|to| *to = col as u32);
        }
    }
    let mut order = filled("the order by row", n, 0u32)?;
    order.iter_mut().zip(0..).for_each(|(to, i)| *to = i);
    order.sort_by_key(|&i| rows[i as usize]);
    let sorted = |list: &[u32]| order.iter().map(|&i| list[i as usize]).collect();
    Ok(vec![sorted(rows), sorted(&cols), order])
}

/// As [`order_on_host`], of the arrays of a form whose op has this variant.
pub(super) fn given_order(
    matrix: &MatrixLayout, lists: &[HostArray], variants: &[Variant], variant: &str,
) -> Result<Vec<Role>> {
    // A form without lists is only lowered.
    if lists.is_empty() || variants.iter().any(|v| v.name == variant && v.any_order) {
        return Ok(Vec::new());
    }
    let indices = lists.get(matrix.unordered_lists()).unwrap_or_default().iter();
    let indices: Vec<&[u32]> = indices.filter_map(|list| list.data().slice()).collect();
    let order = order_on_host(matrix, &indices)?;
    order.into_iter().map(|list| Ok(Role::Given(HostArray::new(&[list.len()], list)?))).collect()
}

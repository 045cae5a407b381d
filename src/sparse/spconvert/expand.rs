//! Conversions that do not sort: each entry finds its row and fetches itself.

use super::sorted;
use super::steps::{Compressed, ConvertParams, ConvertSteps, NO_PARAMS, step};
use crate::program::prelude::*;
use crate::sparse::MatrixLayout;
use crate::sparse::matrix_layout::index_list;

/// The COO part of a hybrid matrix.
pub(super) struct HybridList {
    pub(super) len: usize,
    pub(super) sorted: bool,
    /// Rows, columns, values.
    pub(super) lists: [Binding; 3],
}

impl ConvertSteps<'_> {
    /// Appends `params.count` entries, each from the place that `source` computes.
    fn gather(
        &mut self, source: &'static str, spec: Spec, params: ConvertParams, bindings: impl IntoIterator<Item = Binding>,
    ) {
        let spec = spec.slot("source", Fragment::Library(source));
        let kernel = ("sparse/spconvert_gather", "spconvert_gather");
        self.tiles(kernel, spec, params, params.count as usize, bindings.into_iter().collect());
    }

    /// Appends the lengths of `params.count` rows, or of rows in sorted order.
    fn lengths(
        &mut self, length: &'static str, spec: Spec, params: ConvertParams, bindings: impl IntoIterator<Item = Binding>,
    ) {
        let spec = spec.slot("length", Fragment::Library(length));
        let kernel = ("sparse/spconvert_lengths", "spconvert_lengths");
        self.each(kernel, spec, params, params.count as usize, bindings.into_iter().collect());
    }

    pub(super) fn lengths_of_slots(&mut self, rows: usize, width: usize, lengths: Binding, idxs: Binding) {
        let params = ConvertParams { count: rows as u32, rows: rows as u32, width: width as u32, ..NO_PARAMS };
        let spec = self.spec();
        self.lengths("sparse/spconvert_of_ell", spec, params, [lengths, idxs]);
    }

    /// Converts compressed rows to coordinates.
    pub(super) fn write_rows(
        &mut self, from: Compressed, entries: usize, rows: usize, [row_idxs, idxs, values]: [Binding; 3],
    ) {
        let params =
            ConvertParams { count: entries as u32, segments: rows as u32, sources: entries as u32, ..NO_PARAMS };
        let spec = self.tile_spec().flag("ROWS", true);
        let bindings = [from.ptrs, from.idxs, from.values, idxs, values, row_idxs];
        self.gather("sparse/spconvert_as_they_are", spec, params, bindings);
    }

    /// Converts compressed rows to slots; drops entries that do not fit.
    pub(super) fn fill_slots(
        &mut self, from: Compressed, entries: usize, rows: usize, width: usize, [idxs, values]: [Binding; 2],
    ) {
        let size = self.policy.workgroup_size as usize;
        let params = ConvertParams {
            segments: rows.div_ceil(size) as u32,
            rows: rows as u32,
            width: width as u32,
            sources: entries as u32,
            ..NO_PARAMS
        };
        let places = self.policy.places;
        let items = rows.div_ceil(size) * size * width.div_ceil(places as usize);
        let bindings = vec![from.ptrs, from.idxs, from.values, idxs, values];
        let spec = self.spec().constant("PLACES", places);
        self.each(("sparse/spconvert_ell", "spconvert_ell"), spec, params, items, bindings);
    }

    /// Converts the rest of compressed rows to the COO part.
    pub(super) fn fill_list(
        &mut self, from: Compressed, entries: usize, rows: usize, width: usize,
        (len, [row_idxs, idxs, values]): (usize, [Binding; 3]),
    ) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let list_ptrs = self.words("pointers of the COO part", rows + 1)?;
        self.point_at_rest(from.ptrs, rows, width, list_ptrs)?;
        let params = ConvertParams {
            count: len as u32,
            segments: rows as u32,
            width: width as u32,
            sources: entries as u32,
            ..NO_PARAMS
        };
        let spec = self.tile_spec().flag("ROWS", true);
        let bindings = [list_ptrs, from.idxs, from.values, idxs, values, row_idxs, from.ptrs];
        self.gather("sparse/spconvert_rest", spec, params, bindings);
        Ok(())
    }

    /// Appends, for each row, the start of its rest in the COO part.
    pub(super) fn point_at_rest(
        &mut self, row_ptrs: Binding, rows: usize, width: usize, list_ptrs: Binding,
    ) -> Result<()> {
        let lengths = self.words("row lengths", rows + 1)?;
        let params = ConvertParams { count: rows as u32, rows: rows as u32, width: width as u32, ..NO_PARAMS };
        let spec = self.spec();
        self.lengths("sparse/spconvert_of_rest", spec, params, [lengths, row_ptrs]);
        self.offsets(rows + 1, lengths, list_ptrs)
    }

    /// Converts slots and an optional COO part to compressed rows.
    pub(super) fn collect_slots(
        &mut self, from: &MatrixLayout, width: usize, [idxs, values]: [Binding; 2], list: Option<HybridList>,
        to: Compressed,
    ) -> Result<()> {
        let rows = from.rows;
        let listed = list.as_ref().map_or(0, |list| list.len);
        let list = match list {
            Some(list) if list.len > 0 => Some(self.list_by_rows(from, &list)?),
            _ => None,
        };
        let params = ConvertParams {
            count: rows as u32,
            segments: rows as u32,
            rows: rows as u32,
            width: width as u32,
            sources: (rows * width) as u32,
            end: listed as u32,
            ..NO_PARAMS
        };
        let lengths = self.words("row lengths", rows + 1)?;
        let spec = self.spec().flag("LIST", list.is_some());
        let bindings = [lengths, idxs].into_iter().chain(list.map(|list| list.ptrs));
        self.lengths("sparse/spconvert_of_ell", spec, params, bindings);
        self.offsets(rows + 1, lengths, to.ptrs)?;
        let params = ConvertParams { count: from.entries as u32, ..params };
        let spec = self.tile_spec().flag("LIST", list.is_some());
        let list = list.map(|list| [list.ptrs, list.idxs, list.values]);
        let bindings = [to.ptrs, idxs, values, to.idxs, to.values].into_iter().chain(list.into_iter().flatten());
        self.gather("sparse/spconvert_from_ell", spec, params, bindings);
        Ok(())
    }

    fn list_by_rows(&mut self, from: &MatrixLayout, list: &HybridList) -> Result<Compressed> {
        let ptrs = self.words("pointers of the COO part", from.rows + 1)?;
        if list.sorted {
            let [rows, idxs, values] = list.lists;
            self.pointers(rows, None, list.len, from.rows, ptrs);
            return Ok(Compressed { ptrs, idxs, values });
        }
        let idxs = self.words("columns of the COO part", list.len)?;
        let values_out = self.words("values of the COO part", list.len)?;
        let extents = [from.rows, from.cols];
        let sorted = self.sort_entries(&sorted::Entries::coordinates(list.len, list.lists, extents, values_out))?;
        let to = Compressed { ptrs, idxs, values: values_out };
        self.compress(&sorted, from.rows, to);
        Ok(to)
    }

    /// Converts jagged diagonals, or slices of rows, to compressed rows.
    pub(super) fn collect_ordered(
        &mut self, from: &MatrixLayout, slice: Option<usize>, [order, ptrs, idxs, values]: [Binding; 4], to: Compressed,
    ) -> Result<()> {
        let rows = from.rows;
        let lengths = self.words("row lengths", rows + 1)?;
        let places = self.words("row positions", rows)?;
        let params = ConvertParams {
            count: (order.size / 4) as u32,
            segments: rows as u32,
            rows: rows as u32,
            width: slice.unwrap_or(0) as u32,
            longest: from.longest as u32,
            sources: (idxs.size / 4) as u32,
            ..NO_PARAMS
        };
        let spec = self.spec().flag("ORDERED", true);
        let bindings = [lengths, order, places, ptrs].into_iter();
        let (length, source) = if slice.is_some() {
            ("sparse/spconvert_of_sell", "sparse/spconvert_from_sell")
        } else {
            ("sparse/spconvert_of_jds", "sparse/spconvert_from_jds")
        };
        self.lengths(length, spec, params, bindings.chain(slice.map(|_| idxs)));
        self.offsets(rows + 1, lengths, to.ptrs)?;
        let params = ConvertParams { count: from.entries as u32, ..params };
        let bindings = [to.ptrs, idxs, values, to.idxs, to.values, places, ptrs];
        let spec = self.tile_spec();
        self.gather(source, spec, params, bindings);
        Ok(())
    }

    /// Converts compressed rows to jagged diagonals; the row order exists.
    pub(super) fn fill_diagonals(
        &mut self, from: Compressed, to: &MatrixLayout, [order, ptrs, idxs, values]: [Binding; 4],
    ) {
        let params = ConvertParams {
            count: to.entries as u32,
            segments: to.longest as u32,
            rows: to.rows as u32,
            sources: to.entries as u32,
            ..NO_PARAMS
        };
        let bindings = [ptrs, from.idxs, from.values, idxs, values, order, from.ptrs];
        let spec = self.tile_spec();
        self.gather("sparse/spconvert_to_jds", spec, params, bindings);
    }

    pub(super) fn fill_slices(
        &mut self, from: Compressed, entries: usize, rows: usize, (slice, places): (usize, usize),
        [order, ptrs, idxs, values]: [Binding; 4],
    ) {
        let params = ConvertParams {
            count: places as u32,
            segments: rows.div_ceil(slice) as u32,
            rows: rows as u32,
            width: slice as u32,
            sources: entries as u32,
            ..NO_PARAMS
        };
        let bindings = [ptrs, from.idxs, from.values, idxs, values, order, from.ptrs];
        let spec = self.tile_spec();
        self.gather("sparse/spconvert_to_sell", spec, params, bindings);
    }
}

/// Finds where the rest of each row beyond `width` slots starts. Operands: row pointers; pointers of the COO part.
pub(crate) fn point_at_rest(rows: usize, width: usize, profile: &DeviceProfile) -> Result<Program> {
    let operands =
        vec![index_list("row_ptrs", rows + 1), Operand { access: Access::Write, ..index_list("list_ptrs", rows + 1) }];
    let program = step("the COO part");
    let mut steps = ConvertSteps::new(profile, "spconvert csr to hybrid", program, operands)?;
    let lists = steps.bindings("spconvert csr to hybrid")?;
    steps.point_at_rest(lists[0], rows, width, lists[1])?;
    Ok(steps.program)
}

//! The builder of conversions: scratch, kernels, and the way to and from compressed rows.

use super::{Spconvert, expand, order, sorted};
use crate::primitives::{RadixSort, Scan, Sum, clear_words};
use crate::program::prelude::*;
use crate::sparse::{Format, MatrixLayout};
use std::ops::Range;

kernel_params! {
    pub(super) struct ConvertParams {
        count: u32,
        segments: u32,
        rows: u32,
        width: u32,
        window: u32,
        longest: u32,
        sources: u32,
        minor_bits: u32,
        begin: u32,
        end: u32,
    }
}

pub(super) const NO_PARAMS: ConvertParams = ConvertParams {
    count: 0,
    segments: 0,
    rows: 0,
    width: 0,
    window: 0,
    longest: 0,
    sources: 0,
    minor_bits: 0,
    begin: 0,
    end: 0,
};

/// Constants that depend on the device.
pub(super) struct ConvertPolicy {
    pub(super) workgroup_size: u32,
    /// Entries of a thread in kernels over tiles.
    items: u32,
    /// Slots of a row that a thread fills.
    pub(super) places: u32,
    /// Entries of a run that one dispatch adds up.
    pub(super) max_steps: u32,
}

fn policy(profile: &DeviceProfile) -> ConvertPolicy {
    // Leaves room for the other work of a thread.
    let max_steps = profile.loop_steps(3, 1 << 20) as u32;
    if profile.quirks.serial_workgroups {
        // Barriers are slow on software drivers.
        ConvertPolicy { workgroup_size: 64, items: 16, places: 64, max_steps }
    } else {
        ConvertPolicy { workgroup_size: 256, items: 4, places: 16, max_steps }
    }
}

/// The lists of compressed rows or columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compressed {
    pub(super) ptrs: Binding,
    pub(super) idxs: Binding,
    pub(super) values: Binding,
}

/// A program under construction.
pub(super) struct ConvertSteps<'a> {
    profile: &'a DeviceProfile,
    pub(super) policy: ConvertPolicy,
    pub(super) program: Program,
    /// f16 results: their number, their words, and their list.
    narrow: Vec<(usize, Binding, Binding)>,
}

impl<'a> ConvertSteps<'a> {
    /// Starts a program with these operands, checked.
    pub(super) fn new(
        profile: &'a DeviceProfile, name: &str, mut program: Program, operands: Vec<Operand>,
    ) -> Result<Self> {
        let remedy = "use a format with less padding, or convert chunks of rows, one call each";
        profile.check_bindings(name, &operands, remedy)?;
        program.cost = Cost::of(0.0, &operands);
        program.operands = operands;
        Ok(Self::on(profile, program))
    }

    pub(super) fn on(profile: &'a DeviceProfile, program: Program) -> Self {
        Self { profile, policy: policy(profile), program, narrow: Vec::new() }
    }

    /// Returns bindings of all operands. f16 values are widened to a word each.
    pub(super) fn lists(&mut self) -> Result<Vec<Binding>> {
        let mut lists = Vec::new();
        for (i, o) in self.program.operands.clone().into_iter().enumerate() {
            let list = Binding::operand(i, &self.program.operands);
            if o.dtype != DType::F16 {
                lists.push(list);
                continue;
            }
            let words = self.words("values", o.len)?;
            if o.access != Access::Read {
                self.narrow.push((o.len, words, list));
            }
            if o.access != Access::Write {
                self.move_halves(o.len, false, words, list);
            }
            lists.push(words);
        }
        Ok(lists)
    }

    /// Returns the program, after narrowing f16 results.
    pub(super) fn finish(mut self) -> Program {
        for (n, words, list) in std::mem::take(&mut self.narrow) {
            self.move_halves(n, true, words, list);
        }
        self.program
    }

    /// Appends a copy of f16 values between words and their list.
    fn move_halves(&mut self, n: usize, narrow: bool, words: Binding, list: Binding) {
        let params = ConvertParams { count: n as u32, ..NO_PARAMS };
        let spec = self.spec().flag("NARROW", narrow);
        let bindings = if narrow { vec![words, list] } else { vec![list, words] };
        self.each(("sparse/spconvert_halves", "spconvert_halves"), spec, params, n.div_ceil(2), bindings);
    }

    pub(super) fn bindings(&self, name: &str) -> Result<Vec<Binding>> {
        let operands = &self.program.operands;
        if let Some(o) = operands.iter().find(|o| !matches!(o.dtype, DType::U32 | DType::F32)) {
            return Err(err!(
                Unsupported,
                "{name}: {} is {}, must be f32; do this before rounding the values",
                o.name,
                o.dtype
            ));
        }
        Ok((0..operands.len()).map(|i| Binding::operand(i, operands)).collect())
    }

    /// Adds this many words of scratch, checked against the largest binding.
    pub(super) fn words(&mut self, what: &str, words: usize) -> Result<Binding> {
        let bytes = (words as u64).saturating_mul(4);
        self.profile.check_scratch(
            "spconvert",
            format_args!("{what}"),
            bytes,
            "convert chunks of rows, one call each",
        )?;
        Ok(self.program.scratch(bytes))
    }

    pub(super) fn spec(&self) -> Spec {
        Spec::new().constant("WORKGROUP_SIZE", self.policy.workgroup_size)
    }

    pub(super) fn tile_spec(&self) -> Spec {
        self.spec().constant("ITEMS_PER_THREAD", self.policy.items)
    }

    /// Appends a kernel with a thread for each of `items`.
    pub(super) fn each(
        &mut self, (file, entry): (&'static str, &'static str), spec: Spec, params: ConvertParams, items: usize,
        bindings: Vec<Binding>,
    ) {
        if items > 0 {
            let kernel = self.program.kernel(Kernel::library(file, entry, spec));
            let workgroups = (items as u64).div_ceil(u64::from(self.policy.workgroup_size));
            self.program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        }
    }

    /// As [`each`](Self::each), with several items for a thread.
    pub(super) fn tiles(
        &mut self, kernel: (&'static str, &'static str), spec: Spec, params: ConvertParams, items: usize,
        bindings: Vec<Binding>,
    ) {
        self.each(kernel, spec, params, items.div_ceil(self.policy.items as usize), bindings);
    }

    fn copy(&mut self, words: usize, from: Binding, to: Binding) {
        let params = ConvertParams { count: words as u32, ..NO_PARAMS };
        let spec = self.spec();
        self.each(("sparse/spconvert_copy", "spconvert_copy"), spec, params, words, vec![from, to]);
    }

    pub(super) fn clear(&mut self, what: Binding) {
        clear_words(&mut self.program, what, what.size / 4);
    }

    pub(super) fn offsets(&mut self, n: usize, lengths: Binding, ptrs: Binding) -> Result<()> {
        let scan = Op::<u32>::lower(&Scan::new(Sum, n).exclusive(), self.profile)?;
        self.program.append(scan, &[lengths.resource, ptrs.resource]);
        Ok(())
    }

    pub(super) fn sort(
        &mut self, n: usize, wide: bool, bits: Range<u32>, [keys, values, keys_out, values_out]: [Binding; 4],
    ) -> Result<()> {
        let sort = RadixSort::new(n).with_values().bits(bits);
        let sort = if wide { Op::<u64>::lower(&sort, self.profile) } else { Op::<u32>::lower(&sort, self.profile) }?;
        let operands = [keys, values, keys_out, values_out].map(|binding| binding.resource);
        self.program.append(sort, &operands);
        Ok(())
    }

    pub(super) fn collect_rows(&mut self, from: &MatrixLayout, lists: &[Binding], to: Compressed) -> Result<()> {
        match (from.format, lists) {
            (Format::Csr, &[ptrs, idxs, values]) => {
                self.copy(from.rows + 1, ptrs, to.ptrs);
                self.copy(from.entries, idxs, to.idxs);
                self.copy(from.entries, values, to.values);
                Ok(())
            }
            (Format::Coo { sorted: true }, &[rows, cols, values]) => {
                self.pointers(rows, None, from.entries, from.rows, to.ptrs);
                self.copy(from.entries, cols, to.idxs);
                self.copy(from.entries, values, to.values);
                Ok(())
            }
            (Format::Coo { .. }, &[rows, cols, values]) => {
                let extents = [from.rows, from.cols];
                let entries = sorted::Entries::coordinates(from.entries, [rows, cols, values], extents, to.values);
                let sorted = self.sort_entries(&sorted::Entries { by_minor: true, ..entries })?;
                self.compress(&sorted, from.rows, to);
                Ok(())
            }
            (Format::Csc, &[ptrs, rows, values]) => {
                self.turn(Compressed { ptrs, idxs: rows, values }, [from.cols, from.rows], from.entries, to)
            }
            (Format::Ell { width }, &[idxs, values]) => self.collect_slots(from, width, [idxs, values], None, to),
            (Format::Hybrid { width, list, sorted }, &[idxs, values, rows, cols, rest]) => {
                let list = expand::HybridList { len: list, sorted, lists: [rows, cols, rest] };
                self.collect_slots(from, width, [idxs, values], Some(list), to)
            }
            (Format::Jds, &[order, ptrs, idxs, values]) => {
                self.collect_ordered(from, None, [order, ptrs, idxs, values], to)
            }
            (Format::Sell { slice, .. }, &[order, ptrs, idxs, values]) => {
                self.collect_ordered(from, Some(slice), [order, ptrs, idxs, values], to)
            }
            _ => Err(not_its_lists(from)),
        }
    }

    pub(super) fn spread_rows(
        &mut self, op: &Spconvert, from: Compressed, entries: usize, to: &MatrixLayout, lists: &[Binding],
    ) -> Result<()> {
        let MatrixLayout { rows, cols, .. } = *to;
        match (to.format, lists) {
            (Format::Csr, &[ptrs, idxs, values]) => {
                let csr = MatrixLayout { format: Format::Csr, ..*to };
                self.collect_rows(&csr, &[from.ptrs, from.idxs, from.values], Compressed { ptrs, idxs, values })
            }
            (Format::Coo { .. }, &[row_idxs, idxs, values]) => {
                self.write_rows(from, entries, rows, [row_idxs, idxs, values]);
                Ok(())
            }
            (Format::Csc, &[ptrs, idxs, values]) => {
                self.turn(from, [rows, cols], entries, Compressed { ptrs, idxs, values })
            }
            (Format::Ell { width }, &[idxs, values]) => {
                self.fill_slots(from, entries, rows, width, [idxs, values]);
                Ok(())
            }
            (Format::Hybrid { width, list, .. }, &[idxs, values, row_idxs, cols, rest]) => {
                self.fill_slots(from, entries, rows, width, [idxs, values]);
                self.fill_list(from, entries, rows, width, (list, [row_idxs, cols, rest]))
            }
            (Format::Jds, &[order, ptrs, idxs, values]) => {
                self.order_diagonals(from.ptrs, rows, to.longest, [order, ptrs])?;
                self.fill_diagonals(from, to, [order, ptrs, idxs, values]);
                Ok(())
            }
            (Format::Sell { slice, places }, &[order, ptrs, idxs, values]) => {
                if !op.ordered {
                    let width = self.program.scratch(4);
                    let shape = order::Slices { rows, longest: to.longest, slice, window: op.window };
                    self.order_slices(from.ptrs, &shape, [order, ptrs, width])?;
                }
                self.fill_slices(from, entries, rows, (slice, places), [order, ptrs, idxs, values]);
                Ok(())
            }
            _ => Err(not_its_lists(to)),
        }
    }
}

pub(super) fn not_its_lists(layout: &MatrixLayout) -> crate::Error {
    err!(Shape, "spconvert: the lists are not those of {}", layout.format.name())
}

pub(in crate::sparse) fn step(why: &str) -> Program {
    Program::new("spconvert", Decision::policy(Spconvert::variants()[0].name, why))
}

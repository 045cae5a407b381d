//! Conversions that sort: to and from compressed columns, and from unsorted coordinates.

use super::steps::{Compressed, ConvertParams, ConvertSteps, NO_PARAMS};
use crate::program::prelude::*;
use std::ops::Range;

/// Entries to sort by a major index, then by a minor one if `by_minor`.
pub(super) struct Entries {
    pub(super) n: usize,
    /// One index of each entry; or pointers of `segments` segments, which give that index.
    pub(super) other: Binding,
    pub(super) segments: Option<usize>,
    /// Whether that index is the major one.
    pub(super) other_above: bool,
    /// The other index of each entry.
    pub(super) idxs: Binding,
    pub(super) values: Binding,
    /// Extents of the major and the minor index.
    pub(super) extents: [usize; 2],
    pub(super) by_minor: bool,
    pub(super) values_out: Binding,
}

impl Entries {
    pub(super) fn coordinates(
        n: usize, [rows, cols, values]: [Binding; 3], extents: [usize; 2], values_out: Binding,
    ) -> Self {
        Self {
            n,
            other: rows,
            segments: None,
            other_above: true,
            idxs: cols,
            values,
            extents,
            by_minor: false,
            values_out,
        }
    }
}

/// The layout of two indices in a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    pub(super) minor_bits: u32,
    pub(super) bits: u32,
    pub(super) wide: bool,
}

impl Packing {
    pub(super) fn new([major, minor]: [usize; 2]) -> Self {
        let bits = |extent: usize| (usize::BITS - extent.saturating_sub(1).leading_zeros()).max(1);
        let minor_bits = bits(minor);
        let bits = minor_bits + bits(major);
        Self { minor_bits, bits, wide: bits > 32 }
    }

    pub(super) fn words(self) -> usize {
        if self.wide { 2 } else { 1 }
    }
}

pub(super) struct Sorted {
    pub(super) n: usize,
    pub(super) keys: Binding,
    pub(super) packing: Packing,
}

impl ConvertSteps<'_> {
    /// Sorts entries. Values go to `values_out`; the keys hold the indices.
    pub(super) fn sort_entries(&mut self, entries: &Entries) -> Result<Sorted> {
        let packing = Packing::new(entries.extents);
        let keys_out = self.words("sorted keys", entries.n * packing.words())?;
        self.sort_entries_into(entries, keys_out)
    }

    pub(super) fn sort_entries_into(&mut self, entries: &Entries, keys_out: Binding) -> Result<Sorted> {
        let n = entries.n;
        let packing = Packing::new(entries.extents);
        let keys = self.words("keys", n * packing.words())?;
        let params = ConvertParams {
            count: n as u32,
            segments: entries.segments.unwrap_or(0) as u32,
            minor_bits: packing.minor_bits,
            ..NO_PARAMS
        };
        let spec = self
            .tile_spec()
            .flag("WIDE", packing.wide)
            .flag("SEGMENTS", entries.segments.is_some())
            .flag("ABOVE", entries.other_above);
        let bindings = vec![entries.other, entries.idxs, keys];
        self.tiles(("sparse/spconvert_pack", "spconvert_pack"), spec, params, n, bindings);
        // The sort is stable: an existing order by the minor index remains.
        let bits: Range<u32> = if entries.by_minor { 0 } else { packing.minor_bits }..packing.bits;
        self.sort(n, packing.wide, bits, [keys, entries.values, keys_out, entries.values_out])?;
        Ok(Sorted { n, keys: keys_out, packing })
    }

    /// Appends the minor indices of sorted entries, and the major ones if asked for.
    pub(super) fn unpack(&mut self, sorted: &Sorted, minors: Binding, majors: Option<Binding>) {
        let Sorted { n, keys, packing } = *sorted;
        let params = ConvertParams { count: n as u32, minor_bits: packing.minor_bits, ..NO_PARAMS };
        let spec = self.spec().flag("WIDE", packing.wide).flag("MAJORS", majors.is_some());
        let bindings = [keys, minors].into_iter().chain(majors).collect();
        self.each(("sparse/spconvert_unpack", "spconvert_unpack"), spec, params, n, bindings);
    }

    /// Appends the start of each of `segments` segments among sorted indices or keys.
    pub(super) fn pointers(
        &mut self, keys: Binding, packing: Option<Packing>, n: usize, segments: usize, ptrs: Binding,
    ) {
        self.find_pointers(keys, packing, n, segments, ptrs, None);
    }

    /// As [`pointers`](Self::pointers), through `ranks` if given.
    pub(super) fn find_pointers(
        &mut self, keys: Binding, packing: Option<Packing>, n: usize, segments: usize, ptrs: Binding,
        ranks: Option<Binding>,
    ) {
        let params = ConvertParams {
            count: segments as u32 + 1,
            sources: n as u32,
            minor_bits: packing.map_or(0, |p| p.minor_bits),
            ..NO_PARAMS
        };
        let mut spec = self.spec().flag("RANKED", ranks.is_some());
        if let Some(packing) = packing {
            spec = spec.flag("KEYS", true).flag("WIDE", packing.wide);
        }
        let bindings = [keys, ptrs].into_iter().chain(ranks).collect();
        self.each(("sparse/spconvert_pointers", "spconvert_pointers"), spec, params, segments + 1, bindings);
    }

    /// Appends pointers and indices of sorted entries, whose values are already in place.
    pub(super) fn compress(&mut self, sorted: &Sorted, segments: usize, to: Compressed) {
        self.pointers(sorted.keys, Some(sorted.packing), sorted.n, segments, to.ptrs);
        self.unpack(sorted, to.idxs, None);
    }

    pub(super) fn turn(
        &mut self, from: Compressed, [segments, extent]: [usize; 2], entries: usize, to: Compressed,
    ) -> Result<()> {
        let sorted = self.sort_entries(&Entries {
            n: entries,
            other: from.ptrs,
            segments: Some(segments),
            other_above: false,
            idxs: from.idxs,
            values: from.values,
            extents: [extent, segments],
            by_minor: false,
            values_out: to.values,
        })?;
        self.compress(&sorted, extent, to);
        Ok(())
    }
}

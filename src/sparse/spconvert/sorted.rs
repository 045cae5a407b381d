//! What takes a sort: to and from compressed columns, and from coordinates in no order.

use super::steps::{Compressed, ConvertParams, ConvertSteps, NOTHING};
use crate::error::Result;
use crate::program::Binding;
use std::ops::Range;

/// Entries to sort by a major index, and by a minor one where that is wanted.
pub(super) struct Entries {
    pub(super) n: usize,
    /// One of the two indices of each entry; or pointers of as many segments, which are that index.
    pub(super) other: Binding,
    pub(super) segments: Option<usize>,
    /// Whether that is the major index.
    pub(super) other_above: bool,
    /// The other index of each entry.
    pub(super) idxs: Binding,
    pub(super) values: Binding,
    /// Of the major and the minor index.
    pub(super) extents: [usize; 2],
    pub(super) by_minor: bool,
    /// Where values go.
    pub(super) values_out: Binding,
}

/// How indices lie in keys.
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

    /// Words of a key.
    pub(super) fn words(self) -> usize {
        if self.wide { 2 } else { 1 }
    }
}

/// Keys in order.
pub(super) struct Sorted {
    pub(super) n: usize,
    pub(super) keys: Binding,
    pub(super) packing: Packing,
}

impl ConvertSteps<'_> {
    /// Sorts entries; their values go where they are wanted, and their indices are in the keys.
    pub(super) fn sort_entries(&mut self, entries: &Entries) -> Result<Sorted> {
        let packing = Packing::new(entries.extents);
        let keys_out = self.words("sorted keys", entries.n * packing.words())?;
        self.sort_entries_into(entries, keys_out)
    }

    /// As [`sort_entries`](Self::sort_entries), with keys that go to `keys_out`.
    pub(super) fn sort_entries_into(&mut self, entries: &Entries, keys_out: Binding) -> Result<Sorted> {
        let n = entries.n;
        let packing = Packing::new(entries.extents);
        let keys = self.words("keys", n * packing.words())?;
        let params = ConvertParams {
            count: n as u32,
            segments: entries.segments.unwrap_or(0) as u32,
            minor_bits: packing.minor_bits,
            ..NOTHING
        };
        let spec = self
            .tile_spec()
            .flag("WIDE", packing.wide)
            .flag("SEGMENTS", entries.segments.is_some())
            .flag("ABOVE", entries.other_above);
        let bindings = vec![entries.other, entries.idxs, keys];
        self.tiles(("sparse/spconvert_pack", "spconvert_pack"), spec, params, n, bindings);
        // What is in order by the minor index stays so.
        let bits: Range<u32> = if entries.by_minor { 0 } else { packing.minor_bits }..packing.bits;
        self.sort(n, packing.wide, bits, [keys, entries.values, keys_out, entries.values_out])?;
        Ok(Sorted { n, keys: keys_out, packing })
    }

    /// The minor indices of sorted entries, and the major ones if wanted.
    pub(super) fn unpack(&mut self, sorted: &Sorted, minors: Binding, majors: Option<Binding>) {
        let Sorted { n, keys, packing } = *sorted;
        let params = ConvertParams { count: n as u32, minor_bits: packing.minor_bits, ..NOTHING };
        let spec = self.spec().flag("WIDE", packing.wide).flag("MAJORS", majors.is_some());
        let bindings = [keys, minors].into_iter().chain(majors).collect();
        self.each(("sparse/spconvert_unpack", "spconvert_unpack"), spec, params, n, bindings);
    }

    /// Where each of `segments` begins, among indices in order or sorted keys.
    pub(super) fn pointers(
        &mut self,
        keys: Binding,
        packing: Option<Packing>,
        n: usize,
        segments: usize,
        ptrs: Binding,
    ) {
        self.find_pointers(keys, packing, n, segments, ptrs, None);
    }

    /// As [`pointers`](Self::pointers), with the ranks of what is found where they are given.
    pub(super) fn find_pointers(
        &mut self,
        keys: Binding,
        packing: Option<Packing>,
        n: usize,
        segments: usize,
        ptrs: Binding,
        ranks: Option<Binding>,
    ) {
        let params = ConvertParams {
            count: segments as u32 + 1,
            sources: n as u32,
            minor_bits: packing.map_or(0, |p| p.minor_bits),
            ..NOTHING
        };
        let mut spec = self.spec().flag("RANKED", ranks.is_some());
        if let Some(packing) = packing {
            spec = spec.flag("KEYS", true).flag("WIDE", packing.wide);
        }
        let bindings = [keys, ptrs].into_iter().chain(ranks).collect();
        self.each(("sparse/spconvert_pointers", "spconvert_pointers"), spec, params, segments + 1, bindings);
    }

    /// Pointers and indices of sorted entries; values are there already.
    pub(super) fn compress(&mut self, sorted: &Sorted, segments: usize, to: Compressed) {
        self.pointers(sorted.keys, Some(sorted.packing), sorted.n, segments, to.ptrs);
        self.unpack(sorted, to.idxs, None);
    }

    /// Compressed rows to compressed columns, or the other way round.
    pub(super) fn turn(
        &mut self,
        from: Compressed,
        [segments, extent]: [usize; 2],
        entries: usize,
        to: Compressed,
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

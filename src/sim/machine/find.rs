//! Checks that report findings, and counts.

use super::{Bound, Machine, SimSpace, Subgroup, Workgroup, lanes_of};
use crate::sim::code::{DeclaredMemory, SimCode, Slot};
use crate::sim::report::{Counts, FindingKind};
use crate::sim::scalar::Kind;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// A finding in terms of instructions and thread numbers.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Found {
    pub(in crate::sim) kind: FindingKind,
    pub(in crate::sim) pc: u32,
    pub(in crate::sim) other: Option<(u32, u32)>,
    /// Number of the thread in the dispatch.
    pub(in crate::sim) who: u32,
    pub(in crate::sim) message: String,
    pub(in crate::sim) times: u64,
}

#[derive(Debug, Default)]
pub(in crate::sim) struct FoundSink {
    pub(in crate::sim) found: HashMap<(FindingKind, u32, u32), Found>,
    pub(in crate::sim) tally: Vec<Counts>,
    /// Bursts of each channel and bank, with [`Options::interleaving`](crate::sim::Options::interleaving).
    pub(in crate::sim) bursts: BTreeMap<(u64, u64), u64>,
}

impl FoundSink {
    pub(in crate::sim) fn find(
        &mut self, kind: FindingKind, pc: u32, who: u32, other: Option<(u32, u32)>, message: impl FnOnce() -> String,
    ) {
        match self.found.entry((kind, pc, other.map_or(u32::MAX, |o| o.0))) {
            Entry::Occupied(mut known) => known.get_mut().times += 1,
            Entry::Vacant(free) => {
                free.insert(Found { kind, pc, other, who, message: message(), times: 1 });
            }
        }
    }
}

impl Machine<'_> {
    pub(super) fn find(
        &mut self, kind: FindingKind, s: &Subgroup, group: &Workgroup, pc: u32, lane: usize,
        message: impl FnOnce() -> String,
    ) {
        let who = self.first_thread(s, group) + lane as u32;
        self.sink.find(kind, pc, who, None, message);
    }

    pub(super) fn out_of_bounds(
        &mut self, s: &Subgroup, group: &Workgroup, pc: u32, (lane, pointer): (usize, Slot), what: &str, of: &str,
    ) {
        self.find(FindingKind::OutOfBounds, s, group, pc, lane, || match s.outside.get(&(pointer, lane)) {
            Some((index, length)) => format!("{what} of element {} of {of} of {length}", *index as i32),
            // The pointer is an argument.
            None => format!("{what} outside {of}"),
        });
    }

    pub(super) fn check_written(&mut self, s: &Subgroup, group: &Workgroup, pc: u32, slot: Slot, mask: u64) {
        let not = mask & !s.written[slot as usize];
        if not != 0 && !self.options.zero_initialized {
            let name = self.code.name_of(slot);
            self.find(FindingKind::Uninitialized, s, group, pc, not.trailing_zeros() as usize, || {
                format!("`{name}` is read before it is written")
            });
        }
    }

    pub(super) fn check_uniform(&mut self, s: &Subgroup, group: &Workgroup, pc: u32) {
        let message = "some threads of the subgroup take part, and others do not";
        self.check_all_active(FindingKind::NonUniformSubgroup, s, group, pc, message);
    }

    /// Reports inactive lanes as a finding of this kind.
    pub(super) fn check_all_active(
        &mut self, kind: FindingKind, s: &Subgroup, group: &Workgroup, pc: u32, message: &str,
    ) {
        if s.active != s.full {
            let missing = lanes_of(s.full & !s.active).next().unwrap_or(0) as u32;
            let first = self.first_thread(s, group);
            let other = Some((pc, first + missing));
            self.sink.find(kind, pc, first + s.first_active(), other, || message.into());
        }
    }

    pub(super) fn check_nan(&mut self, s: &Subgroup, group: &Workgroup, pc: u32, d: Slot, operands: &[Slot]) {
        let nan = |slot: Slot, l: usize| f32::from_bits(s.registers[slot as usize * self.lanes + l]).is_nan();
        let born = lanes_of(s.active).find(|l| nan(d, *l) && !operands.iter().any(|o| nan(*o, *l)));
        if let Some(l) = born {
            let values: Vec<_> = operands
                .iter()
                .map(|o| f32::from_bits(s.registers[*o as usize * self.lanes + l]).to_string())
                .collect();
            self.find(FindingKind::NanBorn, s, group, pc, l, || format!("NaN from {}", values.join(", ")));
        }
    }

    /// Returns whether `n` registers of an active lane hold a NaN.
    pub(super) fn any_nan(&self, s: &Subgroup, slot: Slot, n: u32) -> bool {
        let row = |i: u32| &s.registers[(slot + i) as usize * self.lanes..];
        (0..n).any(|i| lanes_of(s.active).any(|l| f32::from_bits(row(i)[l]).is_nan()))
    }

    pub(super) fn nan_among(&mut self, s: &Subgroup, group: &Workgroup, pc: u32) {
        let lane = s.first_active() as usize;
        self.find(FindingKind::NanBorn, s, group, pc, lane, || "NaN from subgroup values without a NaN".into());
    }

    pub(super) fn branch(&mut self, pc: u32, divergent: bool) {
        let tally = &mut self.sink.tally[pc as usize];
        tally.branches += 1;
        tally.divergent += u64::from(divergent);
    }

    /// Returns whether the atomics of a subgroup have read the same values too often: it waits for another thread.
    pub(super) fn spins(&self, s: &mut Subgroup, pc: u32, d: Slot, changed: bool) -> bool {
        if changed {
            s.same = 0;
            return false;
        }
        // FNV-1a over lanes, addresses and values.
        let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ s.active;
        for (l, address) in self.targets.each() {
            for word in [address, s.registers[d as usize * self.lanes + l]] {
                hash = (hash ^ u64::from(word)).wrapping_mul(0x100_0000_01b3);
            }
        }
        // Calls of one function from different places are told apart.
        let place = s.calls().fold(pc, |place, call| place.rotate_left(7) ^ call);
        match s.answers.iter_mut().find(|a| a.0 == place) {
            Some(known) if known.1 == hash => s.same += 1,
            Some(known) => {
                known.1 = hash;
                s.same = 0;
            }
            None => s.answers.push((place, hash)),
        }
        s.same > self.patience
    }
}

impl SimCode {
    pub(super) fn workgroup_name(&self, byte: u32) -> &str {
        let holds = |m: &&DeclaredMemory| match m {
            DeclaredMemory::Workgroup { base, bytes, .. } => (*base..base + bytes).contains(&byte),
            _ => false,
        };
        self.memories.iter().find(holds).map_or("?", DeclaredMemory::name)
    }

    pub(super) fn storage_name(&self, resource: usize, bound: &[Bound]) -> &str {
        let is = |b: &Bound| b.space == SimSpace::Storage && b.resource == resource;
        bound.iter().position(is).map_or("?", |i| self.memories[i].name())
    }
}

/// Sorts the steps of each instruction by kind.
pub(in crate::sim) fn count_operations(code: &SimCode, tally: &mut [Counts]) {
    for (mark, counts) in code.marks.iter().zip(tally) {
        let n = counts.active;
        match mark.kind {
            Kind::None => {}
            Kind::Integer => counts.integer += n,
            Kind::Add => counts.add += n,
            Kind::Multiply => counts.multiply += n,
            Kind::Fma => counts.fma += n,
            Kind::Divide => counts.divide += n,
            Kind::Special => counts.special += n,
        }
    }
}

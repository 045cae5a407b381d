//! Buffers with race records, and what an access of a subgroup costs.

/// Most lanes of a subgroup.
pub(super) const MOST_LANES: usize = 64;

/// Marks an atomic access in [`Access::pc`].
const ATOMIC: u32 = 1 << 31;

/// Who touched a place last, when, and where in the code.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Access {
    /// Number of the invocation in the dispatch.
    pub(super) who: u32,
    /// Barriers that its workgroup had passed, above those of earlier dispatches; 0 is nobody.
    pub(super) epoch: u32,
    pc: u32,
}

impl Access {
    pub(super) fn new(who: u32, epoch: u32, pc: u32, atomic: bool) -> Self {
        Self { who, epoch, pc: pc | if atomic { ATOMIC } else { 0 } }
    }

    pub(super) fn pc(self) -> u32 {
        self.pc & !ATOMIC
    }

    fn is_atomic(self) -> bool {
        self.pc & ATOMIC != 0
    }
}

/// The record of one place: its last writer, and two readers that later writers may race with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Record {
    writer: Access,
    readers: [Access; 2],
}

/// What an access must know of its own workgroup.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    /// First and number of the invocations of the workgroup.
    pub(super) first: u32,
    pub(super) invocations: u32,
    /// Epochs below are those of earlier dispatches.
    pub(super) base: u32,
}

impl Scope {
    fn holds(self, who: u32) -> bool {
        who.wrapping_sub(self.first) < self.invocations
    }

    /// Whether `before` happens before `now` for certain, or does not count.
    fn ordered(self, before: Access, now: Access) -> bool {
        before.epoch < self.base
            || before.who == now.who
            || (before.is_atomic() && now.is_atomic())
            || (before.epoch < now.epoch && self.holds(before.who))
    }
}

impl Record {
    pub(super) fn is_written(&self) -> bool {
        self.writer.epoch != 0
    }

    pub(super) fn is_touched(&self) -> bool {
        self.is_written() || self.readers[0].epoch != 0
    }

    pub(super) fn read(&mut self, now: Access, scope: Scope) -> Option<Access> {
        let race = (!scope.ordered(self.writer, now)).then_some(self.writer);
        let [a, b] = self.readers;
        // A reader that this one comes after is told by this one. Of others two are kept, of two workgroups if there are.
        if scope.ordered(a, now) && a.is_atomic() == now.is_atomic() || a.epoch < scope.base {
            self.readers[0] = now;
        } else if scope.ordered(b, now) || (!scope.holds(a.who) && !scope.holds(b.who)) {
            self.readers[1] = now;
        }
        race
    }

    pub(super) fn write(&mut self, now: Access, scope: Scope) -> Option<Access> {
        let all = [self.writer, self.readers[0], self.readers[1]];
        let race = all.into_iter().find(|before| !scope.ordered(*before, now));
        self.writer = now;
        race
    }
}

/// A buffer.
#[derive(Debug, Default)]
pub(super) struct Resource {
    pub(super) bytes: Vec<u8>,
    /// One for each granule, once the buffer is written.
    pub(super) records: Vec<Record>,
    pub(super) granule: u32,
}

/// Where the active lanes of a subgroup want to go: those of them that are inside.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) n: usize,
    pub(super) lanes: [u8; MOST_LANES],
    pub(super) addresses: [u32; MOST_LANES],
}

impl Default for Targets {
    fn default() -> Self {
        Self { n: 0, lanes: [0; MOST_LANES], addresses: [0; MOST_LANES] }
    }
}

impl Targets {
    pub(super) fn clear(&mut self) {
        self.n = 0;
    }

    pub(super) fn push(&mut self, lane: usize, address: u32) {
        self.lanes[self.n] = lane as u8;
        self.addresses[self.n] = address;
        self.n += 1;
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        (0..self.n).map(|i| (usize::from(self.lanes[i]), self.addresses[i]))
    }

    fn sorted(&self) -> ([u32; MOST_LANES], usize) {
        let mut all = self.addresses;
        let list = &mut all[..self.n];
        if !list.is_sorted() {
            list.sort_unstable();
        }
        (all, self.n)
    }

    /// Sectors that accesses of `size` bytes touch, and the different bytes that they want.
    pub(super) fn sectors(&self, size: u32, sector: u32) -> (u64, u64) {
        let (all, n) = self.sorted();
        // Sectors and bytes below these have been counted.
        let (mut next_sector, mut next_byte) = (0, 0);
        let (mut sectors, mut used) = (0u64, 0u64);
        for &address in &all[..n] {
            let (begin, end) = (u64::from(address), u64::from(address) + u64::from(size));
            let (first, last) = (begin / u64::from(sector), (end - 1) / u64::from(sector));
            sectors += (last + 1).saturating_sub(first.max(next_sector));
            used += end.saturating_sub(begin.max(next_byte));
            (next_sector, next_byte) = (next_sector.max(last + 1), next_byte.max(end));
        }
        (sectors, used)
    }

    /// Passes that `banks` banks of 4-byte words need for accesses of `size` bytes, and those that conflicts add.
    pub(super) fn passes(&self, size: u32, banks: u32) -> (u64, u64) {
        let words = size.div_ceil(4).max(1);
        let lanes = (banks / words).max(1) as usize;
        let (mut passes, mut least) = (0, 0);
        for part in self.addresses[..self.n].chunks(lanes) {
            passes += u64::from(Self::most_in_a_bank(part, words, banks));
            least += 1;
        }
        (passes, passes - least)
    }

    fn most_in_a_bank(addresses: &[u32], words: u32, banks: u32) -> u32 {
        let first = addresses[0] / 4;
        let in_a_row = addresses.iter().enumerate().all(|(i, a)| a / 4 == first + i as u32 * words);
        if in_a_row && addresses.len() as u32 * words <= banks {
            return 1;
        }
        let mut all = [0u32; 4 * MOST_LANES];
        let mut n = 0;
        for address in addresses {
            for word in 0..words {
                all[n] = address / 4 + word;
                n += 1;
            }
        }
        let list = &mut all[..n];
        list.sort_unstable();
        let mut counts = [0u8; 128];
        let mut last = u32::MAX;
        for word in list.iter().copied() {
            if word != last {
                counts[(word % banks) as usize] += 1;
                last = word;
            }
        }
        u32::from(counts[..banks as usize].iter().copied().max().unwrap_or(1))
    }

    /// Lanes that another was at the same place before.
    pub(super) fn contended(&self) -> u64 {
        let (all, n) = self.sorted();
        all[..n].windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::segments;

    fn targets(addresses: impl IntoIterator<Item = u32>) -> Targets {
        let mut all = Targets::default();
        for (lane, address) in addresses.into_iter().enumerate() {
            all.push(lane, address);
        }
        all
    }

    #[test]
    fn sectors_are_the_segments_of_the_analysis() {
        let cases: [Vec<u32>; 6] = [
            (0..32).map(|l| 4 * l).collect(),
            (0..32).map(|l| 4000 * l).collect(),
            (0..32).map(|l| 512 + 4 * l).collect(),
            (0..32).map(|l| 124 - 4 * l).collect(),
            vec![126, 126, 3],
            vec![],
        ];
        for addresses in cases {
            for (size, segment) in [(4, 32), (4, 128), (16, 64), (1, 32)] {
                let wanted = segments(addresses.iter().map(|a| u64::from(*a)), size.into(), segment.into());
                assert_eq!(targets(addresses.iter().copied()).sectors(size, segment).0, wanted);
            }
        }
        assert_eq!(targets([0, 0, 2]).sectors(4, 32), (1, 6));
    }

    #[test]
    fn banks() {
        let passes = |stride: u32, size| targets((0..32).map(|l| stride * l)).passes(size, 32);
        assert_eq!(
            (passes(4, 4), passes(8, 4), passes(128, 4), passes(132, 4)),
            ((1, 0), (2, 1), (32, 31), (1, 0))
        );
        assert_eq!((passes(0, 4), passes(16, 16), passes(20, 16)), ((1, 0), (4, 0), (8, 4)));
        assert_eq!((passes(2, 2), targets([8, 8, 8, 12]).contended()), ((1, 0), 2));
    }

    #[test]
    fn races() {
        let scope = |group: u32| Scope { first: 64 * group, invocations: 64, base: 5 };
        let at = |who, epoch, atomic| Access::new(who, epoch, 7, atomic);
        let mut r = Record::default();
        assert!(!r.is_written() && r.write(at(0, 5, false), scope(0)).is_none() && r.is_written());
        assert!(r.read(at(0, 5, false), scope(0)).is_none(), "its own");
        assert_eq!(r.read(at(1, 5, false), scope(0)).map(|a| (a.who, a.pc())), Some((0, 7)), "no barrier");
        assert!(r.read(at(1, 6, false), scope(0)).is_none(), "a barrier");
        assert!(r.read(at(64, 6, false), scope(1)).is_some(), "another workgroup's barrier");
        assert!(r.write(at(2, 7, false), scope(0)).is_some(), "the reader of the other workgroup");
        let later = Scope { base: 8, ..scope(1) };
        assert!(r.write(at(64, 8, false), later).is_none(), "another dispatch");
        let mut r = Record::default();
        assert!(r.write(at(0, 5, true), scope(0)).is_none() && r.write(at(64, 5, true), scope(1)).is_none());
        assert!(r.read(at(3, 5, false), scope(0)).is_some());
    }
}

//! Buffers with race records, and the costs of an access.

use std::collections::{BTreeSet, HashMap};

/// Maximum lanes of a subgroup.
pub(super) const MAX_LANES: usize = 64;

/// Marks an atomic access in [`Stamp::pc`].
const ATOMIC: u32 = 1 << 31;

/// The moment and the instruction of an access.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    /// Barriers that the workgroup passed, plus 1.
    epoch: u32,
    pc: u32,
}

/// The stamps of a dispatch. Race records hold their numbers, which rise from dispatch to dispatch; 0 is none.
#[derive(Debug)]
pub(super) struct Stamps {
    /// Smaller numbers belong to earlier dispatches.
    first: u32,
    all: Vec<Stamp>,
    known: HashMap<(u32, u32), u32>,
    /// For each instruction: the epoch of its last stamp, and that stamp's number.
    last: Vec<(u32, u32)>,
}

impl Stamps {
    /// Makes the stamps of a dispatch. `first` is 1 or the result of [`next`](Self::next).
    pub(super) fn new(first: u32, instructions: usize) -> Self {
        Self { first, all: Vec::new(), known: HashMap::new(), last: vec![(0, 0); instructions] }
    }

    /// Returns the first number of the next dispatch.
    pub(super) fn next(&self) -> u32 {
        self.first + self.all.len() as u32
    }

    pub(super) fn stamp(&mut self, epoch: u32, pc: u32, atomic: bool) -> Time {
        let last = &mut self.last[pc as usize];
        if last.0 != epoch {
            let pc = pc | if atomic { ATOMIC } else { 0 };
            let next = self.first + self.all.len() as u32;
            let number = *self.known.entry((epoch, pc)).or_insert(next);
            if number == next {
                self.all.push(Stamp { epoch, pc });
            }
            *last = (epoch, number);
        }
        Time { number: last.1, epoch, atomic }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    number: u32,
    epoch: u32,
    atomic: bool,
}

/// The thread that accessed a place, by its number in the dispatch, and the stamp of the access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SimAccess {
    who: u32,
    stamp: u32,
}

impl SimAccess {
    fn unpack(bits: u64) -> Self {
        Self { who: (bits >> 32) as u32, stamp: bits as u32 }
    }

    fn pack(who: u32, now: Time) -> u64 {
        u64::from(who) << 32 | u64::from(now.number)
    }
}

/// For each place the last writer and two readers. 0 is nobody, so untouched places cost address space only.
#[derive(Debug, Default)]
pub(super) struct Records {
    writers: Vec<u64>,
    readers: Vec<[u64; 2]>,
}

pub(super) const RECORD_BYTES: usize = 24;

/// The threads of a workgroup: the first one's number in the dispatch, and how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    pub(super) first: u32,
    pub(super) threads: u32,
}

impl Scope {
    fn holds(self, who: u32) -> bool {
        who.wrapping_sub(self.first) < self.threads
    }

    /// Returns whether the access `before` is ordered before this one, or from an earlier dispatch.
    fn ordered(self, stamps: &Stamps, before: SimAccess, who: u32, now: Time) -> bool {
        if before.stamp < stamps.first || before.who == who {
            return true;
        }
        let stamp = stamps.all[(before.stamp - stamps.first) as usize];
        (stamp.pc & ATOMIC != 0 && now.atomic) || (stamp.epoch < now.epoch && self.holds(before.who))
    }
}

impl Records {
    pub(super) fn new(places: usize) -> Self {
        Self { writers: vec![0; places], readers: vec![[0; 2]; places] }
    }

    pub(super) fn len(&self) -> usize {
        self.writers.len()
    }

    pub(super) fn is_written(&self, place: usize) -> bool {
        self.writers[place] != 0
    }

    pub(super) fn is_touched(&self, place: usize) -> bool {
        self.is_written(place) || self.readers[place][0] != 0
    }

    pub(super) fn split(&mut self, n: usize) {
        self.writers = self.writers.iter().flat_map(|w| std::iter::repeat_n(*w, n)).collect();
        self.readers = self.readers.iter().flat_map(|r| std::iter::repeat_n(*r, n)).collect();
    }

    /// Records a read. Returns the instruction and thread that it races with.
    pub(super) fn read(
        &mut self, place: usize, who: u32, now: Time, scope: Scope, stamps: &Stamps,
    ) -> Option<(u32, u32)> {
        let writer = SimAccess::unpack(self.writers[place]);
        let race = (!scope.ordered(stamps, writer, who, now)).then(|| told(stamps, writer));
        let readers = &mut self.readers[place];
        let [a, b] = readers.map(SimAccess::unpack);
        // The reader replaces one that is ordered before it. Two others are kept, of two workgroups if possible.
        if scope.ordered(stamps, a, who, now) {
            readers[0] = SimAccess::pack(who, now);
        } else if scope.ordered(stamps, b, who, now) || (!scope.holds(a.who) && !scope.holds(b.who)) {
            readers[1] = SimAccess::pack(who, now);
        }
        race
    }

    /// Records a write. Returns the instruction and thread that it races with.
    pub(super) fn write(
        &mut self, place: usize, who: u32, now: Time, scope: Scope, stamps: &Stamps,
    ) -> Option<(u32, u32)> {
        let [a, b] = self.readers[place];
        let all = [self.writers[place], a, b].map(SimAccess::unpack);
        let race = all.into_iter().find(|before| !scope.ordered(stamps, *before, who, now));
        self.writers[place] = SimAccess::pack(who, now);
        race.map(|race| told(stamps, race))
    }
}

fn told(stamps: &Stamps, access: SimAccess) -> (u32, u32) {
    (stamps.all[(access.stamp - stamps.first) as usize].pc & !ATOMIC, access.who)
}

#[derive(Debug, Default)]
pub(super) struct SimMemory {
    pub(super) bytes: Vec<u8>,
    /// One per granule, once a kernel may write the buffer.
    pub(super) records: Records,
    pub(super) granule: u32,
    /// Whether reads before the first write are reported.
    pub(super) unwritten: bool,
}

impl SimMemory {
    /// Makes records for places of at most `granule` bytes.
    pub(super) fn record(&mut self, granule: u32) {
        if self.records.len() == 0 {
            self.granule = granule;
            self.records = Records::new(self.bytes.len().div_ceil(granule as usize));
        } else if granule < self.granule {
            self.records.split((self.granule / granule) as usize);
            self.granule = granule;
        }
    }
}

/// The addresses of a subgroup's active lanes, except those out of bounds.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) n: usize,
    pub(super) lanes: [u8; MAX_LANES],
    pub(super) addresses: [u32; MAX_LANES],
}

impl Default for Targets {
    fn default() -> Self {
        Self { n: 0, lanes: [0; MAX_LANES], addresses: [0; MAX_LANES] }
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

    fn sorted(&self) -> ([u32; MAX_LANES], usize) {
        let mut all = self.addresses;
        let list = &mut all[..self.n];
        if !list.is_sorted() {
            list.sort_unstable();
        }
        (all, self.n)
    }

    /// Counts the sectors that accesses of `size` bytes touch, and the distinct bytes in them.
    pub(super) fn sectors(&self, size: u32, sector: u32) -> (u64, u64) {
        let (all, n) = self.sorted();
        // Sectors and bytes below these are counted.
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

    /// Lists the bursts of `burst` bytes that accesses of `size` bytes touch.
    pub(super) fn bursts(&self, size: u32, burst: u64) -> BTreeSet<u64> {
        let of = |&address: &u32| {
            let address = u64::from(address);
            address / burst..=(address + u64::from(size) - 1) / burst
        };
        self.addresses[..self.n].iter().flat_map(of).collect()
    }

    /// Counts the passes that accesses of `size` bytes take on `banks` banks of 4-byte words, and the extra ones that
    /// conflicts cause.
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
        let mut all = [0u32; 4 * MAX_LANES];
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

    /// Counts the lanes whose address an earlier lane also has.
    pub(super) fn contended(&self) -> u64 {
        let (all, n) = self.sorted();
        all[..n].windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
    }
}

#[cfg(test)]
mod tests;

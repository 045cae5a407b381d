//! Memory accesses: addresses, values, races, costs.

use super::{Bound, Machine, SimSpace, Subgroup, Workgroup, lanes_of};
use crate::sim::code::{Address, Components, INVALID, NONE, Slot, Width};
use crate::sim::memory::{Scope, SimMemory};
use crate::sim::report::FindingKind;
use crate::sim::scalar::{from_f16, to_f16};
use naga::AtomicFunction;

/// Returns the memory that holds a variable.
fn bytes_of<'m>(bound: Bound, group: &'m mut Workgroup, resources: &'m mut [SimMemory]) -> &'m mut [u8] {
    match bound.space {
        SimSpace::Workgroup => &mut group.memory,
        SimSpace::Storage | SimSpace::Uniform => &mut resources[bound.resource].bytes,
    }
}

impl Machine<'_> {
    pub(super) fn stops_at_post(&mut self, group: &mut Workgroup) -> bool {
        group.posts += 1;
        let stops = self.stop_at == Some(group.posts);
        self.stopped |= stops;
        stops
    }

    /// Finds the addresses of the active lanes. Reports and leaves out those outside the buffer.
    fn aim(&mut self, s: &Subgroup, group: &Workgroup, pc: u32, address: Address, size: u32, what: &str) {
        let bound = self.bound[usize::from(address.memory)];
        self.targets.clear();
        for l in lanes_of(s.active) {
            let by = if address.at == NONE { 0 } else { s.registers[address.at as usize * self.lanes + l] };
            if by == INVALID {
                let code = self.code;
                let name = code.memories[usize::from(address.memory)].name();
                self.out_of_bounds(s, group, pc, (l, address.at), what, &format!("`{name}`"));
                continue;
            }
            let begin = u64::from(by) + u64::from(address.offset);
            if begin + u64::from(size) > u64::from(bound.bytes) {
                let code = self.code;
                let name = code.memories[usize::from(address.memory)].name();
                self.find(FindingKind::OutOfBounds, s, group, pc, l, || {
                    format!("{what} of {size} bytes at byte {begin} of `{name}` of {} bytes", bound.bytes)
                });
                continue;
            }
            self.targets.push(l, bound.base + begin as u32);
        }
    }

    pub(super) fn load(&mut self, s: &mut Subgroup, group: &mut Workgroup, pc: u32, d: Slot, from: &Components) {
        self.aim(s, group, pc, from.at, from.bytes(), "a read");
        if self.targets.n < s.active.count_ones() as usize {
            for l in lanes_of(s.active) {
                for i in 0..from.n {
                    s.registers[(d + i) as usize * self.lanes + l] = 0;
                }
            }
        }
        self.read(s, group, pc, d, from);
    }

    pub(super) fn read(&mut self, s: &mut Subgroup, group: &mut Workgroup, pc: u32, d: Slot, from: &Components) {
        let Components { at: address, n, width, atomic } = *from;
        let bound = self.bound[usize::from(address.memory)];
        let bytes = bytes_of(bound, group, self.resources);
        for (l, address) in self.targets.each() {
            for i in 0..n {
                let at = (address + i * width.bytes()) as usize;
                let value = match width {
                    Width::Word => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]),
                    Width::Half => from_f16(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
                    Width::Bool => u32::from(bytes[at] & 1),
                };
                s.registers[(d + i) as usize * self.lanes + l] = value;
            }
        }
        let size = n * width.bytes();
        self.records(s, group, pc, bound, size, atomic, None);
        self.count_access(pc, bound, size, n, true, atomic);
    }

    pub(super) fn store(
        &mut self, s: &mut Subgroup, group: &mut Workgroup, pc: u32, a: &[Slot; 4], to: &Components,
    ) -> bool {
        self.aim(s, group, pc, to.at, to.bytes(), "a write");
        self.write(s, group, pc, a, to)
    }

    pub(super) fn write(
        &mut self, s: &mut Subgroup, group: &mut Workgroup, pc: u32, a: &[Slot; 4], to: &Components,
    ) -> bool {
        let Components { at: address, n, width, atomic } = *to;
        let bound = self.bound[usize::from(address.memory)];
        let bytes = bytes_of(bound, group, self.resources);
        // Lanes that changed a value.
        let mut changed = 0u64;
        for (l, address) in self.targets.each() {
            let mut differs = false;
            for (i, slot) in (0..n).zip(a) {
                let at = (address + i * width.bytes()) as usize;
                let value = s.registers[*slot as usize * self.lanes + l];
                let new = match width {
                    Width::Word => value,
                    Width::Half => u32::from(to_f16(value)),
                    Width::Bool => u32::from(value != 0),
                };
                let place = &mut bytes[at..at + width.bytes() as usize];
                let new = &new.to_le_bytes()[..width.bytes() as usize];
                differs |= *place != *new;
                place.copy_from_slice(new);
            }
            changed |= u64::from(differs) << l;
        }
        let size = n * width.bytes();
        self.records(s, group, pc, bound, size, atomic, Some(changed));
        self.count_access(pc, bound, size, n, false, atomic);
        changed != 0
    }

    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    pub(super) fn atomic(
        &mut self, s: &mut Subgroup, group: &mut Workgroup, pc: u32, fun: AtomicFunction,
        (signed, float): (bool, bool), to: Address, (a, d, [compare, exchanged]): (Slot, Slot, [Slot; 2]),
    ) -> bool {
        self.aim(s, group, pc, to, 4, "an atomic operation");
        let w = self.lanes;
        let bound = self.bound[usize::from(to.memory)];
        let bytes = bytes_of(bound, group, self.resources);
        let mut changed = false;
        for i in 0..self.targets.n {
            let i = if self.backwards { self.targets.n - 1 - i } else { i };
            let (l, at) = (usize::from(self.targets.lanes[i]), self.targets.addresses[i] as usize);
            let old = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            let x = s.registers[a as usize * w + l];
            let new = match fun {
                AtomicFunction::Add if float => (f32::from_bits(old) + f32::from_bits(x)).to_bits(),
                AtomicFunction::Subtract if float => (f32::from_bits(old) - f32::from_bits(x)).to_bits(),
                AtomicFunction::Add => old.wrapping_add(x),
                AtomicFunction::Subtract => old.wrapping_sub(x),
                AtomicFunction::And => old & x,
                AtomicFunction::ExclusiveOr => old ^ x,
                AtomicFunction::InclusiveOr => old | x,
                AtomicFunction::Min if signed => (old as i32).min(x as i32) as u32,
                AtomicFunction::Max if signed => (old as i32).max(x as i32) as u32,
                AtomicFunction::Min => old.min(x),
                AtomicFunction::Max => old.max(x),
                AtomicFunction::Exchange { compare: None } => x,
                AtomicFunction::Exchange { compare: Some(_) } => {
                    let equal = old == s.registers[compare as usize * w + l];
                    s.registers[exchanged as usize * w + l] = u32::from(equal);
                    if equal { x } else { old }
                }
            };
            changed |= new != old;
            bytes[at..at + 4].copy_from_slice(&new.to_le_bytes());
            s.registers[d as usize * w + l] = old;
        }
        self.records(s, group, pc, bound, 4, true, None);
        self.records(s, group, pc, bound, 4, true, Some(u64::MAX));
        self.count_access(pc, bound, 4, 1, true, true);
        self.sink.tally[pc as usize].contended += self.targets.contended();
        changed
    }

    /// Checks the access at [`Machine::targets`] for races with earlier ones. A write passes the lanes that changed a
    /// value.
    #[allow(clippy::too_many_arguments, reason = "the properties of an access")]
    fn records(
        &mut self, s: &Subgroup, group: &mut Workgroup, pc: u32, bound: Bound, size: u32, atomic: bool,
        write: Option<u64>,
    ) {
        if !bound.racy {
            return;
        }
        let is_write = write.is_some();
        let scope = Scope { first: group.first, threads: self.group_size() };
        let in_workgroup = bound.space == SimSpace::Workgroup;
        let (granule, epoch) = if in_workgroup {
            (self.code.workgroup_granule, group.workgroup_epoch)
        } else {
            (self.resources[bound.resource].granule, group.storage_epoch)
        };
        let first = self.first_thread(s, group);
        let check =
            if in_workgroup { !self.options.zero_initialized } else { self.resources[bound.resource].unwritten };
        let records = if in_workgroup { &mut group.records } else { &mut self.resources[bound.resource].records };
        let check = check && !is_write;
        let now = self.stamps.stamp(epoch, pc, atomic);
        for (l, address) in self.targets.each() {
            let who = first + l as u32;
            for place in address / granule..=(address + size - 1) / granule {
                let at = place as usize;
                if check && !records.is_written(at) {
                    let name = if in_workgroup {
                        self.code.workgroup_name(place * granule)
                    } else {
                        self.code.storage_name(bound.resource, &self.bound)
                    };
                    self.sink.find(FindingKind::Uninitialized, pc, who, None, || {
                        format!("`{name}` is read before it is written (byte {})", place * granule)
                    });
                }
                let race = if is_write {
                    records.write(at, who, now, scope, &self.stamps)
                } else {
                    records.read(at, who, now, scope, &self.stamps)
                };
                if let Some(other) = race {
                    let code = self.code;
                    let same = write.is_some_and(|changed| changed >> l & 1 == 0);
                    let kind = if same { FindingKind::SameValueRace } else { FindingKind::Race };
                    self.sink.find(kind, pc, who, Some(other), || {
                        let what = if in_workgroup {
                            format!("workgroup memory `{}`", code.workgroup_name(place * granule))
                        } else {
                            let at = place * granule - bound.base.min(place * granule);
                            format!("byte {at} of `{}`", code.storage_name(bound.resource, &self.bound))
                        };
                        let verb = if is_write { "a write to" } else { "a read of" };
                        format!("{verb} {what} races with an access of another thread")
                    });
                }
            }
        }
    }

    fn count_access(&mut self, pc: u32, bound: Bound, size: u32, n: u32, is_read: bool, atomic: bool) {
        let lanes = self.targets.n as u64;
        if lanes == 0 {
            return;
        }
        let sector = self.options.sector_bytes;
        let tally = &mut self.sink.tally[pc as usize];
        match bound.space {
            SimSpace::Uniform => {}
            SimSpace::Storage => {
                let (sectors, used) = self.targets.sectors(size, sector);
                tally.transactions += sectors;
                tally.moved_bytes += sectors * u64::from(sector);
                tally.used_bytes += used;
                if let Some(memory) = &self.options.interleaving {
                    // `Options::check` refuses an interleaving of nothing, so each address has a place.
                    let bursts = self.targets.bursts(size, memory.burst).into_iter();
                    for place in bursts.filter_map(|burst| memory.place(burst * memory.burst).ok()) {
                        *self.sink.bursts.entry(place).or_default() += 1;
                    }
                }
                let bytes = lanes * u64::from(size);
                *if is_read { &mut tally.read_bytes } else { &mut tally.written_bytes } += bytes;
            }
            SimSpace::Workgroup => {
                let (passes, conflicts) = self.targets.passes(size, self.options.banks);
                tally.shared_passes += passes;
                tally.bank_conflicts += conflicts;
                *if is_read { &mut tally.shared_reads } else { &mut tally.shared_writes } += lanes * u64::from(n);
            }
        }
        if atomic {
            tally.atomics += lanes;
        }
    }
}

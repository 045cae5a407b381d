//! Runs one instruction after another.

use super::group::Frame;
use super::{Machine, SimSpace, Stop, Subgroup, SubgroupState, Workgroup, lanes_of};
use crate::sim::code::{Components, INVALID, Instruction, Length, NONE, Slot};
use crate::sim::report::FindingKind;
use crate::sim::scalar::Guard;
use naga::{Barrier, ScalarKind};

impl Machine<'_> {
    /// Runs at most `quantum` instructions.
    pub(in crate::sim) fn run(&mut self, group: &mut Workgroup, subgroup: usize, quantum: u32) -> Stop {
        // Taken out, so that the rest of the workgroup can be borrowed.
        let mut s = std::mem::replace(&mut group.subgroups[subgroup], Subgroup::empty());
        let stop = self.steps(group, &mut s, quantum);
        group.subgroups[subgroup] = s;
        stop
    }

    fn steps(&mut self, group: &mut Workgroup, s: &mut Subgroup, quantum: u32) -> Stop {
        let code = self.code;
        let w = self.lanes;
        let nan = self.options.check_nan;
        for _ in 0..quantum {
            let pc = s.pc;
            s.pc += 1;
            s.steps += 1;
            let tally = &mut self.sink.tally[pc as usize];
            tally.steps += 1;
            tally.active += u64::from(s.active.count_ones());
            tally.lanes += if s.active == 0 { 0 } else { w as u64 };
            let at = |slot: Slot| slot as usize * w;
            match &code.ops[pc as usize] {
                Instruction::Row1 { f, d, a } => {
                    f(&mut s.registers, w, at(*d), at(*a));
                    if nan && code.marks[pc as usize].kind.is_float() {
                        self.check_nan(s, group, pc, *d, &[*a]);
                    }
                }
                Instruction::Row2 { f, d, a, b } => {
                    f(&mut s.registers, w, at(*d), at(*a), at(*b));
                    if nan && code.marks[pc as usize].kind.is_float() {
                        self.check_nan(s, group, pc, *d, &[*a, *b]);
                    }
                }
                Instruction::Row3 { f, d, a, b, c } => {
                    f(&mut s.registers, w, at(*d), at(*a), at(*b), at(*c));
                    if nan && code.marks[pc as usize].kind.is_float() {
                        self.check_nan(s, group, pc, *d, &[*a, *b, *c]);
                    }
                }
                Instruction::Guarded { f, guard, d, a, b } => {
                    f(&mut s.registers, w, at(*d), at(*a), at(*b));
                    for l in lanes_of(s.active) {
                        let (x, y) = (s.registers[at(*a) + l], s.registers[at(*b) + l]);
                        if let Some(wrong) = guard.wrong(x, y) {
                            let kind = if *guard == Guard::Shift { FindingKind::Shift } else { FindingKind::Division };
                            self.find(kind, s, group, pc, l, || format!("{wrong} (operands {x} and {y})"));
                        }
                    }
                }
                Instruction::Fresh { d, n, written } => {
                    s.registers[at(*d)..at(d + n)].fill(0);
                    for lanes in &mut s.written[*d as usize..(d + n) as usize] {
                        *lanes = if *written { *lanes | s.active } else { *lanes & !s.active };
                    }
                }
                Instruction::Assign { d, a } => {
                    let (d0, a0) = (at(*d), at(*a));
                    if s.active == s.full {
                        s.registers.copy_within(a0..a0 + w, d0);
                    } else {
                        for l in lanes_of(s.active) {
                            s.registers[d0 + l] = s.registers[a0 + l];
                        }
                    }
                    s.written[*d as usize] |= s.active;
                }
                Instruction::CheckWritten { d, n } => {
                    for slot in *d..d + n {
                        self.check_written(s, group, pc, slot, s.active);
                    }
                }
                Instruction::LoadVar { d, at: pointer, offset, tracked } => {
                    for l in lanes_of(s.active) {
                        let p = s.registers[at(*pointer) + l];
                        let value = if p == INVALID {
                            self.out_of_bounds(s, group, pc, (l, *pointer), "a read", "an array");
                            0
                        } else {
                            let slot = p + offset;
                            if *tracked {
                                self.check_written(s, group, pc, slot, 1 << l);
                            }
                            s.registers[at(slot) + l]
                        };
                        s.registers[at(*d) + l] = value;
                    }
                }
                Instruction::StoreVar { at: pointer, offset, a } => {
                    for l in lanes_of(s.active) {
                        let p = s.registers[at(*pointer) + l];
                        if p == INVALID {
                            self.out_of_bounds(s, group, pc, (l, *pointer), "a write", "an array");
                        } else {
                            let slot = p + offset;
                            s.registers[at(slot) + l] = s.registers[at(*a) + l];
                            s.written[slot as usize] |= 1 << l;
                        }
                    }
                }
                Instruction::Index { d, base, index, stride, length } => {
                    let length = self.length(*length);
                    for l in 0..w {
                        let i = s.registers[at(*index) + l];
                        let from = if *base == NONE { 0 } else { s.registers[at(*base) + l] };
                        s.registers[at(*d) + l] = if i < length && from != INVALID {
                            from.wrapping_add(i.wrapping_mul(*stride))
                        } else {
                            if s.active >> l & 1 == 1 {
                                let before = s.outside.get(&(*base, l)).copied();
                                let here = before.filter(|_| from == INVALID).unwrap_or((i, length));
                                s.outside.insert((*d, l), here);
                            }
                            INVALID
                        };
                    }
                }
                Instruction::Pick { d, index, table, n } => {
                    for l in lanes_of(s.active) {
                        let i = s.registers[at(*index) + l];
                        let value = if i < *n {
                            s.registers[at(code.tables[(table + i) as usize]) + l]
                        } else {
                            s.outside.insert((*d, l), (i, *n));
                            self.out_of_bounds(s, group, pc, (l, *d), "a read", "a value");
                            0
                        };
                        s.registers[at(*d) + l] = value;
                    }
                }
                Instruction::Load { d, from, uniform } => {
                    self.load(s, group, pc, *d, from);
                    if *uniform {
                        let first = s.first_active() as usize;
                        let differs = |l: &usize| {
                            (0..from.n).any(|i| s.registers[at(d + i) + l] != s.registers[at(d + i) + first])
                        };
                        if let Some(l) = lanes_of(s.active).find(differs) {
                            self.find(FindingKind::NonUniformLoad, s, group, pc, l, || {
                                "values differ between lanes".into()
                            });
                        }
                    }
                    if from.atomic && self.spins(s, pc, *d, false) {
                        return Stop::Spinning;
                    }
                }
                Instruction::Store { a, to } => {
                    let changed = self.store(s, group, pc, a, to);
                    if self.bound[usize::from(to.at.memory)].space == SimSpace::Storage {
                        s.same = 0;
                        if to.atomic && changed && self.stops_at_post(group) {
                            return Stop::Posted;
                        }
                    }
                }
                Instruction::Atomic { fun, signed, float, d, to, a, swap } => {
                    let changed = self.atomic(s, group, pc, *fun, (*signed, *float), *to, (*a, *d, *swap));
                    let storage = self.bound[usize::from(to.memory)].space == SimSpace::Storage;
                    if changed && storage && self.stops_at_post(group) {
                        return Stop::Posted;
                    }
                    if self.spins(s, pc, *d, changed) {
                        return Stop::Spinning;
                    }
                }
                Instruction::ArrayLength { d, length } => {
                    let length = self.length(*length);
                    s.registers[at(*d)..at(*d) + w].fill(length);
                }
                Instruction::Barrier(flags) => {
                    if *flags == Barrier::SUB_GROUP {
                        self.check_uniform(s, group, pc);
                    } else {
                        let message = "some threads reach the barrier, and others of the same subgroup do not";
                        self.check_all_active(FindingKind::NonUniformBarrier, s, group, pc, message);
                    }
                    s.state = SubgroupState::AtBarrier(*flags);
                    return Stop::Barrier;
                }
                Instruction::Ballot { d, a } => {
                    self.check_uniform(s, group, pc);
                    let mask = self.where_set(s, *a);
                    let words = [mask as u32, (mask >> 32) as u32, 0, 0];
                    for (i, word) in words.into_iter().enumerate() {
                        s.registers[at(d + i as u32)..at(d + i as u32) + w].fill(word);
                    }
                }
                Instruction::Gather { mode, d, a, b } => {
                    self.check_uniform(s, group, pc);
                    self.gather(s, *mode, at(*d), at(*a), *b);
                }
                Instruction::Collective { op, scan, ty, d, a } => {
                    self.check_uniform(s, group, pc);
                    let check = nan && ty.0 == ScalarKind::Float && !self.any_nan(s, *a, 1);
                    self.collective(s, *op, *scan, *ty, at(*d), at(*a));
                    if check && self.any_nan(s, *d, 1) {
                        self.nan_among(s, group, pc);
                    }
                }
                Instruction::LoadTile { d, from, stride, tile } => {
                    self.check_uniform(s, group, pc);
                    let one = Components { at: *from, n: 1, width: tile.width, atomic: false };
                    for (round, slot) in (0..(tile.rows * tile.columns).div_ceil(w as u32)).zip(*d..) {
                        let lanes = self.tile_targets(s, group, pc, *from, *stride, *tile, round);
                        self.read(s, group, pc, slot, &one);
                        for l in lanes..w {
                            s.registers[at(slot) + l] = 0;
                        }
                    }
                }
                Instruction::StoreTile { a, to, stride, tile } => {
                    self.check_uniform(s, group, pc);
                    let one = Components { at: *to, n: 1, width: tile.width, atomic: false };
                    for (round, slot) in (0..(tile.rows * tile.columns).div_ceil(w as u32)).zip(*a..) {
                        self.tile_targets(s, group, pc, *to, *stride, *tile, round);
                        self.write(s, group, pc, &[slot, NONE, NONE, NONE], &one);
                    }
                }
                Instruction::MultiplyTiles { d, a, b, c, rows, columns, inner, half } => {
                    self.check_uniform(s, group, pc);
                    let extents = [*rows, *columns, *inner];
                    self.multiply_tiles(s, group, pc, *d, [*a, *b, *c], extents, *half);
                }
                Instruction::If { condition, or_else } => {
                    let taken = self.where_set(s, *condition);
                    let rest = s.active & !taken;
                    s.frames.push(Frame::new(s.active, rest, NONE));
                    self.branch(pc, taken != 0 && rest != 0);
                    s.active = taken;
                    if taken == 0 {
                        s.pc = *or_else;
                    }
                }
                Instruction::Else { end } => {
                    if let Some(frame) = s.frames.last_mut() {
                        s.active = std::mem::take(&mut frame.pending);
                    }
                    if s.active == 0 {
                        s.pc = *end;
                    }
                }
                Instruction::EndIf { skip } | Instruction::EndSwitch { skip } | Instruction::EndLoop { skip } => {
                    s.active = s.frames.pop().map_or(0, |f| f.saved);
                    if s.active == 0 {
                        s.pc = *skip;
                    }
                }
                Instruction::Switch => s.frames.push(Frame::new(s.active, s.active, NONE)),
                Instruction::Case { selector, table, n, default, next } => {
                    let list = &code.tables[*table as usize..(table + n) as usize];
                    let pending = s.frames.last().map_or(0, |f| f.pending);
                    let mut taken = 0u64;
                    for l in lanes_of(pending) {
                        let here = list.contains(&s.registers[at(*selector) + l]);
                        taken |= u64::from(here != *default) << l;
                    }
                    if pending != 0 {
                        self.branch(pc, taken != 0 && taken != pending);
                    }
                    if let Some(frame) = s.frames.last_mut() {
                        frame.pending &= !taken;
                    }
                    s.active = taken;
                    if taken == 0 {
                        s.pc = *next;
                    }
                }
                Instruction::Loop => s.frames.push(Frame::new(s.active, 0, NONE)),
                Instruction::Continuing { end } => {
                    if let Some(frame) = s.frames.last_mut() {
                        s.active |= std::mem::take(&mut frame.pending);
                    }
                    if s.active == 0 {
                        s.pc = *end;
                    }
                }
                Instruction::BreakIf { condition } => {
                    let leaving = self.where_set(s, *condition);
                    self.branch(pc, leaving != 0 && leaving != s.active);
                    s.active &= !leaving;
                }
                Instruction::Repeat { begin } => {
                    if s.active != 0 {
                        s.pc = *begin;
                        if let Some(frame) = s.frames.last_mut() {
                            frame.round = frame.round.wrapping_add(1);
                        }
                    }
                }
                Instruction::Break { depth, skip } => {
                    s.leave(*depth as usize);
                    s.pc = *skip;
                }
                Instruction::Continue { depth, skip } => {
                    let leaving = s.leave(*depth as usize);
                    let frame = s.frames.len() - 1 - *depth as usize;
                    s.frames[frame].pending |= leaving;
                    s.pc = *skip;
                }
                Instruction::Return { depth, skip } => {
                    s.leave(*depth as usize);
                    s.pc = *skip;
                }
                Instruction::Call { function } => {
                    s.frames.push(Frame::new(s.active, 0, s.pc));
                    s.pc = *function;
                }
                Instruction::EndFunction => {
                    let frame = s.frames.pop();
                    if s.frames.is_empty() {
                        s.state = SubgroupState::Done;
                        return Stop::Done;
                    }
                    if let Some(frame) = frame {
                        s.active = frame.saved;
                        s.pc = frame.back;
                    }
                }
            }
        }
        Stop::Quantum
    }

    fn where_set(&self, s: &Subgroup, condition: Slot) -> u64 {
        let row = &s.registers[condition as usize * self.lanes..(condition as usize + 1) * self.lanes];
        let set = row.iter().enumerate().fold(0u64, |mask, (l, x)| mask | u64::from(*x != 0) << l);
        set & s.active
    }

    fn length(&self, length: Length) -> u32 {
        match length {
            Length::Fixed(n) => n,
            Length::Bound { memory, offset, stride } => {
                self.bound[usize::from(memory)].bytes.saturating_sub(offset) / stride.max(1)
            }
        }
    }
}

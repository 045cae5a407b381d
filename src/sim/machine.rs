//! Runs the instructions of a subgroup, all of its lanes at a time.

use super::code::{Address, Code, Gather, INVALID, Length, Memory, NONE, Op, Slot, Tile, Width};
use super::memory::{MOST_LANES, Records, Resource, Scope, Stamps, Targets};
use super::report::{Counts, FindingKind};
use super::scalar::{Kind, from_f16, to_f16};
use super::{Options, scalar};
use naga::{AtomicFunction, Barrier, BuiltIn, CollectiveOperation, ScalarKind, SubgroupOperation};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// What a variable is bound to in a dispatch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) space: Space,
    pub(super) resource: usize,
    pub(super) base: u32,
    pub(super) bytes: u32,
    /// Whether the dispatch may write to what is bound.
    pub(super) racy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Storage,
    Uniform,
    Workgroup,
}

/// Something found, with what tells it from others.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) kind: FindingKind,
    pub(super) pc: u32,
    pub(super) other: Option<(u32, u32)>,
    /// Number of the invocation in the dispatch.
    pub(super) who: u32,
    pub(super) message: String,
    pub(super) times: u64,
}

/// Findings and counts of a dispatch.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) found: HashMap<(FindingKind, u32, u32), Found>,
    /// For each instruction.
    pub(super) tally: Vec<Counts>,
    /// Bursts of each channel and bank, with [`Options::interleaving`].
    pub(super) bursts: BTreeMap<(u64, u64), u64>,
}

impl Sink {
    pub(super) fn find(
        &mut self,
        kind: FindingKind,
        pc: u32,
        who: u32,
        other: Option<(u32, u32)>,
        message: impl FnOnce() -> String,
    ) {
        match self.found.entry((kind, pc, other.map_or(u32::MAX, |o| o.0))) {
            Entry::Occupied(mut known) => known.get_mut().times += 1,
            Entry::Vacant(free) => {
                free.insert(Found { kind, pc, other, who, message: message(), times: 1 });
            }
        }
    }
}

/// A workgroup on its way.
#[derive(Debug)]
pub(super) struct Group {
    /// Its first invocation.
    pub(super) first: u32,
    pub(super) memory: Vec<u8>,
    pub(super) records: Records,
    pub(super) workgroup_epoch: u32,
    pub(super) storage_epoch: u32,
    /// How often it has done what others can see.
    pub(super) posts: u32,
    pub(super) subgroups: Vec<Subgroup>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    AtBarrier(Barrier),
    Done,
}

/// Why a subgroup stopped running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Barrier,
    Done,
    /// Its share of time is over.
    Quantum,
    /// It has changed something by an atomic that other workgroups see.
    Posted,
    /// It asks the same atomics again and again.
    Spinning,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Active again at the end.
    saved: u64,
    /// Of the other side of a branch, or of later cases.
    pending: u64,
    /// Instruction after a call.
    back: u32,
    /// How often a loop has been repeated.
    round: u32,
}

impl Frame {
    fn new(saved: u64, pending: u64, back: u32) -> Self {
        Self { saved, pending, back, round: 0 }
    }
}

/// A subgroup: registers, place in the code, masks.
#[derive(Debug)]
pub(super) struct Subgroup {
    pub(super) number: u32,
    pub(super) registers: Vec<u32>,
    /// Lanes that have written each register of a variable.
    written: Vec<u64>,
    frames: Vec<Frame>,
    pub(super) pc: u32,
    pub(super) active: u64,
    /// Lanes that there are.
    pub(super) full: u64,
    pub(super) state: State,
    pub(super) steps: u64,
    /// What atomics last answered, for each place in the code.
    answers: Vec<(u32, u64)>,
    /// How often that was the same.
    pub(super) same: u32,
    /// Index and length, where a lane's pointer in a register leads outside.
    outside: HashMap<(Slot, usize), (u32, u32)>,
}

impl Subgroup {
    /// Which calls it is inside of.
    fn calls(&self) -> impl Iterator<Item = u32> + '_ {
        self.frames.iter().map(|f| f.back).filter(|b| *b != NONE)
    }

    /// By which calls, and in which rounds of loops, it came to where it is.
    pub(super) fn way(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frames.iter().map(|f| (f.back, f.round))
    }

    pub(super) fn first_active(&self) -> u32 {
        self.active.trailing_zeros().min(63)
    }
}

/// A dispatch on its way.
pub(super) struct Machine<'a> {
    pub(super) code: &'a Code,
    pub(super) options: &'a Options,
    pub(super) lanes: usize,
    pub(super) bound: Vec<Bound>,
    pub(super) resources: &'a mut [Resource],
    pub(super) sink: Sink,
    pub(super) workgroups: [u32; 3],
    pub(super) stamps: Stamps,
    /// Whether atomics run from the last lane on.
    pub(super) backwards: bool,
    /// The post at which a workgroup stops, counted from 1; whether one has.
    pub(super) stop_at: Option<u32>,
    pub(super) stopped: bool,
    /// How often an atomic may answer the same before a subgroup is taken to spin.
    pub(super) patience: u32,
    /// Subgroups that take turns, and how many turns one after the other went to such as spin.
    pub(super) crowd: usize,
    pub(super) spinning: usize,
    pub(super) targets: Targets,
}

fn lanes_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 64).then_some(lane as usize)
    })
}

impl<'a> Machine<'a> {
    pub(super) fn group_size(&self) -> u32 {
        self.code.workgroup_size.iter().product()
    }

    /// A workgroup at its beginning; registers come from `pool` where it has some.
    pub(super) fn group(&self, id: [u32; 3], ordinal: u32, pool: &mut Vec<Subgroup>) -> Group {
        let size = self.group_size();
        let fill = if self.options.zero_initialized { 0 } else { 0xa5 };
        let places = self.code.workgroup_bytes.div_ceil(self.code.workgroup_granule) as usize;
        let subgroups = (0..size.div_ceil(self.lanes as u32)).map(|n| self.subgroup(id, n, pool)).collect();
        Group {
            first: ordinal * size,
            memory: vec![fill; self.code.workgroup_bytes as usize],
            records: Records::new(places),
            workgroup_epoch: 1,
            storage_epoch: 1,
            posts: 0,
            subgroups,
        }
    }

    fn subgroup(&self, id: [u32; 3], number: u32, pool: &mut Vec<Subgroup>) -> Subgroup {
        let (w, code) = (self.lanes, self.code);
        let size = self.group_size();
        let first = number * w as u32;
        let there = (size - first).min(w as u32);
        let full = u64::MAX >> (64 - there);
        let mut s = pool.pop().unwrap_or_else(|| {
            let mut registers = vec![0; code.slots as usize * w];
            for (slot, value) in code.constants.iter().enumerate() {
                registers[slot * w..(slot + 1) * w].fill(*value);
            }
            let written = vec![0; code.slots as usize];
            Subgroup {
                number,
                registers,
                written,
                frames: Vec::new(),
                pc: 0,
                active: 0,
                full: 0,
                state: State::Ready,
                steps: 0,
                answers: Vec::new(),
                same: 0,
                outside: HashMap::new(),
            }
        });
        s.number = number;
        s.frames.clear();
        s.frames.push(Frame::new(full, 0, NONE));
        (s.pc, s.active, s.full, s.state, s.steps, s.same) = (code.entry, full, full, State::Ready, 0, 0);
        s.answers.clear();
        s.outside.clear();
        let (private, n) = code.privates;
        s.registers[private as usize * w..(private + n) as usize * w].fill(0);
        s.written[private as usize..(private + n) as usize].fill(0);
        for (slot, value) in &code.private_values {
            s.registers.copy_within(*value as usize * w..(*value as usize + 1) * w, *slot as usize * w);
            s.written[*slot as usize] = u64::MAX;
        }
        let [x, y, _] = code.workgroup_size;
        for (builtin, slot) in &code.builtins {
            for l in 0..w {
                let index = first + l as u32;
                let local = [index % x, index / x % y, index / (x * y)];
                let global: [u32; 3] = std::array::from_fn(|i| {
                    id[i].wrapping_mul(code.workgroup_size[i]).wrapping_add(local[i])
                });
                let one = |value: u32| [value, 0, 0];
                let value = match builtin {
                    BuiltIn::GlobalInvocationId => global,
                    BuiltIn::LocalInvocationId => local,
                    BuiltIn::LocalInvocationIndex => one(index),
                    BuiltIn::WorkGroupId => id,
                    BuiltIn::WorkGroupSize => code.workgroup_size,
                    BuiltIn::NumWorkGroups => self.workgroups,
                    BuiltIn::NumSubgroups => one(size.div_ceil(w as u32)),
                    BuiltIn::SubgroupId => one(number),
                    BuiltIn::SubgroupSize => one(w as u32),
                    BuiltIn::SubgroupInvocationId => one(l as u32),
                    _ => [0; 3],
                };
                let vector = matches!(
                    builtin,
                    BuiltIn::GlobalInvocationId
                        | BuiltIn::LocalInvocationId
                        | BuiltIn::WorkGroupId
                        | BuiltIn::WorkGroupSize
                        | BuiltIn::NumWorkGroups
                );
                for (i, v) in value.iter().enumerate().take(if vector { 3 } else { 1 }) {
                    s.registers[(*slot as usize + i) * w + l] = *v;
                }
            }
        }
        s
    }

    /// Runs at most `quantum` instructions.
    pub(super) fn run(&mut self, group: &mut Group, subgroup: usize, quantum: u32) -> Stop {
        // Taken out, so that the rest of the workgroup can be used beside it.
        let mut s = std::mem::replace(&mut group.subgroups[subgroup], Subgroup::empty());
        let stop = self.steps(group, &mut s, quantum);
        group.subgroups[subgroup] = s;
        stop
    }

    fn steps(&mut self, group: &mut Group, s: &mut Subgroup, quantum: u32) -> Stop {
        let code = self.code;
        let w = self.lanes;
        let there = u64::from(s.full.count_ones());
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
                Op::Row1 { f, d, a } => {
                    f(&mut s.registers, w, at(*d), at(*a));
                    if nan && code.marks[pc as usize].kind.is_float() {
                        self.check_nan(s, group, pc, *d, &[*a]);
                    }
                }
                Op::Row2 { f, d, a, b } => {
                    f(&mut s.registers, w, at(*d), at(*a), at(*b));
                    if nan && code.marks[pc as usize].kind.is_float() {
                        self.check_nan(s, group, pc, *d, &[*a, *b]);
                    }
                }
                Op::Row3 { f, d, a, b, c } => {
                    f(&mut s.registers, w, at(*d), at(*a), at(*b), at(*c));
                    if nan && code.marks[pc as usize].kind.is_float() {
                        self.check_nan(s, group, pc, *d, &[*a, *b, *c]);
                    }
                }
                Op::Guarded { f, guard, d, a, b } => {
                    f(&mut s.registers, w, at(*d), at(*a), at(*b));
                    for l in lanes_of(s.active) {
                        let (x, y) = (s.registers[at(*a) + l], s.registers[at(*b) + l]);
                        if let Some(wrong) = guard.wrong(x, y) {
                            let kind = if *guard == scalar::Guard::Shift {
                                FindingKind::Shift
                            } else {
                                FindingKind::Division
                            };
                            self.find(kind, s, group, pc, l, || format!("{wrong} (operands {x} and {y})"));
                        }
                    }
                }
                Op::Fresh { d, n, written } => {
                    s.registers[at(*d)..at(d + n)].fill(0);
                    for lanes in &mut s.written[*d as usize..(d + n) as usize] {
                        *lanes = if *written { *lanes | s.active } else { *lanes & !s.active };
                    }
                }
                Op::Assign { d, a } => {
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
                Op::CheckWritten { d, n } => {
                    for slot in *d..d + n {
                        self.check_written(s, group, pc, slot, s.active);
                    }
                }
                Op::LoadVar { d, at: pointer, offset, tracked } => {
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
                Op::StoreVar { at: pointer, offset, a } => {
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
                Op::Index { d, base, index, stride, length } => {
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
                Op::Pick { d, index, table, n } => {
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
                Op::Load { d, n, from, width, atomic, uniform } => {
                    self.load(s, group, pc, *d, *n, *from, *width, *atomic);
                    if *uniform {
                        let first = s.first_active() as usize;
                        let differs = |l: &usize| {
                            (0..*n).any(|i| s.registers[at(d + i) + l] != s.registers[at(d + i) + first])
                        };
                        if let Some(l) = lanes_of(s.active).find(differs) {
                            self.find(FindingKind::NonUniformLoad, s, group, pc, l, || {
                                "values differ between lanes".into()
                            });
                        }
                    }
                    if *atomic && self.spins(s, pc, *d, false) {
                        return Stop::Spinning;
                    }
                }
                Op::Store { a, n, to, width, atomic } => {
                    let changed = self.store(s, group, pc, a, *n, *to, *width, *atomic);
                    if self.bound[usize::from(to.memory)].space == Space::Storage {
                        s.same = 0;
                        if *atomic && changed && self.stops_at_post(group) {
                            return Stop::Posted;
                        }
                    }
                }
                Op::Atomic { fun, signed, float, d, to, a, compare, exchanged } => {
                    let operands = (*a, *compare, *d, *exchanged);
                    let changed = self.atomic(s, group, pc, *fun, (*signed, *float), *to, operands);
                    let storage = self.bound[usize::from(to.memory)].space == Space::Storage;
                    if changed && storage && self.stops_at_post(group) {
                        return Stop::Posted;
                    }
                    if self.spins(s, pc, *d, changed) {
                        return Stop::Spinning;
                    }
                }
                Op::ArrayLength { d, length } => {
                    let length = self.length(*length);
                    s.registers[at(*d)..at(*d) + w].fill(length);
                }
                Op::Barrier(flags) => {
                    if *flags == Barrier::SUB_GROUP {
                        self.check_uniform(s, group, pc);
                    } else if s.active != s.full {
                        let missing = lanes_of(s.full & !s.active).next().unwrap_or(0) as u32;
                        let other = Some((pc, group.first + s.number * w as u32 + missing));
                        self.sink.find(
                            FindingKind::NonUniformBarrier,
                            pc,
                            group.first + s.number * w as u32 + s.first_active(),
                            other,
                            || {
                                "some invocations reach the barrier, and others of the same subgroup do not"
                                    .into()
                            },
                        );
                    }
                    s.state = State::AtBarrier(*flags);
                    return Stop::Barrier;
                }
                Op::Ballot { d, a } => {
                    self.check_uniform(s, group, pc);
                    let mut mask = 0u64;
                    for l in lanes_of(s.active) {
                        mask |= u64::from(s.registers[at(*a) + l] != 0) << l;
                    }
                    let words = [mask as u32, (mask >> 32) as u32, 0, 0];
                    for (i, word) in words.into_iter().enumerate() {
                        s.registers[at(d + i as u32)..at(d + i as u32) + w].fill(word);
                    }
                }
                Op::Gather { mode, d, a, b } => {
                    self.check_uniform(s, group, pc);
                    self.gather(s, *mode, at(*d), at(*a), *b);
                }
                Op::Collective { op, scan, kind, half, d, a } => {
                    self.check_uniform(s, group, pc);
                    let check = nan && *kind == ScalarKind::Float && !self.any_nan(s, *a, 1);
                    self.collective(s, *op, *scan, (*kind, *half), at(*d), at(*a));
                    if check && self.any_nan(s, *d, 1) {
                        self.nan_among(s, group, pc);
                    }
                }
                Op::LoadTile { d, from, stride, tile } => {
                    self.check_uniform(s, group, pc);
                    for (round, slot) in (0..(tile.rows * tile.columns).div_ceil(w as u32)).zip(*d..) {
                        let lanes = self.tile_targets(s, group, pc, *from, *stride, *tile, round);
                        self.read(s, group, pc, slot, 1, *from, tile.width, false);
                        for l in lanes..w {
                            s.registers[at(slot) + l] = 0;
                        }
                    }
                }
                Op::StoreTile { a, to, stride, tile } => {
                    self.check_uniform(s, group, pc);
                    for (round, slot) in (0..(tile.rows * tile.columns).div_ceil(w as u32)).zip(*a..) {
                        self.tile_targets(s, group, pc, *to, *stride, *tile, round);
                        self.write(s, group, pc, &[slot, NONE, NONE, NONE], 1, *to, tile.width, false);
                    }
                }
                Op::MultiplyTiles { d, a, b, c, rows, columns, inner, half } => {
                    self.check_uniform(s, group, pc);
                    let tiles = [(*a, rows * inner), (*b, inner * columns), (*c, rows * columns)];
                    let registers = |n: u32| n.div_ceil(w as u32);
                    let check = nan && !tiles.iter().any(|(t, n)| self.any_nan(s, *t, registers(*n)));
                    let element = |r: &[u32], first: Slot, e: u32| {
                        f32::from_bits(r[at(first + e / w as u32) + e as usize % w])
                    };
                    for row in 0..*rows {
                        for column in 0..*columns {
                            let e = row * columns + column;
                            let mut sum = element(&s.registers, *c, e);
                            for k in 0..*inner {
                                let x = element(&s.registers, *a, row * inner + k);
                                sum += x * element(&s.registers, *b, k * columns + column);
                            }
                            let bits = if *half { from_f16(to_f16(sum.to_bits())) } else { sum.to_bits() };
                            s.registers[at(d + e / w as u32) + e as usize % w] = bits;
                        }
                    }
                    if check && self.any_nan(s, *d, registers(rows * columns)) {
                        self.nan_among(s, group, pc);
                    }
                    // Counted as what its lanes would do each.
                    self.sink.tally[pc as usize].fma += u64::from(rows * columns * inner) - there;
                }
                Op::If { condition, or_else } => {
                    let taken = self.where_set(s, *condition);
                    let rest = s.active & !taken;
                    s.frames.push(Frame::new(s.active, rest, NONE));
                    self.branch(pc, taken != 0 && rest != 0);
                    s.active = taken;
                    if taken == 0 {
                        s.pc = *or_else;
                    }
                }
                Op::Else { end } => {
                    if let Some(frame) = s.frames.last_mut() {
                        s.active = std::mem::take(&mut frame.pending);
                    }
                    if s.active == 0 {
                        s.pc = *end;
                    }
                }
                Op::EndIf { skip } | Op::EndSwitch { skip } | Op::EndLoop { skip } => {
                    s.active = s.frames.pop().map_or(0, |f| f.saved);
                    if s.active == 0 {
                        s.pc = *skip;
                    }
                }
                Op::Switch => s.frames.push(Frame::new(s.active, s.active, NONE)),
                Op::Case { selector, table, n, default, next } => {
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
                Op::Loop => s.frames.push(Frame::new(s.active, 0, NONE)),
                Op::Continuing { end } => {
                    if let Some(frame) = s.frames.last_mut() {
                        s.active |= std::mem::take(&mut frame.pending);
                    }
                    if s.active == 0 {
                        s.pc = *end;
                    }
                }
                Op::BreakIf { condition } => {
                    let leaving = self.where_set(s, *condition);
                    self.branch(pc, leaving != 0 && leaving != s.active);
                    s.active &= !leaving;
                }
                Op::Repeat { begin } => {
                    if s.active != 0 {
                        s.pc = *begin;
                        if let Some(frame) = s.frames.last_mut() {
                            frame.round = frame.round.wrapping_add(1);
                        }
                    }
                }
                Op::Break { depth, skip } => {
                    s.leave(*depth as usize);
                    s.pc = *skip;
                }
                Op::Continue { depth, skip } => {
                    let leaving = s.leave(*depth as usize);
                    let frame = s.frames.len() - 1 - *depth as usize;
                    s.frames[frame].pending |= leaving;
                    s.pc = *skip;
                }
                Op::Return { depth, skip } => {
                    s.leave(*depth as usize);
                    s.pc = *skip;
                }
                Op::Call { function } => {
                    s.frames.push(Frame::new(s.active, 0, s.pc));
                    s.pc = *function;
                }
                Op::EndFunction => {
                    let frame = s.frames.pop();
                    if s.frames.is_empty() {
                        s.state = State::Done;
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

    fn branch(&mut self, pc: u32, divergent: bool) {
        let tally = &mut self.sink.tally[pc as usize];
        tally.branches += 1;
        tally.divergent += u64::from(divergent);
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

    fn find(
        &mut self,
        kind: FindingKind,
        s: &Subgroup,
        group: &Group,
        pc: u32,
        lane: usize,
        message: impl FnOnce() -> String,
    ) {
        let who = group.first + s.number * self.lanes as u32 + lane as u32;
        self.sink.find(kind, pc, who, None, message);
    }

    fn out_of_bounds(
        &mut self,
        s: &Subgroup,
        group: &Group,
        pc: u32,
        (lane, pointer): (usize, Slot),
        what: &str,
        of: &str,
    ) {
        self.find(FindingKind::OutOfBounds, s, group, pc, lane, || match s.outside.get(&(pointer, lane)) {
            Some((index, length)) => format!("{what} of element {} of {of} of {length}", *index as i32),
            // The pointer has come from a caller.
            None => format!("{what} outside of {of}"),
        });
    }

    fn check_written(&mut self, s: &Subgroup, group: &Group, pc: u32, slot: Slot, mask: u64) {
        let not = mask & !s.written[slot as usize];
        if not != 0 && !self.options.zero_initialized {
            let name = self.code.name_of(slot);
            self.find(FindingKind::Uninitialized, s, group, pc, not.trailing_zeros() as usize, || {
                format!("`{name}` is read and nothing has written it")
            });
        }
    }

    fn check_uniform(&mut self, s: &Subgroup, group: &Group, pc: u32) {
        if s.active != s.full {
            let w = self.lanes as u32;
            let missing = lanes_of(s.full & !s.active).next().unwrap_or(0) as u32;
            let first = group.first + s.number * w;
            let other = Some((pc, first + missing));
            self.sink.find(FindingKind::NonUniformSubgroup, pc, first + s.first_active(), other, || {
                "some invocations of the subgroup take part, and others do not".into()
            });
        }
    }

    fn check_nan(&mut self, s: &Subgroup, group: &Group, pc: u32, d: Slot, operands: &[Slot]) {
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

    /// Whether `n` registers of an active lane hold a NaN.
    fn any_nan(&self, s: &Subgroup, slot: Slot, n: u32) -> bool {
        let row = |i: u32| &s.registers[(slot + i) as usize * self.lanes..];
        (0..n).any(|i| lanes_of(s.active).any(|l| f32::from_bits(row(i)[l]).is_nan()))
    }

    fn nan_among(&mut self, s: &Subgroup, group: &Group, pc: u32) {
        let lane = s.first_active() as usize;
        self.find(FindingKind::NanBorn, s, group, pc, lane, || {
            "NaN from values of the subgroup that are none".into()
        });
    }

    /// Whether atomics have answered the same for so long that somebody else must act.
    fn spins(&self, s: &mut Subgroup, pc: u32, d: Slot, changed: bool) -> bool {
        if changed {
            s.same = 0;
            return false;
        }
        // FNV-1a over lanes, places and answers.
        let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ s.active;
        for (l, address) in self.targets.each() {
            for word in [address, s.registers[d as usize * self.lanes + l]] {
                hash = (hash ^ u64::from(word)).wrapping_mul(0x100_0000_01b3);
            }
        }
        // A function that asks is told different things where it is called.
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

    /// Where the active lanes go, those outside left out and found.
    fn aim(&mut self, s: &Subgroup, group: &Group, pc: u32, address: Address, size: u32, what: &str) {
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

    /// Where the lanes' elements of a round of a cooperative matrix lie; their number.
    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    fn tile_targets(
        &mut self,
        s: &Subgroup,
        group: &Group,
        pc: u32,
        address: Address,
        stride: Slot,
        tile: Tile,
        round: u32,
    ) -> usize {
        let w = self.lanes as u32;
        let bound = self.bound[usize::from(address.memory)];
        let stride = s.registers[stride as usize * self.lanes];
        let by = if address.at == NONE { 0 } else { s.registers[address.at as usize * self.lanes] };
        let first = round * w;
        let lanes = w.min(tile.rows * tile.columns - first);
        self.targets.clear();
        for l in 0..lanes {
            let (row, column) = ((first + l) / tile.columns, (first + l) % tile.columns);
            let (major, minor) = if tile.row_major { (row, column) } else { (column, row) };
            let element = u64::from(major) * u64::from(stride) * u64::from(tile.vector) + u64::from(minor);
            let begin = u64::from(by) + u64::from(address.offset) + element * u64::from(tile.width.bytes());
            if by == INVALID || begin + u64::from(tile.width.bytes()) > u64::from(bound.bytes) {
                let code = self.code;
                let name = code.memories[usize::from(address.memory)].name();
                self.find(FindingKind::OutOfBounds, s, group, pc, 0, || {
                    format!(
                        "element ({row}, {column}) of a matrix lies outside of `{name}` of {} bytes",
                        bound.bytes
                    )
                });
            } else {
                self.targets.push(l as usize, bound.base + begin as u32);
            }
        }
        lanes as usize
    }

    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    fn load(
        &mut self,
        s: &mut Subgroup,
        group: &mut Group,
        pc: u32,
        d: Slot,
        n: u32,
        from: Address,
        width: Width,
        atomic: bool,
    ) {
        self.aim(s, group, pc, from, n * width.bytes(), "a read");
        if self.targets.n < s.active.count_ones() as usize {
            for l in lanes_of(s.active) {
                for i in 0..n {
                    s.registers[(d + i) as usize * self.lanes + l] = 0;
                }
            }
        }
        self.read(s, group, pc, d, n, from, width, atomic);
    }

    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    fn read(
        &mut self,
        s: &mut Subgroup,
        group: &mut Group,
        pc: u32,
        d: Slot,
        n: u32,
        from: Address,
        width: Width,
        atomic: bool,
    ) {
        let bound = self.bound[usize::from(from.memory)];
        let bytes: &[u8] = match bound.space {
            Space::Workgroup => &group.memory,
            Space::Storage | Space::Uniform => &self.resources[bound.resource].bytes,
        };
        for (l, address) in self.targets.each() {
            for i in 0..n {
                let at = (address + i * width.bytes()) as usize;
                let value = match width {
                    Width::Word => {
                        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
                    }
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

    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    fn store(
        &mut self,
        s: &mut Subgroup,
        group: &mut Group,
        pc: u32,
        a: &[Slot; 4],
        n: u32,
        to: Address,
        width: Width,
        atomic: bool,
    ) -> bool {
        self.aim(s, group, pc, to, n * width.bytes(), "a write");
        self.write(s, group, pc, a, n, to, width, atomic)
    }

    /// Whether something changed.
    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    fn write(
        &mut self,
        s: &mut Subgroup,
        group: &mut Group,
        pc: u32,
        a: &[Slot; 4],
        n: u32,
        to: Address,
        width: Width,
        atomic: bool,
    ) -> bool {
        let bound = self.bound[usize::from(to.memory)];
        let bytes: &mut [u8] = match bound.space {
            Space::Workgroup => &mut group.memory,
            Space::Storage | Space::Uniform => &mut self.resources[bound.resource].bytes,
        };
        // Lanes that have changed something.
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

    /// Holds the access at [`Machine::targets`] against those before it; a write has lanes that have changed something.
    #[allow(clippy::too_many_arguments, reason = "an access has as many sides")]
    fn records(
        &mut self,
        s: &Subgroup,
        group: &mut Group,
        pc: u32,
        bound: Bound,
        size: u32,
        atomic: bool,
        write: Option<u64>,
    ) {
        if !bound.racy {
            return;
        }
        let is_write = write.is_some();
        let scope = Scope { first: group.first, invocations: self.group_size() };
        let in_workgroup = bound.space == Space::Workgroup;
        let (granule, epoch) = if in_workgroup {
            (self.code.workgroup_granule, group.workgroup_epoch)
        } else {
            (self.resources[bound.resource].granule, group.storage_epoch)
        };
        let first = group.first + s.number * self.lanes as u32;
        let check = if in_workgroup {
            !self.options.zero_initialized
        } else {
            self.resources[bound.resource].unwritten
        };
        let records =
            if in_workgroup { &mut group.records } else { &mut self.resources[bound.resource].records };
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
                        format!("`{name}` is read and nothing has written it (byte {})", place * granule)
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
                        format!("{verb} {what} that nothing orders with an access of another invocation")
                    });
                }
            }
        }
    }

    /// Counts a post of the workgroup: whether it is that at which it stops.
    fn stops_at_post(&mut self, group: &mut Group) -> bool {
        group.posts += 1;
        let stops = self.stop_at == Some(group.posts);
        self.stopped |= stops;
        stops
    }

    fn count_access(&mut self, pc: u32, bound: Bound, size: u32, n: u32, is_read: bool, atomic: bool) {
        let lanes = self.targets.n as u64;
        if lanes == 0 {
            return;
        }
        let sector = self.options.sector_bytes;
        let tally = &mut self.sink.tally[pc as usize];
        match bound.space {
            Space::Uniform => {}
            Space::Storage => {
                let (sectors, used) = self.targets.sectors(size, sector);
                tally.transactions += sectors;
                tally.moved_bytes += sectors * u64::from(sector);
                tally.used_bytes += used;
                if let Some(memory) = &self.options.interleaving {
                    for burst in self.targets.bursts(size, memory.burst) {
                        *self.sink.bursts.entry(memory.place(burst * memory.burst)).or_default() += 1;
                    }
                }
                let bytes = lanes * u64::from(size);
                *if is_read { &mut tally.read_bytes } else { &mut tally.written_bytes } += bytes;
            }
            Space::Workgroup => {
                let (passes, conflicts) = self.targets.passes(size, self.options.banks);
                tally.shared_passes += passes;
                tally.bank_conflicts += conflicts;
                *if is_read { &mut tally.shared_reads } else { &mut tally.shared_writes } +=
                    lanes * u64::from(n);
            }
        }
        if atomic {
            tally.atomics += lanes;
        }
    }

    /// Whether something changed.
    #[allow(clippy::too_many_arguments, reason = "an instruction's operands")]
    fn atomic(
        &mut self,
        s: &mut Subgroup,
        group: &mut Group,
        pc: u32,
        fun: AtomicFunction,
        (signed, float): (bool, bool),
        to: Address,
        (a, compare, d, exchanged): (Slot, Slot, Slot, Slot),
    ) -> bool {
        self.aim(s, group, pc, to, 4, "an atomic operation");
        let w = self.lanes;
        let bound = self.bound[usize::from(to.memory)];
        let bytes: &mut [u8] = match bound.space {
            Space::Workgroup => &mut group.memory,
            Space::Storage | Space::Uniform => &mut self.resources[bound.resource].bytes,
        };
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

    fn gather(&self, s: &mut Subgroup, mode: Gather, d: usize, a: usize, b: Slot) {
        let w = self.lanes;
        let first = s.first_active() as usize;
        let mut from = [0u32; MOST_LANES];
        from[..w].copy_from_slice(&s.registers[a..a + w]);
        for l in lanes_of(s.active) {
            let by = if b == NONE { 0 } else { s.registers[b as usize * w + l] as usize };
            let lane = match mode {
                Gather::BroadcastFirst => first,
                Gather::From => by,
                Gather::Down => l.wrapping_add(by),
                Gather::Up => l.wrapping_sub(by),
                Gather::Xor => l ^ by,
                Gather::Quad => (l & !3) | (by & 3),
                Gather::Swap(with) => l ^ with as usize,
            };
            // What a lane that takes no part has is not defined.
            s.registers[d + l] = if lane < w && s.active >> lane & 1 == 1 { from[lane] } else { 0 };
        }
    }

    fn collective(
        &self,
        s: &mut Subgroup,
        op: SubgroupOperation,
        scan: CollectiveOperation,
        (kind, half): (ScalarKind, bool),
        d: usize,
        a: usize,
    ) {
        let float = kind == ScalarKind::Float;
        let signed = kind == ScalarKind::Sint;
        let f = f32::from_bits;
        let join = |x: u32, y: u32| match op {
            SubgroupOperation::All | SubgroupOperation::And => x & y,
            SubgroupOperation::Any | SubgroupOperation::Or => x | y,
            SubgroupOperation::Xor => x ^ y,
            SubgroupOperation::Add if float => (f(x) + f(y)).to_bits(),
            SubgroupOperation::Add => x.wrapping_add(y),
            SubgroupOperation::Mul if float => (f(x) * f(y)).to_bits(),
            SubgroupOperation::Mul => x.wrapping_mul(y),
            SubgroupOperation::Min if float => f(x).min(f(y)).to_bits(),
            SubgroupOperation::Min if signed => (x as i32).min(y as i32) as u32,
            SubgroupOperation::Min => x.min(y),
            SubgroupOperation::Max if float => f(x).max(f(y)).to_bits(),
            SubgroupOperation::Max if signed => (x as i32).max(y as i32) as u32,
            SubgroupOperation::Max => x.max(y),
        };
        let join = |x, y| if half { from_f16(to_f16(join(x, y))) } else { join(x, y) };
        // Only additions and products are scanned.
        let identity = match op {
            SubgroupOperation::Mul if float => 1f32.to_bits(),
            SubgroupOperation::Mul => 1,
            _ => 0,
        };
        let mut sum: Option<u32> = None;
        for l in lanes_of(s.active) {
            let x = s.registers[a + l];
            let with = sum.map_or(x, |sum| join(sum, x));
            match scan {
                CollectiveOperation::Reduce => {}
                CollectiveOperation::InclusiveScan => s.registers[d + l] = with,
                CollectiveOperation::ExclusiveScan => s.registers[d + l] = sum.unwrap_or(identity),
            }
            sum = Some(with);
        }
        if scan == CollectiveOperation::Reduce {
            s.registers[d..d + self.lanes].fill(sum.unwrap_or(identity));
        }
    }
}

impl Subgroup {
    fn empty() -> Self {
        Self {
            number: 0,
            registers: Vec::new(),
            written: Vec::new(),
            frames: Vec::new(),
            pc: 0,
            active: 0,
            full: 0,
            state: State::Done,
            steps: 0,
            answers: Vec::new(),
            same: 0,
            outside: HashMap::new(),
        }
    }

    /// The active lanes leave the innermost `depth` frames, and are returned.
    fn leave(&mut self, depth: usize) -> u64 {
        let leaving = std::mem::take(&mut self.active);
        for frame in self.frames.iter_mut().rev().take(depth) {
            frame.saved &= !leaving;
            frame.pending &= !leaving;
        }
        leaving
    }
}

impl Code {
    /// The variable of workgroup memory at a byte.
    fn workgroup_name(&self, byte: u32) -> &str {
        let holds = |m: &&Memory| match m {
            Memory::Workgroup { base, bytes, .. } => (*base..base + bytes).contains(&byte),
            _ => false,
        };
        self.memories.iter().find(holds).map_or("?", Memory::name)
    }

    /// The variable that a buffer is bound to.
    fn storage_name(&self, resource: usize, bound: &[Bound]) -> &str {
        let is = |b: &Bound| b.space == Space::Storage && b.resource == resource;
        bound.iter().position(is).map_or("?", |i| self.memories[i].name())
    }
}

/// Sorts the steps of each instruction by what it does.
pub(super) fn count_operations(code: &Code, tally: &mut [Counts]) {
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

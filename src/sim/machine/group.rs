//! Workgroups and subgroups: their state, and how they begin.

use super::Machine;
use crate::sim::code::{NONE, Slot};
use crate::sim::memory::Records;
use naga::{Barrier, BuiltIn};
use std::collections::HashMap;

#[derive(Debug)]
pub(in crate::sim) struct Workgroup {
    /// Number of its first thread in the dispatch.
    pub(in crate::sim) first: u32,
    pub(in crate::sim) memory: Vec<u8>,
    pub(in crate::sim) records: Records,
    pub(in crate::sim) workgroup_epoch: u32,
    pub(in crate::sim) storage_epoch: u32,
    /// Posts so far: atomic writes that other workgroups can see.
    pub(in crate::sim) posts: u32,
    pub(in crate::sim) subgroups: Vec<Subgroup>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum SubgroupState {
    Ready,
    AtBarrier(Barrier),
    Done,
}

/// Why a subgroup stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum Stop {
    Barrier,
    Done,
    /// It ran the instructions of its turn.
    Quantum,
    /// It made a post.
    Posted,
    /// It repeats atomics that return the same values.
    Spinning,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Lanes to activate at the end.
    pub(super) saved: u64,
    /// Lanes that take the other branch or later cases.
    pub(super) pending: u64,
    /// Instruction after the call.
    pub(super) back: u32,
    pub(super) round: u32,
}

impl Frame {
    pub(super) fn new(saved: u64, pending: u64, back: u32) -> Self {
        Self { saved, pending, back, round: 0 }
    }
}

/// A running subgroup: registers, next instruction, masks.
#[derive(Debug)]
pub(in crate::sim) struct Subgroup {
    pub(in crate::sim) number: u32,
    pub(in crate::sim) registers: Vec<u32>,
    /// For each register of a variable, the lanes that wrote it.
    pub(super) written: Vec<u64>,
    pub(super) frames: Vec<Frame>,
    pub(in crate::sim) pc: u32,
    pub(in crate::sim) active: u64,
    /// Lanes that have a thread.
    pub(in crate::sim) full: u64,
    pub(in crate::sim) state: SubgroupState,
    pub(in crate::sim) steps: u64,
    /// The last results of atomics, for each instruction: a hash.
    pub(super) answers: Vec<(u32, u64)>,
    /// How often in a row they were the same.
    pub(in crate::sim) same: u32,
    /// For a register and lane whose pointer is out of bounds: index and length.
    pub(super) outside: HashMap<(Slot, usize), (u32, u32)>,
}

impl Subgroup {
    /// Returns the instructions it was called from.
    pub(super) fn calls(&self) -> impl Iterator<Item = u32> + '_ {
        self.frames.iter().map(|f| f.back).filter(|b| *b != NONE)
    }

    /// Returns the calls and the loop rounds that led to its instruction.
    pub(in crate::sim) fn way(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.frames.iter().map(|f| (f.back, f.round))
    }

    pub(in crate::sim) fn first_active(&self) -> u32 {
        self.active.trailing_zeros().min(63)
    }

    pub(super) fn empty() -> Self {
        Self {
            number: 0,
            registers: Vec::new(),
            written: Vec::new(),
            frames: Vec::new(),
            pc: 0,
            active: 0,
            full: 0,
            state: SubgroupState::Done,
            steps: 0,
            answers: Vec::new(),
            same: 0,
            outside: HashMap::new(),
        }
    }

    /// Removes the active lanes from the innermost `depth` frames and returns them.
    pub(super) fn leave(&mut self, depth: usize) -> u64 {
        let leaving = std::mem::take(&mut self.active);
        for frame in self.frames.iter_mut().rev().take(depth) {
            frame.saved &= !leaving;
            frame.pending &= !leaving;
        }
        leaving
    }
}

impl Machine<'_> {
    pub(in crate::sim) fn group(&self, id: [u32; 3], ordinal: u32, pool: &mut Vec<Subgroup>) -> Workgroup {
        let size = self.group_size();
        let fill = if self.options.zero_initialized { 0 } else { 0xa5 };
        let places = self.code.workgroup_bytes.div_ceil(self.code.workgroup_granule) as usize;
        let subgroups = (0..size.div_ceil(self.lanes as u32)).map(|n| self.subgroup(id, n, pool)).collect();
        Workgroup {
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
            Subgroup { registers, written: vec![0; code.slots as usize], ..Subgroup::empty() }
        });
        s.number = number;
        s.frames.clear();
        s.frames.push(Frame::new(full, 0, NONE));
        (s.pc, s.active, s.full, s.state, s.steps, s.same) = (code.entry, full, full, SubgroupState::Ready, 0, 0);
        s.answers.clear();
        s.outside.clear();
        let (private, n) = code.privates;
        s.registers[private as usize * w..(private + n) as usize * w].fill(0);
        s.written[private as usize..(private + n) as usize].fill(0);
        for (slot, value) in &code.private_values {
            s.registers.copy_within(*value as usize * w..(*value as usize + 1) * w, *slot as usize * w);
            s.written[*slot as usize] = u64::MAX;
        }
        for (builtin, slot) in &code.builtins {
            for l in 0..w {
                let index = first + l as u32;
                let (local, global) = code.ids(id, index);
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
}

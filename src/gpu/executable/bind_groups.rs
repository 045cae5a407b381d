//! Bind groups: made once for each choice of buffers, and remembered.

use super::{Executable, binds_uniform};
use crate::gpu::pool::Raw;
use crate::gpu::{RawSlice, lock, unique};
use crate::program::prelude::*;
use std::sync::{Arc, Mutex, Weak};

/// Bind groups of one plan, most recently used first.
pub(super) type Groups = Mutex<Vec<Arc<GroupSet>>>;

/// The bind groups of all dispatches, for one choice of buffers that passed all checks.
#[derive(Debug)]
pub(in crate::gpu) struct GroupSet {
    /// Belongs to this set alone.
    pub(super) id: u64,
    plan: u64,
    operands: Vec<BoundPlace>,
    pub(super) scratch: Vec<Raw>,
    pub(super) groups: Vec<wgpu::BindGroup>,
}

impl GroupSet {
    fn is_of(&self, operands: &[RawSlice<'_>]) -> bool {
        let mut pairs = self.operands.iter().zip(operands);
        self.operands.len() == operands.len() && pairs.all(|(place, o)| *place == o.place())
    }
}

/// The sets that a recorder used last. What was recorded before needs no check: the recorder keeps the memory, so that
/// its identity still means the same memory, which stays written.
#[derive(Debug, Default)]
pub(in crate::gpu) struct RecentSets {
    sets: Vec<Arc<GroupSet>>,
    last: usize,
}

impl RecentSets {
    const MAX: usize = 32;

    /// Where the set of this plan and these operands stands: mostly where the last one does, or behind it.
    pub(super) fn find(&mut self, plan: u64, operands: &[RawSlice<'_>]) -> Option<usize> {
        let (before, from_last) = self.sets.split_at(self.last.min(self.sets.len()));
        let is = |set: &Arc<GroupSet>| set.plan == plan && set.is_of(operands);
        let behind = from_last.iter().position(is).map(|at| self.last + at);
        self.last = behind.or_else(|| before.iter().position(is))?;
        Some(self.last)
    }

    /// Adds a set, in place of the oldest if there are many, and returns where it stands.
    pub(super) fn add(&mut self, set: Arc<GroupSet>) -> usize {
        if self.sets.len() < Self::MAX {
            self.last = self.sets.len();
            self.sets.push(set);
        } else {
            self.last = (self.last + 1) % Self::MAX;
            self.sets[self.last] = set;
        }
        self.last
    }

    pub(super) fn set(&self, at: usize) -> &GroupSet {
        &self.sets[at]
    }
}

/// The parts of an operand that decide the checks and the binding.
#[derive(Debug, PartialEq, Eq)]
struct BoundPlace {
    /// A buffer's identity belongs to one `Gpu`.
    buffer: u64,
    start: u64,
    len: usize,
    dtype: DType,
}

impl RawSlice<'_> {
    fn place(&self) -> BoundPlace {
        BoundPlace { buffer: self.memory.raw.id, start: self.start(), len: self.len, dtype: self.dtype }
    }
}

/// The bind groups of all plans, so that [`Gpu::trim`](crate::Gpu::trim) can drop them: they keep memory alive.
#[derive(Debug, Default)]
pub(in crate::gpu) struct GroupRegistry {
    plans: Mutex<Vec<Weak<Groups>>>,
}

impl GroupRegistry {
    pub(super) fn add(&self, groups: &Arc<Groups>) {
        let mut plans = lock(&self.plans);
        if plans.len() == plans.capacity() {
            plans.retain(|p| p.strong_count() > 0);
        }
        plans.push(Arc::downgrade(groups));
    }

    pub(in crate::gpu) fn clear(&self) {
        for plan in self.plans() {
            let sets = std::mem::take(&mut *lock(&plan));
            drop(sets);
        }
    }

    fn plans(&self) -> Vec<Arc<Groups>> {
        lock(&self.plans).iter().filter_map(Weak::upgrade).collect()
    }

    /// Drops the bind groups that keep the buffer with this identity alive.
    pub(in crate::gpu) fn forget(&self, id: u64) {
        let uses = |set: &mut Arc<GroupSet>| set.operands.iter().any(|place| place.buffer == id);
        for plan in self.plans() {
            let gone: Vec<_> = lock(&plan).extract_if(.., uses).collect();
            drop(gone);
        }
    }
}

/// Choices of buffers that a plan remembers bind groups for.
const REMEMBERED: usize = 8;

impl Executable {
    /// The bind groups of these buffers, if they passed the checks before.
    pub(super) fn known(&self, operands: &[RawSlice<'_>], scratch: &[Raw]) -> Option<Arc<GroupSet>> {
        let mut sets = lock(&self.groups);
        let at = sets
            .iter()
            .position(|set| set.is_of(operands) && set.scratch.iter().zip(scratch).all(|(a, b)| a.id == b.id))?;
        sets[..=at].rotate_right(1);
        sets.first().cloned()
    }

    /// Makes the bind groups of all dispatches, in one error scope, and remembers them.
    pub(super) fn bind_all(&self, operands: &[RawSlice<'_>], scratch: Vec<Raw>) -> Result<Arc<GroupSet>> {
        let groups = self.gpu.scoped(&format!("{}: binding buffers", self.program.op), || {
            (0..self.program.dispatches.len()).map(|i| self.bind(i, operands, &scratch)).collect()
        })?;
        let operands = operands.iter().map(RawSlice::place).collect();
        let set = Arc::new(GroupSet { id: unique(), plan: self.id, operands, scratch, groups });
        self.remember(&set);
        Ok(set)
    }

    /// Puts bind groups first in the list, and drops the oldest.
    fn remember(&self, set: &Arc<GroupSet>) {
        let mut sets = lock(&self.groups);
        let keep = sets.len().min(REMEMBERED - 1);
        let old = sets.split_off(keep);
        sets.insert(0, set.clone());
        drop(sets);
        drop(old);
    }

    fn bind(&self, index: usize, operands: &[RawSlice<'_>], scratch: &[Raw]) -> wgpu::BindGroup {
        let dispatch = &self.program.dispatches[index];
        let pipeline = &self.pipelines[dispatch.kernel];
        let range = |buffer, offset, size| wgpu::BufferBinding { buffer, offset, size: std::num::NonZero::new(size) };
        let params = self.params.iter().filter(|_| !dispatch.params.is_empty()).map(|p| {
            let size = round_up(dispatch.params.len() as u64, 16);
            (0, range(&p.raw.buffer, self.params_offsets[index], size))
        });
        let buffers = dispatch.bindings.iter().enumerate().map(|(i, b)| {
            let (raw, base) = match b.resource {
                Resource::Operand(o) => (&operands[o].memory.raw, operands[o].start()),
                Resource::Scratch(s) => (&scratch[s], 0),
                Resource::Constant(c) => (&self.constants[c], 0),
            };
            let unit = if binds_uniform(pipeline, i) { 16 } else { 4 };
            (i as u32 + 1, range(&raw.buffer, base + b.offset, round_up(b.size, unit).max(unit)))
        });
        let entries: Vec<_> = params
            .chain(buffers)
            .map(|(binding, b)| wgpu::BindGroupEntry { binding, resource: wgpu::BindingResource::Buffer(b) })
            .collect();
        self.gpu.inner.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        })
    }
}

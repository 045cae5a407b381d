//! Runs the instructions of a subgroup, all of its lanes at a time.

mod access;
mod find;
mod group;
mod step;
mod subgroup;

pub(super) use find::{Found, FoundSink, count_operations};
pub(super) use group::{Stop, Subgroup, SubgroupState, Workgroup};

use super::Options;
use super::code::SimCode;
use super::memory::{SimMemory, Stamps, Targets};

/// What a variable is bound to in a dispatch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) space: SimSpace,
    pub(super) resource: usize,
    pub(super) base: u32,
    pub(super) bytes: u32,
    /// Whether the dispatch may write to what is bound.
    pub(super) racy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimSpace {
    Storage,
    Uniform,
    Workgroup,
}

/// A dispatch on its way.
pub(super) struct Machine<'a> {
    pub(super) code: &'a SimCode,
    pub(super) options: &'a Options,
    pub(super) lanes: usize,
    pub(super) bound: Vec<Bound>,
    pub(super) resources: &'a mut [SimMemory],
    pub(super) sink: FoundSink,
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

impl Machine<'_> {
    pub(super) fn group_size(&self) -> u32 {
        self.code.workgroup_size.iter().product()
    }

    /// The first thread of a subgroup.
    pub(super) fn first_invocation(&self, s: &Subgroup, group: &Workgroup) -> u32 {
        group.first + s.number * self.lanes as u32
    }
}

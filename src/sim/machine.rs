//! Runs the instructions of a subgroup on all its lanes at once.

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

/// The binding of a variable in a dispatch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub(super) space: SimSpace,
    pub(super) resource: usize,
    pub(super) base: u32,
    pub(super) bytes: u32,
    /// Whether accesses can race, because the dispatch may write the buffer.
    pub(super) racy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimSpace {
    Storage,
    Uniform,
    Workgroup,
}

pub(super) struct Machine<'a> {
    pub(super) code: &'a SimCode,
    pub(super) options: &'a Options,
    pub(super) lanes: usize,
    pub(super) bound: Vec<Bound>,
    pub(super) resources: &'a mut [SimMemory],
    pub(super) sink: FoundSink,
    pub(super) workgroups: [u32; 3],
    pub(super) stamps: Stamps,
    /// Whether atomics run from the last lane to the first.
    pub(super) backwards: bool,
    /// A workgroup stops at its post of this number, from 1. A post is an atomic write that other workgroups can see.
    pub(super) stop_at: Option<u32>,
    pub(super) stopped: bool,
    /// Equal results of an atomic in a row after which a subgroup counts as spinning.
    pub(super) patience: u32,
    /// Subgroups that take turns.
    pub(super) running: usize,
    /// Turns in a row that went to spinning subgroups.
    pub(super) spinning_turns: usize,
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

    pub(super) fn first_thread(&self, s: &Subgroup, group: &Workgroup) -> u32 {
        group.first + s.number * self.lanes as u32
    }
}

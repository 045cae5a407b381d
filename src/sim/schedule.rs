//! The order in which workgroups and subgroups of a dispatch run.

use super::machine::{Machine, Stop, Subgroup, SubgroupState, Workgroup};
use super::report::FindingKind;
use naga::Barrier;
use std::collections::VecDeque;

/// The order in which what may run at the same time runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// Workgroups begin by rising number, a few at a time, and take turns; subgroups likewise.
    InOrder,
    /// The same from the last on; of lanes that meet at an atomic the last comes first.
    Reverse,
    /// Turns of random length, for workgroups and subgroups drawn at random, from this seed.
    Random(u64),
    /// One workgroup at a time, the last first: none may wait for another.
    LastFirst,
    /// Each workgroup is stopped once others can see something of it, and goes on when all others have run or are
    /// stopped too, the last that was stopped first; then, in runs of their own on the same input, at the second and
    /// the third such moment.
    Stalled,
    /// [`LastFirst`](Self::LastFirst), then [`Stalled`](Self::Stalled) on the same input: what relies on the progress
    /// of others, or on the order in which they begin, is found.
    Adversarial,
}

/// Workgroups that are on their way at the same time, at most.
const RESIDENT: usize = 8;
/// Bytes that these may take, if two do not take more.
const RESIDENT_BYTES: u64 = 1 << 30;
/// Instructions of a turn.
const TURN: u32 = 4096;
/// Moments at which [`Schedule::Stalled`] stops workgroups, each in a run of its own.
pub(super) const STOPS: u32 = 3;
/// Most workgroups that are stopped at the same time.
const STOPPED: usize = 64;
/// How often an atomic may answer the same before a subgroup is taken to wait, and before it is taken to wait forever
/// where all that run do.
const PATIENCE: u32 = 1_000;
const LONG_PATIENCE: u32 = 100_000;
/// Turns per subgroup after which all count as waiting: enough that chance leaves no subgroup out.
const WAITS: usize = 32;

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// How far a workgroup got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Finished,
    /// It has posted something and was asked to stop then.
    Posted,
    /// It waits for others or has no end: the dispatch is over.
    Stuck,
}

impl Machine<'_> {
    /// Runs the workgroups; whether all came to their end.
    pub(super) fn dispatch(&mut self, ids: &[[u32; 3]], schedule: Schedule) -> bool {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        let mut pool = Vec::new();
        match schedule {
            Schedule::InOrder => self.fair(ids, order.into(), false, None, &mut pool),
            Schedule::Reverse => {
                order.reverse();
                self.backwards = true;
                self.fair(ids, order.into(), true, None, &mut pool)
            }
            Schedule::Random(seed) => {
                let mut random = Random(seed);
                for i in (1..order.len()).rev() {
                    order.swap(i, random.below(i + 1));
                }
                self.fair(ids, order.into(), false, Some(random), &mut pool)
            }
            Schedule::LastFirst | Schedule::Adversarial => {
                order.reverse();
                self.alone(ids, &order, &mut pool)
            }
            Schedule::Stalled => {
                order.reverse();
                self.stalled(ids, &order, &mut pool)
            }
        }
    }

    fn fair(
        &mut self,
        ids: &[[u32; 3]],
        mut waiting: VecDeque<u32>,
        backwards: bool,
        mut random: Option<Random>,
        pool: &mut Vec<Subgroup>,
    ) -> bool {
        let mut groups: Vec<Workgroup> = Vec::new();
        let mut turn = 0;
        loop {
            while groups.len() < self.at_once(RESIDENT)
                && let Some(ordinal) = waiting.pop_front()
            {
                groups.push(self.group(ids[ordinal as usize], ordinal, pool));
                self.begin(groups.iter().map(|g| g.subgroups.len()).sum());
            }
            if groups.is_empty() {
                return true;
            }
            let at = match &mut random {
                Some(random) => random.below(groups.len()),
                None => turn % groups.len(),
            };
            turn = at + 1;
            let way = match &mut random {
                Some(random) => {
                    let ready: Vec<_> = ready(&groups[at]).collect();
                    let subgroup = ready[random.below(ready.len())];
                    self.turn(&mut groups[at], subgroup, 1 + random.below(64) as u32, LONG_PATIENCE)
                }
                None => self.round(&mut groups[at], backwards, LONG_PATIENCE),
            };
            match way {
                Progress::Running | Progress::Posted => {}
                Progress::Stuck => return false,
                Progress::Finished => {
                    turn = at;
                    pool.extend(groups.remove(at).subgroups);
                }
            }
        }
    }

    /// Workgroups that memory holds, at most `most`.
    fn at_once(&self, most: usize) -> usize {
        ((RESIDENT_BYTES / self.code.group_bytes(self.lanes as u32).max(1)) as usize).clamp(2, most)
    }

    /// So many subgroups take turns from here on.
    fn begin(&mut self, crowd: usize) {
        (self.crowd, self.spinning, self.patience) = (crowd, 0, PATIENCE);
    }

    /// A turn of each subgroup that can run.
    fn round(&mut self, group: &mut Workgroup, backwards: bool, patience: u32) -> Progress {
        let n = group.subgroups.len();
        for i in 0..n {
            let i = if backwards { n - 1 - i } else { i };
            if group.subgroups[i].state == SubgroupState::Ready {
                match self.turn(group, i, TURN, patience) {
                    Progress::Running => {}
                    other => return other,
                }
            }
        }
        Progress::Running
    }

    /// A turn of a subgroup, which waits as long as others do something, or until it has been told the same `patience`
    /// times.
    fn turn(&mut self, group: &mut Workgroup, subgroup: usize, quantum: u32, patience: u32) -> Progress {
        let told = group.subgroups[subgroup].same;
        let stop = self.run(group, subgroup, quantum);
        let s = &group.subgroups[subgroup];
        let who = self.first_invocation(s, group) + s.first_active();
        let pc = s.pc.saturating_sub(1);
        let over = !matches!(stop, Stop::Done | Stop::Posted) && s.steps > self.options.step_limit;
        let mut forever = false;
        if s.same > PATIENCE.max(told) && matches!(stop, Stop::Quantum | Stop::Spinning) {
            self.spinning += 1;
            if self.spinning > WAITS * self.crowd {
                forever = stop == Stop::Spinning && self.patience >= patience;
                self.patience = patience;
            }
        } else {
            (self.spinning, self.patience) = (0, PATIENCE);
        }
        match stop {
            _ if over && s.same <= PATIENCE => {
                let limit = self.options.step_limit;
                self.sink.find(FindingKind::StepLimit, pc, who, None, || {
                    format!("a subgroup has taken {limit} steps and has not come to its end")
                });
                Progress::Stuck
            }
            // One that only asks when its steps are over waits too.
            _ if over || forever => {
                let same = s.same;
                self.sink.find(FindingKind::Livelock, pc, who, None, || {
                    format!("it got the same answer {same} times: it waits for a thread that may never run")
                });
                Progress::Stuck
            }
            Stop::Posted => Progress::Posted,
            Stop::Quantum | Stop::Spinning => Progress::Running,
            Stop::Barrier
                if matches!(
                    group.subgroups[subgroup].state,
                    SubgroupState::AtBarrier(Barrier::SUB_GROUP)
                ) =>
            {
                group.subgroups[subgroup].state = SubgroupState::Ready;
                Progress::Running
            }
            Stop::Barrier | Stop::Done => self.meet(group),
        }
    }

    /// Lets the subgroups pass the barrier that all of them are at.
    fn meet(&mut self, group: &mut Workgroup) -> Progress {
        if ready(group).next().is_some() {
            return Progress::Running;
        }
        let waiting = |s: &&Subgroup| matches!(s.state, SubgroupState::AtBarrier(_));
        let Some(first) = group.subgroups.iter().find(waiting) else { return Progress::Finished };
        let pc = first.pc.saturating_sub(1);
        let who = self.first_invocation(first, group) + first.first_active();
        let elsewhere =
            |s: &&Subgroup| s.state == SubgroupState::Done || s.pc != first.pc || !s.way().eq(first.way());
        if let Some(other) = group.subgroups.iter().find(elsewhere) {
            let there = if other.state == SubgroupState::Done { pc } else { other.pc.saturating_sub(1) };
            let gone = other.state == SubgroupState::Done;
            let its = self.first_invocation(other, group) + if gone { 0 } else { other.first_active() };
            self.sink.find(FindingKind::NonUniformBarrier, pc, who, Some((there, its)), || {
                if gone {
                    "it waits at the barrier, and another subgroup of the workgroup has ended".into()
                } else {
                    "it waits at this barrier, and another subgroup of the workgroup at another, or in another round \
                     of a loop"
                        .into()
                }
            });
        }
        self.sink.tally[pc as usize].barriers += 1;
        let mut flags = Barrier::empty();
        for s in &mut group.subgroups {
            if let SubgroupState::AtBarrier(own) = s.state {
                flags |= own;
                s.state = SubgroupState::Ready;
            }
        }
        group.workgroup_epoch += u32::from(flags.contains(Barrier::WORK_GROUP));
        group.storage_epoch += u32::from(flags.contains(Barrier::STORAGE));
        Progress::Running
    }

    fn run_out(&mut self, group: &mut Workgroup) -> Progress {
        self.begin(group.subgroups.len());
        loop {
            match self.round(group, false, PATIENCE) {
                Progress::Running => {}
                other => return other,
            }
        }
    }

    fn alone(&mut self, ids: &[[u32; 3]], order: &[u32], pool: &mut Vec<Subgroup>) -> bool {
        for ordinal in order {
            let mut group = self.group(ids[*ordinal as usize], *ordinal, pool);
            if self.run_out(&mut group) == Progress::Stuck {
                return false;
            }
            pool.extend(group.subgroups);
        }
        true
    }

    fn stalled(&mut self, ids: &[[u32; 3]], order: &[u32], pool: &mut Vec<Subgroup>) -> bool {
        let mut stopped = Vec::new();
        let (stopping, rest) = order.split_at(order.len().min(self.at_once(STOPPED)));
        for ordinal in stopping {
            let mut group = self.group(ids[*ordinal as usize], *ordinal, pool);
            match self.run_out(&mut group) {
                Progress::Stuck => return false,
                Progress::Posted => stopped.push(group),
                _ => pool.extend(group.subgroups),
            }
        }
        self.stop_at = None;
        if !self.alone(ids, rest, pool) {
            return false;
        }
        while let Some(mut group) = stopped.pop() {
            if self.run_out(&mut group) == Progress::Stuck {
                return false;
            }
            pool.extend(group.subgroups);
        }
        true
    }
}

fn ready(group: &Workgroup) -> impl Iterator<Item = usize> + '_ {
    group.subgroups.iter().enumerate().filter(|(_, s)| s.state == SubgroupState::Ready).map(|(i, _)| i)
}

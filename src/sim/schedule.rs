use super::machine::{Machine, Stop, Subgroup, SubgroupState, Workgroup};
use super::report::FindingKind;
use naga::Barrier;
use std::collections::VecDeque;

/// The order in which a dispatch's workgroups and subgroups run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Schedule {
    /// Eight workgroups at a time, by rising number, take turns; so do their subgroups.
    InOrder,
    /// As [`InOrder`](Self::InOrder), from the last workgroup down. Lanes also meet at an atomic in reverse order.
    Reverse,
    /// Random workgroups and subgroups take turns of random length, drawn from this seed.
    Random(u64),
    /// One workgroup at a time, the last first. A workgroup that waits for an earlier one never ends.
    LastFirst,
    /// Each workgroup stops at its first atomic write that others can see, and resumes when all others have run or
    /// stopped, the last stopped first. Two more runs on the same input stop at the second and third such write.
    Stalled,
    /// [`LastFirst`](Self::LastFirst), then [`Stalled`](Self::Stalled) on the same input. It finds kernels that rely on
    /// other workgroups' progress, or on the order in which workgroups begin.
    Adversarial,
}

/// Maximum workgroups that run at the same time.
const RESIDENT: usize = 8;
/// Maximum bytes of these, but two always fit.
const RESIDENT_BYTES: u64 = 1 << 30;
/// Maximum instructions of a turn.
const TURN: u32 = 4096;
pub(super) const STOPS: u32 = 3;
/// Maximum workgroups that are stopped at the same time.
const STOPPED: usize = 64;
/// Equal results of an atomic in a row after which a subgroup counts as spinning.
const PATIENCE: u32 = 1_000;
const LONG_PATIENCE: u32 = 100_000;
/// Spinning turns per subgroup after which all count as spinning: enough for the random schedule to reach each.
const WAITS: usize = 32;

/// splitmix64 (Steele, Lea, Flood 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// The state of a workgroup after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    Finished,
    /// It made a post and was told to stop there.
    Posted,
    /// It waits forever or has no end. The dispatch stops.
    Stuck,
}

impl Machine<'_> {
    /// Runs the workgroups. Returns whether all ended.
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
                let mut random = Draws(seed);
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
        &mut self, ids: &[[u32; 3]], mut waiting: VecDeque<u32>, backwards: bool, mut random: Option<Draws>,
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

    /// Returns how many workgroups fit into memory, at most `most`.
    fn at_once(&self, most: usize) -> usize {
        ((RESIDENT_BYTES / self.code.group_bytes(self.lanes as u32).max(1)) as usize).clamp(2, most)
    }

    /// Starts turns of this many subgroups.
    fn begin(&mut self, running: usize) {
        (self.running, self.spinning_turns, self.patience) = (running, 0, PATIENCE);
    }

    /// Gives each subgroup that can run a turn.
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

    /// Gives a subgroup a turn. If all subgroups spin, one is stuck after `patience` equal results of its atomics.
    fn turn(&mut self, group: &mut Workgroup, subgroup: usize, quantum: u32, patience: u32) -> Progress {
        let before = group.subgroups[subgroup].same;
        let stop = self.run(group, subgroup, quantum);
        let s = &group.subgroups[subgroup];
        let who = self.first_thread(s, group) + s.first_active();
        let pc = s.pc.saturating_sub(1);
        let over = !matches!(stop, Stop::Done | Stop::Posted) && s.steps > self.options.step_limit;
        let mut forever = false;
        if s.same > PATIENCE.max(before) && matches!(stop, Stop::Quantum | Stop::Spinning) {
            self.spinning_turns += 1;
            if self.spinning_turns > WAITS * self.running {
                forever = stop == Stop::Spinning && self.patience >= patience;
                self.patience = patience;
            }
        } else {
            (self.spinning_turns, self.patience) = (0, PATIENCE);
        }
        match stop {
            _ if over && s.same <= PATIENCE => {
                let limit = self.options.step_limit;
                self.sink.find(FindingKind::StepLimit, pc, who, None, || {
                    format!("a subgroup took {limit} steps without ending")
                });
                Progress::Stuck
            }
            // A subgroup that spins when its steps run out is waiting, too.
            _ if over || forever => {
                let same = s.same;
                self.sink.find(FindingKind::Livelock, pc, who, None, || {
                    format!("an atomic returned the same value {same} times: it waits for a thread that may never run")
                });
                Progress::Stuck
            }
            Stop::Posted => Progress::Posted,
            Stop::Quantum | Stop::Spinning => Progress::Running,
            Stop::Barrier
                if matches!(group.subgroups[subgroup].state, SubgroupState::AtBarrier(Barrier::SUB_GROUP)) =>
            {
                group.subgroups[subgroup].state = SubgroupState::Ready;
                Progress::Running
            }
            Stop::Barrier | Stop::Done => self.meet(group),
        }
    }

    /// Lets the subgroups pass the barrier that all of them have reached.
    fn meet(&mut self, group: &mut Workgroup) -> Progress {
        if ready(group).next().is_some() {
            return Progress::Running;
        }
        let waiting = |s: &&Subgroup| matches!(s.state, SubgroupState::AtBarrier(_));
        let Some(first) = group.subgroups.iter().find(waiting) else { return Progress::Finished };
        let pc = first.pc.saturating_sub(1);
        let who = self.first_thread(first, group) + first.first_active();
        let elsewhere = |s: &&Subgroup| s.state == SubgroupState::Done || s.pc != first.pc || !s.way().eq(first.way());
        if let Some(other) = group.subgroups.iter().find(elsewhere) {
            let there = if other.state == SubgroupState::Done { pc } else { other.pc.saturating_sub(1) };
            let gone = other.state == SubgroupState::Done;
            let its = self.first_thread(other, group) + if gone { 0 } else { other.first_active() };
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

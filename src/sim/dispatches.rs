use super::Options;
use super::code::{DeclaredMemory, SimCode};
use super::launch::{Area, SimLaunch};
use super::machine::{self, Found, FoundSink, Machine, SimSpace};
use super::memory::{SimMemory, Stamps, Targets};
use super::report::{Counts, Finding, FindingKind, Report, SourceLine, Thread};
use super::schedule::{self, Schedule};
use crate::error::Result;
use crate::shader;
use std::collections::BTreeMap;
use std::iter;

/// WebGPU's maximum workgroups along an axis.
const MAX_PER_AXIS: u32 = 65535;

/// Kernels with their dispatches and buffers, ready to run.
pub(super) struct SimRun<'a> {
    pub(super) op: &'a str,
    pub(super) kernels: Vec<SimCode>,
    pub(super) launches: Vec<SimLaunch>,
    pub(super) areas: Vec<Area<'a>>,
    /// Number of areas that belong to the caller; they come first.
    pub(super) operands: usize,
    pub(super) sources: BTreeMap<String, String>,
    pub(super) options: &'a Options,
}

impl SimRun<'_> {
    /// Runs under the schedule, or one after the other under those that it combines.
    pub(super) fn all(&mut self) -> Result<(Report, Vec<SimMemory>)> {
        let stalled = (1..=schedule::STOPS).map(|at| (Schedule::Stalled, Some(at)));
        let schedules: Vec<_> = match self.options.schedule {
            Schedule::Adversarial => iter::once((Schedule::LastFirst, None)).chain(stalled).collect(),
            Schedule::Stalled => stalled.collect(),
            one => vec![(one, None)],
        };
        let mut report = Report {
            subgroup_size: self.options.subgroup_size,
            sector_bytes: self.options.sector_bytes,
            interleaving: self.options.interleaving,
            ..Report::default()
        };
        let mut areas = Vec::new();
        for (i, (schedule, stop_at)) in schedules.into_iter().enumerate() {
            areas = self.areas.iter().map(|area| area.resource(self.op, self.options)).collect::<Result<_>>()?;
            let stopped = self.once(schedule, stop_at, &mut areas, &mut report, i == 0)?;
            if stop_at.is_some() && !stopped {
                break;
            }
        }
        for place in report.lines.keys() {
            if let Some(name) = place.file.strip_prefix("shaders/").and_then(|f| f.strip_suffix(".wgsl"))
                && let Some(text) = shader::source(name)
            {
                self.sources.insert(place.file.clone(), text.to_owned());
            }
        }
        report.sources = std::mem::take(&mut self.sources);
        Ok((report, areas))
    }

    /// Runs all dispatches once. Returns whether a workgroup stopped at post `stop_at`.
    fn once(
        &self, schedule: Schedule, stop_at: Option<u32>, areas: &mut Vec<SimMemory>, report: &mut Report,
        counting: bool,
    ) -> Result<bool> {
        let (mut stamp, mut stopped) = (1, false);
        for (number, launch) in self.launches.iter().enumerate() {
            let code = &self.kernels[launch.kernel];
            let op = self.op;
            let workgroups = launch.workgroups(op, code, areas)?;
            let ids = sample(workgroups, self.options.max_workgroups);
            let total: u128 = workgroups.iter().map(|n| u128::from(*n)).product();
            if (ids.len() as u128) < total && counting {
                report.notes.push(format!(
                    "dispatch {number} ({}): ran {} of its {total} workgroups, sampled evenly",
                    code.label,
                    ids.len()
                ));
            }
            if counting && workgroups.iter().any(|n| *n > MAX_PER_AXIS) {
                report.notes.push(format!(
                    "dispatch {number} ({}): its grid is {workgroups:?}; devices allow {MAX_PER_AXIS} along an axis",
                    code.label
                ));
            }
            let kept = areas.len();
            let mut bound = launch.bind(op, code, areas, &self.options.immediates)?;
            for b in bound.iter_mut().filter(|b| b.space == SimSpace::Storage) {
                b.racy |= self.options.check_untouched || areas[b.resource].unwritten;
            }
            for (b, memory) in bound.iter().zip(&code.memories) {
                if let DeclaredMemory::Binding { granule, .. } = memory
                    && b.racy
                {
                    areas[b.resource].record(*granule);
                }
            }
            let mut machine = Machine {
                code,
                options: self.options,
                lanes: self.options.subgroup_size as usize,
                bound,
                resources: areas,
                sink: FoundSink { tally: vec![Counts::default(); code.ops.len()], ..FoundSink::default() },
                workgroups,
                stamps: Stamps::new(stamp, code.ops.len()),
                backwards: false,
                stop_at,
                stopped: false,
                patience: 0,
                running: 0,
                spinning_turns: 0,
                targets: Targets::default(),
            };
            let done = machine.dispatch(&ids, schedule);
            stamp = machine.stamps.next();
            stopped |= machine.stopped;
            let mut sink = std::mem::take(&mut machine.sink);
            areas.truncate(kept);
            if counting {
                collect(code, &mut sink, report);
            }
            let mut found: Vec<_> = sink.found.into_values().collect();
            found.sort_by_key(|f| (f.pc, f.kind, f.other));
            for found in found {
                note(report, finding(code, number, &ids, found));
            }
            if !done {
                report.notes.push(format!("dispatch {number} ({}) was stopped; no later dispatch ran", code.label));
                return Ok(stopped);
            }
        }
        if self.options.check_untouched {
            self.untouched(areas, report);
        }
        Ok(stopped)
    }

    /// Reports operands with bytes that no thread read or wrote.
    fn untouched(&self, areas: &[SimMemory], report: &mut Report) {
        for (number, (area, given)) in areas.iter().zip(&self.areas).enumerate().take(self.operands) {
            let Area::Given(bytes) = given else { continue };
            let whole = bytes.len() / area.granule.max(1) as usize;
            let missed = || (0..whole).filter(|i| *i < area.records.len() && !area.records.is_touched(*i));
            let Some(first) = missed().next() else { continue };
            let binds = |l: &&SimLaunch| l.bound.iter().flatten().any(|b| b.area == number);
            let Some((dispatch, launch)) = self.launches.iter().enumerate().find(|(_, l)| binds(l)) else {
                continue;
            };
            let code = &self.kernels[launch.kernel];
            let variable = launch.bound.iter().position(|b| b.is_some_and(|b| b.area == number));
            let Some(DeclaredMemory::Binding { name, line, .. }) = variable.map(|v| &code.memories[v]) else {
                continue;
            };
            let (file, line) = code.lines.get(*line as usize).cloned().unwrap_or_default();
            let (granule, n) = (area.granule as usize, missed().count());
            let message = format!(
                "{} of the {} bytes of `{name}` are neither read nor written; the first is byte {}",
                n * granule,
                bytes.len(),
                first * granule
            );
            let nobody = Thread { workgroup: [0; 3], local: [0; 3], global: [0; 3] };
            note(
                report,
                Finding {
                    kind: FindingKind::Untouched,
                    kernel: code.label.clone(),
                    dispatch,
                    at: SourceLine { file, line },
                    thread: nobody,
                    other: None,
                    message,
                    times: 1,
                },
            );
        }
    }
}

/// Adds a finding, or counts it if it is known.
fn note(report: &mut Report, new: Finding) {
    let same = |f: &&mut Finding| {
        f.kind == new.kind
            && f.at == new.at
            && f.kernel == new.kernel
            && f.other.as_ref().map(|o| &o.0) == new.other.as_ref().map(|o| &o.0)
    };
    match report.findings.iter_mut().find(same) {
        Some(known) => known.times += new.times,
        None => report.findings.push(new),
    }
}

fn finding(code: &SimCode, dispatch: usize, ids: &[[u32; 3]], found: Found) -> Finding {
    let size: u32 = code.workgroup_size.iter().product();
    let thread = |who: u32| {
        let workgroup = ids.get((who / size) as usize).copied().unwrap_or_default();
        let (local, global) = code.ids(workgroup, who % size);
        Thread { workgroup, local, global }
    };
    let line = |pc: u32| {
        let (file, line) = code.place(pc);
        SourceLine { file: file.to_owned(), line }
    };
    Finding {
        kind: found.kind,
        kernel: code.label.clone(),
        dispatch,
        at: line(found.pc),
        thread: thread(found.who),
        other: found.other.map(|(pc, who)| (line(pc), thread(who))),
        message: found.message,
        times: found.times,
    }
}

fn collect(code: &SimCode, sink: &mut FoundSink, report: &mut Report) {
    for (place, n) in std::mem::take(&mut sink.bursts) {
        *report.bursts.entry(place).or_default() += n;
    }
    machine::count_operations(code, &mut sink.tally);
    for (pc, counts) in sink.tally.iter().enumerate().filter(|(_, c)| c.steps > 0) {
        report.totals.add_all(counts);
        let (file, line) = code.place(pc as u32);
        if line > 0 {
            report.lines.entry(SourceLine { file: file.to_owned(), line }).or_default().add_all(counts);
        }
    }
}

/// Lists the workgroups of a grid, or an even sample of `most`.
fn sample([x, y, z]: [u32; 3], most: u32) -> Vec<[u32; 3]> {
    // 96 bits suffice for the total, which leaves room to multiply by a number of workgroups.
    let total: u128 = [x, y, z].map(u128::from).iter().product();
    let n = total.min(most.into());
    let place = |i: u128| {
        let (x, y) = (u128::from(x), u128::from(y));
        [(i % x) as u32, (i / x % y) as u32, (i / (x * y)) as u32]
    };
    (0..n).map(|i| place(if n < 2 || n == total { i } else { i * (total - 1) / (n - 1) })).collect()
}

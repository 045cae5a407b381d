use super::check::difference;
use super::class::{LowerOn, class, compatible, forced, is_auto, lower_allowed, operation};
use super::measure::{Candidate, Goal, Outcome, Stopped, TuningOptions, TuningReport};
use super::operands::Operands;
use crate::gpu::{Executable, Gpu, RawSlice, Winner};
use crate::program::prelude::*;
use crate::shader::Target;
use std::time::Instant;

/// A candidate whose first run is slower than the best by this factor is not measured.
const HOPELESS: f64 = 4.0;

pub(super) struct Search<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) lower: &'a LowerOn<'a>,
    pub(super) options: &'a TuningOptions,
    pub(super) goal: Goal,
}

struct Baseline<'a> {
    profile: &'a DeviceProfile,
    program: Program,
    operands: Operands<'a>,
    results: Vec<Vec<u32>>,
    /// Seconds of the copies before each run.
    copies: f64,
    seconds: f64,
}

/// A correct candidate, ready to run.
struct Runner {
    candidate: Candidate,
    executable: Executable,
    seconds: f64,
}

/// Candidates that differed from the default.
#[derive(Default)]
struct Wrong {
    all: Vec<(Candidate, String)>,
    /// Results of the first of them that is another variant.
    first: Option<(&'static str, Vec<Vec<u32>>)>,
    /// Whether another variant agreed with the first.
    confirmed: bool,
}

impl Search<'_> {
    /// Runs the search, on the caller's operands or made-up ones.
    pub(super) fn run(&self, given: Option<&[RawSlice<'_>]>) -> Result<TuningReport> {
        let begin = Instant::now();
        let mut denied = Vec::new();
        // Each further round has one variant fewer.
        loop {
            let (mut report, again) = self.round(given, begin)?;
            denied.append(&mut report.denied);
            if !again {
                report.denied = denied;
                return Ok(report);
            }
        }
    }

    /// Runs one search. Also returns whether it denied the default, so that another search must follow.
    fn round(&self, given: Option<&[RawSlice<'_>]>, begin: Instant) -> Result<(TuningReport, bool)> {
        let (gpu, options) = (self.gpu, self.options);
        let profile = gpu.planning_profile();
        let program = lower_allowed(&profile, self.lower)?;
        if !is_auto(&program) {
            return Err(err!(
                InvalidArgument,
                "tune: `{}` of {} was selected by name; tuning needs `auto`",
                program.variant(),
                program.op
            ));
        }
        let operands = match given {
            Some(given) => Operands::given(gpu, &program, given)?,
            None => Operands::make(gpu, &program)?,
        };
        let executable = gpu.prepare_lowered(program.clone())?;
        operands.reset()?;
        self.run_once(&operands, &executable)?;
        let results = operands.results()?;
        let mut default = Baseline { profile: &profile, program, operands, results, copies: 0.0, seconds: 0.0 };
        if self.goal == Goal::Fastest {
            default.copies = self.time_copies(&default)?;
            default.seconds = self.time(&default, &executable)?;
        }
        let ceilings = if self.goal == Goal::Fastest { gpu.ceilings().ok() } else { None };
        let predicted = ceilings.map(|c| {
            let cost = default.program.cost;
            (cost.bytes / c.copy_bytes_per_second).max(cost.flop / c.fma_flop_per_second)
        });
        let mut report = TuningReport {
            op: default.program.op,
            class: class(&default.program),
            default: Candidate { variant: default.program.variant(), row: None },
            default_seconds: default.seconds,
            best: Candidate { variant: default.program.variant(), row: None },
            best_seconds: default.seconds,
            predicted_seconds: predicted,
            tried: Vec::new(),
            denied: Vec::new(),
            stopped: Stopped::Done,
        };
        let near = |seconds: f64| {
            let reach = 1.0 + options.near_roofline;
            let within = |p: f64| seconds <= p * reach && seconds >= p / reach;
            predicted.is_some_and(within)
        };
        let nothing_to_do = default.program.dispatches.is_empty();
        if near(default.seconds) || nothing_to_do {
            report.stopped = if nothing_to_do { Stopped::Done } else { Stopped::NearRoofline };
            self.remember(&report, true);
            return Ok((report, false));
        }
        let (mut wrong, mut seen, mut right) = (Wrong::default(), vec![work(&default.program)], false);
        let mut best: Option<Runner> = None;
        let mut candidates: Vec<Candidate> = self.candidates(&default);
        candidates.reverse();
        while let Some(candidate) = candidates.pop() {
            if begin.elapsed() >= options.budget {
                report.stopped = Stopped::Budget;
                break;
            }
            let fastest = best.as_ref().map_or(default.seconds, |b| b.seconds);
            // A device lost earlier is not this candidate's fault.
            gpu.probe()?;
            let tried = self.try_one(&default, &candidate, fastest, &mut seen, &mut wrong);
            let (outcome, runner) = tried.map_err(|e| self.blame(&mut report, &candidate, e))?;
            let Some(outcome) = outcome else { continue };
            right |= matches!(outcome, Outcome::Right | Outcome::Measured(_));
            report.tried.push((candidate, outcome));
            if let Some(runner) = runner.filter(|r| r.seconds < fastest) {
                // Try the rows of the fastest variant, too.
                if runner.candidate.row.is_none() {
                    let name = runner.candidate.variant;
                    let rows = operation(&default.program).map_or_else(Vec::new, |o| (o.tiles)(name, &profile));
                    let rows = rows.into_iter().rev();
                    candidates.extend(rows.map(|row| Candidate { variant: name, row: Some(row) }));
                }
                let done = near(runner.seconds);
                best = Some(runner);
                if done {
                    report.stopped = Stopped::NearRoofline;
                    break;
                }
            }
        }
        // Two variants agree with each other, and none with the default: the default is wrong.
        if wrong.confirmed && !right {
            let first = wrong.first.map_or("", |(variant, _)| variant);
            let why = format!("`{first}` and another variant agree on results that differ from the default's");
            self.deny(&mut report, &Candidate { variant: default.program.variant(), row: None }, why);
            return Ok((report, true));
        }
        for (candidate, why) in &wrong.all {
            self.deny(&mut report, candidate, why.clone());
        }
        if let Some(runner) = best {
            self.confirm(&default, &executable, &runner, &mut report)?;
        }
        let known = report.stopped != Stopped::Budget || report.best != report.default;
        self.remember(&report, known);
        Ok((report, false))
    }

    /// All variants, and all rows of the default's own, in the order of trying: the default's neighbours in the list
    /// first.
    fn candidates(&self, default: &Baseline<'_>) -> Vec<Candidate> {
        let program = &default.program;
        let operation = operation(program);
        let variants: &'static [Variant] = operation.map_or(&[], |o| (o.variants)());
        let place = variants.iter().position(|v| v.name == program.variant()).unwrap_or(0);
        let rows = operation.map_or_else(Vec::new, |o| (o.tiles)(program.variant(), default.profile));
        let mut all: Vec<_> =
            rows.into_iter().map(|row| Candidate { variant: program.variant(), row: Some(row) }).collect();
        let mut others: Vec<_> = variants.iter().enumerate().filter(|(i, _)| *i != place).collect();
        others.sort_by_key(|(i, _)| i.abs_diff(place));
        // Cooperative matrices round sums differently. They are taken only if the default uses them.
        let coop = variants.get(place).is_some_and(|v| v.requires.cooperative);
        others.retain(|(_, v)| coop || !v.requires.cooperative);
        all.extend(others.into_iter().map(|(_, v)| Candidate { variant: v.name, row: None }));
        all
    }

    /// Runs a candidate if it may run, compares its result with the default's, and measures it. Returns no outcome
    /// for the same work as an earlier candidate.
    fn try_one(
        &self, default: &Baseline<'_>, candidate: &Candidate, fastest: f64, seen: &mut Vec<SeenWork>, wrong: &mut Wrong,
    ) -> Result<(Option<Outcome>, Option<Runner>)> {
        let gpu = self.gpu;
        let skipped = |why: String| Ok((Some(Outcome::Skipped(why)), None));
        let choices = &default.profile.choices;
        let op = default.program.op;
        if choices.denies(op, candidate.variant).is_some()
            || candidate.row.as_ref().is_some_and(|r| choices.denies_row(op, candidate.variant, || r.clone()))
        {
            return skipped("it failed on this driver before".into());
        }
        let choice = Choice { row: candidate.row.clone(), ..Choice::variant(candidate.variant, "tuning") };
        let program = match (self.lower)(&forced(default.profile, op, choice)) {
            Ok(program) => program,
            Err(e) => return skipped(e.to_string()),
        };
        if program.variant() != candidate.variant {
            return skipped("it fits neither the device nor the shape".into());
        }
        if let Some(why) = compatible(&default.program, &program) {
            return skipped(why.into());
        }
        let work = work(&program);
        if seen.contains(&work) {
            return Ok((None, None));
        }
        seen.push(work);
        let most = self.options.max_text.unwrap_or(if gpu.profile().quirks.slow_compiler { 64 << 10 } else { 1 << 20 });
        let mut text = 0;
        for kernel in &program.kernels {
            text += kernel.expand(Target::Naga)?.text().len();
        }
        if text > most {
            return skipped(format!("{text} bytes of WGSL exceed {most}, so it would compile slowly"));
        }
        let lost = |e: &Error| e.kind() == ErrorKind::DeviceLost;
        let executable = match gpu.prepare_lowered(program) {
            Err(e) if !lost(&e) => return skipped(e.to_string()),
            other => other?,
        };
        default.operands.reset()?;
        let first = Instant::now();
        match self.run_once(&default.operands, &executable) {
            Err(e) if !lost(&e) => return skipped(e.to_string()),
            other => other?,
        }
        let first = first.elapsed();
        let results = default.operands.results()?;
        let term = default.operands.term;
        if let Some(why) = difference(&default.program, term, &default.results, &results) {
            // Rows of the default's own variant do not count against the default.
            if candidate.variant != default.program.variant() {
                match &wrong.first {
                    None => wrong.first = Some((candidate.variant, results)),
                    Some((first, theirs)) => {
                        let same = || difference(&default.program, term, theirs, &results).is_none();
                        wrong.confirmed |= *first != candidate.variant && same();
                    }
                }
            }
            wrong.all.push((candidate.clone(), why.clone()));
            return Ok((Some(Outcome::Wrong(why)), None));
        }
        if self.goal == Goal::Right {
            return Ok((Some(Outcome::Right), None));
        }
        // A slow run was compiled late, or the candidate is far too slow. A second run tells, if there is time.
        if first >= self.options.budget {
            return Ok((Some(Outcome::Measured(first.as_secs_f64())), None));
        }
        let again = gpu.time(|rec| default.operands.record(rec, &executable))?.seconds;
        if again > HOPELESS * fastest {
            return Ok((Some(Outcome::Measured(again)), None));
        }
        let seconds = self.time(default, &executable)?;
        let runner = Runner { candidate: candidate.clone(), executable, seconds };
        Ok((Some(Outcome::Measured(seconds)), Some(runner)))
    }

    /// Measures the default and the best again. A winner wins both times, by more than noise.
    fn confirm(
        &self, default: &Baseline<'_>, executable: &Executable, best: &Runner, report: &mut TuningReport,
    ) -> Result<()> {
        if best.seconds >= default.seconds * (1.0 - self.options.margin) {
            return Ok(());
        }
        let before = default.seconds.min(self.time(default, executable)?);
        let after = best.seconds.max(self.time(default, &best.executable)?);
        report.default_seconds = before;
        report.best_seconds = before;
        if after < before * (1.0 - self.options.margin) {
            (report.best, report.best_seconds) = (best.candidate.clone(), after);
        }
        Ok(())
    }

    fn run_once(&self, operands: &Operands<'_>, executable: &Executable) -> Result<()> {
        let mut rec = self.gpu.recorder();
        operands.record(&mut rec, executable)?;
        rec.submit()?;
        self.gpu.wait()
    }

    /// Seconds of a run, without the copies before it.
    fn time(&self, default: &Baseline<'_>, executable: &Executable) -> Result<f64> {
        let operands = &default.operands;
        let once = self.gpu.time(|rec| operands.record(rec, executable))?.seconds;
        let measured = self.gpu.measure(runs(once), |rec| {
            operands.record_copies(rec)?;
            operands.record(rec, executable)
        })?;
        // At least a part of a copy and a run is the run.
        let median = measured.median();
        Ok((median - default.copies).max(median * 0.05))
    }

    fn time_copies(&self, default: &Baseline<'_>) -> Result<f64> {
        let operands = &default.operands;
        if !operands.copies() {
            return Ok(0.0);
        }
        let once = self.gpu.time(|rec| operands.record_copies(rec))?.seconds;
        Ok(self.gpu.measure(runs(once), |rec| operands.record_copies(rec))?.median())
    }

    /// Denies a candidate that lost the device, so that no later start tries it again.
    fn blame(&self, report: &mut TuningReport, candidate: &Candidate, error: Error) -> Error {
        if error.kind() != ErrorKind::DeviceLost {
            return error;
        }
        self.deny(report, candidate, format!("the device was lost while it ran ({error})"));
        let kept = if self.options.save { "it is denied from now on" } else { "this is not saved" };
        error.context(&format!("tune: {}: `{candidate}` lost the device; {kept}", report.op))
    }

    fn deny(&self, report: &mut TuningReport, candidate: &Candidate, why: String) {
        let denied =
            Denied { op: report.op.to_owned(), variant: candidate.variant.to_owned(), row: candidate.row.clone(), why };
        self.gpu.deny(&denied, self.options.save);
        report.denied.push(denied);
    }

    /// Remembers the result: always for this run, so that it is not searched for again; on disk if `known` for good.
    fn remember(&self, report: &TuningReport, known: bool) {
        if self.goal == Goal::Right {
            return;
        }
        let better = (report.best != report.default).then(|| (report.best.variant.to_owned(), report.best.row.clone()));
        let winner = Winner { better, before: report.default_seconds, after: report.best_seconds };
        self.gpu.remember(report.op, &report.class, &winner, known && self.options.save);
    }
}

type SeenWork = (Vec<crate::program::Kernel>, Vec<crate::program::Dispatch>);

fn work(program: &Program) -> SeenWork {
    (program.kernels.clone(), program.dispatches.clone())
}

fn runs(seconds: f64) -> usize {
    ((0.03 / seconds.max(1e-7)) as usize).clamp(3, 101)
}

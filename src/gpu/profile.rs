use super::{Clock, Gpu, Recorder, Waiting, recorder::PassStamps};
use crate::analysis::Roofline;
use crate::error::Result;
use crate::program::{Ceilings, Cost, quoted};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use web_time::Instant;

/// The time of each op and each dispatch of a recording, from [`Gpu::profile_work`].
///
/// Its `Display` is a table of ops, slowest first, each with its dispatches below it; equal ops share a line.
/// [`chrome_trace`](Self::chrome_trace) gives the same as a timeline for a viewer.
///
/// # Numbers
/// - Times are the device's own, from timestamps around one pass per dispatch. This makes independent dispatches
///   wait for one another, and a pass costs about a microsecond, so the sum is above the time that [`Gpu::time`]
///   gives for the same work. Without timestamps, the host's clock times each op, including submission and waiting
///   ([`Clock::Wall`]); dispatches then have no times of their own.
/// - An op's `cost` is that of its program: operations, and the minimum of bytes to move. It is known for ops of
///   the library, copies and clears, and for a dispatch only if it is the op's only one.
/// - `bound_bytes` of a dispatch is the size of the buffers bound to it: the bytes that it moves if it touches each
///   once. It may touch fewer (rows gathered from a table), or some repeatedly.
/// - Percent of the roofline is the time for `cost` at the measured ceilings ([`Gpu::ceilings`]) over the time
///   taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name of the adapter.
    pub adapter: String,
    /// The clock of the times.
    pub clock: Clock,
    /// Ceilings of the device, if they could be measured.
    pub ceilings: Option<Ceilings>,
    /// Ops in the order of recording. Ops without work are left out.
    pub ops: Vec<OpProfile>,
}

/// An op of a [`Profile`]: a plan, a user's own kernel, a copy or a clear.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpProfile {
    /// Name of the op; for a user's own kernel, its file and entry point.
    pub op: String,
    /// Name of the variant; empty if there is none.
    pub variant: String,
    /// Operations and minimum of bytes, if known.
    pub cost: Option<Cost>,
    /// Seconds from the start of the first op to the start of this one.
    pub begin: f64,
    /// Seconds from the start of its first dispatch to the end of its last.
    pub seconds: f64,
    /// Percent of the roofline, if cost and ceilings are known.
    pub percent_of_roofline: Option<f64>,
    /// Its dispatches in order; copies and clears have none.
    pub dispatches: Vec<DispatchProfile>,
}

/// A dispatch of a [`Profile`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DispatchProfile {
    /// File and entry point of its kernel.
    pub kernel: String,
    /// Workgroups along x, y and z; none if the device computed them.
    pub workgroups: Option<[u32; 3]>,
    /// Bytes of the buffers bound to it.
    pub bound_bytes: u64,
    /// Operations and minimum of bytes of the op, if this is its only dispatch.
    pub cost: Option<Cost>,
    /// Seconds from the start of the first op to the start of this dispatch, by the device's clock.
    pub begin: Option<f64>,
    /// Seconds taken, by the device's clock.
    pub seconds: Option<f64>,
    /// Percent of the roofline, if cost, time and ceilings are known.
    pub percent_of_roofline: Option<f64>,
}

impl OpProfile {
    pub(super) fn new(op: &str, variant: &str, cost: Option<Cost>, dispatches: Vec<DispatchProfile>) -> Self {
        Self { op: op.into(), variant: variant.into(), cost, dispatches, ..Self::default() }
    }
}

/// Maximum of timestamps in a query set, set by WebGPU.
const MAX_STAMPS: u32 = 4096;

#[derive(Debug)]
pub(super) struct Profiler {
    ops: Vec<OpProfile>,
    /// Query sets, used one after the other; none with the host's clock.
    sets: Vec<wgpu::QuerySet>,
    wall: Option<Instant>,
    /// Pairs of timestamps reserved for ops that have begun, and pairs given to passes.
    reserved: usize,
    given: usize,
    next: NextStamp,
}

/// Which timestamps a pass writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStamp {
    None,
    /// Both of the last pair given.
    Both,
    /// Its first, at the end of the pass.
    First,
    /// Its second, at the start of the pass.
    Second,
}

impl Profiler {
    fn new(device_clock: bool) -> Self {
        let wall = (!device_clock).then(Instant::now);
        Self { ops: Vec::new(), sets: Vec::new(), wall, reserved: 0, given: 0, next: NextStamp::None }
    }

    pub(super) fn is_wall(&self) -> bool {
        self.wall.is_some()
    }

    pub(super) fn begin(&mut self, gpu: &Gpu, op: OpProfile) -> Result<()> {
        let reserved = self.reserved + op.dispatches.len().max(1);
        while self.wall.is_none() && self.sets.len() * (MAX_STAMPS as usize / 2) < reserved {
            self.sets.push(gpu.timestamps(MAX_STAMPS)?);
        }
        self.reserved = reserved;
        self.ops.push(op);
        Ok(())
    }

    fn give(&mut self, next: NextStamp) {
        self.given += 1;
        self.next = next;
    }

    pub(super) fn next_dispatch(&mut self) {
        self.give(NextStamp::Both);
    }

    /// Whether an empty pass stamps the start of a command outside of passes.
    pub(super) fn before_command(&mut self) -> bool {
        self.give(NextStamp::First);
        self.wall.is_none()
    }

    /// Whether an empty pass stamps its end.
    pub(super) fn after_command(&mut self) -> bool {
        let command = self.ops.last().is_some_and(|op| op.dispatches.is_empty());
        self.next = if command { NextStamp::Second } else { NextStamp::None };
        command && self.wall.is_none()
    }

    /// Timestamps for the pass that is opened now.
    pub(super) fn next(&mut self) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let stamp = std::mem::replace(&mut self.next, NextStamp::None);
        let pair = self.given.checked_sub(1)?;
        let of_set = MAX_STAMPS as usize / 2;
        let query_set = self.sets.get(pair / of_set)?;
        let first = 2 * (pair % of_set) as u32;
        let (beginning_of_pass_write_index, end_of_pass_write_index) = match stamp {
            NextStamp::None => return None,
            NextStamp::Both => (Some(first), Some(first + 1)),
            NextStamp::First => (None, Some(first)),
            NextStamp::Second => (Some(first + 1), None),
        };
        Some(wgpu::ComputePassTimestampWrites { query_set, beginning_of_pass_write_index, end_of_pass_write_index })
    }

    /// Submits the op that has ended, and times it by the host's clock.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn run(&mut self, gpu: &Gpu, encoder: wgpu::CommandEncoder) -> Result<()> {
        let (Some(zero), Some(op)) = (self.wall, self.ops.last_mut()) else { return Ok(()) };
        let start = Instant::now();
        gpu.scoped("submitting", || gpu.inner.queue.submit([encoder.finish()]))?;
        gpu.wait()?;
        op.begin = (start - zero).as_secs_f64();
        op.seconds = start.elapsed().as_secs_f64();
        Ok(())
    }

    fn timed(mut self, ticks: &[u64], tick_seconds: f64) -> Vec<OpProfile> {
        // Seconds since the first timestamp. A clock that runs backwards counts as stopped.
        let zero = ticks.first().copied().unwrap_or(0);
        let seconds = |tick: u64| tick.saturating_sub(zero) as f64 * tick_seconds;
        let mut pairs = ticks.chunks_exact(2).map(|t| (seconds(t[0]), seconds(t[1].max(t[0]))));
        for op in &mut self.ops {
            let mut ends = None;
            for dispatch in &mut op.dispatches {
                let Some((begin, end)) = pairs.next() else { break };
                (dispatch.begin, dispatch.seconds) = (Some(begin), Some(end - begin));
                ends = Some((ends.map_or(begin, |(first, _)| first), end));
            }
            if op.dispatches.is_empty() {
                ends = pairs.next();
            }
            let (begin, end) = ends.unwrap_or_default();
            (op.begin, op.seconds) = (begin, end - begin);
        }
        self.ops
    }
}

impl Gpu {
    /// Submits the work that `record` records, waits, and returns the time of each op and each dispatch: see
    /// [`Profile`].
    ///
    /// It runs the work once. Run the same work before it to keep compilation, and the low clocks of an idle card,
    /// out of the times. Without timestamps each op runs as it is recorded, so ops before an error in `record` have
    /// run.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, y) = (gpu.upload(&vec![1.0f32; 5000])?, gpu.alloc_zeroed::<f32>(5000)?);
    /// let total = gpu.alloc::<f32>(1)?;
    /// let axpy = Axpy::new(5000, 0.5).plan::<f32>(&gpu)?;
    /// let sum = Reduce::new(Sum, 5000).plan::<f32>(&gpu)?;
    /// let profile = gpu.profile_work(|rec| {
    ///     axpy.record(rec, &x, &y)?;
    ///     sum.record(rec, &y, &total)
    /// })?;
    /// println!("{profile}");
    /// assert_eq!(profile.ops[0].op, "axpy");
    /// let trace = profile.chrome_trace(); // for chrome://tracing or ui.perfetto.dev
    /// assert!(trace.contains("\"reduce\""));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `record`; out of memory; device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn profile_work(&self, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<Profile> {
        let ceilings = self.reported_ceilings();
        let stamped = self.profile().features.timestamps;
        // Keeps earlier work out of the first op's time.
        self.wait()?;
        let profiler = Box::new(Profiler::new(stamped));
        let mut rec = self.record_into(self.encoder(), Some(PassStamps::Ops(profiler)));
        record(&mut rec)?;
        let (encoder, stamps, keep) = rec.into_parts();
        let ops = match stamps {
            Some(PassStamps::Ops(profiler)) if stamped && profiler.given > 0 => {
                let of_set = MAX_STAMPS as usize;
                let used = |i: usize| (2 * profiler.given - i * of_set).min(of_set) as u32;
                let sets = &profiler.sets[..(2 * profiler.given).div_ceil(of_set)];
                let sets: Vec<_> = sets.iter().enumerate().map(|(i, set)| (set.clone(), used(i))).collect();
                let ticks = Waiting::block(|waiting| self.submit_stamped(waiting, encoder, &sets))?;
                profiler.timed(&ticks, self.tick_seconds())
            }
            Some(PassStamps::Ops(profiler)) => profiler.ops,
            _ => Vec::new(),
        };
        drop(keep);
        let clock = if stamped { Clock::Device } else { Clock::Wall };
        let mut profile = Profile { adapter: self.profile().name.clone(), clock, ceilings, ops };
        profile.compare();
        Ok(profile)
    }
}

fn percent(ceilings: Option<Ceilings>, cost: Option<Cost>, seconds: f64) -> Option<f64> {
    let (ceilings, cost) = (ceilings?, cost?);
    let roof = Roofline { bandwidth: ceilings.copy_bytes_per_second, peak: ceilings.fma_flop_per_second };
    let least = roof.seconds(cost.flop, cost.bytes);
    (seconds > 0.0 && least > 0.0).then(|| 100.0 * least / seconds)
}

impl Profile {
    /// Returns the seconds of all ops together.
    pub fn seconds(&self) -> f64 {
        // The sum of an empty iterator is -0 in Rust.
        self.ops.iter().fold(0.0, |sum, op| sum + op.seconds)
    }

    fn compare(&mut self) {
        for op in &mut self.ops {
            op.percent_of_roofline = percent(self.ceilings, op.cost, op.seconds);
            for d in &mut op.dispatches {
                d.percent_of_roofline = d.seconds.and_then(|s| percent(self.ceilings, d.cost, s));
            }
        }
    }

    /// Returns the profile as JSON in the format of Chrome's traces, for `chrome://tracing` and
    /// [Perfetto](https://ui.perfetto.dev): an event for each op, and below it one for each dispatch with a time.
    pub fn chrome_trace(&self) -> String {
        let mut events = vec![
            format!(
                r#"{{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{{"name":{}}}}}"#,
                quoted(&self.adapter)
            ),
            format!(
                r#"{{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{{"name":{}}}}}"#,
                quoted(&format!("queue ({})", self.clock))
            ),
        ];
        for op in &self.ops {
            // An op ends with its last dispatch to the nanosecond, so that viewers nest them.
            let timed = op.dispatches.last().and_then(|d| Some(d.begin? + d.seconds?));
            let end = timed.unwrap_or(op.begin + op.seconds);
            let mut args = vec![format!(r#""variant":{}"#, quoted(&op.variant))];
            args.extend(rates(op.cost, op.seconds, op.percent_of_roofline));
            events.push(event(&op.op, "op", (op.begin, end), &args));
            for d in &op.dispatches {
                let (Some(begin), Some(seconds)) = (d.begin, d.seconds) else { continue };
                let mut args = vec![
                    format!(r#""workgroups":{}"#, quoted(&grid(d.workgroups))),
                    format!(r#""bound_bytes":{}"#, d.bound_bytes),
                ];
                args.extend(rates(d.cost, seconds, d.percent_of_roofline));
                events.push(event(&d.kernel, "dispatch", (begin, begin + seconds), &args));
            }
        }
        format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
    }
}

/// An event with a duration, in microseconds with three decimals.
fn event(name: &str, category: &str, (begin, end): (f64, f64), args: &[String]) -> String {
    let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
    let begin = nanoseconds(begin);
    let lasts = nanoseconds(end).saturating_sub(begin);
    let micro = |n: u64| format!("{}.{:03}", n / 1000, n % 1000);
    format!(
        r#"{{"name":{},"cat":"{category}","ph":"X","pid":1,"tid":1,"ts":{},"dur":{},"args":{{{}}}}}"#,
        quoted(name),
        micro(begin),
        micro(lasts),
        args.join(",")
    )
}

/// Rates from a cost and a time, as members of a JSON object.
fn rates(cost: Option<Cost>, seconds: f64, percent: Option<f64>) -> Vec<String> {
    let numbers = cost.map(|c| [("flop", c.flop), ("bytes", c.bytes)]).into_iter().flatten();
    let rates = cost
        .filter(|_| seconds > 0.0)
        .map(|c| [("GFLOP/s", c.flop / seconds * 1e-9), ("GB/s", c.bytes / seconds * 1e-9)]);
    let percent = percent.map(|p| ("percent of the roofline", p));
    let all = numbers.chain(rates.into_iter().flatten()).chain(percent);
    // JSON has no infinity.
    all.filter(|(_, x)| x.is_finite()).map(|(name, x)| format!(r#""{name}":{x}"#)).collect()
}

fn grid(workgroups: Option<[u32; 3]>) -> String {
    workgroups.map_or("indirect".into(), |[x, y, z]| format!("{x} x {y} x {z}"))
}

/// Ops that differ only in their times.
struct Group<'a> {
    op: &'a OpProfile,
    times: usize,
    seconds: f64,
    of_dispatches: Vec<Option<f64>>,
}

/// The properties that ops of one [`Group`] share.
type Alike<'a> = (&'a str, &'a str, Option<(u64, u64)>, Vec<(&'a str, Option<[u32; 3]>, u64)>);

impl Profile {
    /// Groups of equal ops, slowest first.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut known: HashMap<Alike<'_>, usize> = HashMap::new();
        let mut groups: Vec<Group<'_>> = Vec::new();
        for op in &self.ops {
            let cost = op.cost.map(|c| (c.flop.to_bits(), c.bytes.to_bits()));
            let dispatches = op.dispatches.iter().map(|d| (d.kernel.as_str(), d.workgroups, d.bound_bytes)).collect();
            let at = *known.entry((&op.op, &op.variant, cost, dispatches)).or_insert_with(|| {
                let of_dispatches = vec![Some(0.0); op.dispatches.len()];
                groups.push(Group { op, times: 0, seconds: 0.0, of_dispatches });
                groups.len() - 1
            });
            let group = &mut groups[at];
            group.times += 1;
            group.seconds += op.seconds;
            for (sum, d) in group.of_dispatches.iter_mut().zip(&op.dispatches) {
                *sum = sum.zip(d.seconds).map(|(sum, seconds)| sum + seconds);
            }
        }
        groups.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        groups
    }

    /// A line for `times` runs that together took `seconds`.
    fn row(
        &self, (name, workgroups, times): (String, String, usize), seconds: Option<f64>, bytes: Option<f64>,
        cost: Option<Cost>,
    ) -> [String; COLUMNS] {
        let total = self.seconds();
        let each = seconds.map(|s| s / times as f64);
        let rate = |amount: Option<f64>| {
            let amount = amount.filter(|x| *x > 0.0)?;
            each.filter(|s| *s > 0.0).map(|s| short(amount / s * 1e-9))
        };
        let text = |x: Option<String>| x.unwrap_or_default();
        let share = |s: f64| format!("{:.1} %", if total > 0.0 { 100.0 * s / total } else { 0.0 });
        [
            name,
            workgroups,
            times.to_string(),
            text(each.map(|s| short(s * 1e6))),
            text(seconds.map(share)),
            text(bytes.map(|b| short(b * 1e-6))),
            text(rate(cost.map(|c| c.bytes))),
            text(rate(cost.map(|c| c.flop))),
            text(each.and_then(|s| percent(self.ceilings, cost, s)).map(|p| format!("{p:.0} %"))),
        ]
    }
}

/// Four significant digits.
fn short(x: f64) -> String {
    let decimals = match x {
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        _ => 3,
    };
    format!("{x:.decimals$}")
}

const COLUMNS: usize = 9;
const HEAD: [&str; COLUMNS] =
    ["op, its dispatches", "workgroups", "times", "us each", "share", "MB", "GB/s", "GFLOP/s", "roofline"];

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dispatches: usize = self.ops.iter().map(|op| op.dispatches.len()).sum();
        let total = self.seconds();
        let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        writeln!(
            f,
            "{} with {} on {}: {} us, {}",
            count(self.ops.len(), "op", "ops"),
            count(dispatches, "dispatch", "dispatches"),
            self.adapter,
            short(total * 1e6),
            match self.clock {
                Clock::Device => "by timestamps of the device",
                Clock::Wall =>
                    "by the host's clock around each op, submitting and waiting included: the device has no timestamps",
            }
        )?;
        let mut rows = vec![HEAD.map(String::from)];
        for Group { op, times, seconds, of_dispatches } in self.groups() {
            let name = [op.op.as_str(), &op.variant].into_iter().filter(|n| !n.is_empty());
            let name = name.collect::<Vec<_>>().join(", ");
            let bytes = op.cost.map(|c| c.bytes);
            rows.push(self.row((name, String::new(), times), Some(seconds), bytes, op.cost));
            for (d, seconds) in op.dispatches.iter().zip(of_dispatches) {
                let head = (format!("  {}", d.kernel), grid(d.workgroups), times);
                rows.push(self.row(head, seconds, Some(d.bound_bytes as f64), d.cost));
            }
        }
        let widths: Vec<_> =
            (0..COLUMNS).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
        for row in &rows {
            let mut line = String::new();
            for (i, (text, &wide)) in row.iter().zip(&widths).enumerate() {
                // Writing to a string cannot fail.
                let _ = if i == 0 { write!(line, "{text:<wide$}") } else { write!(line, "  {text:>wide$}") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        write!(f, "MB: of an op what it must move, of a dispatch what is bound to it.")?;
        match self.ceilings {
            Some(c) => write!(
                f,
                " roofline: of {} GB/s and {} GFLOP/s",
                short(c.copy_bytes_per_second * 1e-9),
                short(c.fma_flop_per_second * 1e-9)
            ),
            None => write!(f, " roofline: unknown, the ceilings could not be measured"),
        }
    }
}

#[cfg(test)]
mod tests;

//! A sanitizer and a counter for WGSL: runs any kernel without a GPU and says what is wrong with it.
//!
//! [`run`] executes a [`Program`] as an op lowered it, [`run_wgsl`] a kernel of anybody's. Both interpret naga's
//! intermediate representation on the processor by the rules of WGSL, write the results into the buffers that they
//! were given, and return a [`Report`] of what they found and counted.
//!
//! ```
//! use tilework::sim::{self, FindingKind, Options};
//!
//! let kernel = "
//!     @group(0) @binding(0) var<storage, read_write> sum: array<u32>;
//!     @compute @workgroup_size(64)
//!     fn count() { sum[0] += 1u; }";
//! let mut buffers = vec![vec![0u8; 4]];
//! let report = sim::run_wgsl("count.wgsl", kernel, "count", [2, 1, 1], &mut buffers, &Options::default())?;
//! let race = report.of(FindingKind::Race).next().unwrap();
//! assert_eq!((race.at.line, race.other.is_some()), (4, true));
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! # What it finds
//!
//! | [`FindingKind`] | when |
//! |---|---|
//! | `Race` | two invocations touch one place of workgroup or storage memory, one writes, not both are atomic, and no barrier of their workgroup stands between; of different workgroups of a dispatch always |
//! | `SameValueRace` | the same where the write leaves what is there |
//! | `Uninitialized` | workgroup memory or a `var<private>` is read that nothing has written, as if zero-initialisation were off; scratch of a [`Program`], with [`Options::check_scratch`] |
//! | `OutOfBounds` | an index, or bytes of a buffer, that are not there; reads then give 0, writes do nothing |
//! | `NonUniformBarrier`, `NonUniformSubgroup` | a barrier that not all invocations of the workgroup reach together, a subgroup operation that not all of the subgroup do |
//! | `Livelock`, `StepLimit` | a wait for an invocation that need not run, under the [`Schedule`]; a kernel that takes more steps than [`Options::step_limit`] |
//! | `Division`, `Shift` | integer division by zero or overflow of it, a shift by 32 bits or more |
//! | `NanBorn` | a NaN of operands that are none, with [`Options::check_nan`] |
//! | `Untouched` | bytes of a buffer that no invocation reads or writes, with [`Options::check_untouched`]: a tile that was dropped |
//!
//! Races are found by what orders accesses and not by what happens to go wrong: one schedule is enough for them, on
//! the way that the kernel takes with this input. `workgroupBarrier` orders workgroup memory and `storageBarrier`
//! storage memory, as the language says; on hardware either often does both. That two invocations write the same value
//! is a race in WGSL too, and told apart.
//!
//! # What it counts
//!
//! [`Counts`], for each line of the source and in total: sectors and bytes of storage memory and the share of them that
//! is used, passes and conflicts of the banks of workgroup memory, branches and those that diverge, atomics and those
//! that wait, operations by kind, barriers. The model is that of [`analysis`](crate::analysis): subgroups are
//! consecutive invocations (x fastest, then y, then z), each access of a subgroup by itself, no cache. With
//! [`Options::interleaving`] also the bursts of each channel and bank of DRAM.
//!
//! # How it differs from hardware
//!
//! A subgroup runs in step, and both sides of a branch one after the other; its lanes meet again at the end of the
//! branch. Memory is sequentially consistent: what weak ordering of *atomics* does to a kernel is not found (a plain
//! access beside one is a race, and that is). Floats are rounded once an operation, subnormal numbers kept, and `exp`
//! and its like are the processor's; drivers differ in the last bits. Races at an input that was not run, or of
//! workgroups that a sample left out, are not found. `subgroupBarrier` is no ordering of memory here, and
//! `atomicCompareExchangeWeak` fails only where the values differ.
//!
//! # What it does not run
//!
//! Textures and samplers, ray queries, 64-bit numbers, and expressions of `override`s (plain values are taken):
//! an error of [`Unsupported`](crate::ErrorKind::Unsupported) with the line. What naga refuses is refused with its
//! words, pointers to workgroup and storage memory as arguments among it.
//!
//! # What it costs
//!
//! An operation is an instruction on an active invocation ([`Counts::active`]). One core of a server did 60 million a
//! second of a matrix product in subgroups of 4, and 1200 million of a sum in subgroups of 32. Memory holds each buffer
//! twice; where a dispatch writes to a buffer, 8 bytes for each word that is written and 16 for each that is read.

mod code;
mod compile;
mod machine;
mod memory;
mod report;
mod scalar;
mod schedule;

pub use report::{Counts, Finding, FindingKind, Invocation, Report, SourceLine};
pub use schedule::Schedule;

use crate::analysis::Interleaving;
use crate::error::{Result, err, filled};
use crate::program::{Dispatch, Grid, Program, Resource as Named, Source};
use crate::shader::{self, Expanded, Spec, Target, expand_text};
use code::{Code, Memory};
use machine::{Bound, Found, Machine, Sink, Space};
use memory::{MOST_LANES, Resource, Stamps, Targets};
use std::collections::BTreeMap;
use std::iter;

/// How a kernel runs, and what is looked for.
///
/// ```
/// use tilework::sim::{Options, Schedule};
/// let options = Options { subgroup_size: 4, schedule: Schedule::Adversarial, ..Options::default() };
/// assert_eq!(options.banks, 32);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Lanes of a subgroup, 4 to 64, a power of two. Default: 32.
    pub subgroup_size: u32,
    /// Default: [`Schedule::InOrder`].
    pub schedule: Schedule,
    /// Bytes that storage memory moves at once: 32, 64 or 128. Default: 32.
    pub sector_bytes: u32,
    /// Banks of workgroup memory, 4 bytes wide each. Default: 32.
    pub banks: u32,
    /// Steps after which a subgroup is taken to have no end. Default: 16 million.
    pub step_limit: u64,
    /// Workgroups of a dispatch above which a sample is run, spread evenly, the first and last among them.
    /// At most 4194303. Default: 4096.
    pub max_workgroups: u32,
    /// Whether NaNs that are born are found. Default: no.
    pub check_nan: bool,
    /// Whether bytes of operands that nothing touches are found: a tile that was dropped. Default: no.
    pub check_untouched: bool,
    /// Whether workgroup and private memory begins as zeros, as WebGPU has it; else it holds what it may, and reads of
    /// what nothing has written are found. Default: no.
    pub zero_initialized: bool,
    /// Whether variables of functions that are declared without a value count as not written; the language makes them
    /// zero. Default: no.
    pub check_locals: bool,
    /// Whether reads of a program's scratch that nothing has written are found. Kernels that always read and drop what
    /// lies beyond the end do so too. Default: no.
    pub check_scratch: bool,
    /// What each byte of a program's scratch is before anything writes it: results must not depend on it. Default: 0xa5.
    pub scratch_byte: u8,
    /// How buffers, of which each begins at the first bank of the first channel, are spread over DRAM; then
    /// [`Report::bursts`] are counted. Default: none.
    pub interleaving: Option<Interleaving>,
    /// What `var<immediate>` holds. Default: nothing.
    pub immediates: Vec<u8>,
}

/// Invocations of so many workgroups of 1024 have numbers of 32 bits.
const MOST_WORKGROUPS: u32 = (1 << 22) - 1;

/// Workgroups that WebGPU has on an axis.
const MOST_ON_AN_AXIS: u32 = 65535;

impl Default for Options {
    fn default() -> Self {
        Self {
            subgroup_size: 32,
            schedule: Schedule::InOrder,
            sector_bytes: 32,
            banks: 32,
            step_limit: 1 << 24,
            max_workgroups: 4096,
            check_nan: false,
            check_untouched: false,
            zero_initialized: false,
            check_locals: false,
            check_scratch: false,
            scratch_byte: 0xa5,
            interleaving: None,
            immediates: Vec::new(),
        }
    }
}

impl Options {
    fn check(&self, op: &str) -> Result<()> {
        let s = self.subgroup_size;
        if !s.is_power_of_two() || !(4..=MOST_LANES as u32).contains(&s) {
            return Err(err!(InvalidArgument, "{op}: a subgroup size of {s}; there are 4, 8, 16, 32 and 64"));
        }
        if ![32, 64, 128].contains(&self.sector_bytes) {
            let bytes = self.sector_bytes;
            return Err(err!(InvalidArgument, "{op}: sectors of {bytes} bytes; there are 32, 64 and 128"));
        }
        if !(1..=128).contains(&self.banks) {
            return Err(err!(InvalidArgument, "{op}: {} banks; there are 1 to 128", self.banks));
        }
        if let Some(Interleaving { burst, channels, banks }) = self.interleaving
            && [burst, channels, banks].contains(&0)
        {
            return Err(err!(
                InvalidArgument,
                "{op}: bursts of {burst} bytes over {channels} channels of {banks} banks; take at least 1 of each"
            ));
        }
        if self.step_limit == 0 {
            return Err(err!(InvalidArgument, "{op}: a limit of 0 steps; take at least 1"));
        }
        if !(1..=MOST_WORKGROUPS).contains(&self.max_workgroups) {
            let n = self.max_workgroups;
            return Err(err!(
                InvalidArgument,
                "{op}: at most {n} workgroups of a dispatch; take 1 to {MOST_WORKGROUPS}"
            ));
        }
        Ok(())
    }
}

/// Runs a program on operands in the order of [`Program::operands`], each the bytes of its elements, and writes what it
/// computes into them.
///
/// ```
/// use tilework::program::{DeviceProfile, Op};
/// use tilework::sim::{self, Options};
/// use tilework::{Reduce, Sum};
///
/// let program = Op::<f32>::lower(&Reduce::new(Sum, 1000), &DeviceProfile::webgpu_defaults())?;
/// let ones = bytemuck::cast_slice(&[1f32; 1000]).to_vec();
/// let mut operands = vec![ones, vec![0; 4]];
/// let report = sim::run(&program, &mut operands, &Options::default())?;
/// assert!(report.is_clean(), "{report}");
/// assert_eq!(operands[1], 1000f32.to_le_bytes());
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape) for operands of the wrong number or size;
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for options that are out of range, and a program that
/// contradicts its shaders; [`Shader`](crate::ErrorKind::Shader) for WGSL that does not validate, with file and line;
/// [`Unsupported`](crate::ErrorKind::Unsupported) for what the simulator does not run;
/// [`TooLarge`](crate::ErrorKind::TooLarge) for a workgroup, its memory or a kernel that is too large, and for more
/// than 1 GiB of buffers. What is wrong with a kernel
/// that runs is no error: it is in the report.
pub fn run(program: &Program, operands: &mut [Vec<u8>], options: &Options) -> Result<Report> {
    let op = program.op;
    options.check(op)?;
    if operands.len() != program.operands.len() {
        let (given, wanted) = (operands.len(), program.operands.len());
        return Err(err!(Shape, "{op}: {given} operands given, {wanted} wanted"));
    }
    for (bytes, operand) in operands.iter().zip(&program.operands) {
        if bytes.len() as u64 != operand.bytes() {
            return Err(err!(
                Shape,
                "{op}: {} has {} bytes; its {} elements of {} have {}",
                operand.name,
                bytes.len(),
                operand.len,
                operand.dtype,
                operand.bytes()
            ));
        }
    }
    let mut kernels = Vec::new();
    let mut sources = BTreeMap::new();
    for kernel in &program.kernels {
        let text = kernel.expand(Target::Naga)?;
        let module = text.validate()?;
        let (module, info) = module.naga();
        let lanes = options.subgroup_size;
        let code = compile::compile(
            module,
            info,
            &text,
            kernel.entry,
            &kernel.label(),
            lanes,
            options.check_locals,
        )?;
        if let Source::Text { name, text } = &kernel.source {
            sources.insert(name.to_string(), text.to_string());
        }
        kernels.push(code);
    }
    let launches =
        program.dispatches.iter().map(|d| Launch::of_program(program, d, &kernels)).collect::<Result<_>>()?;
    let areas = operands.iter().map(|o| Area::Given(o));
    let scratch = program.scratch.iter().map(|bytes| Area::Scratch(*bytes));
    let constants = program.constants.iter().map(|c| Area::Given(c));
    let areas = check_bytes(op, areas.chain(scratch).chain(constants).collect())?;
    let mut run = Run { op, kernels, launches, areas, operands: operands.len(), sources, options };
    let (report, areas) = run.all()?;
    give_back(operands, areas);
    Ok(report)
}

/// The most that buffers may have in all, as they are copied and recorded.
const MOST_BYTES: u64 = 1 << 30;

fn check_bytes<'a>(op: &str, areas: Vec<Area<'a>>) -> Result<Vec<Area<'a>>> {
    let sizes = areas.iter().map(|area| match area {
        Area::Given(bytes) => bytes.len() as u64,
        Area::Scratch(bytes) => *bytes,
    });
    let all = sizes.fold(0, u64::saturating_add);
    if all > MOST_BYTES {
        return Err(err!(TooLarge, "{op}: {all} bytes in all buffers; the simulator takes {MOST_BYTES}"));
    }
    Ok(areas)
}

fn give_back(buffers: &mut [Vec<u8>], areas: Vec<Resource>) {
    for (buffer, mut area) in buffers.iter_mut().zip(areas) {
        area.bytes.truncate(buffer.len());
        *buffer = area.bytes;
    }
}

/// Runs the entry point `entry` of a text that is called `name`, on one buffer for each of its bindings in the order
/// of group and number, uniforms among them. The text may `#import` tilework's fragments.
///
/// The example of the [module](self) does.
///
/// # Errors
/// As [`run`]; [`Shape`](crate::ErrorKind::Shape) for buffers of the wrong number or too small.
pub fn run_wgsl(
    name: &str,
    text: &str,
    entry: &str,
    workgroups: [u32; 3],
    buffers: &mut [Vec<u8>],
    options: &Options,
) -> Result<Report> {
    options.check(name)?;
    let (expanded, code) = compile_text(name, text, entry, options)?;
    let wanted = bindings(&code);
    if wanted.len() != buffers.len() {
        let names: Vec<_> = wanted.iter().map(|(_, m)| m.name()).collect();
        return Err(err!(
            Shape,
            "{name}: {} buffers are given, and `{entry}` binds {}: {}",
            buffers.len(),
            wanted.len(),
            names.join(", ")
        ));
    }
    let mut bound = vec![None; code.memories.len()];
    for (number, ((at, _), buffer)) in wanted.iter().zip(buffers.iter()).enumerate() {
        bound[*at] = Some(Bind { area: number, offset: 0, size: buffer.len() as u64 });
    }
    let launch = Launch { kernel: 0, bound, params: Vec::new(), grid: LaunchGrid::Direct(workgroups) };
    let mut sources = BTreeMap::new();
    sources.insert(expanded.origin(1).0.to_owned(), text.to_owned());
    sources.insert(name.to_owned(), text.to_owned());
    let areas = check_bytes(name, buffers.iter().map(|b| Area::Given(b)).collect())?;
    let operands = buffers.len();
    let mut run =
        Run { op: name, kernels: vec![code], launches: vec![launch], areas, operands, sources, options };
    let (report, areas) = run.all()?;
    give_back(buffers, areas);
    Ok(report)
}

fn compile_text(name: &str, text: &str, entry: &str, options: &Options) -> Result<(Expanded, Code)> {
    let expanded = expand_text(name, text, &Spec::new(), Target::Naga)?;
    let module = expanded.validate()?;
    let (naga, info) = module.naga();
    let label = format!("{name}:{entry}");
    let code =
        compile::compile(naga, info, &expanded, entry, &label, options.subgroup_size, options.check_locals)?;
    Ok((expanded, code))
}

/// Buffers that a kernel binds, with the places of their variables, by group and number.
fn bindings(code: &Code) -> Vec<(usize, &Memory)> {
    let is_binding = |m: &&Memory| matches!(m, Memory::Binding { .. });
    let mut all: Vec<_> = code.memories.iter().enumerate().filter(|(_, m)| is_binding(m)).collect();
    all.sort_by_key(|(_, m)| match m {
        Memory::Binding { group, index, .. } => (*group, *index),
        _ => (0, 0),
    });
    all
}

/// What a buffer begins with.
enum Area<'a> {
    Given(&'a [u8]),
    /// So many bytes of nothing in particular.
    Scratch(u64),
}

impl Area<'_> {
    fn resource(&self, op: &str, options: &Options) -> Result<Resource> {
        let len = match self {
            Area::Given(bytes) => bytes.len(),
            Area::Scratch(n) => *n as usize,
        };
        let mut bytes = filled(op, len.max(4).next_multiple_of(4), 0)?;
        match self {
            Area::Given(given) => bytes[..len].copy_from_slice(given),
            Area::Scratch(_) => bytes[..len].fill(options.scratch_byte),
        }
        let unwritten = options.check_scratch && matches!(self, Area::Scratch(_));
        Ok(Resource { bytes, unwritten, ..Resource::default() })
    }
}

#[derive(Debug, Clone, Copy)]
struct Bind {
    area: usize,
    offset: u64,
    size: u64,
}

enum LaunchGrid {
    Direct([u32; 3]),
    /// Area and byte offset.
    Indirect(usize, u64),
}

/// A dispatch with its buffers as numbers of areas.
struct Launch {
    kernel: usize,
    /// For each of the kernel's variables; the parameters' is none.
    bound: Vec<Option<Bind>>,
    params: Vec<u8>,
    grid: LaunchGrid,
}

impl Launch {
    fn of_program(program: &Program, dispatch: &Dispatch, kernels: &[Code]) -> Result<Self> {
        let op = program.op;
        let code = kernels.get(dispatch.kernel).ok_or_else(|| {
            err!(InvalidArgument, "{op}: a dispatch of kernel {} of {}", dispatch.kernel, kernels.len())
        })?;
        let area = |resource| {
            let (first, i, n) = match resource {
                Named::Operand(i) => (0, i, program.operands.len()),
                Named::Scratch(i) => (program.operands.len(), i, program.scratch.len()),
                Named::Constant(i) => {
                    (program.operands.len() + program.scratch.len(), i, program.constants.len())
                }
            };
            if i < n { Ok(first + i) } else { Err(err!(InvalidArgument, "{op}: there is no {resource:?}")) }
        };
        let wanted = bindings(code);
        let params = usize::from(!dispatch.params.is_empty());
        if wanted.len() != dispatch.bindings.len() + params {
            let names: Vec<_> = wanted.iter().map(|(_, m)| m.name()).collect();
            return Err(err!(
                InvalidArgument,
                "{op}: {} bindings are given, and {} wants {}",
                dispatch.bindings.len() + params,
                code.label,
                names.join(", ")
            ));
        }
        let mut bound = vec![None; code.memories.len()];
        for ((at, _), binding) in wanted.iter().skip(params).zip(&dispatch.bindings) {
            let size = binding.size.max(4).saturating_add(3) / 4 * 4;
            bound[*at] = Some(Bind { area: area(binding.resource)?, offset: binding.offset, size });
        }
        let grid = match dispatch.grid {
            Grid::Direct(workgroups) => LaunchGrid::Direct(workgroups),
            Grid::Indirect { resource, offset } => LaunchGrid::Indirect(area(resource)?, offset),
        };
        Ok(Self { kernel: dispatch.kernel, bound, params: dispatch.params.clone(), grid })
    }
}

struct Run<'a> {
    op: &'a str,
    kernels: Vec<Code>,
    launches: Vec<Launch>,
    areas: Vec<Area<'a>>,
    /// Areas that are the caller's, from the first on.
    operands: usize,
    sources: BTreeMap<String, String>,
    options: &'a Options,
}

impl Run<'_> {
    /// Runs under the schedule, or one after the other under those that it stands for.
    fn all(&mut self) -> Result<(Report, Vec<Resource>)> {
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
            areas =
                self.areas.iter().map(|area| area.resource(self.op, self.options)).collect::<Result<_>>()?;
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

    /// Whether a workgroup was stopped at that post.
    fn once(
        &self,
        schedule: Schedule,
        stop_at: Option<u32>,
        areas: &mut Vec<Resource>,
        report: &mut Report,
        counting: bool,
    ) -> Result<bool> {
        let (mut stamp, mut stopped) = (1, false);
        for (number, launch) in self.launches.iter().enumerate() {
            let code = &self.kernels[launch.kernel];
            let op = self.op;
            let workgroups = match launch.grid {
                LaunchGrid::Direct(workgroups) => workgroups,
                LaunchGrid::Indirect(area, offset) => {
                    let range = usize::try_from(offset).ok().and_then(|o| Some(o..o.checked_add(12)?));
                    let words = areas.get(area).and_then(|a| a.bytes.get(range?));
                    let words = words.ok_or_else(|| {
                        err!(
                            InvalidArgument,
                            "{op}: the counts of {} lie outside of their buffer",
                            code.label
                        )
                    })?;
                    std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|b| words[4 * i + b])))
                }
            };
            let ids = sample(workgroups, self.options.max_workgroups);
            let total: u128 = workgroups.iter().map(|n| u128::from(*n)).product();
            if (ids.len() as u128) < total && counting {
                report.notes.push(format!(
                    "dispatch {number} ({}): {} of its {total} workgroups were run, a sample spread evenly",
                    code.label,
                    ids.len()
                ));
            }
            if counting && workgroups.iter().any(|n| *n > MOST_ON_AN_AXIS) {
                report.notes.push(format!(
                    "dispatch {number} ({}): a grid of {workgroups:?}; devices take {MOST_ON_AN_AXIS} on an axis",
                    code.label
                ));
            }
            let kept = areas.len();
            let mut bound = bind(op, code, launch, areas, &self.options.immediates)?;
            for b in bound.iter_mut().filter(|b| b.space == Space::Storage) {
                b.racy |= self.options.check_untouched || areas[b.resource].unwritten;
            }
            for (b, memory) in bound.iter().zip(&code.memories) {
                if let Memory::Binding { granule, .. } = memory
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
                sink: Sink { tally: vec![Counts::default(); code.ops.len()], ..Sink::default() },
                workgroups,
                stamps: Stamps::new(stamp, code.ops.len()),
                backwards: false,
                stop_at,
                stopped: false,
                patience: 0,
                crowd: 0,
                spinning: 0,
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
                report
                    .notes
                    .push(format!("dispatch {number} ({}) was ended; nothing after it was run", code.label));
                return Ok(stopped);
            }
        }
        if self.options.check_untouched {
            self.untouched(areas, report);
        }
        Ok(stopped)
    }

    /// Finds operands with bytes that nothing has read or written.
    fn untouched(&self, areas: &[Resource], report: &mut Report) {
        for (number, (area, given)) in areas.iter().zip(&self.areas).enumerate().take(self.operands) {
            let Area::Given(bytes) = given else { continue };
            let whole = bytes.len() / area.granule.max(1) as usize;
            let missed = || (0..whole).filter(|i| *i < area.records.len() && !area.records.is_touched(*i));
            let Some(first) = missed().next() else { continue };
            let binds = |l: &&Launch| l.bound.iter().flatten().any(|b| b.area == number);
            let Some((dispatch, launch)) = self.launches.iter().enumerate().find(|(_, l)| binds(l)) else {
                continue;
            };
            let code = &self.kernels[launch.kernel];
            let variable = launch.bound.iter().position(|b| b.is_some_and(|b| b.area == number));
            let Some(Memory::Binding { name, line, .. }) = variable.map(|v| &code.memories[v]) else {
                continue;
            };
            let (file, line) = code.lines.get(*line as usize).cloned().unwrap_or_default();
            let (granule, n) = (area.granule as usize, missed().count());
            let message = format!(
                "{} of the {} bytes of `{name}` are neither read nor written, byte {} the first",
                n * granule,
                bytes.len(),
                first * granule
            );
            let nobody = Invocation { workgroup: [0; 3], local: [0; 3], global: [0; 3] };
            note(
                report,
                Finding {
                    kind: FindingKind::Untouched,
                    kernel: code.label.clone(),
                    dispatch,
                    at: SourceLine { file, line },
                    invocation: nobody,
                    other: None,
                    message,
                    times: 1,
                },
            );
        }
    }
}

/// Adds a finding, or counts it where it is known.
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

fn finding(code: &Code, dispatch: usize, ids: &[[u32; 3]], found: Found) -> Finding {
    let size: u32 = code.workgroup_size.iter().product();
    let [x, y, _] = code.workgroup_size;
    let invocation = |who: u32| {
        let workgroup = ids.get((who / size) as usize).copied().unwrap_or_default();
        let index = who % size;
        let local = [index % x, index / x % y, index / (x * y)];
        let global =
            std::array::from_fn(|i| workgroup[i].wrapping_mul(code.workgroup_size[i]).wrapping_add(local[i]));
        Invocation { workgroup, local, global }
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
        invocation: invocation(found.who),
        other: found.other.map(|(pc, who)| (line(pc), invocation(who))),
        message: found.message,
        times: found.times,
    }
}

fn collect(code: &Code, sink: &mut Sink, report: &mut Report) {
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

/// The workgroups of a grid, or as many of them as are allowed.
fn sample([x, y, z]: [u32; 3], most: u32) -> Vec<[u32; 3]> {
    // 96 bits: what is multiplied with a number of workgroups that are run still has room.
    let total: u128 = [x, y, z].map(u128::from).iter().product();
    let n = total.min(most.into());
    let place = |i: u128| {
        let (x, y) = (u128::from(x), u128::from(y));
        [(i % x) as u32, (i / x % y) as u32, (i / (x * y)) as u32]
    };
    (0..n).map(|i| place(if n < 2 || n == total { i } else { i * (total - 1) / (n - 1) })).collect()
}

/// The variables of a kernel with what they are bound to; parameters and immediates become areas of their own.
fn bind(
    op: &str,
    code: &Code,
    launch: &Launch,
    areas: &mut Vec<Resource>,
    immediates: &[u8],
) -> Result<Vec<Bound>> {
    let own = |areas: &mut Vec<Resource>, bytes: &[u8], least: usize| {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().max(least).next_multiple_of(16), 0);
        areas.push(Resource { bytes, ..Resource::default() });
        areas.len() - 1
    };
    let mut all = Vec::new();
    for (memory, bind) in code.memories.iter().zip(&launch.bound) {
        let bound = match memory {
            Memory::Workgroup { base, bytes, .. } => {
                Bound { space: Space::Workgroup, resource: 0, base: *base, bytes: *bytes, racy: true }
            }
            Memory::Immediates { bytes } => {
                if (immediates.len() as u32) < *bytes {
                    let given = immediates.len();
                    return Err(err!(
                        Shape,
                        "{op}: {given} bytes of immediates are given, {} wants {bytes}",
                        code.label
                    ));
                }
                let resource = own(areas, immediates, 0);
                Bound { space: Space::Uniform, resource, base: 0, bytes: *bytes, racy: false }
            }
            Memory::Binding { name, min_size, uniform, writable, .. } => {
                let space = if *uniform { Space::Uniform } else { Space::Storage };
                let Some(bind) = bind else {
                    let given = launch.params.len().next_multiple_of(16);
                    if (given as u32) < *min_size {
                        return Err(err!(
                            InvalidArgument,
                            "{op}: {given} bytes of parameters are given, and `{name}` of {} has {min_size}",
                            code.label
                        ));
                    }
                    let resource = own(areas, &launch.params, 0);
                    all.push(Bound { space, resource, base: 0, bytes: given as u32, racy: false });
                    continue;
                };
                let there = areas[bind.area].bytes.len() as u64;
                let end = bind.offset.checked_add(bind.size).filter(|end| *end <= there);
                let small = bind.size < u64::from(*min_size);
                if end.is_none() || small || u32::try_from(there).is_err() {
                    return Err(err!(
                        Shape,
                        "{op}: `{name}` of {} is bound to {} bytes at byte {} of a buffer of {there}; it takes {min_size} at \
                         the least",
                        code.label,
                        bind.size,
                        bind.offset
                    ));
                }
                Bound {
                    space,
                    resource: bind.area,
                    base: bind.offset as u32,
                    bytes: bind.size as u32,
                    racy: *writable,
                }
            }
        };
        all.push(bound);
    }
    // A buffer that one variable writes races through all that are bound to it.
    for i in 0..all.len() {
        let Bound { space, resource, .. } = all[i];
        let written = all.iter().any(|b| b.racy && b.space == space && b.resource == resource);
        all[i].racy |= written && space != Space::Uniform;
    }
    Ok(all)
}

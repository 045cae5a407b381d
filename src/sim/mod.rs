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
//! | `Race` | two threads touch one place of workgroup or storage memory, one writes, not both are atomic, and no barrier of their workgroup stands between; of different workgroups of a dispatch always |
//! | `SameValueRace` | the same where the write leaves what is there |
//! | `Uninitialized` | workgroup memory or a `var<private>` is read that nothing has written, as if zero-initialisation were off; scratch of a [`Program`], with [`Options::check_scratch`] |
//! | `OutOfBounds` | an index, or bytes of a buffer, that are not there; reads then give 0, writes do nothing |
//! | `NonUniformBarrier`, `NonUniformSubgroup` | a barrier that not all threads of the workgroup reach together, a subgroup operation that not all of the subgroup do |
//! | `Livelock`, `StepLimit` | a wait for a thread that need not run, under the [`Schedule`]; a kernel that takes more steps than [`Options::step_limit`] |
//! | `Division`, `Shift` | integer division by zero or overflow of it, a shift by 32 bits or more |
//! | `NanBorn` | a NaN from operands without one, with [`Options::check_nan`] |
//! | `Untouched` | bytes of a buffer that no thread reads or writes, with [`Options::check_untouched`]: a tile that was dropped |
//!
//! Races are found from the order of accesses, not from wrong results: one schedule finds all of them on the path that
//! the kernel takes with this input. `workgroupBarrier` orders workgroup memory and `storageBarrier`
//! storage memory, as the language says; on hardware either often does both. Two threads that write the same value
//! race in WGSL too; they are reported separately.
//!
//! # What it counts
//!
//! [`Counts`], for each line of the source and in total: sectors and bytes of storage memory and the share of them that
//! is used, passes and conflicts of the banks of workgroup memory, branches and those that diverge, atomics and those
//! that wait, operations by kind, barriers. The model is that of [`analysis`](crate::analysis): subgroups are
//! consecutive threads (x fastest, then y, then z), each access of a subgroup by itself, no cache. With
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
//! An operation is an instruction on an active thread ([`Counts::active`]). One core of a server did 60 million a
//! second of a matrix product in subgroups of 4, and 1200 million of a sum in subgroups of 32. Memory holds each buffer
//! twice; where a dispatch writes to a buffer, 8 bytes for each word that is written and 16 for each that is read.

mod code;
mod compile;
mod dispatches;
mod launch;
mod machine;
mod memory;
mod report;
mod scalar;
mod schedule;

pub use report::{Counts, Finding, FindingKind, Invocation, Report, SourceLine};
pub use schedule::Schedule;

use crate::analysis::Interleaving;
use crate::error::{Result, err};
use crate::program::{Program, Source};
use crate::shader::{Expanded, Spec, Target, expand_text};
use code::SimCode;
use dispatches::SimRun;
use launch::{Area, Bind, LaunchGrid, SimLaunch, bindings};
use memory::{MAX_LANES, SimMemory};
use std::collections::BTreeMap;

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
    /// What each byte of a program's scratch is before anything writes it: results must not depend on it. Default:
    /// 0xa5.
    pub scratch_byte: u8,
    /// How buffers, of which each begins at the first bank of the first channel, are spread over DRAM; then
    /// [`Report::bursts`] are counted. Default: none.
    pub interleaving: Option<Interleaving>,
    /// What `var<immediate>` holds. Default: nothing.
    pub immediates: Vec<u8>,
}

/// Maximum workgroups of 1024 threads whose threads have 32-bit numbers.
const MAX_WORKGROUPS: u32 = (1 << 22) - 1;

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
        if !s.is_power_of_two() || !(4..=MAX_LANES as u32).contains(&s) {
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
        if !(1..=MAX_WORKGROUPS).contains(&self.max_workgroups) {
            let n = self.max_workgroups;
            return Err(err!(
                InvalidArgument,
                "{op}: at most {n} workgroups of a dispatch; take 1 to {MAX_WORKGROUPS}"
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
        let code = compiled(&text, kernel.entry, &kernel.label(), options)?;
        if let Source::Text { name, text } = &kernel.source {
            sources.insert(name.to_string(), text.to_string());
        }
        kernels.push(code);
    }
    let launches = program
        .dispatches
        .iter()
        .map(|d| SimLaunch::of_program(program, d, &kernels))
        .collect::<Result<_>>()?;
    let areas = operands.iter().map(|o| Area::Given(o));
    let scratch = program.scratch.iter().map(|bytes| Area::Scratch(*bytes));
    let constants = program.constants.iter().map(|c| Area::Given(c));
    let areas = check_bytes(op, areas.chain(scratch).chain(constants).collect())?;
    let mut run = SimRun { op, kernels, launches, areas, operands: operands.len(), sources, options };
    let (report, areas) = run.all()?;
    give_back(operands, areas);
    Ok(report)
}

fn compiled(text: &Expanded, entry: &str, label: &str, options: &Options) -> Result<SimCode> {
    let module = text.validate()?;
    let (naga, info) = module.naga();
    compile::compile(naga, info, text, entry, label, options.subgroup_size, options.check_locals)
}

/// The most that buffers may have in all, as they are copied and recorded.
const MAX_BYTES: u64 = 1 << 30;

fn check_bytes<'a>(op: &str, areas: Vec<Area<'a>>) -> Result<Vec<Area<'a>>> {
    let sizes = areas.iter().map(|area| match area {
        Area::Given(bytes) => bytes.len() as u64,
        Area::Scratch(bytes) => *bytes,
    });
    let all = sizes.fold(0, u64::saturating_add);
    if all > MAX_BYTES {
        return Err(err!(TooLarge, "{op}: {all} bytes in all buffers; the simulator takes {MAX_BYTES}"));
    }
    Ok(areas)
}

fn give_back(buffers: &mut [Vec<u8>], areas: Vec<SimMemory>) {
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
    let expanded = expand_text(name, text, &Spec::new(), Target::Naga)?;
    let code = compiled(&expanded, entry, &format!("{name}:{entry}"), options)?;
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
    let launch = SimLaunch { kernel: 0, bound, params: Vec::new(), grid: LaunchGrid::Direct(workgroups) };
    let mut sources = BTreeMap::new();
    sources.insert(expanded.origin(1).0.to_owned(), text.to_owned());
    sources.insert(name.to_owned(), text.to_owned());
    let areas = check_bytes(name, buffers.iter().map(|b| Area::Given(b)).collect())?;
    let operands = buffers.len();
    let mut run =
        SimRun { op: name, kernels: vec![code], launches: vec![launch], areas, operands, sources, options };
    let (report, areas) = run.all()?;
    give_back(buffers, areas);
    Ok(report)
}

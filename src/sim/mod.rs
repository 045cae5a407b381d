//! Runs any WGSL kernel without a GPU, reports its errors and counts its costs.
//!
//! [`run`] runs a [`Program`] that an op lowered to, and [`run_wgsl`] any WGSL text. Both interpret naga's intermediate
//! representation by the rules of WGSL, write results into the given buffers, and return a [`Report`].
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
//! | `Race` | two threads access the same workgroup or storage memory, one of them writes, not both accesses are atomic, and no barrier of their workgroup separates them; no barrier separates different workgroups of a dispatch |
//! | `SameValueRace` | the same, but the write stores the value already there |
//! | `Uninitialized` | a read of workgroup memory or a `var<private>` before the first write, as if nothing were zero-initialized; of a [`Program`]'s scratch with [`Options::check_scratch`] |
//! | `OutOfBounds` | an access outside an array, a vector or a buffer; reads give 0, writes do nothing |
//! | `NonUniformBarrier`, `NonUniformSubgroup` | a barrier that not all threads of the workgroup reach together; a subgroup operation that not all threads of the subgroup reach together |
//! | `Livelock`, `StepLimit` | waiting for a thread that never runs under the [`Schedule`]; more steps than [`Options::step_limit`] |
//! | `Division`, `Shift` | an integer division by zero or with overflow; a shift by 32 bits or more |
//! | `NanBorn` | a NaN result of operands without NaN, with [`Options::check_nan`] |
//! | `Untouched` | bytes of an operand that no thread reads or writes, such as those of a dropped tile, with [`Options::check_untouched`] |
//!
//! Races are found from the order of accesses, not from wrong results: one schedule finds all races on the path that
//! the kernel takes with this input. `workgroupBarrier` orders workgroup memory and `storageBarrier` orders storage
//! memory, as WGSL says; hardware often orders both.
//!
//! # What it counts
//!
//! [`Counts`], for each source line and in total: sectors and bytes of storage memory, and how many of the bytes are
//! used; passes and conflicts of workgroup memory's banks; branches and divergent branches; atomics and contended
//! atomics; operations by kind; barriers. The model is that of [`analysis`](crate::analysis): subgroups are consecutive
//! threads (x fastest, then y, then z), and each access of a subgroup counts separately, without a cache. With
//! [`Options::interleaving`] it also counts bursts per channel and bank of DRAM.
//!
//! # How it differs from hardware
//!
//! A subgroup runs in step and takes both sides of a branch in turn; its lanes meet again at the end of the branch.
//! Memory is sequentially consistent, so errors from weakly ordered *atomics* are not found. Each float operation
//! rounds once and keeps subnormal numbers; `exp` and similar functions are the processor's, and drivers differ in the
//! last bits. Races of other inputs, or of workgroups outside the sample, are not found. `subgroupBarrier` does not
//! order memory here, and `atomicCompareExchangeWeak` fails only if the values differ.
//!
//! # What it does not run
//!
//! Textures and samplers, ray queries, 64-bit numbers, and expressions of `override`s (plain overrides work) give an
//! error of kind [`Unsupported`](ErrorKind::Unsupported) with the line. naga's own errors are passed on, such as
//! the one about pointers to workgroup or storage memory as arguments.
//!
//! # What it costs
//!
//! One core of a server ran 60 million operations a second ([`Counts::active`]) of a matrix product in subgroups of 4,
//! and 1200 million of a sum in subgroups of 32. Memory holds two copies of each buffer, and for buffers that a
//! dispatch writes 24 bytes for each 4-byte word touched.

mod code;
mod compile;
mod dispatches;
mod launch;
mod machine;
mod memory;
mod report;
mod scalar;
mod schedule;

pub use report::{Counts, Finding, FindingKind, Report, SourceLine, Thread};
pub use schedule::Schedule;

use crate::analysis::Interleaving;
use crate::program::Source;
use crate::program::prelude::*;
use crate::shader::{Expanded, Target, expand_text};
use code::SimCode;
use dispatches::SimRun;
use launch::{Area, Bind, LaunchGrid, SimLaunch, bindings};
use memory::{MAX_LANES, SimMemory};
use std::collections::BTreeMap;

/// How a kernel runs, and which checks are on.
///
/// ```
/// use tilework::sim::{Options, Schedule};
/// let options = Options { subgroup_size: 4, schedule: Schedule::Adversarial, ..Options::default() };
/// assert_eq!(options.banks, 32);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Lanes of a subgroup: a power of two from 4 to 64. Default: 32.
    pub subgroup_size: u32,
    /// The order of workgroups and subgroups. Default: [`Schedule::InOrder`].
    pub schedule: Schedule,
    /// Bytes per transfer of storage memory: 32, 64 or 128. Default: 32.
    pub sector_bytes: u32,
    /// Banks of workgroup memory, each 4 bytes wide. Default: 32.
    pub banks: u32,
    /// Maximum steps of a subgroup. More give [`FindingKind::StepLimit`]. Default: 16 million.
    pub step_limit: u64,
    /// Maximum workgroups of a dispatch, up to 4194303. A larger grid runs an even sample, including its first and last
    /// workgroup. Default: 4096.
    pub max_workgroups: u32,
    /// Reports NaN results of operands without NaN. Default: no.
    pub check_nan: bool,
    /// Reports bytes of operands that no thread touches, such as a dropped tile. Default: no.
    pub check_untouched: bool,
    /// Zeroes workgroup and private memory, as WebGPU does. Otherwise reads before the first write are reported.
    /// Default: no.
    pub zero_initialized: bool,
    /// Reports reads of local variables declared without a value, although WGSL zeroes them. Default: no.
    pub check_locals: bool,
    /// Reports reads of a program's scratch before the first write, even by kernels that read beyond the end and
    /// discard it. Default: no.
    pub check_scratch: bool,
    /// Initial value of each byte of a program's scratch, on which results must not depend. Default: 0xa5.
    pub scratch_byte: u8,
    /// Counts [`Report::bursts`] for this layout of DRAM; every buffer begins at the first bank of the first channel.
    /// Default: none.
    pub interleaving: Option<Interleaving>,
    /// Contents of `var<immediate>`. Default: empty.
    pub immediates: Vec<u8>,
}

/// With 1024 threads each, thread numbers still fit 32 bits.
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
            return Err(err!(InvalidArgument, "{op}: the subgroup size is {s}; use 4, 8, 16, 32 or 64"));
        }
        if ![32, 64, 128].contains(&self.sector_bytes) {
            let bytes = self.sector_bytes;
            return Err(err!(InvalidArgument, "{op}: the sector size is {bytes} bytes; use 32, 64 or 128"));
        }
        if !(1..=128).contains(&self.banks) {
            return Err(err!(InvalidArgument, "{op}: {} banks; use 1 to 128", self.banks));
        }
        if let Some(Interleaving { burst, channels, banks }) = self.interleaving
            && [burst, channels, banks].contains(&0)
        {
            return Err(err!(
                InvalidArgument,
                "{op}: bursts of {burst} bytes over {channels} channels of {banks} banks; use at least 1 of each"
            ));
        }
        if self.step_limit == 0 {
            return Err(err!(InvalidArgument, "{op}: the step limit is 0; use at least 1"));
        }
        if !(1..=MAX_WORKGROUPS).contains(&self.max_workgroups) {
            let n = self.max_workgroups;
            return Err(err!(InvalidArgument, "{op}: max_workgroups is {n}; use 1 to {MAX_WORKGROUPS}"));
        }
        Ok(())
    }
}

/// Runs a program on the bytes of its operands, in the order of [`Program::operands`], and writes the results into
/// them.
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
/// Errors of a running kernel are in the report. Others:
/// - [`Shape`](ErrorKind::Shape): the wrong number or size of operands.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an option out of range, or a program that contradicts its
///   shaders.
/// - [`Shader`](ErrorKind::Shader): invalid WGSL, with file and line.
/// - [`Unsupported`](ErrorKind::Unsupported): WGSL that the simulator does not run.
/// - [`TooLarge`](ErrorKind::TooLarge): a workgroup, its memory or a kernel above the simulator's limits, or
///   more than 1 GiB of buffers.
pub fn run(program: &Program, operands: &mut [Vec<u8>], options: &Options) -> Result<Report> {
    let op = program.op;
    options.check(op)?;
    if operands.len() != program.operands.len() {
        let (given, wanted) = (operands.len(), program.operands.len());
        return Err(err!(Shape, "{op}: {given} operands given; the program takes {wanted}"));
    }
    for (bytes, operand) in operands.iter().zip(&program.operands) {
        if bytes.len() as u64 != operand.bytes() {
            return Err(err!(
                Shape,
                "{op}: {} has {} bytes; its {} elements of {} take {}",
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
    let launches =
        program.dispatches.iter().map(|d| SimLaunch::of_program(program, d, &kernels)).collect::<Result<_>>()?;
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

/// Maximum bytes of all buffers.
const MAX_BYTES: u64 = 1 << 30;

fn check_bytes<'a>(op: &str, areas: Vec<Area<'a>>) -> Result<Vec<Area<'a>>> {
    let sizes = areas.iter().map(|area| match area {
        Area::Given(bytes) => bytes.len() as u64,
        Area::Scratch(bytes) => *bytes,
    });
    let all = sizes.fold(0, u64::saturating_add);
    if all > MAX_BYTES {
        return Err(err!(TooLarge, "{op}: {all} bytes in all buffers; the simulator's maximum is {MAX_BYTES}"));
    }
    Ok(areas)
}

fn give_back(buffers: &mut [Vec<u8>], areas: Vec<SimMemory>) {
    for (buffer, mut area) in buffers.iter_mut().zip(areas) {
        area.bytes.truncate(buffer.len());
        *buffer = area.bytes;
    }
}

/// Runs the entry point `entry` of the WGSL text `name`, on one buffer for each binding, uniforms included, ordered by
/// group and number. The text may `#import` tilework's fragments.
///
/// The [module](self) has an example.
///
/// # Errors
/// As [`run`]; [`Shape`](ErrorKind::Shape) for the wrong number of buffers, or a buffer that is too small.
pub fn run_wgsl(
    name: &str, text: &str, entry: &str, workgroups: [u32; 3], buffers: &mut [Vec<u8>], options: &Options,
) -> Result<Report> {
    options.check(name)?;
    let expanded = expand_text(name, text, &Spec::new(), Target::Naga)?;
    let code = compiled(&expanded, entry, &format!("{name}:{entry}"), options)?;
    let wanted = bindings(&code);
    if wanted.len() != buffers.len() {
        let names: Vec<_> = wanted.iter().map(|(_, m)| m.name()).collect();
        return Err(err!(
            Shape,
            "{name}: {} buffers given; `{entry}` binds {}: {}",
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
    let mut run = SimRun { op: name, kernels: vec![code], launches: vec![launch], areas, operands, sources, options };
    let (report, areas) = run.all()?;
    give_back(buffers, areas);
    Ok(report)
}

//! Plans and reports: a lowered op with its resources on a device, and a description of it.

#[cfg(feature = "sim")]
mod count;
#[cfg(feature = "cuda")]
mod cuda;
mod facts;

pub use crate::program::Fact;
#[cfg(feature = "cuda")]
pub use cuda::CudaPlan;

use crate::analysis::{Block, Multiprocessor, Occupancy, Roofline, occupancy, registers_of_block};
use crate::gpu::{Executable, Gpu};
use crate::program::prelude::*;
use crate::shader::Interface;
use std::fmt;

/// An op that is ready to be recorded on a [`Gpu`]: see [`PlanOn`].
pub type Plan<D, T> = PlanOn<D, T, Executable>;

/// Gives every descriptor its `plan` method, on every kind of device that supports the op.
///
/// `gemm.plan::<f32>(&gpu)` gives a [`Plan`] on a [`Gpu`]; with the feature `cuda`, `gemm.plan::<f32>(&cuda)` gives a
/// `CudaPlan` on a `CudaGpu`.
pub trait Plannable<G>: Sized {
    /// Lowers the descriptor for elements of type `T` on this device, and builds or finds its kernels and parameters.
    /// Planning the same op again takes microseconds.
    ///
    /// `T` may be inferred from the type of the result:
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    /// let gpu = Gpu::new()?;
    /// let scan: Plan<Scan<Sum>, u32> = Scan::new(Sum, 1000).plan(&gpu)?;
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the op's `lower` (shapes, limits, variants), and of compiling its kernels.
    fn plan<T: Element>(&self, on: &G) -> Result<PlanOn<Self, T, G::Executor>>
    where
        G: Plans<Self, T>;
}

impl<D, G> Plannable<G> for D {
    fn plan<T: Element>(&self, on: &G) -> Result<PlanOn<Self, T, G::Executor>>
    where
        G: Plans<Self, T>,
    {
        on.prepare_op(self).map(PlanOn::new)
    }
}

/// A kind of device that plans ops described by `D` for elements of type `T`. A [`Gpu`] plans every [`Op`]. Call it
/// through [`Plannable::plan`].
pub trait Plans<D, T: Element> {
    /// Runs the op.
    type Executor: Executor;

    /// Lowers the op and prepares it.
    ///
    /// # Errors
    /// As [`Plannable::plan`].
    fn prepare_op(&self, descriptor: &D) -> Result<Self::Executor>;
}

impl<T: Element, D: Op<T>> Plans<D, T> for Gpu {
    type Executor = Executable;

    fn prepare_op(&self, descriptor: &D) -> Result<Executable> {
        self.prepare_lowered(self.lower::<T, _>(descriptor)?)
    }
}

impl<D, T> Plan<D, T> {
    /// Reports on the plan, with the time predicted from this device's ceilings. Measures the ceilings if that was
    /// not done before.
    pub fn report(&self) -> Report {
        Report::of(&self.executor)
    }
}

/// A report on a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Name of the op.
    pub op: &'static str,
    /// Name of the adapter.
    pub adapter: String,
    /// The variant, who chose it and why.
    pub decision: Decision,
    /// Operations and minimum bytes.
    pub cost: Cost,
    /// Bytes that the workgroups of this variant load and store, caches or not: see
    /// [`Program::requested`](crate::program::Program::requested). `None` if only the device knows.
    pub requested: Option<f64>,
    /// Bytes of scratch.
    pub scratch: u64,
    /// Label and grid of each dispatch.
    pub dispatches: Vec<(String, String)>,
    /// Whether runs repeat their bits.
    pub determinism: Determinism,
    /// Peak rates of the device, if they could be measured.
    pub ceilings: Option<Ceilings>,
    /// Name, type and elements of each operand.
    pub operands: Vec<(&'static str, DType, usize)>,
    /// Resources of each kernel's workgroups.
    pub kernels: Vec<KernelReport>,
    /// Resources of a multiprocessor, which limit how many workgroups it holds: known for some cards by name, otherwise
    /// empty. Set it to see how many another device would hold.
    pub multiprocessor: Multiprocessor,
    /// Results of the formulas of [`analysis`](crate::analysis), for the ops that they cover: reuse, transactions per
    /// access, divergent subgroups, joins of trees.
    pub facts: Vec<Fact>,
}

/// Resources of a kernel's workgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReport {
    /// File and entry point.
    pub label: String,
    /// Threads of a workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Barriers in its text.
    pub barriers: u32,
    /// How many of them are in loops, and may run many times.
    pub barriers_in_loops: u32,
    /// Registers of a thread, as the driver compiled it: known on CUDA.
    pub registers: Option<u32>,
}

impl KernelReport {
    fn new(label: String, interface: &Interface) -> Self {
        let &Interface { workgroup_size, workgroup_bytes, barriers, barriers_in_loops, .. } = interface;
        Self { label, workgroup_size, workgroup_bytes, barriers, barriers_in_loops, registers: None }
    }

    /// Returns the threads of a workgroup.
    pub fn invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }

    /// Returns how many workgroups a multiprocessor holds. Without [`registers`](Self::registers), which only CUDA's
    /// driver tells, a kernel that uses many may fit fewer.
    pub fn occupancy(&self, multiprocessor: &Multiprocessor) -> Occupancy {
        let threads = self.invocations();
        let registers = self.registers.map_or(0, |each| registers_of_block(threads, each));
        occupancy(multiprocessor, &Block { threads, shared_bytes: self.workgroup_bytes, registers })
    }
}

impl Report {
    /// Reports on a program made ready by [`Gpu::prepare`]: as [`Plan::report`].
    pub fn of(executable: &Executable) -> Self {
        let (program, profile) = (executable.program(), executable.gpu().profile());
        let ceilings = executable.gpu().reported_ceilings();
        let dispatches = program.dispatches.iter().map(|d| {
            let grid = match d.grid {
                crate::program::Grid::Direct([x, y, z]) => format!("{x} x {y} x {z}"),
                crate::program::Grid::Indirect { .. } => "indirect".into(),
            };
            (program.kernels[d.kernel].label(), grid)
        });
        let interfaces: Vec<_> = executable.interfaces().collect();
        let kernels = program.kernels.iter().zip(&interfaces);
        // A device without a fixed subgroup size counts as having warps.
        let subgroup = match profile.subgroup_sizes {
            (least, most) if least == most && most > 0 => most,
            _ => 32,
        };
        Self {
            op: program.op,
            adapter: profile.name.clone(),
            decision: program.decision.clone(),
            cost: program.cost,
            requested: program.requested(),
            scratch: program.scratch_bytes(),
            dispatches: dispatches.collect(),
            determinism: program.determinism,
            ceilings: ceilings.or(profile.ceilings),
            operands: program.operands.iter().map(|o| (o.name, o.dtype, o.len)).collect(),
            kernels: kernels.map(|(kernel, interface)| KernelReport::new(kernel.label(), interface)).collect(),
            multiprocessor: match Multiprocessor::of_adapter(&profile.name) {
                Some(card) if profile.backend == "vulkan" => card.through_vulkan(),
                card => card.unwrap_or_default(),
            },
            facts: facts::facts(program, &interfaces, subgroup),
        }
    }

    /// Returns the operations per byte moved; `None` if nothing moves.
    pub fn intensity(&self) -> Option<f64> {
        (self.cost.bytes > 0.0).then(|| self.cost.flop / self.cost.bytes)
    }

    /// Returns the ceilings as a roofline. At an intensity above its ridge, arithmetic is the bound.
    pub fn roofline(&self) -> Option<Roofline> {
        self.ceilings.map(|c| Roofline { bandwidth: c.copy_bytes_per_second, peak: c.fma_flop_per_second })
    }

    /// Returns the minimum seconds on this device: the larger of minimum bytes over copy bandwidth and operations over
    /// the multiply-add rate. It is the same for all variants.
    pub fn minimum_seconds(&self) -> Option<f64> {
        self.roofline().map(|roof| roof.seconds(self.cost.flop, self.cost.bytes))
    }

    /// Returns the predicted seconds of this variant: as [`minimum_seconds`](Self::minimum_seconds), but with the bytes
    /// that it [requests](Self::requested), where these are known. Caches that serve some of them make it faster.
    pub fn predicted_seconds(&self) -> Option<f64> {
        let bytes = self.requested.map_or(self.cost.bytes, |bytes| bytes.max(self.cost.bytes));
        self.roofline().map(|roof| roof.seconds(self.cost.flop, bytes))
    }

    /// Returns what bounds the minimum time: memory or arithmetic.
    pub fn bound(&self) -> Option<&'static str> {
        self.roofline().map(|roof| {
            let memory = self.cost.bytes / roof.bandwidth;
            if memory >= self.cost.flop / roof.peak { "memory" } else { "arithmetic" }
        })
    }

    /// Returns the percentage of the roofline that a run of `seconds` reached.
    pub fn percent_of_roofline(&self, seconds: f64) -> Option<f64> {
        self.minimum_seconds().map(|least| 100.0 * least / seconds)
    }
}

/// Formats how many workgroups fit on a multiprocessor.
fn held(occupancy: &Occupancy) -> String {
    match (occupancy.blocks, occupancy.fraction(), occupancy.bound()) {
        (Some(blocks), Some(fraction), Some(bound)) => {
            format!("at most {blocks} on a multiprocessor, {:.0} % of its warps, by {bound}", 100.0 * fraction)
        }
        _ => "occupancy unknown: the device does not say its multiprocessors' resources".into(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands: Vec<_> = self.operands.iter().map(|(name, t, n)| format!("{name} {t}[{n}]")).collect();
        writeln!(f, "{} on {}", self.op, self.adapter)?;
        writeln!(f, "  operands    {}", operands.join(", "))?;
        writeln!(f, "  variant     {} ({})", self.decision.variant, self.decision.why)?;
        let requested = self.requested.map(|bytes| format!(", {bytes:.3e} requested")).unwrap_or_default();
        writeln!(
            f,
            "  work        {:.3e} operations, {:.3e} bytes minimum{requested}",
            self.cost.flop, self.cost.bytes
        )?;
        if let Some(intensity) = self.intensity() {
            let ridge = self.roofline().map(|r| format!(" (the roofline's ridge is at {:.1})", r.ridge()));
            writeln!(f, "  intensity   {intensity:.3} operations a byte{}", ridge.unwrap_or_default())?;
        }
        writeln!(f, "  scratch     {} bytes", self.scratch)?;
        for (i, (label, grid)) in self.dispatches.iter().enumerate() {
            let head = if i == 0 { "dispatches" } else { "" };
            writeln!(f, "  {head:<11} {label}, {grid} workgroups")?;
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            let head = if i == 0 { "workgroups" } else { "" };
            let [x, y, z] = kernel.workgroup_size;
            let of = if self.kernels.len() > 1 { format!("{}: ", kernel.label) } else { String::new() };
            let loops = match kernel.barriers_in_loops {
                0 => String::new(),
                n => format!(", {n} in loops"),
            };
            // A kernel whose registers are known comes from a driver, which does not count barriers.
            let registers = kernel.registers.map(|n| format!(" of {n} registers")).unwrap_or_default();
            let barriers = match (kernel.registers, kernel.barriers) {
                (Some(_), _) => String::new(),
                (None, 1) => format!(", 1 barrier{loops}"),
                (None, n) => format!(", {n} barriers{loops}"),
            };
            writeln!(
                f,
                "  {head:<11} {of}{x} x {y} x {z} threads{registers}, {} bytes of workgroup memory{barriers}; {}",
                kernel.workgroup_bytes,
                held(&kernel.occupancy(&self.multiprocessor))
            )?;
        }
        for (i, fact) in self.facts.iter().enumerate() {
            let head = if i == 0 { "analysis" } else { "" };
            writeln!(f, "  {head:<11} {fact}")?;
        }
        let bits = match self.determinism {
            Determinism::SameBits => "same device, same bits",
            Determinism::RoundingVaries => "rounding varies from run to run",
        };
        writeln!(f, "  determinism {bits}")?;
        match (self.predicted_seconds(), self.minimum_seconds(), self.bound(), self.ceilings) {
            (Some(s), Some(least), Some(bound), Some(c)) => write!(
                f,
                "  predicted   {:.3} us, {:.3} us minimum, bound by {bound} (ceilings: {:.0} GB/s, {:.0} GFLOP/s)",
                s * 1e6,
                least * 1e6,
                c.copy_bytes_per_second * 1e-9,
                c.fma_flop_per_second * 1e-9
            ),
            _ => write!(f, "  predicted   unknown: the ceilings could not be measured"),
        }
    }
}

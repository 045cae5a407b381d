//! Plans and reports: a lowered op with the resources of a device, and what it says of itself.

mod attention;
mod calls;
#[cfg(feature = "cuda")]
mod cuda;
mod facts;
mod matrix;
mod solver;

pub use attention::AttentionExtras;
#[cfg(feature = "cuda")]
pub use cuda::CudaPlan;
pub use facts::Fact;
pub use matrix::DeviceMatrix;
pub use solver::Solver;

use crate::analysis::{Block, Multiprocessor, Occupancy, Roofline, occupancy};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::gpu::{Encoder, Executable, Gpu, Recorder, Slice};
use crate::program::{Ceilings, Cost, Determinism, In, InOut, Op, Out, Program};
use crate::shader::Interface;
use std::fmt;
use std::marker::PhantomData;

/// An op that is ready to be recorded, as often as wanted, with any buffers of the right sizes.
///
/// Made by [`Plannable::plan`]. `S` is the op's operands: `record` takes one argument for each.
///
/// # Errors of `record`
/// Nothing is recorded when it errs.
/// - [`Shape`](crate::ErrorKind::Shape): an operand has another number of elements than planned.
/// - [`Buffer`](crate::ErrorKind::Buffer): an operand lives on another `Gpu`, or starts at an offset that
///   the device cannot bind.
/// - [`Aliasing`](crate::ErrorKind::Aliasing): an operand that is written shares its wgpu buffer with another.
/// - [`DeviceLost`](crate::ErrorKind::DeviceLost), [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
#[derive(Debug)]
pub struct Plan<S> {
    executable: Executable,
    operands: PhantomData<S>,
}

/// Gives every descriptor its `plan` method, on every kind of device that it can be planned on.
///
/// `gemm.plan::<f32>(&gpu)` gives a [`Plan`] on a [`Gpu`]; with the feature `cuda`, `gemm.plan::<f32>(&cuda)` gives a
/// `CudaPlan` on a `CudaGpu`.
pub trait Plannable<G> {
    /// Lowers the descriptor for elements of type `T` on this device, and builds or finds its kernels
    /// and parameters. Planning an op that was planned before takes microseconds.
    ///
    /// # Errors
    /// Those of the op's `lower` (shapes, limits, variants), and of compiling its kernels.
    fn plan<T: Element>(&self, on: &G) -> Result<<Self as PlansOn<G, T>>::Plan>
    where
        Self: PlansOn<G, T>;
}

impl<D, G> Plannable<G> for D {
    fn plan<T: Element>(&self, on: &G) -> Result<<Self as PlansOn<G, T>>::Plan>
    where
        Self: PlansOn<G, T>,
    {
        self.plan_on(on)
    }
}

/// A descriptor that can be planned on devices of type `G` for elements of type `T`: every [`Op`] on a [`Gpu`].
/// [`Plannable::plan`] is the way to call it.
pub trait PlansOn<G, T: Element> {
    /// The plan.
    type Plan;

    /// As [`Plannable::plan`].
    ///
    /// # Errors
    /// As [`Plannable::plan`].
    fn plan_on(&self, on: &G) -> Result<Self::Plan>;
}

impl<T: Element, D: Op<T>> PlansOn<Gpu, T> for D {
    type Plan = Plan<D::Operands>;

    fn plan_on(&self, gpu: &Gpu) -> Result<Self::Plan> {
        let executable = gpu.prepare_lowered(gpu.lower::<T, _>(self)?)?;
        Ok(Plan { executable, operands: PhantomData })
    }
}

impl<S> Plan<S> {
    /// What will run, as plain data.
    pub fn program(&self) -> &Program {
        self.executable.program()
    }

    /// The plan without the types of its operands, for programs that know them only when they run.
    pub fn into_executable(self) -> Executable {
        self.executable
    }

    /// What the plan says of itself, with the time predicted from this device's measured ceilings
    /// (measured now, if they have not been yet).
    pub fn report(&self) -> Report {
        Report::of(&self.executable)
    }
}

/// Implements `record` for plans with these operands, and `run` for plans on CUDA.
macro_rules! record {
    ($($name:ident: $mark:ident<$t:ident>),+) => {
        impl<$($t: Element),+> Plan<($($mark<$t>,)+)> {
            /// Records the op; see the errors at [`Plan`].
            ///
            /// # Errors
            /// See [`Plan`].
            #[allow(clippy::too_many_arguments, reason = "one for each operand")]
            pub fn record<'a, Enc: Encoder>(
                &self,
                rec: &mut Recorder<Enc>,
                $($name: impl Into<Slice<'a, $t>>),+
            ) -> Result<()> {
                self.executable.record(rec, &[$($name.into().untyped()),+])
            }
        }

        #[cfg(feature = "cuda")]
        impl<$($t: Element),+> CudaPlan<($($mark<$t>,)+)> {
            /// Gives the op to a stream and returns at once; see the errors at [`CudaPlan`].
            ///
            /// # Errors
            /// See [`CudaPlan`].
            #[allow(clippy::too_many_arguments, reason = "one for each operand")]
            pub fn run<'a>(
                &self,
                stream: &crate::cuda::CudaStream,
                $($name: impl Into<crate::cuda::CudaSlice<'a, $t>>),+
            ) -> Result<()> {
                self.executable.run(stream, &[$($name.into().untyped()),+])
            }
        }
    };
}
record!(x: InOut<A>);
record!(keys: InOut<A>, values: InOut<B>);
record!(keys: InOut<A>, count: In<B>);
record!(keys: InOut<A>, values: InOut<B>, count: In<C>);
record!(keys: In<A>, values: In<B>, keys_out: Out<C>, values_out: Out<D>);
record!(keys: In<A>, values: In<B>, count: In<C>, keys_out: Out<D>, values_out: Out<E>);
record!(input: In<A>, output: Out<B>);
record!(input: In<A>, output: InOut<B>);
record!(x: In<A>, y: In<B>, output: Out<C>);
record!(a: In<A>, b: In<B>, c: InOut<C>);
record!(a: In<A>, b: In<B>, c: In<C>, d: In<D>, output: Out<E>);
record!(x: In<A>, gamma: In<B>, beta: In<C>, output: Out<D>);
record!(input: In<A>, output: Out<B>, count: Out<C>);
record!(input: In<A>, values: Out<B>, counts: Out<C>, count: Out<D>);
record!(keys: In<A>, values: In<B>, keys_out: Out<C>, results: Out<D>, count: Out<E>);
record!(a: In<A>, b: In<B>, bias: In<C>, c: InOut<D>);
record!(x: In<A>, gamma: In<B>, dy: In<C>, dx: Out<D>, dgamma: Out<E>, dbeta: Out<F>);
record!(x: In<A>, mean: In<B>, variance: In<C>, gamma: In<D>, beta: In<E>, output: Out<F>);
record!(x: In<A>, labels: In<B>, parameters: InOut<C>, state: InOut<D>, loss: Out<E>);
record!(parameters: InOut<A>, gradients: In<B>, velocity: InOut<C>);
record!(parameters: InOut<A>, gradients: In<B>, first: InOut<C>, second: InOut<D>, fullness: InOut<E>);

/// What a plan says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Name of the op.
    pub op: &'static str,
    /// Name of the adapter.
    pub adapter: String,
    /// Name of the variant.
    pub variant: &'static str,
    /// Why this variant and policy.
    pub why: String,
    /// Operations and mandatory bytes.
    pub cost: Cost,
    /// Bytes of scratch.
    pub scratch: u64,
    /// Label and workgroups of each dispatch.
    pub dispatches: Vec<(String, String)>,
    /// What can be said of the bits.
    pub determinism: Determinism,
    /// Ceilings of the device, if they could be measured.
    pub ceilings: Option<Ceilings>,
    /// Name, type and elements of each operand.
    pub operands: Vec<(&'static str, DType, usize)>,
    /// What the workgroups of each kernel take.
    pub kernels: Vec<KernelReport>,
    /// What a multiprocessor of the device has, which bounds how many workgroups it holds: by the name of a card where
    /// that is known, otherwise nothing. It may be set, to see what another would hold.
    pub multiprocessor: Multiprocessor,
    /// What the formulas of [`analysis`](crate::analysis) say: reuse, transactions of an access, divergent subgroups,
    /// joins of trees; for the ops that they are about.
    pub facts: Vec<Fact>,
}

/// What the workgroups of a kernel take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReport {
    /// File and entry point.
    pub label: String,
    /// Invocations of a workgroup along x, y and z.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Barriers in its text.
    pub barriers: u32,
    /// Those of them that are in loops, and so may be met often.
    pub barriers_in_loops: u32,
}

impl KernelReport {
    fn new(label: String, interface: &Interface) -> Self {
        let &Interface { workgroup_size, workgroup_bytes, barriers, barriers_in_loops, .. } = interface;
        Self { label, workgroup_size, workgroup_bytes, barriers, barriers_in_loops }
    }

    /// Invocations of a workgroup.
    pub fn invocations(&self) -> u32 {
        self.workgroup_size.iter().product()
    }

    /// How many workgroups a multiprocessor holds. Registers are counted as none: drivers do not say how many a kernel
    /// takes, and where it takes many fewer workgroups fit.
    pub fn occupancy(&self, multiprocessor: &Multiprocessor) -> Occupancy {
        let block = Block { threads: self.invocations(), shared_bytes: self.workgroup_bytes, registers: 0 };
        occupancy(multiprocessor, &block)
    }
}

impl Report {
    /// What a program that was made ready by [`Gpu::prepare`] says of itself: as [`Plan::report`].
    pub fn of(executable: &Executable) -> Self {
        let (program, profile) = (executable.program(), executable.gpu().profile());
        let ceilings = executable.gpu().ceilings().ok();
        let dispatches = program.dispatches.iter().map(|d| {
            let grid = match d.grid {
                crate::program::Grid::Direct([x, y, z]) => format!("{x} x {y} x {z}"),
                crate::program::Grid::Indirect { .. } => "indirect".into(),
            };
            (program.kernels[d.kernel].label(), grid)
        });
        let interfaces: Vec<_> = executable.interfaces().collect();
        let kernels = program.kernels.iter().zip(&interfaces);
        // As the warps of cards, where a device does not bind itself to one size.
        let subgroup = match profile.subgroup_sizes {
            (least, most) if least == most && most > 0 => most,
            _ => 32,
        };
        Self {
            op: program.op,
            adapter: profile.name.clone(),
            variant: program.variant,
            why: program.why.clone(),
            cost: program.cost,
            scratch: program.scratch_bytes(),
            dispatches: dispatches.collect(),
            determinism: program.determinism,
            ceilings: ceilings.or(profile.ceilings),
            operands: program.operands.iter().map(|o| (o.name, o.dtype, o.len)).collect(),
            kernels: kernels
                .map(|(kernel, interface)| KernelReport::new(kernel.label(), interface))
                .collect(),
            multiprocessor: Multiprocessor::of_adapter(&profile.name).unwrap_or_default(),
            facts: facts::facts(program, &interfaces, subgroup),
        }
    }

    /// Operations for each byte that must be moved; none of work that moves nothing.
    pub fn intensity(&self) -> Option<f64> {
        (self.cost.bytes > 0.0).then(|| self.cost.flop / self.cost.bytes)
    }

    /// The ceilings as a roofline, whose ridge is the intensity from which on arithmetic bounds.
    pub fn roofline(&self) -> Option<Roofline> {
        self.ceilings.map(|c| Roofline { bandwidth: c.copy_bytes_per_second, peak: c.fma_flop_per_second })
    }

    /// Seconds that the work takes at the least on this device: the larger of bytes over copy bandwidth
    /// and operations over the multiply-add rate.
    pub fn predicted_seconds(&self) -> Option<f64> {
        self.roofline().map(|roof| roof.seconds(self.cost.flop, self.cost.bytes))
    }

    /// What bounds the work: memory or arithmetic.
    pub fn bound(&self) -> Option<&'static str> {
        self.roofline().map(|roof| {
            let memory = self.cost.bytes / roof.bandwidth;
            if memory >= self.cost.flop / roof.peak { "memory" } else { "arithmetic" }
        })
    }

    /// Percent of the roofline that a run of `seconds` reached.
    pub fn percent_of_roofline(&self, seconds: f64) -> Option<f64> {
        self.predicted_seconds().map(|p| 100.0 * p / seconds)
    }
}

/// What a multiprocessor holds, in words.
fn held(occupancy: &Occupancy) -> String {
    match (occupancy.blocks, occupancy.fraction(), occupancy.bound()) {
        (Some(blocks), Some(fraction), Some(bound)) => {
            format!(
                "at most {blocks} on a multiprocessor, {:.0} % of its warps, by {bound}",
                100.0 * fraction
            )
        }
        _ => "occupancy unknown: the device does not say what a multiprocessor has".into(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands: Vec<_> = self.operands.iter().map(|(name, t, n)| format!("{name} {t}[{n}]")).collect();
        writeln!(f, "{} on {}", self.op, self.adapter)?;
        writeln!(f, "  operands    {}", operands.join(", "))?;
        writeln!(f, "  variant     {} ({})", self.variant, self.why)?;
        writeln!(
            f,
            "  work        {:.3e} operations, {:.3e} bytes at the least",
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
            writeln!(
                f,
                "  {head:<11} {of}{x} x {y} x {z} invocations, {} bytes of workgroup memory, {} barrier{}{loops}; {}",
                kernel.workgroup_bytes,
                kernel.barriers,
                if kernel.barriers == 1 { "" } else { "s" },
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
        match (self.predicted_seconds(), self.bound(), self.ceilings) {
            (Some(s), Some(bound), Some(c)) => write!(
                f,
                "  predicted   {:.3} us at the least, bound by {bound} (ceilings: {:.0} GB/s, {:.0} GFLOP/s)",
                s * 1e6,
                c.copy_bytes_per_second * 1e-9,
                c.fma_flop_per_second * 1e-9
            ),
            _ => write!(f, "  predicted   unknown: the ceilings could not be measured"),
        }
    }
}

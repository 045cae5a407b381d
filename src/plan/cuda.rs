//! Plans on CUDA.

use super::{PlansOn, Report};
use crate::analysis::Multiprocessor;
use crate::cuda::{CudaExecutable, CudaGpu, CudaOp, CudaProgram};
use crate::element::Element;
use crate::error::Result;
use std::marker::PhantomData;

/// An op that is ready to run on a [`CudaGpu`], as often as wanted, with any buffers of the right sizes.
///
/// Made by [`Plannable::plan`](crate::Plannable::plan). `S` is the op's operands: `run` takes a stream and one argument for
/// each, gives the work to the stream and returns at once.
///
/// # Errors of `run`
/// Nothing runs when it errs, unless the device is lost.
/// - [`Shape`](crate::ErrorKind::Shape): an operand has another number of elements than planned.
/// - [`Buffer`](crate::ErrorKind::Buffer): an operand or the stream belongs to another `CudaGpu`, or an operand starts at no
///   multiple of 16 bytes.
/// - [`Aliasing`](crate::ErrorKind::Aliasing): an operand that is written overlaps another.
/// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory) for scratch, [`DeviceLost`](crate::ErrorKind::DeviceLost).
#[derive(Debug)]
pub struct CudaPlan<S> {
    pub(super) executable: CudaExecutable,
    operands: PhantomData<S>,
}

impl<T: Element, D: CudaOp<T>> PlansOn<CudaGpu, T> for D {
    type Plan = CudaPlan<D::Operands>;

    fn plan_on(&self, gpu: &CudaGpu) -> Result<Self::Plan> {
        let executable = gpu.prepare_lowered(self.lower(gpu.profile())?)?;
        Ok(CudaPlan { executable, operands: PhantomData })
    }
}

impl<S> CudaPlan<S> {
    /// What will run, as plain data.
    pub fn program(&self) -> &CudaProgram {
        self.executable.program()
    }

    /// The plan without the types of its operands, for programs that know them only when they run.
    pub fn into_executable(self) -> CudaExecutable {
        self.executable
    }

    /// What the plan says of itself. Times are not predicted: nothing measures a CUDA device's ceilings.
    pub fn report(&self) -> Report {
        Report::of_cuda(&self.executable)
    }
}

impl Report {
    /// What a program that was made ready by [`CudaGpu::prepare`] says of itself: as [`CudaPlan::report`].
    pub fn of_cuda(executable: &CudaExecutable) -> Self {
        let (program, profile) = (executable.program(), executable.gpu().profile());
        let dispatches = program.launches.iter().map(|launch| {
            let [x, y, z] = launch.grid;
            (program.kernels[launch.kernel].label(), format!("{x} x {y} x {z}"))
        });
        Self {
            op: program.op,
            adapter: profile.name.clone(),
            variant: program.variant,
            why: program.why.clone(),
            cost: program.cost,
            scratch: program.scratch_bytes(),
            dispatches: dispatches.collect(),
            determinism: program.determinism,
            ceilings: None,
            operands: program.operands.iter().map(|o| (o.name, o.dtype, o.len)).collect(),
            kernels: Vec::new(),
            multiprocessor: Multiprocessor {
                threads: Some(profile.max_threads_per_multiprocessor),
                shared_bytes: Some(profile.shared_per_multiprocessor),
                registers: Some(profile.registers),
                ..Multiprocessor::default()
            },
            facts: Vec::new(),
        }
    }
}

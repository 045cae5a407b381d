//! Plans on CUDA.

use super::{Plans, Report};
use crate::analysis::Multiprocessor;
use crate::cuda::{CudaExecutable, CudaGpu, CudaOp};
use crate::element::Element;
use crate::error::Result;
use crate::program::PlanOn;

/// An op that is ready to run on a [`CudaGpu`]: see [`PlanOn`]. `run` takes a stream and the operands that `record`
/// takes on wgpu, submits the work to the stream and returns at once.
///
/// # Errors of `run`
/// Those of [`PlanOn`]. An operand must start at a multiple of 16 bytes. The stream must belong to the same
/// `CudaGpu`.
pub type CudaPlan<D, T> = PlanOn<D, T, CudaExecutable>;

impl<T: Element, D: CudaOp<T>> Plans<D, T> for CudaGpu {
    type Executor = CudaExecutable;

    fn prepare_op(&self, descriptor: &D) -> Result<CudaExecutable> {
        self.prepare_lowered(descriptor.lower(self.profile())?)
    }
}

impl<D, T> CudaPlan<D, T> {
    /// Reports on the plan, without predicted times: nothing measures a CUDA device's ceilings.
    pub fn report(&self) -> Report {
        Report::of_cuda(&self.executor)
    }
}

impl Report {
    /// Reports on a program made ready by [`CudaGpu::prepare`]: as [`CudaPlan::report`].
    pub fn of_cuda(executable: &CudaExecutable) -> Self {
        let (program, profile) = (executable.program(), executable.gpu().profile());
        let dispatches = program.launches.iter().map(|launch| {
            let [x, y, z] = launch.grid;
            (program.kernels[launch.kernel].label(), format!("{x} x {y} x {z}"))
        });
        Self {
            op: program.op,
            adapter: profile.name.clone(),
            decision: program.decision.clone(),
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

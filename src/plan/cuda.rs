use super::{KernelReport, Plans, Report};
use crate::cuda::{CudaExecutable, CudaGpu, CudaOp};
use crate::program::prelude::*;

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
    /// Reports on the plan: registers and shared memory of each kernel as the driver compiled it, occupancy, and the
    /// time predicted from this device's ceilings. Measures the ceilings if that was not done before.
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
        // A lost device has neither resources nor ceilings.
        let resources = executable.resources().unwrap_or_default();
        let kernels = program.kernels.iter().zip(resources).filter_map(|(kernel, resources)| {
            let resources = resources?;
            Some(KernelReport {
                label: kernel.label(),
                workgroup_size: [resources.threads, 1, 1],
                workgroup_bytes: resources.shared_bytes,
                barriers: 0,
                barriers_in_loops: 0,
                registers: Some(resources.registers),
            })
        });
        Self {
            op: program.op,
            adapter: profile.name.clone(),
            decision: program.decision.clone(),
            cost: program.cost,
            requested: None,
            scratch: program.scratch_bytes(),
            dispatches: dispatches.collect(),
            determinism: program.determinism,
            ceilings: executable.gpu().ceilings().ok(),
            operands: program.operands.iter().map(|o| (o.name, o.dtype, o.len)).collect(),
            kernels: kernels.collect(),
            multiprocessor: profile.multiprocessor(),
            facts: Vec::new(),
        }
    }
}

//! Ops on CUDA whose types are known only at run time.

use super::op_calls::results;
use crate::array::with_data;
use crate::cuda::{CudaBuffer, CudaExecutable, CudaGpu, CudaStream, RawCudaSlice};
use crate::plan::Report;
use crate::program::prelude::*;

/// A CUDA buffer of any element type that files have.
trait AnyCudaBuffer {
    fn raw(&self) -> Result<RawCudaSlice<'_>>;
    fn read(&self) -> Result<HostData>;
}

impl<T: Element> AnyCudaBuffer for CudaBuffer<T>
where
    HostData: From<Vec<T>>,
{
    fn raw(&self) -> Result<RawCudaSlice<'_>> {
        Ok(self.slice(..)?.untyped())
    }

    fn read(&self) -> Result<HostData> {
        Ok(CudaBuffer::read(self)?.into())
    }
}

/// A planned op with its operands on a CUDA device: see [`CudaGpu::ready`].
pub struct CudaReadyCall {
    executable: CudaExecutable,
    buffers: Vec<Box<dyn AnyCudaBuffer>>,
    roles: Vec<Role>,
}

impl std::fmt::Debug for CudaReadyCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaReadyCall").field("executable", &self.executable).finish_non_exhaustive()
    }
}

impl CudaGpu {
    /// Plans an [`OpCall`] and uploads its inputs: as [`Gpu::ready`](crate::Gpu::ready).
    ///
    /// # Errors
    /// Those of [`plan_call`](Self::plan_call) and [`upload`](Self::upload).
    pub fn ready(&self, call: OpCall) -> Result<CudaReadyCall> {
        let executable = self.plan_call(&call)?;
        let operands = call.operands.iter().zip(&executable.program().operands);
        let buffers = operands.map(|(role, operand)| match role.input() {
            Some(array) => uploaded(self, array.data()),
            None => allocated(self, operand),
        });
        Ok(CudaReadyCall { buffers: buffers.collect::<Result<_>>()?, executable, roles: call.operands })
    }
}

fn uploaded(gpu: &CudaGpu, data: &HostData) -> Result<Box<dyn AnyCudaBuffer>> {
    with_data!(
        data,
        v => Ok(Box::new(gpu.upload(v)?)),
        HostData::Unseen(dtype, n) => Err(err!(InvalidArgument, "{n} elements of {dtype} without contents"))
    )
}

fn allocated(gpu: &CudaGpu, operand: &Operand) -> Result<Box<dyn AnyCudaBuffer>> {
    let n = operand.len;
    Ok(match operand.dtype {
        DType::F32 => Box::new(gpu.alloc::<f32>(n)?),
        DType::F16 => Box::new(gpu.alloc::<f16>(n)?),
        DType::I32 => Box::new(gpu.alloc::<i32>(n)?),
        DType::U32 => Box::new(gpu.alloc::<u32>(n)?),
        DType::U8 => Box::new(gpu.alloc::<u8>(n)?),
        DType::I8 => Box::new(gpu.alloc::<i8>(n)?),
        other => return Err(err!(Unsupported, "no host array holds {other}, so there is no buffer of it")),
    })
}

impl CudaReadyCall {
    /// Returns the executable.
    pub fn executable(&self) -> &CudaExecutable {
        &self.executable
    }

    /// Returns the plan's report.
    pub fn report(&self) -> Report {
        Report::of_cuda(&self.executable)
    }

    /// Runs the op on a stream. Returns at once.
    ///
    /// # Errors
    /// Those of [`CudaPlan`](crate::CudaPlan).
    pub fn run(&self, stream: &CudaStream) -> Result<()> {
        let raw = self.buffers.iter().map(|buffer| buffer.raw()).collect::<Result<Vec<_>>>()?;
        self.executable.run(stream, &raw)
    }

    /// Waits for the device and returns the outputs, in order: as [`ReadyCall::results`](crate::ReadyCall::results).
    ///
    /// # Errors
    /// Those of [`CudaBuffer::read`].
    pub fn results(&self) -> Result<Vec<HostArray>> {
        pollster::block_on(results(&self.roles, async |i| self.buffers[i].read()))
    }
}

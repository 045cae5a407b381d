//! Programs that measure a device's peak rates, and their measurement.

use super::program::{Arch, Arg, CudaKernel, CudaProfile, CudaProgram, Launch};
use super::{CudaGpu, CudaStream, RawCudaSlice};
use crate::program::prelude::*;

/// Bytes that the copy reads: many times the largest cache.
const COPIED: u64 = 512 << 20;
const BLOCK: u32 = 256;
/// Blocks for each multiprocessor of the kernel that multiplies.
const BLOCKS: u32 = 64;
/// Chains of a thread of that kernel, and their links.
const CHAINS: u32 = 16;
const LINKS: u32 = 256;

/// Copies `bytes`, a multiple of 16: a thread copies four vectors of 16 bytes.
fn copy(bytes: u64) -> CudaProgram {
    let mut program = CudaProgram::new("probe-copy", Decision::policy("copy", "measures copy bandwidth"));
    let operand = |name, access| Operand { name, dtype: DType::U32, len: (bytes / 4) as usize, access };
    program.operands = vec![operand("input", Access::Read), operand("output", Access::Write)];
    program.cost = Cost { flop: 0.0, bytes: 2.0 * bytes as f64 };
    let kernel = program.kernel(CudaKernel::new("probe/probe_copy", "probe_copy", Arch::Sm75));
    let vectors = bytes / 16;
    let blocks = vectors.div_ceil(u64::from(4 * BLOCK)) as u32;
    let args = vec![Arg::Operand(0), Arg::Operand(1), Arg::U64(vectors)];
    program.launches.push(Launch::new(kernel, [blocks, 1, 1], BLOCK, args));
    program
}

fn multiply_add(profile: &CudaProfile) -> CudaProgram {
    let threads = BLOCKS * profile.multiprocessors * BLOCK;
    let mut program = CudaProgram::new("probe-fma", Decision::policy("fma", "measures multiply-adds"));
    program.operands =
        vec![Operand { name: "output", dtype: DType::F32, len: threads as usize, access: Access::Write }];
    program.cost = Cost { flop: 2.0 * f64::from(threads) * f64::from(CHAINS * LINKS), bytes: 0.0 };
    let kernel = CudaKernel::new("probe/probe_fma", "probe_fma", Arch::Sm75);
    let kernel = program.kernel(kernel.define("CHAINS", CHAINS).define("LINKS", LINKS));
    let args = vec![Arg::Operand(0), Arg::F32(0.999), Arg::F32(0.001)];
    program.launches.push(Launch::new(kernel, [threads / BLOCK, 1, 1], BLOCK, args));
    program
}

/// Measures both rates: the fastest of several runs, since a ceiling is the speed without disturbance.
pub(super) fn measure(gpu: &CudaGpu) -> Result<Ceilings> {
    let stream = gpu.stream()?;
    let (free, _) = gpu.memory()?;
    let bytes = COPIED.min(free / 4) / 16 * 16;
    let (input, output) = (gpu.alloc::<u32>((bytes / 4) as usize)?, gpu.alloc::<u32>((bytes / 4) as usize)?);
    // The contents do not matter.
    stream.clear(&input)?;
    let copied = fastest(&stream, copy(bytes), &[input.slice(..)?.untyped(), output.slice(..)?.untyped()])?;
    drop((input, output));
    let program = multiply_add(gpu.profile());
    let output = gpu.alloc::<f32>(program.operands[0].len)?;
    let flop = program.cost.flop;
    let multiplied = fastest(&stream, program, &[output.slice(..)?.untyped()])?;
    Ok(Ceilings { copy_bytes_per_second: 2.0 * bytes as f64 / copied, fma_flop_per_second: flop / multiplied })
}

fn fastest(stream: &CudaStream, program: CudaProgram, operands: &[RawCudaSlice<'_>]) -> Result<f64> {
    let executable = stream.gpu().prepare_lowered(program)?;
    Ok(stream.measure(15, |stream| executable.run(stream, operands))?.min())
}

/// Returns programs that together use every kernel of the device, in every form.
pub(super) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    Ok(vec![copy(1 << 20), multiply_add(profile)])
}

#[cfg(test)]
mod tests;

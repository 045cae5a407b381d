use super::{Gpu, RawSlice, Waiting};
use crate::program::prelude::*;
use crate::program::probe;

pub(super) async fn measure(gpu: &Gpu, waiting: Waiting) -> Result<Ceilings> {
    let copy = probe::copy(gpu.profile());
    let fma = probe::fma(gpu.profile());
    let (bytes, flop) = (copy.cost.bytes, fma.cost.flop);
    Ok(Ceilings {
        copy_bytes_per_second: bytes / run(gpu, copy, waiting).await?,
        fma_flop_per_second: flop / run(gpu, fma, waiting).await?,
    })
}

/// Seconds of the fastest run on fresh buffers: a ceiling is the speed without disturbance.
async fn run(gpu: &Gpu, program: Program, waiting: Waiting) -> Result<f64> {
    let memory = program.operands.iter().map(|o| gpu.allocate(o.bytes())).collect::<Result<Vec<_>>>()?;
    // The contents do not matter.
    memory.iter().for_each(|memory| memory.written.set());
    let lens: Vec<(DType, usize)> = program.operands.iter().map(|o| (o.dtype, o.len)).collect();
    let executable = gpu.prepare_lowered(program)?;
    let operands: Vec<_> = memory
        .iter()
        .zip(lens)
        .map(|(memory, (dtype, len))| RawSlice { gpu, memory, dtype, offset: 0, len, whole_words: true })
        .collect();
    let runs = if gpu.profile().is_cpu() { 9 } else { 15 };
    Ok(gpu.measure_by(waiting, runs, |rec| executable.record(rec, &operands)).await?.min())
}

//! The steps of conjugate gradients on shards, of a rank whose link is a stream.

use crate::cuda::{Arch, Arg, CudaKernel, CudaProfile, CudaProgram, Launch};
use crate::program::prelude::*;

const FILE: &str = "sparse/cg_stream";
const BLOCK: u32 = 256;
pub(crate) const SLICE: usize = 32;
/// Blocks for each multiprocessor of kernels that add up: as many as run at once.
const BLOCKS: u32 = 8;

/// Words of 64 bits of the state on the device: `State` in `shaders/sparse/cg_stream.cu`.
pub(crate) mod state {
    pub(crate) const WORDS: usize = 64;
    pub(crate) const STATUS: usize = 0;
    pub(crate) const COUNT: usize = 1;
    pub(crate) const CURVATURE: usize = 7;
    pub(crate) const HISTORY: usize = 16;
    pub(crate) const HISTORY_LEN: usize = 48;

    pub(crate) const GOING: u64 = 0;
    pub(crate) const CONVERGED: u64 = 1;
    pub(crate) const LIMIT: u64 = 2;
    pub(crate) const NOT_POSITIVE: u64 = 4;

    /// The state before the first step: the sum `r r` at which to stop, and the steps that may follow.
    pub(crate) fn first(threshold: f64, left: u64) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        (words[2], words[6]) = (left, threshold.to_bits());
        words
    }
}

/// Some rows of a rank in slices: places in its vectors, slots of entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlicedRows {
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) slots: usize,
}

impl SlicedRows {
    fn slices(&self) -> usize {
        self.rows.div_ceil(SLICE)
    }

    /// The blocks that multiply, and the partial sums that they leave.
    pub(crate) fn parts(&self, profile: &CudaProfile) -> u32 {
        (self.slices() as u64 * SLICE as u64)
            .div_ceil(u64::from(BLOCK))
            .min(u64::from(BLOCKS * profile.multiprocessors)) as u32
    }
}

/// The partial sums of `n` elements.
pub(crate) fn parts_of(n: usize, profile: &CudaProfile) -> u32 {
    (n as u64).div_ceil(u64::from(BLOCK)).min(u64::from(BLOCKS * profile.multiprocessors)) as u32
}

fn operand(name: &'static str, dtype: DType, len: usize, access: Access) -> Operand {
    Operand { name, dtype, len, access }
}

fn f32s(name: &'static str, len: usize, access: Access) -> Operand {
    operand(name, DType::F32, len, access)
}

/// A program of one launch that takes all operands, then `numbers`; none if there are no blocks.
fn program(
    op: &'static str, entry: &'static str, operands: Vec<Operand>, (blocks, threads): (u32, u32), numbers: &[u32],
) -> CudaProgram {
    let mut program = CudaProgram::new(op, Decision::policy("stream", "the only variant"));
    program.cost = Cost::of(0.0, &operands);
    let args = (0..operands.len()).map(Arg::Operand).chain(numbers.iter().map(|n| Arg::U32(*n))).collect();
    program.operands = operands;
    let kernel = program.kernel(CudaKernel::new(FILE, entry, Arch::Sm75));
    if blocks > 0 {
        program.launches.push(Launch::new(kernel, [blocks, 1, 1], threads, args));
    }
    program
}

/// `w = A r` of some rows, and partial sums of `r r` and `w r` from `part` on: operands `slices`, `columns`, `values`,
/// `r`, `w`, `partials`.
pub(crate) fn product(
    rows: SlicedRows, [vector, own, parts]: [usize; 3], part: u32, profile: &CudaProfile,
) -> Result<CudaProgram> {
    const OP: &str = "sharded-cg-product";
    let count = index_u32(OP, "rows", rows.rows)?;
    let operands = vec![
        operand("slices", DType::U32, rows.slices() + 1, Access::Read),
        operand("columns", DType::U32, rows.slots, Access::Read),
        f32s("values", rows.slots, Access::Read),
        f32s("r", vector, Access::Read),
        f32s("w", own, Access::Write),
        operand("partials", DType::U64, 2 * parts, Access::Write),
    ];
    let numbers = [count, rows.first as u32, part];
    let mut program = program(OP, "cg_stream_product", operands, (rows.parts(profile), BLOCK), &numbers);
    program.cost.flop = 2.0 * rows.slots as f64;
    Ok(program)
}

/// The elements for other ranks: operands `r`, `indices`, `sent`.
pub(crate) fn gather(vector: usize, n: usize) -> Result<CudaProgram> {
    const OP: &str = "sharded-cg-gather";
    let operands = vec![
        f32s("r", vector, Access::Read),
        operand("indices", DType::U32, n, Access::Read),
        f32s("sent", n, Access::Write),
    ];
    let count = index_u32(OP, "elements", n)?;
    Ok(program(OP, "cg_stream_gather", operands, (count.div_ceil(BLOCK), BLOCK), &[count]))
}

/// `r = b - w`, `p = s = 0` and partial sums of `r r`: operands `b`, `w`, `r`, `p`, `s`, `partials`.
pub(crate) fn start(n: usize, vector: usize, profile: &CudaProfile) -> Result<CudaProgram> {
    const OP: &str = "sharded-cg-start";
    let parts = parts_of(n, profile);
    let operands = vec![
        f32s("b", n, Access::Read),
        f32s("w", n, Access::Read),
        f32s("r", vector, Access::Write),
        f32s("p", n, Access::Write),
        f32s("s", n, Access::Write),
        operand("partials", DType::U64, 2 * parts as usize, Access::Write),
    ];
    let count = index_u32(OP, "rows", n)?;
    Ok(program(OP, "cg_stream_start", operands, (parts, BLOCK), &[count]))
}

/// Adds up partial sums: operands `partials`, and `total` of two numbers.
pub(crate) fn total(parts: u32) -> CudaProgram {
    let operands = vec![
        operand("partials", DType::U64, 2 * parts as usize, Access::Read),
        operand("total", DType::U64, 2, Access::Write),
    ];
    program("sharded-cg-total", "cg_stream_total", operands, (1, 1024), &[parts])
}

/// The lengths of the next step: operands `total`, `state`.
pub(crate) fn step() -> CudaProgram {
    let operands = vec![
        operand("total", DType::U64, 2, Access::Read),
        operand("state", DType::U64, state::WORDS, Access::ReadWrite),
    ];
    program("sharded-cg-step", "cg_stream_step", operands, (1, 1), &[])
}

/// A step along the next direction: operands `state`, `w`, `p`, `s`, `x`, `r`.
pub(crate) fn update(n: usize, vector: usize) -> Result<CudaProgram> {
    const OP: &str = "sharded-cg-update";
    let operands = vec![
        operand("state", DType::U64, state::WORDS, Access::Read),
        f32s("w", n, Access::Read),
        f32s("p", n, Access::ReadWrite),
        f32s("s", n, Access::ReadWrite),
        f32s("x", n, Access::ReadWrite),
        f32s("r", vector, Access::ReadWrite),
    ];
    let count = index_u32(OP, "rows", n)?;
    Ok(program(OP, "cg_stream_update", operands, (count.div_ceil(4 * BLOCK), BLOCK), &[count]))
}

/// Returns programs that together use every kernel.
pub(in crate::cuda) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let rows = SlicedRows { first: 0, rows: 1000, slots: 7 * 1024 };
    let parts = rows.parts(profile);
    Ok(vec![
        product(rows, [1100, 1000, parts as usize], 0, profile)?,
        gather(1100, 100)?,
        start(1000, 1100, profile)?,
        total(parts),
        step(),
        update(1000, 1100)?,
    ])
}

#[cfg(test)]
mod tests;

//! Prefix sums in one kernel with a grid-wide barrier.

use crate::cuda::variant::choose;
use crate::cuda::{Arch, Arg, CudaKernel, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::primitives::{Max, Min, Operator, Prod, Reducer, Scan, Sum};
use crate::program::prelude::*;

/// Threads of a block, and blocks of a multiprocessor, as in the kernel. Sums of f32 on an H100 (driver 580.159.04,
/// NVRTC 13.0): 2^16 in 9.1 us, 2^20 in 9.2, 2^24 in 64.6, 2^27 in 467 (2299 GB/s).
const THREADS: u32 = 512;
const BLOCKS: u32 = 2;

/// Elements of a tile for each vec4 of a thread.
const VEC4_TILE: u64 = THREADS as u64 * 4;

/// Returns the fewest vec4 of a thread with which `blocks` blocks hold `n` elements at once, or the maximum.
fn vectors(n: usize, blocks: u32) -> u64 {
    [1, 2, 4].into_iter().find(|vectors| n as u64 <= u64::from(blocks) * vectors * VEC4_TILE).unwrap_or(4)
}

const VARIANTS: &[CudaVariant] = &[
    CudaVariant {
        name: "grid",
        about: "each block sums a tile, waits at a grid-wide barrier, writes, and goes on to its next tile",
        arch: Arch::Sm75,
    },
    CudaVariant {
        name: "rows",
        about: "a block scans whole rows, one after another, without a barrier",
        arch: Arch::Sm75,
    },
];

impl Scan {
    /// Lists the CUDA variants: `grid` scans one row, `rows` any number.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }
}

impl<T: Element, O: Reducer<T, Output = T>> CudaOp<T> for Scan<O> {
    fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
        let (rows, n) = self.shape();
        let len = elements("scan", "input", &[rows, n])?;
        let (operator, variant) = (self.operator::<T>(), self.asked());
        let one = rows == 1 && profile.cooperative_launch;
        let (variant, decision) = choose("scan", variant, VARIANTS, profile, || {
            if one {
                ("grid", "one row: all blocks share it, with one barrier".into())
            } else {
                ("rows", format!("{rows} rows: a block for each"))
            }
        })?;
        let grid = variant.name == "grid";
        if grid && rows > 1 {
            return Err(err!(
                InvalidArgument,
                "scan: the variant `grid` scans one row, not {rows}; use `rows` or `auto`"
            ));
        }
        let mut program = CudaProgram::new("scan", decision);
        let operand = |name, access| Operand { name, dtype: T::DTYPE, len, access };
        program.operands = vec![operand("input", Access::Read), operand("output", Access::Write)];
        program.cost = Cost::of(2.0 * len as f64, &program.operands);
        let kernel = self.kernel(&operator, T::DTYPE)?;
        if len == 0 {
            return Ok(program);
        }
        let max = profile.multiprocessors * BLOCKS;
        let vectors = vectors(n, if grid { max } else { 1 });
        let kernel = kernel.define("PIECES", vectors);
        let (input, output, n) = (Arg::Operand(0), Arg::Operand(1), Arg::U64(n as u64));
        if grid {
            let kernel = program.kernel(CudaKernel { entry: "scan_grid", ..kernel });
            let blocks = (len as u64).div_ceil(vectors * VEC4_TILE).min(u64::from(max)) as u32;
            let totals = Arg::Scratch(program.scratch(u64::from(blocks) * 8));
            let arrived = Arg::Scratch(program.zeroed_scratch(4));
            let args = vec![input, output, totals, arrived, n];
            let launch = Launch::new(kernel, [blocks, 1, 1], THREADS, args);
            program.launches.push(Launch { cooperative: blocks > 1, ..launch });
        } else {
            let kernel = program.kernel(CudaKernel { entry: "scan_rows", ..kernel });
            // More blocks than run at once, to balance the load.
            let blocks = (rows as u64).min(16 * u64::from(max)) as u32;
            let args = vec![input, output, n, Arg::U64(rows as u64)];
            program.launches.push(Launch::new(kernel, [blocks, 1, 1], THREADS, args));
        }
        Ok(program)
    }
}

impl<O> Scan<O> {
    fn kernel(&self, operator: &Operator, dtype: DType) -> Result<CudaKernel> {
        let refused = || {
            Err(err!(
                Unsupported,
                "scan: no CUDA kernel for {} of {dtype}; CUDA has sum, prod, min and max of f32, i32 and u32; plan others on a Gpu",
                operator.name()
            ))
        };
        if self.is_counted() {
            return Err(err!(Unsupported, "scan: CUDA's kernel takes no length from the device; plan it on a Gpu"));
        }
        let number = match operator {
            Operator::Sum => 0,
            Operator::Prod => 1,
            Operator::Min => 2,
            Operator::Max => 3,
            _ => return refused(),
        };
        let (ty, [zero, one, greatest, least]) = match dtype {
            DType::F32 => ("float", ["0.0f", "1.0f", "__int_as_float(0x7f800000)", "__int_as_float(0xff800000)"]),
            // Signed overflow is undefined in C++; unsigned arithmetic gives the same bits.
            DType::I32 if number < 2 => ("unsigned", ["0u", "1u", "", ""]),
            DType::I32 => ("int", ["", "", "0x7fffffff", "(-0x7fffffff - 1)"]),
            DType::U32 => ("unsigned", ["0u", "1u", "0xffffffffu", "0u"]),
            _ => return refused(),
        };
        let (exclusive, reverse) = self.direction();
        Ok(CudaKernel::new("primitives/scan_grid", "", Arch::Sm75)
            .define("ELEMENT", ty)
            .define("IDENTITY", [zero, one, greatest, least][number])
            .define("FUNCTION", number)
            .define("EXCLUSIVE", exclusive)
            .define("REVERSE", reverse))
    }
}

/// Returns programs that together use every kernel of the device, in every form.
pub(in crate::cuda) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let mut programs = Vec::new();
    macro_rules! lower {
        ($rows:expr, $exclusive:expr, $reverse:expr; $($op:expr => $($t:ty),*;)*) => {$($({
            let scan = Scan::rows($op, $rows, 100_000).when($exclusive, |op| op.exclusive()).when($reverse, |op| op.reverse());
            programs.push(CudaOp::<$t>::lower(&scan, profile)?);
        })*)*};
    }
    // Each kernel takes half a second to compile, so not all combinations.
    lower! { 1, false, false; Sum => f32, i32; Max => u32; }
    programs.push(CudaOp::<f32>::lower(&Scan::new(Sum, 1 << 28), profile)?);
    programs.push(CudaOp::<f32>::lower(&Scan::rows(Sum, 9, 3000), profile)?);
    lower! { 1, true, true; Min => i32, f32; }
    lower! { 50, false, true; Max => i32; }
    lower! { 50, true, false; Prod => f32, u32; }
    Ok(programs)
}

#[cfg(test)]
mod tests;

//! Products with few rows or columns: `shaders/dense/gemm_narrow.cu` reads the large factor once, wherever its rows
//! start.

use super::gemm::{CudaProduct, ProductEnd};
use super::ways::CudaWay;
use crate::cuda::tile::{TileFactor, TileWork, bandwidth};
use crate::cuda::{Arch, Arg, CudaKernel, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::dense::Product;
use crate::error::{Error, err};

pub(super) const VARIANT: CudaVariant = CudaVariant {
    name: "narrow",
    about: "up to 8 rows or columns of f16 or bf16 by fused multiply-adds, which read the other factor once",
    arch: Arch::Sm75,
};

const MAX_NARROW: usize = 8;

/// Lines of the large factor along k that a block takes, and columns of the other order.
const LINES: usize = 4;
const COLUMNS: usize = 32;

/// Seconds of the kernel beside its elements, and of a round of loads that a thread waits for.
const BEGUN: f64 = 2.4e-6;
const ROUND: f64 = 0.2e-6;

#[derive(Debug, Clone, Copy)]
pub(super) struct NarrowTiling {
    /// Whether A is the large factor.
    rows: bool,
    /// Rows or columns that a thread sums.
    narrow: usize,
    along_k: bool,
}

impl NarrowTiling {
    pub(super) fn of(of: &CudaProduct<'_>, factor: TileFactor) -> Option<Self> {
        let Product { m, n, batch, .. } = *of.product;
        let rows = m > n;
        let few = m.min(n);
        let halves = matches!(factor, TileFactor::F16 | TileFactor::Bf16);
        let fits = few <= MAX_NARROW && of.product.tile.is_none() && batch <= u16::MAX.into();
        let along_k = of.lines(usize::from(!rows), factor).along_k;
        (halves && fits).then(|| Self { rows, narrow: few.next_power_of_two(), along_k })
    }

    fn threads(self) -> usize {
        if self.along_k { 256 } else { 1024 }
    }

    pub(super) fn step(self) -> usize {
        if self.along_k { self.threads() } else { self.threads() / 32 }
    }

    pub(super) fn blocks(self, work: &TileWork) -> u64 {
        let lines = if self.along_k { LINES } else { COLUMNS };
        (work.m.max(work.n).div_ceil(lines) * work.products) as u64
    }

    /// Predicts the seconds of a product whose k is cut into slices of so many steps. Elements a second and waits are
    /// those that best fit 22 products of 1 to 8 rows on an H100 (driver 580): 4095 columns of 4097 take 15 us for one
    /// row and 32 us for eight, by `mma` with a copy of the factor 49 us.
    pub(super) fn seconds(self, work: &TileWork, [steps, slices]: [usize; 2], profile: &CudaProfile) -> f64 {
        let narrow = self.narrow as f64;
        let element = if self.along_k { (0.26 * narrow).max(0.89) } else { (0.5 + 0.33 * narrow).max(0.9) };
        let element = element * 1e-12 * 3.35e12 / bandwidth(profile);
        let resident = if self.along_k { 4 } else { 1 };
        let device = f64::from(profile.multiprocessors * resident);
        let filled = ((self.blocks(work) * slices as u64) as f64 / device).min(1.0);
        let elements = (work.m.max(work.n) * work.k * work.products) as f64;
        BEGUN + elements * element / filled + steps as f64 * ROUND
    }
}

/// Returns why the variant does not take the product.
pub(super) fn refusal(of: &CudaProduct<'_>) -> Error {
    err!(
        InvalidArgument,
        "{}: the variant `narrow` takes up to {MAX_NARROW} rows or columns of f16 or bf16, without a tile; use `auto`",
        of.name
    )
}

pub(super) fn lower(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, (tiling, way): (NarrowTiling, &CudaWay),
    end: &ProductEnd,
) {
    let Product { m, n, batch, .. } = *of.product;
    let NarrowTiling { rows, narrow, along_k } = tiling;
    let what = if rows { "A" } else { "B" };
    program.decision.because(format_args!("{what} is read once, measured on an H100"));
    let arch = if factor == TileFactor::Bf16 { Arch::Sm80 } else { Arch::Sm75 };
    let kernel = factor
        .define(CudaKernel::new("dense/gemm_narrow", "gemm_narrow", arch))
        .define("NARROW", narrow)
        .define("ALONG_K", u32::from(along_k))
        .define("ROWS", u32::from(rows));
    let kernel = program.kernel(end.end.define(kernel));
    let [large, small] = if rows { [0, 1] } else { [1, 0] };
    let ld = of.layouts[small].at.ld;
    let [small_line, small_k] = if of.lines(small, factor).along_k { [ld, 1] } else { [1, ld] };
    let mut args = vec![Arg::from(of.memory[large]), Arg::from(of.memory[small])];
    args.extend([end.bias.clone(), end.c.clone()]);
    args.extend([m.max(n), m.min(n), of.product.inner()].map(|x| Arg::U32(x as u32)));
    let strides = [of.layouts[large].stride, of.layouts[small].stride, end.c_layout.stride];
    let numbers = [of.layouts[large].at.ld, small_line, small_k, end.c_layout.at.ld];
    args.extend(numbers.into_iter().chain(strides).map(|x| Arg::U64(x as u64)));
    args.extend([way.slices, way.slice_k].map(|x| Arg::U32(x as u32)));
    args.extend(end.last.clone());
    let lines = if along_k { LINES } else { COLUMNS };
    let grid = [m.max(n).div_ceil(lines), way.slices, batch].map(|x| x as u32);
    program.launches.push(Launch::new(kernel, grid, tiling.threads() as u32, args));
}

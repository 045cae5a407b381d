//! The simple kernels, from the definition to sums in registers with A or both factors straight from storage; and the
//! epilogue alone, for products whose factors are not read.

use super::division::register_sides;
use super::job::{ProductJob, Workgroups};
use super::policy::{self, register_thread};
use super::{Division, Product, ProductTile};
use crate::program::prelude::*;

const WORKGROUP_ELEMENTS: u64 = 256;

pub(super) const ELEMENT: Division = Division::new([1, 1, 1], [1, 1]);
/// The tile that every WebGPU device runs.
pub(super) const TILED: Division = Division::new([16, 16, 16], [1, 1]);
const COARSENED: Division = Division::new([16, 64, 16], [1, 4]);
const REGISTER_ROW: Division = Division::new([64, 16, 4], [1, 16]);

/// Thread tiles of variants with blocks of sums.
pub(super) const FOURS: &str = "multiples of 4 up to 16 in rows and columns";

/// Maximum of columns of C that a thread of the kernels with a row each computes.
const MAX_COLUMNS: u32 = 64;
/// Maximum of multiply-adds of such a kernel that are written out.
const MAX_WRITTEN: u64 = 4096;

/// The tile of passes that only end a product: one element of C for each thread.
pub(super) const END_TILE: ProductTile = ProductTile { m: 16, n: 16, k: 1 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainKernel {
    /// The definition.
    Naive,
    Tiled,
    Coarsened,
    RegisterDirect,
    RegisterStaged,
    Unstaged,
}

impl PlainKernel {
    /// Says if a thread computes a row of the tile, with its sums in registers.
    fn has_rows(self) -> bool {
        matches!(self, Self::RegisterDirect | Self::RegisterStaged)
    }

    pub(super) fn check(self, variant: &str, job: &ProductJob<'_>) -> Result<Division> {
        let (suits, has) = match self {
            Self::Naive | Self::Tiled => (TILED, "1 x 1"),
            Self::Coarsened => (COARSENED, "1 x 2 or 1 x 4"),
            Self::Unstaged => (policy::unstaged(job), FOURS),
            _ => (REGISTER_ROW, "1 x 4 to 1 x 64, in multiples of 4"),
        };
        let mut division = job.product.division(suits, |tile| match self {
            Self::Coarsened => [1, if tile.n.is_multiple_of(4) { 4 } else { 2 }],
            Self::RegisterDirect | Self::RegisterStaged => [1, tile.n],
            Self::Unstaged => register_thread(tile),
            _ => suits.thread,
        });
        if self.has_rows() && job.product.tile.is_none() {
            division.tile.n = division.thread[1];
        }
        let Division { tile: ProductTile { m, n, k }, thread: [rows, columns], .. } = division;
        let right = match self {
            Self::Coarsened => rows == 1 && (columns == 2 || columns == 4),
            Self::Naive | Self::Tiled => [rows, columns] == suits.thread,
            Self::Unstaged => register_sides(division.thread),
            _ => rows == 1 && columns.is_multiple_of(4) && (4..=MAX_COLUMNS).contains(&columns),
        };
        division.check_sides(job.name, variant, right, has)?;
        // Fewer rows would load too much of B each: see `slice_k`.
        if self.has_rows() && (n != columns || m < n / 2) {
            return Err(err!(
                InvalidArgument,
                "{} does not suit `{variant}`; take as many columns as a thread computes, {columns}, and at least \
                 half as many rows",
                division.text(job.name)
            ));
        }
        let written = u64::from(n) * u64::from(k);
        if self.has_rows() && job.product.unrolled == Some(true) && written > MAX_WRITTEN {
            return Err(err!(
                InvalidArgument,
                "{}: {written} multiply-adds of a thread are too many to write out (at most {MAX_WRITTEN}); take a \
                 smaller k of the tile, or loops",
                division.text(job.name)
            ));
        }
        let workgroup = match self {
            Self::RegisterDirect | Self::RegisterStaged | Self::Unstaged => [division.threads(), 1],
            _ => [u64::from(n / columns), u64::from(m)],
        };
        let [m, n, k] = [m, n, k].map(u64::from);
        let bytes = match self {
            Self::Naive | Self::Unstaged => 0,
            Self::Tiled | Self::Coarsened => 4 * k * (m + if job.product.trans_b { n | 1 } else { n }),
            Self::RegisterDirect => 4 * k * n,
            Self::RegisterStaged => (k * n).saturating_add(m.saturating_mul(k | 1)).saturating_mul(4),
        };
        division.check_limits(job.name, workgroup, bytes, job.profile)?;
        Ok(division)
    }

    pub(super) fn lower(
        self, Division { tile, thread, .. }: Division, job: &ProductJob<'_>, program: &mut Program,
    ) -> Result<()> {
        let product = job.product;
        let spec = job.end_spec(3, job.is_sliced());
        let spec = spec.flag("TRANS_A", product.trans_a).flag("TRANS_B", product.trans_b);
        let spec = spec.constant("TILE_M", tile.m).constant("TILE_N", tile.n);
        let spec = match self {
            Self::Naive | Self::Unstaged => spec,
            _ => spec.constant("TILE_K", tile.k),
        };
        let written = |spec: Spec| spec.flag("UNROLLED", product.unrolled == Some(true));
        let kernel = match self {
            Self::Naive => Kernel::of_file("dense/gemm_naive", spec),
            Self::Tiled => Kernel::of_file("dense/gemm_tiled", spec),
            Self::Coarsened => Kernel::of_file("dense/gemm_coarsened", spec.flag("FOUR", thread[1] == 4)),
            Self::RegisterDirect => Kernel::of_file("dense/gemm_register_direct", written(spec)),
            Self::RegisterStaged => Kernel::of_file("dense/gemm_register_staged", written(spec.flag("STAGED", true))),
            Self::Unstaged => {
                let whole = product.m.is_multiple_of(tile.m as usize) && product.n.is_multiple_of(tile.n as usize);
                let spec = spec.constant("THREAD_M", thread[0]).constant("THREAD_N", thread[1]);
                let spec = spec.flag("VEC_A", job.vec4s(0)).flag("VEC_B", job.vec4s(1));
                let spec = spec.flag("VEC_C", job.vec4s(2)).flag("WHOLE_TILES", whole);
                Kernel::of_file("dense/gemm_unstaged", spec)
            }
        };
        let kernel = program.kernel(kernel);
        job.multiply(program, kernel, tile, job.tiles(tile))
    }
}

/// The definition of a batch: elements of all products one after the other. Without factors to read, the epilogue
/// alone.
pub(super) fn lower_elements(job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
    let Product { batch, m, n, trans_a, trans_b, .. } = *job.product;
    let carry = job.product.has_product() && job.is_sliced();
    let spec = job.end_spec(3, carry).flag("TRANS_A", trans_a).flag("TRANS_B", trans_b);
    let kernel = program.kernel(Kernel::library("dense/gemm_batched_naive", "gemm_batched_naive", spec));
    let count = ((batch * m) as u64 * n as u64).div_ceil(WORKGROUP_ELEMENTS);
    let workgroups = Workgroups { count, elements: WORKGROUP_ELEMENTS };
    if job.product.has_product() {
        return job.multiply(program, kernel, ELEMENT.tile, workgroups);
    }
    let params = job.params(0, ELEMENT.tile)?;
    let bindings = job.bindings(program, 0);
    job.dispatch(program, kernel, &params, &bindings, workgroups)
}

/// Writes a product whose factors are not read: C = activation(beta C + bias).
pub(super) fn lower_end(job: &ProductJob<'_>, program: &mut Program) -> Result<()> {
    if job.product.batched {
        return lower_elements(job, program);
    }
    let kernel = program.kernel(Kernel::library("dense/gemm_scale", "gemm_scale", end_pass(job, 1)));
    let bindings = job.bindings(program, 2);
    job.dispatch(program, kernel, &job.params(0, END_TILE)?, &bindings, job.tiles(END_TILE))
}

/// The spec of a pass that ends a product, whose bias or C is bound at `next`.
pub(super) fn end_pass(job: &ProductJob<'_>, next: u32) -> Spec {
    job.end_spec(next, false).constant("TILE_M", END_TILE.m).constant("TILE_N", END_TILE.n)
}

#[cfg(test)]
mod tests;

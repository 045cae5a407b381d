//! The ways to compute a product on CUDA, and their predicted times: engine, tile, slices of k, and which factors are
//! first copied into aligned rows.

use super::gemm::CudaProduct;
use super::narrow::{self, NarrowTiling};
use super::wgmma::{self, WgmmaTiling};
use crate::cuda::tile::{self, TileFactor, TileRow, TileWork};
use crate::cuda::{Arch, CudaProfile};

#[derive(Debug, Clone)]
pub(super) enum CudaEngine {
    Tiles(TileRow),
    Warpgroups(WgmmaTiling),
    Narrow(NarrowTiling),
}

#[derive(Debug, Clone)]
pub(super) struct CudaWay {
    pub(super) engine: CudaEngine,
    /// Slices of k, whose sums a second kernel adds.
    pub(super) slices: usize,
    pub(super) slice_k: usize,
    /// Which of A and B are copied first. Warpgroup products decide that themselves.
    pub(super) packs: [bool; 2],
    pub(super) seconds: f64,
}

const SLICES: [usize; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];

const MAX_SUMS: u64 = 1 << 28; // bytes

/// Blocks in flight beyond which more slices cannot help, for each multiprocessor.
const MAX_BLOCKS: u64 = 16;

/// Seconds of an element of C whose rows are no multiple of four elements apart, by tiles and by warpgroups: 2785 x
/// 3521 x 200 takes 28 us by warpgroups on an H100.
const RAGGED: [f64; 2] = [1.5e-12, 0.75e-12];

/// Seconds of one more launch on a stream.
const LAUNCH: f64 = 1.1e-6;
/// Seconds of a copy of a factor beside its bytes.
const COPY: f64 = 3.1e-6;

/// Bytes a second of a copy of a factor, relative to memory, and of sums through the second cache.
const COPIED: f64 = 0.63;
const CACHED: f64 = 1.06;

impl CudaWay {
    /// Returns the slice of a product that is not cut.
    pub(super) fn whole(engine: CudaEngine, k: usize) -> Self {
        Self { engine, slices: 1, slice_k: k, packs: [false; 2], seconds: 0.0 }
    }

    pub(super) fn variant(&self, tiles: &'static str) -> &'static str {
        match self.engine {
            CudaEngine::Tiles(_) => tiles,
            CudaEngine::Warpgroups(_) => wgmma::VARIANT.name,
            CudaEngine::Narrow(_) => narrow::VARIANT.name,
        }
    }
}

fn slice_steps(k: usize, tile_k: usize, asked: usize) -> usize {
    k.div_ceil(tile_k).div_ceil(asked.max(1)).max(1)
}

struct CudaWays<'a> {
    of: &'a CudaProduct<'a>,
    factor: TileFactor,
    profile: &'a CudaProfile,
    work: TileWork,
}

impl CudaWays<'_> {
    /// Returns the numbers of slices to try, as steps of each slice and slices.
    fn divisions_of_k(&self, tile_k: usize, blocks: u64) -> Vec<[usize; 2]> {
        let product = self.of.product;
        let k = product.inner();
        let steps = k.div_ceil(tile_k);
        let asked = product.slices.map(|n| n as usize);
        let may = k > 0 && self.factor != TileFactor::Bytes && product.batch <= u16::MAX.into();
        let candidates: &[usize] = match &asked {
            Some(n) => std::slice::from_ref(n),
            None => &SLICES,
        };
        let most = MAX_BLOCKS * u64::from(self.profile.multiprocessors);
        let each = (4 * product.batch * product.m * product.n.next_multiple_of(4)) as u64;
        let mut all: Vec<[usize; 2]> = Vec::new();
        for &n in candidates {
            let each_steps = if may { slice_steps(k, tile_k, n) } else { steps.max(1) };
            let slices = steps.div_ceil(each_steps).max(1);
            let fits = each.saturating_mul(slices as u64) <= MAX_SUMS;
            let few = blocks.saturating_mul(slices as u64) <= most || asked.is_some();
            if slices == 1 || fits && few && (each_steps > 1 || asked.is_some()) {
                all.push([each_steps, slices]);
            }
        }
        if all.is_empty() {
            all.push([steps.max(1), 1]);
        }
        all.dedup();
        all
    }

    fn adding(&self, slices: usize) -> f64 {
        if slices == 1 {
            return 0.0;
        }
        let bytes = 8.0 * slices as f64 * (self.work.m * self.work.n * self.work.products) as f64;
        LAUNCH + bytes / (CACHED * tile::bandwidth(self.profile))
    }

    fn ragged(&self, engine: usize, slices: usize) -> f64 {
        let is_ragged = !self.of.layouts[2].at.ld.is_multiple_of(4);
        let elements = (self.work.m * self.work.n * self.work.products) as f64;
        if is_ragged && slices == 1 { RAGGED[engine] * elements } else { 0.0 }
    }

    fn copying(&self, which: usize) -> f64 {
        let rows = if which == 0 { self.work.m } else { self.work.n };
        let products = if self.of.layouts[which].stride == 0 { 1 } else { self.work.products };
        let bytes = 2.0 * (self.factor.size() * rows * self.work.k * products) as f64;
        COPY + bytes / (COPIED * tile::bandwidth(self.profile))
    }

    fn may_copy(&self, which: usize) -> bool {
        let unaligned = self.of.lines(which, self.factor).unit < 16;
        unaligned && self.of.product.has_product() && wgmma::refused(self.of).is_none()
    }

    fn tiles(&self, rows: &[TileRow]) -> Vec<CudaWay> {
        let (of, factor) = (self.of, self.factor);
        let [copies_a, copies_b] = [0, 1].map(|which| self.may_copy(which));
        let mut ways = Vec::new();
        for packs in [[false, false], [true, false], [false, true], [true, true]] {
            if packs[0] && !copies_a || packs[1] && !copies_b {
                continue;
            }
            let [a, b] = [0, 1].map(|i| if packs[i] { of.packed_lines(i, factor) } else { of.lines(i, factor) });
            let copying: f64 = (0..2).filter(|i| packs[*i]).map(|i| self.copying(i)).sum();
            for row in rows.iter().filter(|row| row.tiling.wrong(factor, a, b, self.profile).is_none()) {
                let tile_k = row.tiling.tile[2] as usize;
                let blocks = row.tiling.blocks(self.work.m, self.work.n) * self.work.products as u64;
                for [steps, slices] in self.divisions_of_k(tile_k, blocks) {
                    let seconds = row.seconds(&self.work, [steps, slices], factor, [a, b], self.profile)
                        + self.adding(slices)
                        + self.ragged(0, slices)
                        + copying;
                    let engine = CudaEngine::Tiles(*row);
                    ways.push(CudaWay { engine, slices, slice_k: steps * tile_k, packs, seconds });
                }
            }
        }
        ways
    }

    fn warpgroups(&self) -> Vec<CudaWay> {
        let (of, factor) = (self.of, self.factor);
        if factor == TileFactor::Single || !self.profile.runs(Arch::Sm90a) || wgmma::refused(of).is_some() {
            return Vec::new();
        }
        let copies = (0..2).filter(|which| of.product.has_product() && wgmma::packs(of, factor, *which));
        let copying: f64 = copies.map(|which| self.copying(which)).sum();
        let apart = [0, 1].map(|which| {
            let row = of.layouts[which].at.ld * factor.size();
            !wgmma::packs(of, factor, which) && !row.is_multiple_of(32)
        });
        let mut ways = Vec::new();
        for tiling in WgmmaTiling::all(factor).iter().filter(|t| of.product.tile.is_none_or(|tile| t.is(factor, tile)))
        {
            let tile_k = WgmmaTiling::tile_k(factor) as usize;
            let blocks = tiling.tiles_of(of.product);
            for [steps, slices] in self.divisions_of_k(tile_k, blocks) {
                let seconds = tiling.seconds(&self.work, [steps, slices], (factor, apart), self.profile)
                    + self.adding(slices)
                    + self.ragged(1, slices)
                    + copying;
                let engine = CudaEngine::Warpgroups(tiling.clone());
                let (slice_k, packs) = (steps * tile_k, [false; 2]);
                ways.push(CudaWay { engine, slices, slice_k, packs, seconds });
            }
        }
        ways
    }

    fn narrow(&self) -> Vec<CudaWay> {
        let Some(tiling) = NarrowTiling::of(self.of, self.factor) else { return Vec::new() };
        let divisions_of_k = self.divisions_of_k(tiling.step(), tiling.blocks(&self.work));
        let way = |[steps, slices]: [usize; 2]| {
            let seconds = tiling.seconds(&self.work, [steps, slices], self.profile) + self.adding(slices);
            let (engine, slice_k) = (CudaEngine::Narrow(tiling), steps * tiling.step());
            CudaWay { engine, slices, slice_k, packs: [false; 2], seconds }
        };
        divisions_of_k.into_iter().map(way).collect()
    }
}

/// Returns the fastest way: of the engine of a `variant`, or of all. `rows` are the tiles to choose from.
pub(super) fn fastest(
    of: &CudaProduct<'_>, factor: TileFactor, rows: &[TileRow], variant: &str, profile: &CudaProfile,
) -> Option<CudaWay> {
    let work = of.work(factor);
    let common = CudaWays { of, factor, profile, work };
    let mut ways = Vec::new();
    if ![wgmma::VARIANT.name, narrow::VARIANT.name].contains(&variant) {
        ways.extend(common.tiles(rows));
    }
    if variant == "auto" || variant == wgmma::VARIANT.name {
        ways.extend(common.warpgroups());
    }
    if variant == "auto" || variant == narrow::VARIANT.name {
        ways.extend(common.narrow());
    }
    ways.into_iter().min_by(|x, y| x.seconds.total_cmp(&y.seconds))
}

//! Warpgroup products, on Hopper only: `shaders/dense/gemm_wgmma.cu`.
//!
//! The copy engine requires rows of whole 16-byte chunks, and tf32 requires the inner extent innermost. Other factors,
//! and split ones, are first copied to scratch (`gemm_pack.cu`).

use super::gemm::{CudaProduct, ProductEnd};
use super::ways::CudaWay;
use crate::cuda::tile::{self, TileFactor, TileWork};
use crate::cuda::{
    Arch, Arg, ArgMemory, CudaKernel, CudaProfile, CudaProgram, CudaVariant, Launch, Swizzle, TensorMap,
};
use crate::dense::{BatchLayout, DenseLayout, Product, ProductTile};
use crate::program::prelude::*;

pub(super) const VARIANT: CudaVariant = CudaVariant {
    name: "wgmma",
    about: "warpgroup products on Hopper, from stages of shared memory that the copy engine fills",
    arch: Arch::Sm90a,
};

const TILE_M: u32 = 128;
/// Bytes of a row of a factor in a stage.
const LINE_BYTES: u32 = 128;
/// Two warpgroups that multiply and one that copies.
const THREADS: u32 = 384;
/// Bytes of shared memory to write out sums: 16 rows of 40 floats for each of eight warps.
const OUTPUT_BYTES: u32 = 8 * 16 * 40 * 4;
/// Seconds until the first tile's products begin.
const BEGUN: f64 = 3.2e-6;
/// Side of the square that one block copies.
const PACKED: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct WgmmaTiling {
    tile_n: u32,
    stages: u32,
    /// f16 TFLOP/s of full waves on an H100.
    rate: f64,
}

const NARROWEST: WgmmaTiling = WgmmaTiling { tile_n: 64, stages: 8, rate: 559.0 };
const NARROW: WgmmaTiling = WgmmaTiling { tile_n: 128, stages: 6, rate: 607.0 };
const WIDE: WgmmaTiling = WgmmaTiling { tile_n: 256, stages: 4, rate: 733.0 };
/// Of split factors: three products of tf32.
const SPLIT: WgmmaTiling = WgmmaTiling { tile_n: 128, stages: 3, rate: 600.0 };

/// Seconds of a tile beside its products: the first loads of a block, or its stores.
const TILE_END: f64 = 0.5e-6;

/// How much slower tiles are from rows that are no multiple of 32 bytes apart: 3000 cubed takes 159 us, 2048 cubed 27.
const APART: f64 = 1.4;

impl WgmmaTiling {
    /// Lists the tilings of a type of factors.
    pub(super) fn all(factor: TileFactor) -> &'static [Self] {
        if factor == TileFactor::Split { &[SPLIT] } else { &[NARROWEST, NARROW, WIDE] }
    }

    pub(super) fn of_bytes(n: usize) -> Self {
        if n <= 128 { NARROW } else { WIDE }
    }

    pub(super) fn is(&self, factor: TileFactor, tile: ProductTile) -> bool {
        [tile.m, tile.n, tile.k] == [TILE_M, self.tile_n, Self::tile_k(factor)]
    }

    pub(super) fn tiles(&self, product: &Product) -> u64 {
        let of = |extent: usize, side: u32| (extent as u64).div_ceil(u64::from(side));
        of(product.m, TILE_M) * of(product.n, self.tile_n) * product.batch as u64
    }

    /// Predicts the seconds of a product whose k is cut into slices of so many steps; `apart` if rows of a factor are
    /// no multiple of 32 bytes apart.
    pub(super) fn seconds(
        &self, work: &TileWork, [steps, slices]: [usize; 2], (factor, apart): (TileFactor, bool), profile: &CudaProfile,
    ) -> f64 {
        let of = |extent: usize, side: u32| extent.div_ceil(side as usize) as f64;
        let tiles = of(work.m, TILE_M) * of(work.n, self.tile_n) * (work.products * slices) as f64;
        let processors = f64::from(profile.multiprocessors);
        let waves = (tiles / processors).ceil();
        let slower = match factor {
            TileFactor::Split => 6.0,
            TileFactor::Tf32 => 2.0,
            _ => 1.0,
        };
        let tile = f64::from(TILE_M * self.tile_n * Self::tile_k(factor));
        let rate = self.rate * 1e12 * tile::relative_rate(profile) / processors;
        let step = 2.0 * tile * slower * if apart { APART } else { 1.0 } / rate;
        let summed = waves * (steps as f64 * step + TILE_END);
        // Few multiprocessors do not reach the memory's bandwidth.
        let few = tiles.min(processors) * tile::LOADED;
        BEGUN + summed.max(work.bytes / (tile::REACHED * tile::bandwidth(profile)).min(few))
    }

    fn describe(&self, factor: TileFactor) -> String {
        format!("{TILE_M} x {} x {}", self.tile_n, Self::tile_k(factor))
    }

    fn shared(&self, factor: TileFactor) -> u32 {
        let parts = if factor == TileFactor::Split { 2 } else { 1 };
        self.stages * parts * (TILE_M + self.tile_n) * LINE_BYTES + OUTPUT_BYTES
    }

    /// Returns the inner extent of a stage, in elements.
    pub(super) fn tile_k(factor: TileFactor) -> u32 {
        LINE_BYTES / factor.size() as u32
    }
}

/// How a factor is copied to shared memory.
struct Fetch {
    /// The map of the factor, and of its low part if it is split.
    maps: [TensorMap; 2],
    /// Whether rows (columns of B) are innermost.
    major: bool,
    /// 0 if all products share the factor.
    each: u32,
}

/// Returns why it cannot run, if so.
pub(super) fn refused(of: &CudaProduct<'_>) -> Option<String> {
    let product = of.product;
    let tiles = product.m.div_ceil(128).saturating_mul(product.n.div_ceil(128)).saturating_mul(product.batch);
    if tiles > i32::MAX as usize {
        return Some(format!("{tiles} tiles exceed a 32-bit counter"));
    }
    // Copies use the second and third dimension of a grid.
    let max = usize::from(u16::MAX);
    if product.m.max(product.n).max(product.k).div_ceil(PACKED) > max || product.batch > max {
        return Some(format!("it copies factors of at most {} rows, and {max} products", max * PACKED));
    }
    None
}

/// Returns why it cannot run: its limits, or the tile that was asked for.
pub(super) fn refusal(of: &CudaProduct<'_>, factor: TileFactor) -> Option<crate::Error> {
    if let Some(why) = refused(of) {
        return Some(err!(TooLarge, "{}: the variant `wgmma`: {why}; use `mma`", of.name));
    }
    let none = |tile| !WgmmaTiling::all(factor).iter().any(|tiling| tiling.is(factor, tile));
    of.product.tile.filter(|tile| none(*tile)).map(|_| {
        let tiles: Vec<_> = WgmmaTiling::all(factor).iter().map(|tiling| tiling.describe(factor)).collect();
        err!(
            InvalidArgument,
            "{}: the tiles of the variant `wgmma` are {}; take one of these, or use `mma`",
            of.name,
            tiles.join(" and ")
        )
    })
}

pub(super) fn lower(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, (form, way): (&WgmmaTiling, &CudaWay),
    end: &ProductEnd, profile: &CudaProfile,
) -> Result<()> {
    let product = of.product;
    program.decision.because(format_args!(
        "tile {} in {} stages, measured on an H100",
        form.describe(factor),
        form.stages
    ));
    let [a, b] = if product.has_product() {
        [(0, product.m, TILE_M), (1, product.n, form.tile_n)]
            .map(|(which, rows, tile)| fetch(of, program, factor, which, rows, tile))
    } else {
        let nothing = ArgMemory::Scratch(program.scratch(256));
        [nothing, nothing].map(|of| {
            let map = boxes(of, DType::F16, false, [8, 1, 1], [16, 16], [64, 1, 1]);
            Fetch { maps: [map.clone(), map], major: false, each: 0 }
        })
    };

    let [source, entry] = end.kernel;
    let kernel = tile::kernel(&of.name, VARIANT.name, factor, source, entry)?;
    let kernel = factor.define(CudaKernel { arch: Arch::Sm90a, ..kernel });
    let kernel = kernel
        .define("TILE_N", form.tile_n)
        .define("STAGES", form.stages)
        .define("A_MAJOR", u32::from(a.major))
        .define("B_MAJOR", u32::from(b.major));
    let kernel = program.kernel(end.end.define(kernel));

    let blocks = (form.tiles(product) * way.slices as u64).min(u64::from(profile.multiprocessors)) as u32;
    let [a_map, a_low] = a.maps;
    let [b_map, b_low] = b.maps;
    let mut args: Vec<_> = [a_map, b_map, a_low, b_low].map(Arg::Tensor).into();
    args.extend([end.bias.clone(), end.c.clone()]);
    args.extend([a.each, b.each, product.batch as u32].map(Arg::U32));
    args.extend([product.m, product.n, product.inner()].map(|x| Arg::U32(x as u32)));
    args.extend([end.c_layout.at.ld, end.c_layout.stride].map(|x| Arg::U64(x as u64)));
    args.extend([way.slices, way.slice_k].map(|x| Arg::U32(x as u32)));
    args.extend(end.last.clone());
    let shared = form.shared(factor);
    program.launches.push(Launch { shared, ..Launch::new(kernel, [blocks, 1, 1], THREADS, args) });
    Ok(())
}

/// Returns whether a factor must be copied before the copy engine can read it.
pub(super) fn packs(of: &CudaProduct<'_>, factor: TileFactor, which: usize) -> bool {
    let lines = of.lines(which, factor);
    lines.unit < 16 || factor == TileFactor::Split || !lines.along_k && factor.size() != 2
}

/// Returns how factor `which` is copied to shared memory; `rows` are those of the result. Adds the copy to scratch if
/// one is needed.
fn fetch(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, which: usize, rows: usize, tile: u32,
) -> Fetch {
    let BatchLayout { mut at, stride, .. } = of.layouts[which];
    let lines = of.lines(which, factor);
    let (k, size) = (of.product.inner(), factor.size());
    if at.rows == 1 {
        // No second row has to be aligned.
        at.ld = at.ld.next_multiple_of(16 / size);
    }
    let products = if stride == 0 { 1 } else { of.product.batch };
    let dtype = of.types.factors;
    let [inner, outer] = if lines.along_k { [k, rows] } else { [rows, k] };
    let rounds = factor == TileFactor::Tf32;
    if !packs(of, factor, which) {
        let side =
            if lines.along_k { [WgmmaTiling::tile_k(factor), tile, 1] } else { [64, WgmmaTiling::tile_k(factor), 1] };
        let strides = [at.ld * size, (if products == 1 { at.ld * outer } else { stride }) * size];
        let map = boxes(of.memory[which], dtype, rounds, [inner, outer, products], strides, side);
        return Fetch { maps: [map.clone(), map], major: !lines.along_k, each: u32::from(products > 1) };
    }

    // Factors of 16 bits are read in either order.
    let major = !lines.along_k && size == 2;
    let Packed { copy, low, at } = pack(of, program, factor, which, [rows, k], !major);
    let why = match factor {
        TileFactor::Split => "is split",
        _ if lines.along_k || major => "is copied into rows of whole 16-byte chunks",
        _ => "is transposed",
    };
    program.decision.because(format_args!("{} {why} first", ["A", "B"][which]));
    let tile_k = WgmmaTiling::tile_k(factor);
    let side = if major { [64, tile_k, 1] } else { [tile_k, tile, 1] };
    let maps = [copy, low].map(|area| {
        let strides = [at.ld * size, at.ld * at.rows * size];
        boxes(ArgMemory::Scratch(area), dtype, false, [at.cols, at.rows, products], strides, side)
    });
    Fetch { maps, major, each: u32::from(products > 1) }
}

/// A factor copied to scratch.
struct Packed {
    copy: usize,
    /// Its low part, if it is split.
    low: usize,
    at: DenseLayout,
}

/// Copies a factor into rows of whole 16-byte chunks: `along_k`, or in the order that it has. Returns where it is then,
/// and its layout.
pub(super) fn packed(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, which: usize, along_k: bool,
) -> (ArgMemory, BatchLayout) {
    let rows = if which == 0 { of.product.m } else { of.product.n };
    // The tile engine splits elements itself.
    let factor = if factor == TileFactor::Split { TileFactor::Single } else { factor };
    let Packed { copy, at, .. } = pack(of, program, factor, which, [rows, of.product.k], along_k);
    let span = at.rows * at.ld;
    let stride = if of.layouts[which].stride == 0 { 0 } else { span };
    (ArgMemory::Scratch(copy), BatchLayout { at, span, stride })
}

/// Lines of at least this many elements start at multiples of 128 bytes in a copy, where loads are faster.
const LONG_LINE: usize = 512;

/// Copies a factor of `rows` rows of the result into rows of whole 16-byte chunks.
fn pack(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, which: usize, [rows, k]: [usize; 2],
    along_k: bool,
) -> Packed {
    let BatchLayout { at, stride, .. } = of.layouts[which];
    let (size, lines) = (factor.size(), of.lines(which, factor));
    let products = if stride == 0 { 1 } else { of.product.batch };
    let [count, length] = if along_k || lines.along_k { [rows, k] } else { [k, rows] };
    let ld = length.next_multiple_of(if length < LONG_LINE { 16 } else { 128 } / size);
    // Overlapping products may exceed the memory.
    let bytes = [products, count, ld * size].iter().fold(1u64, |all, n| all.saturating_mul(*n as u64));
    let copy = program.scratch(bytes);
    let low = if factor == TileFactor::Split { program.scratch(bytes) } else { copy };
    let kernel = factor.define(CudaKernel::new("dense/gemm_pack", "gemm_pack", factor.arch()));
    let kernel = program.kernel(kernel.define("TRANSPOSE", u32::from(along_k && !lines.along_k)));
    let mut args = vec![Arg::from(of.memory[which]), Arg::Scratch(copy), Arg::Scratch(low)];
    args.extend([count, length].map(|x| Arg::U32(x as u32)));
    args.extend([at.ld, stride, ld].map(|x| Arg::U64(x as u64)));
    let grid = [length.div_ceil(PACKED), count.div_ceil(PACKED), products].map(|x| x as u32);
    program.launches.push(Launch::new(kernel, grid, 256, args));
    Packed { copy, low, at: DenseLayout { rows: count, cols: length, ld } }
}

fn boxes(
    of: ArgMemory, dtype: DType, rounds: bool, dims: [usize; 3], strides: [usize; 2], side: [u32; 3],
) -> TensorMap {
    TensorMap {
        of,
        offset: 0,
        dtype,
        rounds_to_tf32: rounds,
        dims: dims.map(|d| d as u64).into(),
        strides: strides.map(|s| s as u64).into(),
        box_dims: side.into(),
        swizzle: Swizzle::B128,
    }
}

#[cfg(test)]
mod tests;

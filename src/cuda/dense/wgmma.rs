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

/// Bytes of a row of a factor in a stage.
const LINE_BYTES: u32 = 128;
/// Bytes of shared memory of a block on Hopper, less a kilobyte for barriers.
const SHARED: u32 = 226 << 10;
/// Seconds until the first tile's products begin.
const BEGUN: f64 = 3.0e-6;
/// Side of the square that one block copies.
const PACKED: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct WgmmaTiling {
    /// Warpgroups that multiply, each 64 rows of a tile; one more copies.
    consumers: u32,
    tile_n: u32,
    /// Blocks one below the other, and side by side, that load what they share once.
    cluster: [u32; 2],
    /// f16 TFLOP/s of products alone on an H100.
    rate: f64,
}

const fn tiling(consumers: u32, tile_n: u32, cluster: [u32; 2], rate: f64) -> WgmmaTiling {
    WgmmaTiling { consumers, tile_n, cluster, rate }
}

const NARROW: WgmmaTiling = tiling(2, 128, [1, 1], 700.0);
const WIDE: WgmmaTiling = tiling(2, 256, [1, 1], 730.0);
/// Microseconds of f16 at 1024, 2048, 3000, 4096 and 8192 cubed on an H100 (driver 580), in turn with cuBLAS, which
/// takes 19, 29, 88, 214 and 1656.
const TILINGS: &[WgmmaTiling] = &[
    tiling(2, 64, [1, 1], 560.0),  // 8, 47, 258, 377
    NARROW,                        // 10, 30, 186, 219
    tiling(2, 192, [1, 1], 740.0), // 13, 39, 153, 240, 1631
    WIDE,                          // 16, 28, 158, 212, 1646
    tiling(3, 128, [1, 1], 745.0), // 13, 40, 153, 242
    tiling(3, 192, [1, 1], 780.0), // 17, 30, 125, 235, 1712
    tiling(2, 192, [2, 1], 740.0), // 14, 40, 110, 244
    tiling(2, 256, [2, 1], 730.0), // 17, 29, 124, 216
    tiling(3, 192, [2, 1], 780.0), // 19, 32, 100, 237
    tiling(3, 192, [1, 2], 780.0), // 18, 32, 100, 237
];
/// Of split factors: three products of tf32.
const SPLIT: WgmmaTiling = tiling(2, 128, [1, 1], 600.0);

/// Seconds to store an element of a tile, half of that for the last one, and to begin a cluster. The times of 18
/// products by these tilings on an H100 are predicted within 0.9 to 1.15 for 156 of 176.
const STORED: f64 = 7.6e-11;
const CLUSTERED: f64 = 1.3e-6;

/// Bytes that the copy engine of a multiprocessor of an H100 loads in a second, and how much longer that takes where
/// rows are no multiple of 32 bytes apart.
const FETCHED: f64 = 75e9;
const APART: f64 = 1.95;

impl WgmmaTiling {
    pub(super) fn all(factor: TileFactor) -> &'static [Self] {
        if factor == TileFactor::Split { &[SPLIT] } else { TILINGS }
    }

    pub(super) fn of_bytes(n: usize) -> Self {
        if n <= 128 { NARROW } else { WIDE }
    }

    pub(super) fn is(&self, factor: TileFactor, tile: ProductTile) -> bool {
        [tile.m, tile.n, tile.k] == [self.tile_m(), self.tile_n, Self::tile_k(factor)]
    }

    fn tile_m(&self) -> u32 {
        64 * self.consumers
    }

    /// Returns the tiles of a product, whole clusters of them.
    fn tiles(&self, m: usize, n: usize, products: usize) -> u64 {
        let of = |extent: usize, side: u32, blocks: u32| {
            (extent as u64).div_ceil(u64::from(side * blocks)) * u64::from(blocks)
        };
        let [down, across] = self.cluster;
        of(m, self.tile_m(), down) * of(n, self.tile_n, across) * products as u64
    }

    /// Returns the blocks that run at once, whole clusters of them.
    fn resident(&self, profile: &CudaProfile) -> u32 {
        let blocks = self.cluster[0] * self.cluster[1];
        profile.multiprocessors / blocks * blocks
    }

    pub(super) fn tiles_of(&self, product: &Product) -> u64 {
        self.tiles(product.m, product.n, product.batch)
    }

    /// Predicts the seconds of a product whose k is cut into slices of so many steps; `apart` for a factor whose rows
    /// are no multiple of 32 bytes apart. Either products or loads are the slower.
    pub(super) fn seconds(
        &self, work: &TileWork, [steps, slices]: [usize; 2], (factor, apart): (TileFactor, [bool; 2]),
        profile: &CudaProfile,
    ) -> f64 {
        let tiles = self.tiles(work.m, work.n, work.products * slices) as f64;
        let [down, across] = self.cluster;
        let processors = f64::from(profile.multiprocessors);
        let waves = (tiles / f64::from(self.resident(profile))).ceil();
        let (slower, parts) = match factor {
            TileFactor::Split => (6.0, 2.0),
            TileFactor::Tf32 => (2.0, 1.0),
            _ => (1.0, 1.0),
        };
        let each = tile::relative_rate(profile) / processors;
        let elements = f64::from(self.tile_m() * self.tile_n);
        let multiplied = 2.0 * elements * f64::from(Self::tile_k(factor)) * slower / (self.rate * 1e12 * each);
        // Few multiprocessors wait less for rows that lie across sectors.
        let longer = 1.0 + (APART - 1.0) * (tiles / processors).min(1.0).powi(2);
        let lines = |side: u32, sharers: u32, apart| f64::from(side / sharers) * if apart { longer } else { 1.0 };
        let fetched = lines(self.tile_m(), across, apart[0]) + lines(self.tile_n, down, apart[1]);
        let loaded = fetched * parts * f64::from(LINE_BYTES) / (FETCHED * 132.0 * each);
        let summed = waves * steps as f64 * multiplied.max(loaded) + (waves - 0.5) * elements * STORED;
        let begun = if down * across > 1 { BEGUN + CLUSTERED } else { BEGUN };
        // Few multiprocessors do not reach the memory's bandwidth.
        let few = tiles.min(processors) * tile::LOADED;
        begun + summed.max(work.bytes / (tile::REACHED * tile::bandwidth(profile)).min(few))
    }

    fn describe(&self, factor: TileFactor) -> String {
        format!("{} x {} x {}", self.tile_m(), self.tile_n, Self::tile_k(factor))
    }

    /// Returns the stages that fit, and the bytes of shared memory.
    fn shared(&self, factor: TileFactor) -> [u32; 2] {
        let parts = if factor == TileFactor::Split { 2 } else { 1 };
        let stage = parts * (self.tile_m() + self.tile_n) * LINE_BYTES;
        // Sums are written out through 8 rows of 72 floats for each warp.
        let output = 4 * self.consumers * 8 * 72 * 4;
        let stages = (SHARED - output) / stage;
        [stages, stages * stage + output]
    }

    pub(super) fn tile_k(factor: TileFactor) -> u32 {
        LINE_BYTES / factor.size() as u32
    }
}

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
        let mut tiles: Vec<_> = WgmmaTiling::all(factor).iter().map(|tiling| tiling.describe(factor)).collect();
        tiles.sort_unstable();
        tiles.dedup();
        err!(
            InvalidArgument,
            "{}: the tiles of the variant `wgmma` are {}; take one of these, or use `mma`",
            of.name,
            tiles.join(", ")
        )
    })
}

pub(super) fn lower(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, (form, way): (&WgmmaTiling, &CudaWay),
    end: &ProductEnd, profile: &CudaProfile,
) -> Result<()> {
    let product = of.product;
    let [stages, shared] = form.shared(factor);
    program.decision.because(format_args!("tile {} in {stages} stages, measured on an H100", form.describe(factor)));
    let [down, across] = form.cluster;
    let blocks = down * across;
    if blocks > 1 {
        let which = if down > 1 { "B" } else { "A" };
        program.decision.because(format_args!("{blocks} blocks load {which} once"));
    }
    let [a, b] = if product.has_product() {
        [(0, product.m, [form.tile_m(), across]), (1, product.n, [form.tile_n, down])]
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
        .define("CONSUMERS", form.consumers)
        .define("TILE_N", form.tile_n)
        .define("CLUSTER_M", down)
        .define("CLUSTER_N", across)
        .define("STAGES", stages)
        .define("A_MAJOR", u32::from(a.major))
        .define("B_MAJOR", u32::from(b.major));
    let kernel = program.kernel(end.end.define(kernel));

    let grid = (form.tiles_of(product) * way.slices as u64).min(u64::from(form.resident(profile))) as u32;
    let [a_map, a_low] = a.maps;
    let [b_map, b_low] = b.maps;
    let mut args: Vec<_> = [a_map, b_map, a_low, b_low].map(Arg::Tensor).into();
    args.extend([end.bias.clone(), end.c.clone()]);
    args.extend([a.each, b.each, product.batch as u32].map(Arg::U32));
    args.extend([product.m, product.n, product.inner()].map(|x| Arg::U32(x as u32)));
    args.extend([end.c_layout.at.ld, end.c_layout.stride].map(|x| Arg::U64(x as u64)));
    args.extend([way.slices, way.slice_k].map(|x| Arg::U32(x as u32)));
    args.extend(end.last.clone());
    let threads = 128 * (form.consumers + 1);
    let launch = Launch::new(kernel, [grid, 1, 1], threads, args);
    program.launches.push(Launch { shared, cluster: [blocks, 1, 1], ..launch });
    Ok(())
}

/// Returns whether a factor must be copied before the copy engine can read it.
pub(super) fn packs(of: &CudaProduct<'_>, factor: TileFactor, which: usize) -> bool {
    let lines = of.lines(which, factor);
    lines.unit < 16 || factor == TileFactor::Split || !lines.along_k && factor.size() != 2
}

/// Returns how factor `which` is copied to shared memory; `rows` are those of the result, of which as many blocks as
/// `sharers` load a `tile` together. Adds the copy to scratch if one is needed.
fn fetch(
    of: &CudaProduct<'_>, program: &mut CudaProgram, factor: TileFactor, which: usize, rows: usize,
    [tile, sharers]: [u32; 2],
) -> Fetch {
    let tile_k = WgmmaTiling::tile_k(factor);
    let side = |along_k| if along_k { [tile_k, tile / sharers, 1] } else { [64, tile_k / sharers, 1] };
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
        let strides = [at.ld * size, (if products == 1 { at.ld * outer } else { stride }) * size];
        let map = boxes(of.memory[which], dtype, rounds, [inner, outer, products], strides, side(lines.along_k));
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
    let maps = [copy, low].map(|area| {
        let strides = [at.ld * size, at.ld * at.rows * size];
        boxes(ArgMemory::Scratch(area), dtype, false, [at.cols, at.rows, products], strides, side(!major))
    });
    Fetch { maps, major, each: u32::from(products > 1) }
}

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

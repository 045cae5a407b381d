//! The tile engine of products (`shaders/cuda/product.cuh`) as seen from here: what it can be compiled for, what it takes,
//! and which tile suits.

use super::{Arch, CudaKernel, CudaProfile, CudaVariant};
use crate::dense::{Activation, Precision};
use crate::element::DType;
use crate::error::{Result, err};

/// What a product is multiplied as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TileFactor {
    F16,
    Bf16,
    /// f32, rounded to 11 bits.
    Tf32,
    /// f32, each as two of tf32.
    Split,
    /// f32 as they are, by fused multiply-adds.
    Single,
}

impl TileFactor {
    /// What elements of this type are multiplied as; `name` is what errors begin with.
    pub(super) fn of(name: &str, dtype: DType, precision: Precision) -> Result<Self> {
        match (dtype, precision) {
            (DType::F16 | DType::Bf16, Precision::Split) => Err(err!(
                InvalidArgument,
                "{name}: {} splits elements of f32 into two of tf32, and they are of {dtype} already; take \
                 Precision::Tensor, which multiplies those as they are",
                precision.name()
            )),
            (DType::F16 | DType::Bf16, Precision::Exact) => Err(err!(
                Unsupported,
                "{name}: {} multiplies by fused multiply-adds, and CUDA's kernels multiply {dtype} on tensor cores; \
                 take Precision::Strict",
                precision.name()
            )),
            (DType::F16, _) => Ok(TileFactor::F16),
            (DType::Bf16, _) => Ok(TileFactor::Bf16),
            (_, Precision::Tensor) => Ok(TileFactor::Tf32),
            (_, Precision::Split) => Ok(TileFactor::Split),
            (_, Precision::Strict | Precision::Exact) => Ok(TileFactor::Single),
        }
    }

    /// Whether the device multiplies it.
    pub(super) fn check(self, name: &str, profile: &CudaProfile) -> Result<()> {
        if profile.runs(self.arch()) {
            return Ok(());
        }
        let (what, remedy) = match self {
            TileFactor::F16 | TileFactor::Single => {
                ("kernels for CUDA run from sm_75 on", "plan it on a `Gpu`")
            }
            TileFactor::Bf16 => ("tensor cores multiply bf16 from sm_80 on", "convert the factors to f16"),
            TileFactor::Tf32 | TileFactor::Split => {
                ("tensor cores multiply tf32 from sm_80 on", "take Precision::Strict")
            }
        };
        let (major, minor) = profile.compute;
        Err(err!(Unsupported, "{name}: {what}; {} is sm_{major}{minor}; {remedy}", profile.name))
    }

    pub(super) fn size(self) -> usize {
        match self {
            TileFactor::F16 | TileFactor::Bf16 => 2,
            TileFactor::Tf32 | TileFactor::Split | TileFactor::Single => 4,
        }
    }

    /// The least device that multiplies it.
    pub(super) fn arch(self) -> Arch {
        if matches!(self, TileFactor::F16 | TileFactor::Single) { Arch::Sm75 } else { Arch::Sm80 }
    }

    pub(super) fn define(self, kernel: CudaKernel) -> CudaKernel {
        match self {
            TileFactor::F16 => kernel,
            TileFactor::Bf16 => kernel.define("FACTOR_BF16", 1),
            TileFactor::Tf32 => kernel.define("FACTOR_TF32", 1),
            TileFactor::Split => kernel.define("FACTOR_TF32", 1).define("SPLIT", 1),
            TileFactor::Single => kernel.define("FACTOR_F32", 1),
        }
    }

    /// Steps of k of a block.
    fn block_k(self) -> u32 {
        match self {
            TileFactor::F16 | TileFactor::Bf16 => 16,
            TileFactor::Tf32 | TileFactor::Split => 8,
            TileFactor::Single => 2,
        }
    }

    /// Elements behind a line in shared memory; `along_k` if its elements follow each other along k.
    fn pad(self, along_k: bool) -> u32 {
        match self {
            TileFactor::F16 | TileFactor::Bf16 => 8,
            TileFactor::Tf32 | TileFactor::Split if !along_k => 8,
            TileFactor::Tf32 | TileFactor::Split | TileFactor::Single => 4,
        }
    }
}

/// How a product is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiling {
    /// Rows and columns of C and steps of k of a block of threads.
    pub(super) tile: [u32; 3],
    /// Warps along the rows and along the columns.
    pub(super) warps: [u32; 2],
    /// Tiles of each factor in shared memory.
    pub(super) stages: u32,
    /// Blocks that share a multiprocessor, at least.
    pub(super) resident: u32,
}

/// How the elements of a factor lie: in lines along k or across it, of which pieces of `unit` bytes are aligned, and
/// whether lines end within a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileLines {
    pub(super) along_k: bool,
    pub(super) unit: u32,
    pub(super) partial: bool,
}

impl Tiling {
    pub(super) fn threads(&self) -> u32 {
        32 * self.warps[0] * self.warps[1]
    }

    /// Bytes of shared memory.
    pub(super) fn shared(&self, factor: TileFactor, a: TileLines, b: TileLines) -> u32 {
        let [m, n, k] = self.tile;
        let bytes = |side: u32, lines: TileLines| {
            let (count, length) = if lines.along_k { (side, k) } else { (k, side) };
            count * (length + factor.pad(lines.along_k)) * factor.size() as u32
        };
        self.stages * (bytes(m, a) + bytes(n, b))
    }

    /// Whether it can be compiled and run; if not, why.
    pub(super) fn wrong(
        &self,
        factor: TileFactor,
        a: TileLines,
        b: TileLines,
        profile: &CudaProfile,
    ) -> Option<String> {
        let Self { tile: [m, n, k], warps: [warps_m, warps_n], stages, .. } = *self;
        let block_k = factor.block_k();
        if warps_m == 0 || warps_n == 0 || k == 0 || k % (2 * block_k) != 0 {
            return Some(format!(
                "the last side of a tile is a multiple of {}, and there is a warp",
                2 * block_k
            ));
        }
        if m == 0 || n == 0 || m % (16 * warps_m) != 0 || n % (16 * warps_n) != 0 {
            return Some(format!("{warps_m} x {warps_n} warps do not share {m} x {n} in blocks of 16 x 16"));
        }
        let threads = self.threads();
        if threads > profile.max_threads_per_block {
            return Some(format!(
                "{threads} threads are above the {} of a block",
                profile.max_threads_per_block
            ));
        }
        for (lines, side) in [(a, m), (b, n)] {
            let asynchronous = profile.runs(Arch::Sm80) && lines.unit >= 4;
            let piece = if asynchronous { lines.unit } else { 16 } / factor.size() as u32;
            let length = if lines.along_k { k } else { side };
            if length % piece != 0 || !threads.is_multiple_of(length / piece) {
                return Some(format!(
                    "{threads} threads do not share lines of {length} elements in pieces of {piece}"
                ));
            }
        }
        let shared = self.shared(factor, a, b);
        if shared > profile.shared_per_block_optin {
            return Some(format!(
                "{stages} stages take {shared} bytes of shared memory, above the {} of a block",
                profile.shared_per_block_optin
            ));
        }
        // The sums leave through the memory of the tiles, 16 lines a warp.
        if warps_m * warps_n * 16 * (n / warps_n + 8) * 4 > shared {
            return Some("there is too little shared memory for the sums to leave through".into());
        }
        None
    }

    /// Tiles of an m x n product.
    pub(super) fn blocks(&self, m: usize, n: usize) -> u64 {
        let [tile_m, tile_n, _] = self.tile.map(u64::from);
        (m as u64).div_ceil(tile_m) * (n as u64).div_ceil(tile_n)
    }

    /// The kernel with what all owners of the engine define.
    pub(super) fn define_sides(&self, kernel: CudaKernel, factor: TileFactor) -> CudaKernel {
        let [m, n, k] = self.tile;
        factor
            .define(kernel)
            .define("TILE_M", m)
            .define("TILE_N", n)
            .define("TILE_K", k)
            .define("WARPS_M", self.warps[0])
            .define("WARPS_N", self.warps[1])
            .define("STAGES", self.stages)
            .define("RESIDENT", self.resident)
    }

    /// The same with how factors lie.
    pub(super) fn define(
        &self,
        kernel: CudaKernel,
        factor: TileFactor,
        a: TileLines,
        b: TileLines,
    ) -> CudaKernel {
        self.define_sides(kernel, factor)
            .define("TRANS_A", u32::from(!a.along_k))
            .define("TRANS_B", u32::from(b.along_k))
            .define("UNIT_A", a.unit)
            .define("UNIT_B", b.unit)
            .define("PARTIAL_A", u32::from(a.partial))
            .define("PARTIAL_B", u32::from(b.partial))
    }

    /// `128 x 128 x 32 by 4 warps`.
    pub(super) fn describe(&self) -> String {
        let [m, n, k] = self.tile;
        format!("{m} x {n} x {k} by {} warps in {} stages", self.warps[0] * self.warps[1], self.stages)
    }
}

/// The end of a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileEnd {
    pub(super) result: DType,
    /// None, for each column, for each row: 0, 1, 2.
    pub(super) bias: u32,
    pub(super) read_c: bool,
    pub(super) activation: Activation,
}

impl TileEnd {
    pub(super) fn define(self, kernel: CudaKernel) -> CudaKernel {
        let kernel = match self.result {
            DType::F16 => kernel.define("RESULT_F16", 1),
            DType::Bf16 => kernel.define("RESULT_BF16", 1),
            _ => kernel,
        };
        let activation = Activation::ALL.iter().position(|a| *a == self.activation).unwrap_or(0);
        kernel
            .define("BIAS", self.bias)
            .define("READ_C", u32::from(self.read_c))
            .define("ACTIVATION", activation)
    }
}

/// A tiling, and how fast it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileRow {
    pub(super) tiling: Tiling,
    /// TFLOP/s on a full device, and the part of a multiprocessor's rate that one block alone on it reaches: for choosing
    /// among rows.
    rate: f64,
    alone: f64,
    /// Where it was measured.
    pub(super) measured: &'static str,
}

const fn row(
    tile: [u32; 3],
    warps: [u32; 2],
    stages: u32,
    resident: u32,
    [rate, alone]: [f64; 2],
    measured: &'static str,
) -> TileRow {
    TileRow { tiling: Tiling { tile, warps, stages, resident }, rate, alone, measured }
}

/// Two stages, which go through registers where copies are not asynchronous.
const TURING: &[TileRow] = &[
    row([128, 128, 32], [2, 2], 2, 1, [40.0, 1.0], "not measured"),
    row([64, 64, 32], [2, 2], 2, 2, [25.0, 0.6], "not measured"),
    row([32, 32, 64], [1, 2], 2, 2, [10.0, 0.5], "not measured"),
];

/// f16 and bf16. On an H100 (driver 580), TFLOP/s at 512, 1024, 2048, 4096 and 8192 cubed, `mma`: the first 19, 96, 357,
/// 415, 389; the second 19, 95, 348, 385, 390 (by `wmma` 18, 90, 349, 390, 375, where the first has 18, 88, 338, 337,
/// 380); the third 25, 127, 274, 312, 332; the fourth 33, 153, 195, 218, 229; the fifth 43, 130, 151, 168, 176. With a step
/// of k of 32 the first has 323 at 4096 cubed.
const HALVES: &[TileRow] = &[
    row([128, 256, 64], [2, 4], 3, 1, [415.0, 1.0], "415 TFLOP/s of f16 at 4096 cubed on an H100"),
    row([256, 128, 64], [4, 2], 3, 1, [385.0, 1.0], "390 TFLOP/s of f16 at 4096 cubed on an H100"),
    row([128, 128, 64], [2, 2], 3, 2, [312.0, 0.84], "127 TFLOP/s of f16 at 1024 cubed on an H100"),
    row([64, 128, 64], [2, 2], 3, 2, [218.0, 0.72], "153 TFLOP/s of f16 at 1024 cubed on an H100"),
    row([64, 64, 64], [2, 2], 3, 3, [168.0, 0.54], "43 TFLOP/s of f16 at 512 cubed on an H100"),
    row([32, 32, 64], [1, 2], 3, 4, [60.0, 0.3], "not measured"),
];

const SINGLES: &[TileRow] = &[
    row([128, 256, 32], [2, 4], 3, 1, [174.0, 1.0], "174 TFLOP/s of tf32 at 4096 cubed on an H100"),
    row([128, 128, 32], [2, 2], 3, 2, [153.0, 0.8], "not measured"),
    row([64, 128, 32], [2, 2], 3, 2, [132.0, 0.72], "93 TFLOP/s of tf32 at 1024 cubed on an H100"),
    row([64, 64, 32], [2, 2], 4, 3, [100.0, 0.54], "28 TFLOP/s of tf32 at 512 cubed on an H100"),
    row([32, 32, 32], [1, 2], 3, 4, [35.0, 0.3], "not measured"),
];

const SPLIT: &[TileRow] = &[
    row([128, 128, 16], [2, 4], 4, 1, [52.0, 1.0], "53 TFLOP/s at 4096 cubed on an H100"),
    row([128, 64, 32], [2, 2], 3, 2, [51.0, 0.9], "41 TFLOP/s at 1024 cubed on an H100"),
    row([64, 64, 32], [2, 2], 3, 3, [45.0, 0.6], "15 TFLOP/s at 512 cubed on an H100"),
    row([32, 32, 32], [1, 2], 2, 4, [15.0, 0.3], "not measured"),
];

const STRICT: &[TileRow] = &[
    row([128, 128, 16], [2, 2], 4, 2, [37.0, 0.8], "37 TFLOP/s at 3 x 3 cells of 256 channels on an H100"),
    row([64, 128, 16], [2, 2], 4, 3, [28.5, 0.7], "28 TFLOP/s at 3 x 3 cells of 512 channels on an H100"),
    row([64, 64, 16], [2, 2], 4, 3, [25.0, 0.6], "not measured"),
    row([32, 32, 16], [1, 2], 4, 4, [15.0, 0.4], "not measured"),
];

fn rows(factor: TileFactor, profile: &CudaProfile) -> &'static [TileRow] {
    match factor {
        _ if !profile.runs(Arch::Sm80) => TURING,
        TileFactor::F16 | TileFactor::Bf16 => HALVES,
        TileFactor::Tf32 => SINGLES,
        TileFactor::Split => SPLIT,
        TileFactor::Single => STRICT,
    }
}

impl TileRow {
    /// How long so many blocks take beside those of other rows: whole waves of them, and what is left over, of which a
    /// multiprocessor has fewer at a time.
    fn time(&self, blocks: f64, profile: &CudaProfile) -> f64 {
        let (processors, resident) = (f64::from(profile.multiprocessors), f64::from(self.tiling.resident));
        let full = (blocks / (processors * resident)).floor();
        let left = ((blocks - full * processors * resident) / processors).ceil();
        let reached = match left {
            0.0 | 1.0 => self.alone,
            _ => self.alone + (1.0 - self.alone) * (left - 1.0) / (resident - 1.0),
        };
        let [m, n, _] = self.tiling.tile.map(f64::from);
        (full * resident + left / reached) * m * n / self.rate
    }
}

/// The row that takes the least time for `batch` products of m x n.
pub(super) fn suits(
    factor: TileFactor,
    a: TileLines,
    b: TileLines,
    [m, n, batch]: [usize; 3],
    profile: &CudaProfile,
) -> Result<TileRow> {
    let time = |row: &TileRow| row.time(row.tiling.blocks(m, n) as f64 * batch as f64, profile);
    rows(factor, profile)
        .iter()
        .filter(|row| row.tiling.wrong(factor, a, b, profile).is_none())
        .min_by(|x, y| time(x).total_cmp(&time(y)))
        .copied()
        .ok_or_else(|| err!(Unsupported, "no tile on tensor cores fits {}", profile.name))
}

/// The variants of a product on this engine, which take part in those of an op.
pub(super) const FMA: CudaVariant = CudaVariant {
    name: "fma",
    about: "f32 as they are by fused multiply-adds; tiles in several stages of shared memory, copied asynchronously",
    arch: Arch::Sm75,
};
pub(super) const WMMA: CudaVariant = CudaVariant {
    name: "wmma",
    about: "the same on tensor cores, blocks of 16 x 16 by WMMA",
    arch: Arch::Sm75,
};
pub(super) const MMA: CudaVariant = CudaVariant {
    name: "mma",
    about: "the same by the matrix instructions that WMMA is made of from sm_80 on, with ldmatrix",
    arch: Arch::Sm80,
};

/// Which of them suits, and why.
pub(super) fn policy(factor: TileFactor, profile: &CudaProfile) -> (&'static str, String) {
    if factor == TileFactor::Single {
        ("fma", "tensor cores are not for f32 as they are".into())
    } else if profile.runs(Arch::Sm80) {
        ("mma", "its instructions are at least as fast as those of WMMA".into())
    } else {
        ("wmma", "the matrix instructions that all tensor cores have".into())
    }
}

/// The kernel for a variant, before what it is specialised by; refused where the variant does not multiply such factors.
pub(super) fn kernel(
    name: &str,
    variant: &str,
    factor: TileFactor,
    source: &'static str,
    entry: &'static str,
) -> Result<CudaKernel> {
    if (variant == "fma") != (factor == TileFactor::Single) {
        return Err(err!(
            InvalidArgument,
            "{name}: `fma` is for f32 with Precision::Strict, the other variants for all else, and this is `{variant}` for \
             {factor:?}; take `auto`"
        ));
    }
    let kernel = CudaKernel::new(source, entry, factor.arch());
    Ok(if variant == "mma" { CudaKernel { arch: Arch::Sm80, ..kernel }.define("MMA", 1) } else { kernel })
}

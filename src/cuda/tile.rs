//! The host side of the tile engine for matrix products (`shaders/cuda/product.cuh`): its options, its limits, and the
//! choice of a tile.

use super::{Arch, CudaKernel, CudaProfile, CudaVariant};
use crate::dense::{Activation, Precision};
use crate::program::prelude::*;

/// The type in which factors are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TileFactor {
    F16,
    Bf16,
    /// f32 rounded to 11 bits.
    Tf32,
    /// f32, each split into two tf32.
    Split,
    /// Plain f32, by fused multiply-adds.
    Single,
    /// Signed bytes, summed in i32.
    Bytes,
}

impl TileFactor {
    /// Returns the type for these elements and precision; `name` starts errors.
    pub(super) fn of(name: &str, dtype: DType, precision: Precision) -> Result<Self> {
        match (dtype, precision) {
            (DType::F16 | DType::Bf16, Precision::Split) => Err(err!(
                InvalidArgument,
                "{name}: {} splits f32 elements into two tf32, but these are {dtype}; use Precision::Tensor",
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

    pub(super) fn check(self, name: &str, profile: &CudaProfile) -> Result<()> {
        if profile.runs(self.arch()) {
            return Ok(());
        }
        let (what, remedy) = match self {
            TileFactor::F16 | TileFactor::Single => ("CUDA kernels need sm_75", "plan it on a `Gpu`"),
            TileFactor::Bf16 => ("bf16 on tensor cores needs sm_80", "convert the factors to f16"),
            TileFactor::Tf32 | TileFactor::Split => ("tf32 on tensor cores needs sm_80", "use Precision::Strict"),
            TileFactor::Bytes => ("products of bytes need sm_80", "plan it on a `Gpu`"),
        };
        let [major, minor] = profile.compute;
        Err(err!(Unsupported, "{name}: {what}; {} is sm_{major}{minor}; {remedy}", profile.name))
    }

    pub(super) fn size(self) -> usize {
        match self {
            TileFactor::F16 | TileFactor::Bf16 => 2,
            TileFactor::Tf32 | TileFactor::Split | TileFactor::Single => 4,
            TileFactor::Bytes => 1,
        }
    }

    /// Returns the oldest architecture that multiplies it.
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
            TileFactor::Bytes => kernel.define("FACTOR_S8", 1),
        }
    }

    fn block_k(self) -> u32 {
        match self {
            TileFactor::F16 | TileFactor::Bf16 => 16,
            TileFactor::Tf32 | TileFactor::Split => 8,
            TileFactor::Single => 2,
            TileFactor::Bytes => 32,
        }
    }

    /// Returns the padding of a line in shared memory, in elements; `along_k` if its elements are consecutive in k.
    fn pad(self, along_k: bool) -> u32 {
        match self {
            TileFactor::F16 | TileFactor::Bf16 => 8,
            TileFactor::Tf32 | TileFactor::Split if !along_k => 8,
            TileFactor::Tf32 | TileFactor::Split | TileFactor::Single => 4,
            TileFactor::Bytes => 16,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiling {
    /// Rows and columns of C and steps of k for a block of threads.
    pub(super) tile: [u32; 3],
    pub(super) warps: [u32; 2],
    /// Tiles of each factor in shared memory.
    pub(super) stages: u32,
    /// Minimum blocks that share a multiprocessor.
    pub(super) resident: u32,
}

/// The memory layout of a factor: its lines run along k or across it, chunks of `unit` bytes are aligned, and the last
/// chunk of a line may be `partial`.
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

    pub(super) fn shared(&self, factor: TileFactor, a: TileLines, b: TileLines) -> u32 {
        let [m, n, k] = self.tile;
        let bytes = |side: u32, lines: TileLines| {
            let (count, length) = if lines.along_k { (side, k) } else { (k, side) };
            count * (length + factor.pad(lines.along_k)) * factor.size() as u32
        };
        self.stages * (bytes(m, a) + bytes(n, b))
    }

    /// Returns why it cannot be compiled or run, if so.
    pub(super) fn wrong(
        &self, factor: TileFactor, a: TileLines, b: TileLines, profile: &CudaProfile,
    ) -> Option<String> {
        let Self { tile: [m, n, k], warps: [warps_m, warps_n], stages, .. } = *self;
        let block_k = factor.block_k();
        if warps_m == 0 || warps_n == 0 || k == 0 || k % (2 * block_k) != 0 {
            return Some(format!("TILE_K must be a multiple of {}, with at least one warp", 2 * block_k));
        }
        if m == 0 || n == 0 || m % (16 * warps_m) != 0 || n % (16 * warps_n) != 0 {
            return Some(format!("{warps_m} x {warps_n} warps cannot divide {m} x {n} into blocks of 16 x 16"));
        }
        let threads = self.threads();
        if threads > profile.max_threads_per_block {
            return Some(format!("{threads} threads exceed the {} of a block", profile.max_threads_per_block));
        }
        for (lines, side) in [(a, m), (b, n)] {
            let asynchronous = profile.runs(Arch::Sm80) && lines.unit >= 4;
            let chunk = if asynchronous { lines.unit } else { 16 } / factor.size() as u32;
            let length = if lines.along_k { k } else { side };
            if length % chunk != 0 || !threads.is_multiple_of(length / chunk) {
                return Some(format!(
                    "{threads} threads cannot divide lines of {length} elements into chunks of {chunk}"
                ));
            }
        }
        let shared = self.shared(factor, a, b);
        if shared > profile.shared_per_block_optin {
            return Some(format!(
                "{stages} stages need {shared} bytes of shared memory; a block has {}",
                profile.shared_per_block_optin
            ));
        }
        // Sums are written out through the memory of the tiles, 16 lines for each warp.
        if warps_m * warps_n * 16 * (n / warps_n + 8) * 4 > shared {
            return Some("there is too little shared memory to write out the sums".into());
        }
        None
    }

    pub(super) fn blocks(&self, m: usize, n: usize) -> u64 {
        let [tile_m, tile_n, _] = self.tile.map(u64::from);
        (m as u64).div_ceil(tile_m) * (n as u64).div_ceil(tile_n)
    }

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

    /// As [`define_sides`](Self::define_sides), plus the layout of the factors.
    pub(super) fn define(&self, kernel: CudaKernel, factor: TileFactor, a: TileLines, b: TileLines) -> CudaKernel {
        self.define_sides(kernel, factor)
            .define("TRANS_A", u32::from(!a.along_k))
            .define("TRANS_B", u32::from(b.along_k))
            .define("UNIT_A", a.unit)
            .define("UNIT_B", b.unit)
            .define("PARTIAL_A", u32::from(a.partial))
            .define("PARTIAL_B", u32::from(b.partial))
    }

    /// Returns `128 x 128 x 32 by 4 warps in 3 stages`.
    pub(super) fn describe(&self) -> String {
        let [m, n, k] = self.tile;
        format!("{m} x {n} x {k} by {} warps in {} stages", self.warps[0] * self.warps[1], self.stages)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TileEnd {
    pub(super) result: DType,
    /// 0 for no bias, 1 for one per column, 2 for one per row.
    pub(super) bias: u32,
    pub(super) read_c: bool,
    pub(super) activation: Activation,
}

impl TileEnd {
    pub(super) fn define(self, kernel: CudaKernel) -> CudaKernel {
        let kernel = match self.result {
            DType::F16 => kernel.define("RESULT_F16", 1),
            DType::Bf16 => kernel.define("RESULT_BF16", 1),
            DType::I32 => kernel.define("RESULT_I32", 1),
            _ => kernel,
        };
        let activation = Activation::ALL.iter().position(|a| *a == self.activation).unwrap_or(0);
        kernel.define("BIAS", self.bias).define("READ_C", u32::from(self.read_c)).define("ACTIVATION", activation)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TileRow {
    pub(super) tiling: Tiling,
    /// TFLOP/s on a full device, and the fraction of a multiprocessor's rate that a single block reaches. For ranking
    /// rows.
    rate: f64,
    alone: f64,
    pub(super) measured: &'static str,
}

const fn row(
    tile: [u32; 3], warps: [u32; 2], stages: u32, resident: u32, [rate, alone]: [f64; 2], measured: &'static str,
) -> TileRow {
    TileRow { tiling: Tiling { tile, warps, stages, resident }, rate, alone, measured }
}

/// Two stages; without asynchronous copies they go through registers.
const TURING: &[TileRow] = &[
    row([128, 128, 32], [2, 2], 2, 1, [40.0, 1.0], "not measured"),
    row([64, 64, 32], [2, 2], 2, 2, [25.0, 0.6], "not measured"),
    row([32, 32, 64], [1, 2], 2, 2, [10.0, 0.5], "not measured"),
];

/// f16 and bf16. The rates, and the seconds below, are those with which [`TileRow::seconds`] best predicts 1,100 times
/// of 40 products by these tiles and slices on an H100 (driver 580): the way that it picks takes 1.01 of the fastest
/// way's time on average, at most 1.13.
const HALVES: &[TileRow] = &[
    row([128, 256, 64], [2, 4], 3, 1, [449.0, 1.0], "415 TFLOP/s of f16 at 4096 cubed on an H100"),
    row([256, 128, 64], [4, 2], 3, 1, [471.0, 0.97], "390 TFLOP/s of f16 at 4096 cubed on an H100"),
    row([128, 128, 64], [2, 2], 3, 2, [355.0, 0.96], "127 TFLOP/s of f16 at 1024 cubed on an H100"),
    row([64, 128, 64], [2, 2], 3, 2, [257.0, 0.96], "153 TFLOP/s of f16 at 1024 cubed on an H100"),
    row([64, 64, 64], [2, 2], 3, 3, [280.0, 0.87], "7 us for 40 x 200 x 8000 in 32 slices on an H100"),
    row([32, 32, 64], [1, 2], 3, 4, [87.0, 0.74], "6 us for 512 cubed on an H100"),
    row([32, 64, 64], [1, 4], 4, 3, [141.0, 0.68], "43 us for 32 x 4096 x 11008 in 4 slices on an H100"),
    row([64, 32, 64], [4, 1], 4, 3, [116.0, 0.83], "6 us for 512 cubed on an H100"),
    row([16, 64, 64], [1, 4], 4, 4, [92.0, 0.39], "36 us for 1 x 11008 x 4096 on an H100"),
    row([64, 16, 64], [4, 1], 4, 4, [71.0, 0.67], "14 us for 4096 x 16 x 4096 in 4 slices on an H100"),
    row([16, 128, 64], [1, 4], 4, 2, [105.0, 0.92], "13 us for 16 x 4096 x 4096 in 4 slices on an H100"),
    row([128, 16, 64], [4, 1], 4, 2, [79.0, 1.0], "14 us for 4096 x 16 x 4096 in 4 slices on an H100"),
    row([32, 128, 64], [1, 4], 4, 2, [123.0, 0.77], "8 us for 77 x 3072 x 768 on an H100"),
    row([128, 32, 64], [4, 1], 4, 2, [286.0, 0.83], "40 us for 11008 x 32 x 4096 on an H100"),
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

/// Signed bytes, in tiles of as many bytes as [`HALVES`].
const BYTES: &[TileRow] = &[
    row([128, 256, 128], [2, 4], 3, 1, [830.0, 1.0], "749 TOP/s at 4096 cubed on an H100"),
    row([128, 128, 128], [2, 2], 3, 2, [624.0, 0.84], "not measured"),
    row([64, 128, 128], [2, 2], 3, 2, [436.0, 0.72], "200 TOP/s at 1024 cubed on an H100"),
    row([64, 64, 128], [2, 2], 3, 3, [336.0, 0.54], "30 TOP/s at 512 cubed on an H100"),
    row([32, 32, 128], [1, 2], 3, 4, [120.0, 0.3], "not measured"),
];

pub(super) fn rows(factor: TileFactor, profile: &CudaProfile) -> &'static [TileRow] {
    match factor {
        _ if !profile.runs(Arch::Sm80) => TURING,
        TileFactor::F16 | TileFactor::Bf16 => HALVES,
        TileFactor::Tf32 => SINGLES,
        TileFactor::Split => SPLIT,
        TileFactor::Single => STRICT,
        TileFactor::Bytes => BYTES,
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TileWork {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) products: usize,
    pub(super) bytes: f64,
}

pub(super) fn bandwidth(profile: &CudaProfile) -> f64 {
    (2e3 * f64::from(profile.memory_clock_khz) * f64::from(profile.memory_bus_bits) / 8.0).max(1e10)
}

pub(super) fn relative_rate(profile: &CudaProfile) -> f64 {
    (f64::from(profile.multiprocessors) * f64::from(profile.clock_khz) / (132.0 * 1_980_000.0)).max(1e-3)
}

/// The part of the memory's bandwidth that a kernel reaches.
pub(super) const REACHED: f64 = 0.865;

/// Bytes that a multiprocessor of an H100 loads in a second through the second cache, with all in flight that fits.
pub(super) const LOADED: f64 = 50e9;

/// Seconds until a kernel's first sums begin, and of each wave's first loads and last stores.
const BEGUN: f64 = 2.6e-6;
const WAVE: f64 = 1.7e-6;

impl TileRow {
    pub(super) fn asked(tiling: Tiling) -> Self {
        Self { tiling, rate: 100.0, alone: 0.5, measured: "asked for" }
    }

    /// Predicts the seconds of a product whose k is cut into slices of so many steps: of full waves, then of the rest,
    /// during which multiprocessors hold fewer blocks; or of the memory.
    pub(super) fn seconds(
        &self, work: &TileWork, [steps, slices]: [usize; 2], factor: TileFactor, lines: [TileLines; 2],
        profile: &CudaProfile,
    ) -> f64 {
        let blocks = self.tiling.blocks(work.m, work.n) as f64 * (work.products * slices) as f64;
        let (processors, resident) = (f64::from(profile.multiprocessors), f64::from(self.tiling.resident));
        let full = (blocks / (processors * resident)).floor();
        let left = ((blocks - full * processors * resident) / processors).ceil();
        let reached = match left {
            0.0 | 1.0 => self.alone,
            _ => self.alone + (1.0 - self.alone) * (left - 1.0) / (resident - 1.0),
        };
        let [m, n, k] = self.tiling.tile.map(f64::from);
        let each = steps as f64 * k;
        let scale = relative_rate(profile);
        let multiplied = 2.0 * m * n * each * processors / (self.rate * 1e12 * scale);
        // Copies in smaller chunks take as many more instructions.
        let copies = |side: f64, lines: TileLines| side / (f64::from(lines.unit) / 16.0).sqrt();
        let copied = (copies(m, lines[0]) + copies(n, lines[1])) * each * factor.size() as f64;
        let loaded = copied / (LOADED * scale * 132.0 / processors);
        let waves = full + f64::from(left > 0.0);
        let summed = (full * resident + left / reached) * multiplied.max(loaded) + waves * WAVE;
        BEGUN + summed.max(work.bytes / (REACHED * bandwidth(profile)))
    }
}

/// Returns the fastest row for a product that is not cut into slices.
pub(super) fn suits(
    factor: TileFactor, a: TileLines, b: TileLines, work: &TileWork, profile: &CudaProfile,
) -> Result<TileRow> {
    let steps = |row: &TileRow| work.k.div_ceil(row.tiling.tile[2] as usize);
    let time = |row: &TileRow| row.seconds(work, [steps(row), 1], factor, [a, b], profile);
    rows(factor, profile)
        .iter()
        .filter(|row| row.tiling.wrong(factor, a, b, profile).is_none())
        .min_by(|x, y| time(x).total_cmp(&time(y)))
        .copied()
        .ok_or_else(|| err!(Unsupported, "no tile fits {}; plan it on a `Gpu`", profile.name))
}

pub(super) const FMA: CudaVariant = CudaVariant {
    name: "fma",
    about: "plain f32 by fused multiply-adds; tiles in several stages of shared memory, copied asynchronously",
    arch: Arch::Sm75,
};
pub(super) const WMMA: CudaVariant =
    CudaVariant { name: "wmma", about: "the same on tensor cores, in blocks of 16 x 16 by WMMA", arch: Arch::Sm75 };
pub(super) const MMA: CudaVariant =
    CudaVariant { name: "mma", about: "the same by mma instructions and ldmatrix, from sm_80 on", arch: Arch::Sm80 };

/// Returns the variant that suits, and why.
pub(super) fn policy(factor: TileFactor, profile: &CudaProfile) -> (&'static str, String) {
    if factor == TileFactor::Single {
        ("fma", "tensor cores do not multiply plain f32".into())
    } else if profile.runs(Arch::Sm80) {
        ("mma", "at least as fast as WMMA".into())
    } else {
        ("wmma", "it runs on all tensor cores".into())
    }
}

pub(super) fn kernel(
    name: &str, variant: &str, factor: TileFactor, source: &'static str, entry: &'static str,
) -> Result<CudaKernel> {
    check_factor(name, variant, factor)?;
    let kernel = CudaKernel::new(source, entry, factor.arch());
    Ok(if variant == "mma" { CudaKernel { arch: Arch::Sm80, ..kernel }.define("MMA", 1) } else { kernel })
}

/// Returns an error if the variant does not multiply such factors.
pub(super) fn check_factor(name: &str, variant: &str, factor: TileFactor) -> Result<()> {
    if (variant == "fma") != (factor == TileFactor::Single) {
        return Err(err!(
            InvalidArgument,
            "{name}: `{variant}` does not multiply {factor:?}; `fma` is for f32 with Precision::Strict, the others for all \
             else; use `auto`"
        ));
    }
    Ok(())
}

//! Predicts the time of a matrix product from its shape, its division among workgroups and the rates of the device.

use super::division::{Division, Pace};
use crate::program::{Ceilings, DeviceClass, DeviceProfile};

/// f32 operations per second of one processor of a card: 128 lanes at 1.76 GHz, each counted as two. The measured
/// rate of a card over this is about its number of processors.
const PROCESSOR_FLOP: f64 = 4.5e11;

/// Operations per second of cooperative matrices over those of fused multiply-adds, where a kernel does nothing else:
/// 630 over 60 TFLOP/s on an H100.
const MATRIX_RATE: f64 = 10.5;

/// The rate at which caches serve workgroups, over that of a large copy: 5.5 over 3.0 TB/s on an H100.
const CACHE_RATE: f64 = 1.9;

/// Bytes that stay in the cache of a card from one pass to the next: half of an H100's 50 MB.
const CACHE_BYTES: f64 = 25e6;

/// Seconds of a dispatch that does nothing, of one more that waits for the first, and of a slab in the pass that adds
/// slabs.
const LAUNCH: f64 = 2.5e-6;
pub(super) const PASS: f64 = 3.5e-6;
const SLAB: f64 = 0.2e-6;

/// The rates of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    pub(super) processors: f64,
    /// f32 operations per second of a processor.
    flop: f64,
    bytes: f64,
}

impl Rates {
    /// The measured rates, or those of a device of this class.
    pub(super) fn of(profile: &DeviceProfile) -> Self {
        let typical = match profile.class {
            DeviceClass::Discrete => Ceilings { copy_bytes_per_second: 3.0e12, fma_flop_per_second: 6.0e13 },
            _ => Ceilings { copy_bytes_per_second: 2.0e11, fma_flop_per_second: 1.4e13 },
        };
        let Ceilings { copy_bytes_per_second, fma_flop_per_second } = profile.ceilings.unwrap_or(typical);
        let processors = (fma_flop_per_second / PROCESSOR_FLOP).round().max(1.0);
        Self { processors, flop: fma_flop_per_second / processors, bytes: copy_bytes_per_second }
    }

    /// Seconds to copy `bytes`, which fit the cache or not.
    pub(super) fn copy(&self, bytes: f64) -> f64 {
        bytes / if bytes < CACHE_BYTES { self.bytes * CACHE_RATE } else { self.bytes }
    }
}

/// What is computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) batch: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    /// Bytes of an element of the factors, and of C.
    pub(super) factor_bytes: f64,
    pub(super) result_bytes: f64,
    /// On cooperative matrices.
    pub(super) matrices: bool,
}

/// Seconds of the product with k in `slices`.
pub(super) fn seconds(rates: &Rates, work: &Work, division: &Division, slices: usize) -> f64 {
    let Pace { percent, alone, start } = division.pace;
    let [m, n, k, batch] = [work.m, work.n, work.k, work.batch].map(|x| x as f64);
    let [tile_m, tile_n, tile_k] = [division.tile.m, division.tile.n, division.tile.k].map(f64::from);
    let slices = slices as f64;
    let peak = rates.flop * if work.matrices { MATRIX_RATE } else { 1.0 };
    let full = 2.0 * tile_m * tile_n * tile_k / (peak * f64::from(percent) * 1e-2);
    let (rows, columns) = ((m / tile_m).ceil(), (n / tile_n).ceil());
    let each = rows * columns * batch * slices / rates.processors;
    // The fullest processor decides, until there are so many tiles that the work evens out.
    let fullest = if each < EVEN { each.ceil() } else { each + 0.5 };
    let steps = (k / slices / tile_k).ceil();
    // Of many tiles on a processor, most start and end while others multiply.
    let starts = f64::from(start) * 1e-9 * each.max(1.0).sqrt();
    let compute = steps * (f64::from(alone) * 1e-9).max(full * fullest) + starts;
    let factors = batch * work.factor_bytes * k * (m + n);
    let passed = batch * work.factor_bytes * k * (m * columns + n * rows);
    let memory = rates.copy(factors + batch * m * n * work.result_bytes);
    let memory = memory.max(passed / (rates.bytes * CACHE_RATE));
    // The slabs are written, read, and become C.
    let slabs = if slices > 1.0 { PASS + slices * SLAB + rates.copy(8.0 * slices * m * n) } else { 0.0 };
    let seconds = LAUNCH + compute.max(memory) + slabs;
    if slices > 1.0 { SCRATCH * seconds } else { seconds }
}

/// By how much a way that takes scratch must be faster.
const SCRATCH: f64 = 1.05;

/// Tiles of a processor from which the last ones do not matter.
const EVEN: f64 = 3.0;

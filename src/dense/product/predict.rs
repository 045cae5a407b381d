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

/// Seconds of a dispatch that does nothing, of one of a kernel of few instructions, of one more that waits for the
/// first, and of a slab in the pass that adds slabs.
const LAUNCH: f64 = 2.5e-6;
const SHORT_LAUNCH: f64 = 2.3e-6;
pub(crate) const PASS: f64 = 3.5e-6;
const SLAB: f64 = 0.2e-6;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    pub(crate) processors: f64,
    /// f32 operations per second of a processor.
    pub(crate) flop: f64,
    bytes: f64,
    /// Seconds of a step of k of a thread that waits for an element of each factor.
    wait: f64,
}

impl Rates {
    /// The measured rates, or those of a device of this class.
    pub(crate) fn of(profile: &DeviceProfile) -> Self {
        let ceilings = |copy, flop| Ceilings { copy_bytes_per_second: copy, fma_flop_per_second: flop };
        // As with `Pace`, a device that was not measured is taken to wait twice as long.
        let (typical, wait) = match profile.class {
            DeviceClass::Discrete => (ceilings(3.0e12, 6.0e13), 70e-9),
            _ => (ceilings(2.0e11, 1.4e13), 140e-9),
        };
        let Ceilings { copy_bytes_per_second, fma_flop_per_second } = profile.ceilings.unwrap_or(typical);
        let processors = (fma_flop_per_second / PROCESSOR_FLOP).round().max(1.0);
        Self { processors, flop: fma_flop_per_second / processors, bytes: copy_bytes_per_second, wait }
    }

    /// Seconds to move `bytes`, as far as memory bounds them.
    pub(crate) fn pass(&self, bytes: f64) -> f64 {
        bytes / self.bytes
    }

    pub(crate) fn copy(&self, bytes: f64) -> f64 {
        bytes / if bytes < CACHE_BYTES { self.bytes * CACHE_RATE } else { self.bytes }
    }
}

/// Operations in whose time a processor stores an element of rows that are no whole vec4s, from thread tiles of 8
/// columns and of 4: 583 products of 64 x 353 with k of 4 take 115 and 81 us on an H100.
const END_OF_8: f64 = 360.0;
const END_OF_4: f64 = 250.0;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Bytes of an element of the factors, and of C.
    pub(crate) factor_bytes: f64,
    pub(crate) result_bytes: f64,
    /// Bytes of both factors in memory.
    pub(crate) factors: f64,
    pub(crate) matrices: bool,
}

pub(crate) fn seconds(rates: &Rates, work: &Work, division: &Division, slices: usize) -> f64 {
    let Pace { percent, alone, start } = division.pace;
    let [m, n, k, batch] = [work.m, work.n, work.k, work.batch].map(|x| x as f64);
    let [tile_m, tile_n, tile_k] = [division.tile.m, division.tile.n, division.tile.k].map(f64::from);
    let slices = slices as f64;
    let peak = rates.flop * if work.matrices { MATRIX_RATE } else { 1.0 };
    let full = 2.0 * tile_m * tile_n * tile_k / (peak * f64::from(percent) * 1e-2);
    let (rows, columns) = ((m / tile_m).ceil(), (n / tile_n).ceil());
    let each = rows * columns * batch * slices / rates.processors;
    let steps = (k / slices / tile_k).ceil();
    // Of many tiles on a processor, most start and end while others multiply.
    let starts = f64::from(start) * 1e-9 * each.max(1.0).sqrt();
    let compute = steps * (f64::from(alone) * 1e-9).max(full * fullest(each)) + starts;
    // The slabs are written, read, and become C.
    let slabs = if slices > 1.0 { PASS + slices * SLAB + rates.copy(8.0 * slices * batch * m * n) } else { 0.0 };
    let ends = if work.matrices || work.n.is_multiple_of(4) {
        0.0
    } else {
        let stored = fullest(each) / each.max(f64::MIN_POSITIVE) * batch * m * n * slices;
        stored * if division.thread[1] > 4 { END_OF_8 } else { END_OF_4 } / (peak * rates.processors)
    };
    let seconds = LAUNCH + compute.max(memory(rates, work, rows, columns)) + ends + slabs;
    if slices > 1.0 { SCRATCH * seconds } else { seconds }
}

/// Seconds of one thread for each element of C. On an H100 (Vulkan, driver 580.159.04) batches of 2^24 elements take
/// 101 us with k of 4, 515 with 64; f32 192 x 6656 x 8 takes 18, 1024 cubed 437; 256 cubed 19 and 2 x 4 x 704 53, where
/// threads wait.
pub(super) fn element_seconds(rates: &Rates, work: &Work, batched: bool) -> f64 {
    let [m, n, k, batch] = [work.m, work.n, work.k, work.batch].map(|x| x as f64);
    // What a workgroup computes, and the operations that the address and the end of an element cost.
    let ([tile_m, tile_n], of_element) = match batched {
        true => ([(256.0 / n).floor().max(1.0), n.min(256.0)], 250.0),
        false => ([16.0; 2], if work.result_bytes < 4.0 { 1100.0 } else { 400.0 }),
    };
    let (rows, columns) = ((m / tile_m).ceil(), (n / tile_n).ceil());
    let elements = if batched { m * n } else { 256.0 * rows * columns };
    // A product with its loads costs 25.
    let compute = batch * elements * (of_element + 25.0 * k) / (rates.flop * rates.processors);
    let memory = SINGLE_LOADS * memory(rates, work, rows, columns);
    SHORT_LAUNCH + compute.max(memory).max(rates.wait * k)
}

/// Seconds of loads and stores of single elements over those of vec4s: 2.1 over 3.0 TB/s on an H100.
const SINGLE_LOADS: f64 = 1.4;

/// Seconds of the stores of results from cooperative matrices over those of vec4s: 6560 x 6784 with k of 16 take 80 us
/// from them and 59 from registers on an H100.
const MATRIX_STORES: f64 = 1.8;

/// Seconds of the loads and stores, where factors are read by `rows` x `columns` tiles.
fn memory(rates: &Rates, work: &Work, rows: f64, columns: f64) -> f64 {
    let [m, n, k, batch] = [work.m, work.n, work.k, work.batch].map(|x| x as f64);
    let passed = batch * work.factor_bytes * k * (m * columns + n * rows);
    let stores = if work.matrices { MATRIX_STORES } else { 1.0 };
    let moved = rates.copy(work.factors + batch * m * n * work.result_bytes * stores);
    moved.max(passed / (rates.bytes * CACHE_RATE))
}

/// By how much a way that takes scratch must be faster.
const SCRATCH: f64 = 1.05;

/// Tiles of a processor from which the last ones do not matter.
const EVEN: f64 = 3.0;

/// Tiles of the processor that ends last, where the average is `each`: the fullest one decides below [`EVEN`], and
/// above it the work evens out.
pub(crate) fn fullest(each: f64) -> f64 {
    if each < EVEN { each.ceil() } else { each + 0.5 }
}

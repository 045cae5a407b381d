//! Cache misses of atomics.

/// Returns the share of atomics that missed the cache, from a measured rate.
///
/// Each unit of work does `atomics` atomics and `flop` operations of `flop_seconds` each. An atomic takes
/// `cache_seconds` if it hits and `memory_seconds` if it misses. `flops` is the measured rate, in operations per
/// second. An atomic then takes `a = (flop / flops - flop flop_seconds) / atomics`, and the share is
/// `(a - cache_seconds) / (memory_seconds - cache_seconds)`.
///
/// ```
/// use tilework::analysis::misses_of_atomics;
///
/// let half = misses_of_atomics(5.0, 100.0, 1e-9, 5e-9, 120e-9, 0.2424e9);
/// assert!((half - 0.5).abs() < 1e-3);
/// ```
pub fn misses_of_atomics(
    atomics: f64, flop: f64, flop_seconds: f64, cache_seconds: f64, memory_seconds: f64, flops: f64,
) -> f64 {
    let each = (flop / flops - flop * flop_seconds) / atomics;
    (each - cache_seconds) / (memory_seconds - cache_seconds)
}

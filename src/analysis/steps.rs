//! Operations and steps of reductions and scans of `n` elements. Formulas with logarithms need a power of two.

/// Returns the operations of a reduction: `n - 1`.
pub fn reduction_operations(n: u64) -> u64 {
    n.saturating_sub(1)
}

/// Returns the operations of a Kogge-Stone scan, `n log2 n - (n - 1)`; it takes `log2 n` steps.
pub fn kogge_stone_operations(n: u64) -> u64 {
    n * log2(n) - n.saturating_sub(1)
}

/// Returns the operations of a Brent-Kung scan: `2 (n - 1) - log2 n`.
///
/// ```
/// use tilework::analysis::{brent_kung_operations, brent_kung_steps};
///
/// assert_eq!((brent_kung_operations(16), brent_kung_operations(2048)), (26, 4083));
/// assert_eq!(brent_kung_steps(16), 7);
/// ```
pub fn brent_kung_operations(n: u64) -> u64 {
    2 * n.saturating_sub(1) - log2(n)
}

/// Returns the steps of a Brent-Kung scan: `2 log2 n - 1`.
pub fn brent_kung_steps(n: u64) -> u64 {
    (2 * log2(n)).saturating_sub(1)
}

/// Returns the steps and the barriers of a block of `n / 2` threads that reduces `factor n` elements. Each thread first
/// adds up its own `2 factor`, without barriers: `2 (factor - 1) + log2 n` steps, `log2 n` barriers.
///
/// ```
/// use tilework::analysis::{coarsened_steps, uncoarsened_steps};
///
/// assert_eq!(coarsened_steps(1024, 4), (16, 10));
/// assert_eq!(uncoarsened_steps(1024, 4), (40, 40));
/// ```
pub fn coarsened_steps(n: u64, factor: u64) -> (u64, u64) {
    (2 * factor.saturating_sub(1) + log2(n), log2(n))
}

/// Returns the steps and the barriers of `factor` such blocks of `n` elements each that run one after another:
/// `factor log2 n` of both.
pub fn uncoarsened_steps(n: u64, factor: u64) -> (u64, u64) {
    (factor * log2(n), factor * log2(n))
}

fn log2(n: u64) -> u64 {
    n.checked_ilog2().unwrap_or(0).into()
}

#[cfg(test)]
mod tests;

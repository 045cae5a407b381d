//! Checked arithmetic on shapes: products and sizes that overflow are errors, never wraps.

use crate::error::{Result, err};

/// Number of elements of a shape, for the operand `operand` of `op`.
pub(crate) fn elements(op: &str, operand: &str, dims: &[usize]) -> Result<usize> {
    dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or_else(|| {
        err!(TooLarge, "{op}: the shape {dims:?} of {operand} has more elements than this machine can count; split the work")
    })
}

/// `value` as the `u32` that a kernel can index with.
pub(crate) fn index_u32(op: &str, what: &str, value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| {
        err!(TooLarge, "{op}: {what} = {value} is above 2^32 - 1, the largest index a kernel has; split the work into smaller calls")
    })
}

/// Smallest multiple of `step` that is at least `n`.
pub(crate) const fn round_up(n: u64, step: u64) -> u64 {
    n.div_ceil(step) * step
}

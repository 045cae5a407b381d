//! Checked arithmetic on shapes: products and sizes that overflow are errors, never wraps.

use crate::element::DType;
use crate::error::{Result, err};
use std::ops::{Bound, RangeBounds};

/// Maximum elements of a shape: 2^44, or 2^28 on a 32-bit machine. No device holds as many, and their bytes and the
/// bindings that hold them can be counted.
const MOST: usize = (usize::MAX / 16) >> ((usize::BITS - 32) / 2);

/// Number of elements of a shape, for the operand `operand` of `op`. Where an extent is 0 the others must be such that
/// their product can be counted too: it is, on the way to what has no elements.
pub(crate) fn elements(op: &str, operand: &str, dims: &[usize]) -> Result<usize> {
    let others = dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
    let len = if dims.contains(&0) { 0 } else { others.unwrap_or(0) };
    others.filter(|n| *n <= MOST).map(|_| len).ok_or_else(|| {
        err!(TooLarge, "{op}: the shape {dims:?} of {operand} has more than {MOST} elements, and no device holds them; split the work")
    })
}

pub(crate) fn index_u32(op: &str, what: &str, value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| {
        err!(TooLarge, "{op}: {what} = {value} is above 2^32 - 1, the largest index a kernel has; split the work into smaller calls")
    })
}

/// First element and number of elements of a range within `len` elements.
pub(crate) fn within(range: impl RangeBounds<usize>, len: usize, dtype: DType) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&s) => Some(s),
        Bound::Excluded(&s) => s.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(&e) => e.checked_add(1),
        Bound::Excluded(&e) => Some(e),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end - start)),
        _ => {
            let end = match range.end_bound() {
                Bound::Included(end) => format!("={end}"),
                Bound::Excluded(end) => end.to_string(),
                Bound::Unbounded => String::new(),
            };
            let start = start.unwrap_or(usize::MAX);
            Err(err!(Shape, "slice: the range {start}..{end} is not within {len} elements of {dtype}"))
        }
    }
}

/// Smallest multiple of `step` that is at least `n`; the largest number, which is above every limit, if there is none.
pub(crate) const fn round_up(n: u64, step: u64) -> u64 {
    n.div_ceil(step).saturating_mul(step)
}

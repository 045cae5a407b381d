//! Each segment between offsets combined.

use super::judge::{Wanted, by_input, input, no_twin, operator, output_shape};
use super::scan_offsets::heads_at;
use super::states::numbers_of;
use super::{Number, scan, segmented_scan, segmented_scan_bound};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::primitives::Operator;
use crate::program::OpCall;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, offsets) = (operator(call)?, input::<u32>(call, 1)?);
    by_input!(call, 0, [f32, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let want = reduce_offsets(&op, x, offsets).ok_or_else(|| no_twin(&op))?;
        let bound = reduce_offsets_bound(&op, x, offsets);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Of each segment the numbers of its last element, or those of an empty one.
fn last(offsets: &[u32], prefixes: &[f64], empty: &[f64]) -> Vec<f64> {
    let each = empty.len();
    let of = |pair: &[u32]| {
        let [begin, end] = [pair[0], pair[1]].map(|offset| (prefixes.len() / each).min(offset as usize));
        if begin < end { &prefixes[(end - 1) * each..end * each] } else { empty }
    };
    offsets.windows(2).flat_map(of).copied().collect()
}

/// Combines the elements of each segment; an empty one gives the identity. Floats combine in `f64` and are not rounded;
/// integers combine exactly and wrap to 32 bits. Where offsets decrease, a segment begins at the last offset before its end.
/// `None` as for [`scan`].
pub fn reduce_offsets<T: Number>(op: &Operator, input: &[T], offsets: &[u32]) -> Option<Vec<f64>> {
    let n = input.len() / numbers_of(op, DType::F32).0;
    let prefixes = segmented_scan(op, false, input, &heads_at(n, offsets))?;
    let zeros = vec![T::from_f64(0.0); numbers_of(op, DType::F32).0];
    let identity = scan(op, 1, 1, true, false, &zeros)?;
    Some(last(offsets, &prefixes, &identity))
}

/// Returns the error bound of each result against [`reduce_offsets`].
pub fn reduce_offsets_bound<T: Number>(op: &Operator, input: &[T], offsets: &[u32]) -> Vec<f64> {
    let n = input.len() / numbers_of(op, DType::F32).0;
    let bounds = segmented_scan_bound(op, false, input, &heads_at(n, offsets));
    last(offsets, &bounds, &vec![0.0; numbers_of(op, DType::F32).1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let of = |op, offsets: &[u32]| reduce_offsets(&op, &[1u32, 2, 3, 4], offsets).unwrap();
        assert_eq!(of(Operator::Sum, &[0, 2, 2, 4]), [3.0, 0.0, 7.0]);
        assert_eq!(of(Operator::Prod, &[1, 1, 9]), [1.0, 24.0]);
        assert_eq!(of(Operator::Sum, &[3, 1, 2]), [0.0, 2.0]);
        assert_eq!(of(Operator::Max, &[4, 4]), [0.0]);
        assert!(of(Operator::Sum, &[2]).is_empty());
        assert_eq!(reduce_offsets_bound(&Operator::Sum, &[1u32, 2], &[0, 1, 1]), [0.0; 2]);
    }
}

//! Prefixes of each run of equal keys, element by element, in order.

use super::judge::{Wanted, by_input, front_of, no_twin, operator, output_shape, settings};
use super::reduce_by_key::heads;
use super::{Number, segmented_scan, segmented_scan_bound};
use crate::element::Element;
use crate::error::Result;
use crate::primitives::Operator;
use crate::program::OpCall;
use half::f16;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, exclusive) = (operator(call)?, settings(call)?.has("exclusive"));
    by_input!(call, 0, [f32, i32, u32], K => by_input!(call, 1, [f32, f16, i32, u32], T => {
        let n = output_shape(call, 0).first().copied().unwrap_or(0);
        let (keys, x) = (front_of::<K>(call, 0, n)?, front_of::<T>(call, 1, n)?);
        let want = scan_by_key(&op, exclusive, keys, x).ok_or_else(|| no_twin(&op))?;
        let bound = scan_by_key_bound(&op, exclusive, keys, x);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    }))
}

/// Computes all prefixes of each run of equal neighbours among the keys: floats in `f64` and not rounded, integers
/// exactly and wrapped to 32 bits. Equal is what `==` says. `None` as for [`scan`](super::scan).
pub fn scan_by_key<K: Copy + PartialEq, T: Number>(
    op: &Operator,
    exclusive: bool,
    keys: &[K],
    input: &[T],
) -> Option<Vec<f64>> {
    segmented_scan(op, exclusive, input, &heads(keys))
}

/// Returns the error bound of each result against [`scan_by_key`].
pub fn scan_by_key_bound<K: Copy + PartialEq, T: Number>(
    op: &Operator,
    exclusive: bool,
    keys: &[K],
    input: &[T],
) -> Vec<f64> {
    segmented_scan_bound(op, exclusive, input, &heads(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_by_hand() {
        let of =
            |exclusive, keys: &[u32]| scan_by_key(&Operator::Sum, exclusive, keys, &[1u32, 2, 3, 4]).unwrap();
        assert_eq!(of(false, &[7, 7, 3, 7]), [1.0, 3.0, 3.0, 4.0]);
        assert_eq!(of(true, &[7, 7, 7, 3]), [0.0, 1.0, 3.0, 0.0]);
        let nan =
            scan_by_key(&Operator::Sum, false, &[f32::NAN, f32::NAN, -0.0, 0.0], &[1u32, 2, 3, 4]).unwrap();
        assert_eq!(nan, [1.0, 2.0, 3.0, 7.0]);
        assert!(scan_by_key::<u32, f32>(&Operator::Max, false, &[], &[]).unwrap().is_empty());
        assert_eq!(scan_by_key_bound(&Operator::Sum, false, &[1u32, 1], &[1u32, 2]), [0.0; 2]);
    }
}

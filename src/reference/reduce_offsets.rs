use super::prelude::*;
use super::states::numbers_of;
use super::{reduce, reduce_bound, scan};
use crate::primitives::Operator;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, offsets) = (operator(call)?, input::<u32>(call, 1)?);
    let segments = there(call, offsets.len().saturating_sub(1))?;
    let offsets = &offsets[..offsets.len().min(segments + 1)];
    by_input!(call, 0, [f32, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let want = reduce_offsets(&op, x, offsets).ok_or_else(|| no_twin(&op))?;
        let bound = reduce_offsets_bound(&op, x, offsets);
        Ok(vec![Wanted::rounded(op.output(T::DTYPE)?, &output_shape(call, 0), &want, &bound)?])
    })
}

/// The first element of each segment, and the numbers of all its elements.
fn segments<'a, T: Number>(
    op: &Operator, input: &'a [T], offsets: &'a [u32],
) -> impl Iterator<Item = (usize, &'a [T])> {
    let each = numbers_of(op, DType::F32).0;
    let n = input.len() / each;
    offsets.windows(2).map(move |pair| {
        let begin = n.min(pair[0] as usize);
        let end = n.min(pair[1] as usize).max(begin);
        (begin, &input[begin * each..end * each])
    })
}

/// Combines the elements of each segment; an empty one gives the identity, `u32::MAX` for a position. Positions are
/// those in `input`. Floats are in `f64` and not rounded, integers exactly and wrapped to 32 bits. `None` as for
/// [`reduce`].
pub fn reduce_offsets<T: Number>(op: &Operator, input: &[T], offsets: &[u32]) -> Option<Vec<f64>> {
    let each = numbers_of(op, DType::F32).0;
    let is_position = matches!(op, Operator::ArgMin | Operator::ArgMax);
    let identity = if is_position {
        vec![f64::from(u32::MAX)]
    } else {
        scan(op, 1, 1, true, false, &vec![T::from_f64(0.0); each])?
    };
    let mut results = Vec::new();
    for (begin, segment) in segments(op, input, offsets) {
        if segment.is_empty() {
            results.extend_from_slice(&identity);
        } else {
            let of = reduce(op, 1, segment.len() / each, segment)?;
            results.extend(of.into_iter().map(|x| if is_position { x + begin as f64 } else { x }));
        }
    }
    Some(results)
}

/// Returns the error bound of each result against [`reduce_offsets`].
pub fn reduce_offsets_bound<T: Number>(op: &Operator, input: &[T], offsets: &[u32]) -> Vec<f64> {
    let (each, outputs) = numbers_of(op, DType::F32);
    let of = |(_, segment): (usize, &[T])| match segment.len() / each {
        0 => vec![0.0; outputs],
        n => reduce_bound(op, 1, n, segment),
    };
    segments(op, input, offsets).flat_map(of).collect()
}

#[cfg(test)]
#[path = "tests/reduce_offsets.rs"]
mod tests;

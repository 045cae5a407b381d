use super::histogram::{bin_between, float_edges};
use super::prelude::*;
use super::{reduce, reduce_bound};
use crate::primitives::{Edges, Operator, WeightedHistogram};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x) = (descriptor::<WeightedHistogram>(call)?, input::<f32>(call, 0)?);
    by_input!(call, 1, [f32, i32, u32], T => {
        let weights = input::<T>(call, 1)?;
        let n = there(call, x.len())?;
        let (x, weights) = (&x[..n], &weights[..n]);
        let (want, bound) =
            (weighted_histogram(op, x, weights)?, weighted_histogram_bound(op, x, weights)?);
        Ok(vec![Wanted::rounded(<T as crate::Element>::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// The weights in each bin, in the order of the elements.
fn binned<T: Number>(op: &WeightedHistogram, x: &[f32], weights: &[T]) -> Result<Vec<Vec<T>>> {
    let desc = op.bins();
    let edges = match desc.edges() {
        Edges::List(edges) => edges.clone(),
        Edges::Range(lo, hi) => float_edges(*lo, *hi, desc.bins()),
        Edges::Default => return Err(err!(InvalidArgument, "reference: floats have no bins of their own")),
    };
    let mut all = vec![Vec::new(); desc.bins()];
    for (x, weight) in x.iter().zip(weights) {
        if let Some(bin) = bin_between(&edges, f64::from(*x)) {
            all[bin].push(*weight);
        }
    }
    Ok(all)
}

/// Returns the sums of [`WeightedHistogram`], which the op must accept: floats in `f64` and not rounded, integers
/// wrapped to 32 bits.
///
/// # Errors
/// [`InvalidArgument`](ErrorKind::InvalidArgument): no range and no edges.
pub fn weighted_histogram<T: Number>(op: &WeightedHistogram, x: &[f32], weights: &[T]) -> Result<Vec<f64>> {
    let sum = |bin: &Vec<T>| reduce(&Operator::Sum, 1, bin.len(), bin).unwrap_or_default();
    Ok(binned(op, x, weights)?.iter().flat_map(sum).collect())
}

/// Returns the error bound of each sum.
pub fn weighted_histogram_bound<T: Number>(op: &WeightedHistogram, x: &[f32], weights: &[T]) -> Result<Vec<f64>> {
    let bound = |bin: &Vec<T>| reduce_bound(&Operator::Sum, 1, bin.len(), bin);
    Ok(binned(op, x, weights)?.iter().flat_map(bound).collect())
}

#[cfg(test)]
#[path = "tests/weighted_histogram.rs"]
mod tests;

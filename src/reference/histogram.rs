use super::prelude::*;
use super::{reduce, reduce_bound};
use crate::primitives::{Edges, Histogram, Histogram2d, HistogramChannels, Operator, WeightedHistogram};

judges! {
    histogram => judge_histogram, histogram_2d => judge_histogram_2d,
    histogram_channels => judge_histogram_channels, weighted_histogram => judge_weighted_histogram
}

fn judge_histogram(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Histogram>(call)?;
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        let counts = histogram(op, &x[..there(call, x.len())?])?;
        let old = call.operands.iter().find_map(|role| match role {
            Role::Updated(old) => old.data().slice::<u32>(),
            _ => None,
        });
        let shape = output_shape(call, 0);
        let words = shape.len();
        let total = |(bin, count): (usize, u32)| {
            let old = old.map_or(&[][..], |old| &old[bin * words..][..words]);
            let old = old.iter().rev().fold(0u64, |all, word| all << 32 | u64::from(*word));
            let total = old.wrapping_add(count.into());
            [total as u32, (total >> 32) as u32].into_iter().take(words)
        };
        Ok(vec![Wanted::exact(&shape, counts.into_iter().enumerate().flat_map(total).collect())?])
    })
}

/// Returns the exact counts of [`Histogram`].
pub fn histogram<T: Number>(desc: &Histogram, input: &[T]) -> Result<Vec<u32>> {
    desc.check(T::DTYPE)?;
    let bins = desc.bins();
    let mut counts = vec![0; bins];
    let (lo, hi) = match desc.edges() {
        Edges::List(edges) => {
            count(edges, input, &mut counts);
            return Ok(counts);
        }
        Edges::Default => {
            for x in input.iter().map(|x| x.to_f64()).filter(|x| (0.0..bins as f64).contains(x)) {
                counts[x as usize] += 1;
            }
            return Ok(counts);
        }
        Edges::Range(lo, hi) => (*lo, *hi),
    };
    if T::DTYPE.is_float() || lo.fract() != 0.0 || hi.fract() != 0.0 {
        let edges = if T::DTYPE.is_float() { float_edges(lo, hi, bins) } else { equal_edges(lo, hi, bins) };
        count(&edges, input, &mut counts);
        return Ok(counts);
    }
    // floor((x - lo) bins / (hi - lo)) in whole numbers.
    let (lo, hi) = (lo as i128, hi as i128);
    for x in input.iter().map(|x| x.to_f64() as i128).filter(|x| (lo..=hi).contains(x)) {
        let bin = ((x - lo) * bins as i128 / (hi - lo)) as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    Ok(counts)
}

fn equal_edges(lo: f64, hi: f64, bins: usize) -> Vec<f64> {
    let step = (hi - lo) / bins as f64;
    (0..bins).map(|i| i as f64 * step + lo).chain([hi]).collect()
}

pub(super) fn float_edges(lo: f64, hi: f64, bins: usize) -> Vec<f64> {
    equal_edges(lo, hi, bins).into_iter().map(|edge| f64::from(edge as f32)).collect()
}

/// The bin of a number between edges that do not decrease, if it is in one.
pub(super) fn bin_between(edges: &[f64], x: f64) -> Option<usize> {
    let bins = edges.len() - 1;
    (edges[0]..=edges[bins]).contains(&x).then(|| edges[..bins].partition_point(|e| *e <= x) - 1)
}

/// Counts between edges that do not decrease.
fn count<T: Number>(edges: &[f64], input: &[T], counts: &mut [u32]) {
    input.iter().filter_map(|x| bin_between(edges, x.to_f64())).for_each(|bin| counts[bin] += 1);
}

fn judge_histogram_2d(call: &OpCall) -> Result<Vec<Wanted>> {
    let (x, y) = (input(call, 0)?, input(call, 1)?);
    let counts = histogram_2d(descriptor(call)?, &x[..there(call, x.len())?], y);
    Ok(vec![Wanted::exact(&output_shape(call, 0), counts)?])
}

/// Returns the exact counts of [`Histogram2d`], which the op must accept.
pub fn histogram_2d(desc: &Histogram2d, x: &[f32], y: &[f32]) -> Vec<u32> {
    let [along_x, along_y] = [0, 1].map(|i| {
        let (bins, lo, hi) = desc.axis(i);
        float_edges(lo, hi, bins)
    });
    let bins_y = along_y.len() - 1;
    let mut counts = vec![0; (along_x.len() - 1) * bins_y];
    for (x, y) in x.iter().zip(y) {
        let bins = (bin_between(&along_x, f64::from(*x)), bin_between(&along_y, f64::from(*y)));
        if let (Some(i), Some(j)) = bins {
            counts[i * bins_y + j] += 1;
        }
    }
    counts
}

fn judge_histogram_channels(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<HistogramChannels>(call)?;
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let n = input::<T>(call, 0)?.len() / op.channels()[0];
        let x = front_of::<T>(call, 0, there(call, n)?)?;
        Ok(vec![Wanted::exact(&output_shape(call, 0), histogram_channels(op, x)?)?])
    })
}

/// Returns the exact counts of [`HistogramChannels`], channel by channel.
pub fn histogram_channels<T: Number>(desc: &HistogramChannels, input: &[T]) -> Result<Vec<u32>> {
    let [channels, active] = desc.channels();
    let of = |channel| {
        let own: Vec<T> = input.iter().copied().skip(channel).step_by(channels).collect();
        histogram(desc.bins(), &own)
    };
    Ok((0..active).map(of).collect::<Result<Vec<_>>>()?.concat())
}

fn judge_weighted_histogram(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/histogram.rs"]
mod tests;

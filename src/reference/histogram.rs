use super::prelude::*;
use crate::primitives::{Edges, Histogram};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

/// Edges of bins of equal width, rounded to f32.
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

#[cfg(test)]
#[path = "tests/histogram.rs"]
mod tests;

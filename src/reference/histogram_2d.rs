use super::histogram::{bin_between, float_edges};
use super::prelude::*;
use crate::primitives::Histogram2d;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/histogram_2d.rs"]
mod tests;

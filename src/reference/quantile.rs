use super::prelude::*;
use super::sort_positions;
use crate::primitives::Quantile;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, x) = (descriptor::<Quantile>(call)?, input(call, 0)?);
    let x = &x[..there(call, x.len())?];
    let (want, bound) = (quantile(op, x), quantile_bound(op, x));
    Ok(vec![Wanted::rounded(DType::F32, &[want.len()], &want, &bound)?])
}

/// The neighbours of each quantile, and its distance from the first; NaN of no elements.
fn neighbours(op: &Quantile, x: &[f32]) -> Vec<[f64; 3]> {
    let sorted: Vec<f64> = sort_positions(x, false, 0..32).into_iter().map(|i| f64::from(x[i])).collect();
    let of = |(rank, share): (usize, f32)| {
        let at = |rank: usize| sorted.get(rank).or(sorted.last()).copied().unwrap_or(f64::NAN);
        [at(rank), at(rank + 1), share.into()]
    };
    op.ranks(x.len()).map(of).collect()
}

/// Returns the quantiles in `f64`, not rounded. NaN counts as the largest number.
pub fn quantile(op: &Quantile, x: &[f32]) -> Vec<f64> {
    let of = |[below, above, share]: [f64; 3]| match share {
        0.0 => below,
        _ if below == above => below,
        _ => (1.0 - share) * below + share * above,
    };
    neighbours(op, x).into_iter().map(of).collect()
}

/// Bounds the error of each quantile in f32.
pub fn quantile_bound(op: &Quantile, x: &[f32]) -> Vec<f64> {
    let of = |[below, above, share]: [f64; 3]| match share {
        0.0 => 0.0,
        _ if below == above => 0.0,
        _ => 2f64.powi(-22) * (below.abs() + above.abs()) + 4.0 * LEAST_NORMAL,
    };
    neighbours(op, x).into_iter().map(of).collect()
}

#[cfg(test)]
#[path = "tests/quantile.rs"]
mod tests;

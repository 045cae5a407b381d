use super::activate;
use super::activation::activation_errors;
use super::prelude::*;
use crate::quantize::GemmInt8;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, shape) = (descriptor::<GemmInt8>(call)?, output_shape(call, 0));
    let factors = [input(call, 0)?, input(call, 1)?];
    let (Some(a), Some(b)) = (named(call, "a-scale")?, named(call, "b-scale")?) else {
        return Ok(vec![Wanted::exact(&shape, gemm_int8(op, factors[0], factors[1]))?]);
    };
    let bias = named(call, "bias")?;
    let want = gemm_int8_scaled(op, factors, [a, b], bias);
    let want: Vec<f32> = want.into_iter().map(f32::from_f64).collect();
    let bound = gemm_int8_bound::<f32>(op, factors, [a, b], bias);
    Ok(vec![Wanted::near(&shape, want, bound)?])
}

/// Computes `c` after `op`: the sums of products. A short operand counts as 0 beyond its end.
pub fn gemm_int8(op: &GemmInt8, a: &[i8], b: &[i8]) -> Vec<i32> {
    let at = |x: &[i8], i: usize| i32::from(x.get(i).copied().unwrap_or(0));
    let b_at = |i: usize, j: usize| if op.trans_b { j * op.k + i } else { i * op.n + j };
    let sum = |i: usize, j: usize| (0..op.k).map(|q| at(a, i * op.k + q) * at(b, b_at(q, j))).sum();
    (0..op.m).flat_map(|i| (0..op.n).map(move |j| (i, j))).map(|(i, j)| sum(i, j)).collect()
}

/// Computes `c` after `op`, not rounded: `activation(a_scale b_scale sum + bias)`; `bias` has an element for each
/// column of C.
pub fn gemm_int8_scaled(
    op: &GemmInt8, [a, b]: [&[i8]; 2], [a_scale, b_scale]: [&[f32]; 2], bias: Option<&[f32]>,
) -> Vec<f64> {
    each(op, [a, b], [a_scale, b_scale], bias).map(|(x, _)| activate(op.activates(), x)).collect()
}

/// Bounds the difference from [`gemm_int8_scaled`] of each element of `c` after `op` ran: it rounds the sum, the
/// product of the scales, that times the sum, and the sum with the bias. Subnormal numbers may be 0.
pub fn gemm_int8_bound<R: Number>(
    op: &GemmInt8, [a, b]: [&[i8]; 2], [a_scale, b_scale]: [&[f32]; 2], bias: Option<&[f32]>,
) -> Vec<f64> {
    let (slope, own) = activation_errors(op.activates());
    let bound = |(x, terms): (f64, f64)| {
        let y = activate(op.activates(), x);
        let error = slope * 4.0 * 2f64.powi(-23) * terms + own * (1.0 + y.abs()) + 2f64.powi(-126);
        let want = R::from_f64(y);
        spread(want, y, error) + (want.to_f64() - y).abs()
    };
    each(op, [a, b], [a_scale, b_scale], bias).map(bound).collect()
}

/// Each element before the activation, and the sum of the magnitudes of its terms.
fn each<'a>(
    op: &'a GemmInt8, [a, b]: [&[i8]; 2], [a_scale, b_scale]: [&'a [f32]; 2], bias: Option<&'a [f32]>,
) -> impl Iterator<Item = (f64, f64)> {
    let gemm = op;
    gemm_int8(gemm, a, b).into_iter().enumerate().map(move |(at, sum)| {
        let (i, j) = (at / gemm.n, at % gemm.n);
        let product = f64::from(a_scale[i]) * f64::from(b_scale[j]) * f64::from(sum);
        let bias = bias.map_or(0.0, |bias| f64::from(bias[j]));
        (product + bias, product.abs() + bias.abs())
    })
}

#[cfg(test)]
#[path = "tests/gemm_int8.rs"]
mod tests;

use super::maps::normal;
use super::philox;
use super::prelude::*;
use crate::dense::Activation;
use crate::nn::{Dropout, Rope};
use std::f64::consts::PI;

judges! {
    activation_backward => judge_activation_backward, bias_backward => judge_bias_backward,
    dropout => judge_dropout, rope => judge_rope
}

fn judge_activation_backward(call: &OpCall) -> Result<Vec<Wanted>> {
    let activation = Activation::asked(settings(call)?)?;
    by_input!(call, 0, [f32, f16], T => {
        let (value, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = activation_backward_bound(activation, value, dy);
        Ok(vec![Wanted::near(&output_shape(call, 0), activation_backward(activation, value, dy), bound)?])
    })
}

/// Multiplies `dy` by the slope of `activation`; `value` is its result, or for GELU and none its input.
pub fn activation_backward<T: Number>(activation: Activation, value: &[T], dy: &[T]) -> Vec<T> {
    value.iter().zip(dy).map(|(v, g)| T::from_f64(slope(activation, v.to_f64()) * g.to_f64())).collect()
}

/// Bounds the error of each element: three roundings; for GELU 6 ULP of 1 times `dy`.
pub fn activation_backward_bound<T: Number>(activation: Activation, value: &[T], dy: &[T]) -> Vec<f64> {
    let bound = |(v, g): (&T, &T)| {
        let (v, g) = (v.to_f64(), g.to_f64());
        let exact = slope(activation, v) * g;
        let error = match activation {
            Activation::None | Activation::Relu => 0.0,
            Activation::Sigmoid | Activation::Tanh => 4.0 * ulp(1.0) * exact.abs(),
            Activation::Gelu => 6.0 * ulp(1.0) * g.abs(),
        };
        spread(T::from_f64(exact), exact, error)
    };
    value.iter().zip(dy).map(bound).collect()
}

fn slope(activation: Activation, value: f64) -> f64 {
    match activation {
        Activation::None => 1.0,
        Activation::Relu if value <= 0.0 => 0.0,
        Activation::Relu => 1.0,
        Activation::Sigmoid => value * (1.0 - value),
        Activation::Tanh => 1.0 - value * value,
        // The limits, where the formula has infinity times 0.
        Activation::Gelu if value.is_infinite() => f64::from(value > 0.0),
        Activation::Gelu => normal(value) + value * (-0.5 * value * value).exp() / (2.0 * PI).sqrt(),
    }
}

fn judge_bias_backward(call: &OpCall) -> Result<Vec<Wanted>> {
    let plane = call.inputs().next().and_then(|dy| dy.shape().get(2..)).unwrap_or_default().iter().product();
    let (shape, dy) = (output_shape(call, 0), input::<f32>(call, 0)?);
    let channels = row_length(call);
    let bound = bias_backward_bound(channels, plane, dy);
    Ok(vec![Wanted::near(&shape, bias_backward(channels, plane, dy), bound)?])
}

/// Sums `dy`, images of `channels` planes of `plane` elements, over all axes but the channels.
pub fn bias_backward<T: Number>(channels: usize, plane: usize, dy: &[T]) -> Vec<T> {
    sums(channels, plane, dy).into_iter().map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each sum by its chains of additions: over a plane, a block of images, and all blocks.
pub fn bias_backward_bound<T: Number>(channels: usize, plane: usize, dy: &[T]) -> Vec<f64> {
    let images = dy.len().checked_div(channels * plane).unwrap_or(0);
    let chain = (plane.min(200) + images.min(320 + images / 128)) as f64;
    let of = |(exact, size)| spread(T::from_f64(exact), exact, chain * ulp(1.0) * size);
    sums(channels, plane, dy).into_iter().map(of).collect()
}

fn sums<T: Number>(channels: usize, plane: usize, dy: &[T]) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); channels];
    for (i, g) in dy.iter().enumerate() {
        let sum = &mut sums[i / plane % channels];
        sum.0 += g.to_f64();
        sum.1 += g.to_f64().abs();
    }
    sums
}

fn judge_dropout(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Dropout>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (dropout(op, x), dropout_bound(op, x));
        Ok(vec![Wanted::rounded(call.dtype(), &output_shape(call, 0), &want, &bound)?])
    })
}

/// Word `i` of a stream, behind the offset.
pub(super) fn word([seed, stream, offset]: [u64; 3], i: usize) -> u32 {
    let at = offset + i as u64;
    let block = at / 4;
    let counter = [block as u32, (block >> 32) as u32, stream as u32, (stream >> 32) as u32];
    philox(counter, seed)[(at % 4) as usize]
}

/// Returns the elements, not rounded.
pub fn dropout<T: Number>(op: &Dropout, x: &[T]) -> Vec<f64> {
    let (threshold, scale) = op.rule();
    let of = |(i, x): (usize, &T)| {
        if word(op.place(), i) >= threshold { x.to_f64() * f64::from(scale) } else { 0.0 }
    };
    x.iter().enumerate().map(of).collect()
}

/// Bounds the error of each element: one rounding to f32, before that to the type.
pub fn dropout_bound<T: Number>(op: &Dropout, x: &[T]) -> Vec<f64> {
    let of = |y: f64| if y == 0.0 || !y.is_finite() { 0.0 } else { 2f64.powi(-23) * y.abs() + 4.0 * LEAST_NORMAL };
    dropout(op, x).into_iter().map(of).collect()
}

fn judge_rope(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, tables) = (descriptor::<Rope>(call)?, [input(call, 1)?, input(call, 2)?]);
    let positions = optional_input(call, 3)?;
    by_input!(call, 0, [f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let bound = rope_bound(op, x, tables, positions);
        Ok(vec![Wanted::near(&output_shape(call, 0), rope(op, x, tables, positions), bound)?])
    })
}

/// Computes `output`; `positions`, if given, has one for each token of all sequences.
pub fn rope<T: Number>(op: &Rope, x: &[T], [cos, sin]: [&[f32]; 2], positions: Option<&[u32]>) -> Vec<T> {
    each(op, x, [cos, sin], positions).map(|(y, _)| T::from_f64(y)).collect()
}

/// Bounds the error of each element: two products and their sum are rounded, and subnormal numbers may be flushed to 0.
pub fn rope_bound<T: Number>(op: &Rope, x: &[T], [cos, sin]: [&[f32]; 2], positions: Option<&[u32]>) -> Vec<f64> {
    let bound = |(y, size): (f64, f64)| spread(T::from_f64(y), y, 3.0 * 2f64.powi(-23) * size + 2f64.powi(-125));
    each(op, x, [cos, sin], positions).map(bound).collect()
}

/// Returns each element, and the sum of the magnitudes of its terms.
fn each<'a, T: Number>(
    op: &'a Rope, x: &'a [T], [cos, sin]: [&'a [f32]; 2], positions: Option<&'a [u32]>,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    x.iter().enumerate().map(move |(at, x_at)| {
        let place = op.place(at);
        if !place.rotates {
            return (x_at.to_f64(), 0.0);
        }
        let angle = op.table_row(place.number, positions) * (op.rotated() / 2) + place.angle;
        let (own, other) = (f64::from(cos[angle]) * x_at.to_f64(), f64::from(sin[angle]) * x[place.partner].to_f64());
        let rotated = if place.second { own + other } else { own - other };
        (rotated, own.abs() + other.abs())
    })
}

#[cfg(test)]
#[path = "tests/layers.rs"]
mod tests;

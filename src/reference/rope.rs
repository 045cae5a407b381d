use super::prelude::*;
use crate::nn::Rope;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/rope.rs"]
mod tests;

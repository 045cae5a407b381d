use super::prelude::*;
use crate::dense::Rot;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let mut matrix = descriptor::<Rot>(call)?.matrix().map(f64::from);
    if let Some(given) = settings(call)?.array("rotation") {
        let given = given.data().to_f64();
        matrix = [given[0], given[1], -given[1], given[0]];
    }
    if let Some(param) = named::<f32>(call, "device-param")?.and_then(|p| p.try_into().ok()) {
        matrix = Rot::modified(0, param).matrix().map(f64::from);
    }
    by_input!(call, 0, [f32, f16], T => {
        let (x, y) = (input::<T>(call, 0)?, input::<T>(call, 1)?);
        let (want, bound) = (rot(matrix, x, y), rot_bound(matrix, x, y));
        let one = |at: usize| Wanted::rounded(T::DTYPE, &output_shape(call, at), &want[at], &bound[at]);
        Ok(vec![one(0)?, one(1)?])
    })
}

/// Returns both vectors after the op in `f64`, not rounded; `matrix` is h11, h12, h21, h22.
pub fn rot<T: Number>([h11, h12, h21, h22]: [f64; 4], x: &[T], y: &[T]) -> [Vec<f64>; 2] {
    let of = |a: f64, b: f64| x.iter().zip(y).map(|(x, y)| a * x.to_f64() + b * y.to_f64()).collect();
    [of(h11, h12), of(h21, h22)]
}

/// Bounds the errors in f32. Nothing is promised where a product overflows.
pub fn rot_bound<T: Number>(matrix: [f64; 4], x: &[T], y: &[T]) -> [Vec<f64>; 2] {
    let half_step = if T::DTYPE == DType::F16 { 2f64.powi(-11) } else { 0.0 };
    let size = |x: &[T]| x.iter().map(|x| T::from_f64(x.to_f64().abs())).collect::<Vec<_>>();
    let matrix = matrix.map(f64::abs);
    let tiny = 4.0 * f64::from(f32::MIN_POSITIVE) * (1.0 + matrix.into_iter().fold(0.0, f64::max));
    let largest = f64::from(f32::MAX);
    let of = |all: Vec<f64>| {
        let one = |x: f64| if x < largest { (2f64.powi(-21) + half_step) * x + tiny } else { f64::INFINITY };
        all.into_iter().map(one).collect()
    };
    rot(matrix, &size(x), &size(y)).map(of)
}

#[cfg(test)]
#[path = "tests/rot.rs"]
mod tests;

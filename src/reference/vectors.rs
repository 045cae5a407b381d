use super::matrix_matrix::{pair, size, times};
use super::prelude::*;
use crate::dense::{Caxpy, Cdot, Rot};

judges! {
    swap => judge_swap, rot => judge_rot, rotg => judge_rotg, rotmg => judge_rotmg, caxpy => judge_caxpy,
    cdot => judge_cdot
}

fn judge_swap(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let (x, y) = (input::<T>(call, 0)?, input::<T>(call, 1)?);
        let all = swap(x, y).into_iter().map(|x| Wanted::exact(&[x.len()], x));
        all.collect()
    })
}

/// Returns both vectors after the op.
pub fn swap<T: Copy>(x: &[T], y: &[T]) -> [Vec<T>; 2] {
    [y.to_vec(), x.to_vec()]
}

fn judge_rot(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_rotg(call: &OpCall) -> Result<Vec<Wanted>> {
    let want = rotg(input::<f32>(call, 0)?[0], input::<f32>(call, 1)?[0]);
    let bound = rotg_bound(want);
    let ends = [0..1, 1..2, 2..4].into_iter().enumerate();
    let one = |(at, of): (usize, std::ops::Range<usize>)| {
        Wanted::rounded(DType::F32, &output_shape(call, at), &want[of.clone()], &bound[of])
    };
    ends.map(one).collect()
}

/// Returns r, z, c and s in `f64`, not rounded.
pub fn rotg(a: f32, b: f32) -> [f64; 4] {
    let (a, b) = (f64::from(a), f64::from(b));
    if b == 0.0 {
        return [a, 0.0, 1.0, 0.0];
    }
    if a == 0.0 {
        return [b, 1.0, 0.0, 1.0];
    }
    let a_is_larger = a.abs() > b.abs();
    let r = a.hypot(b) * if a_is_larger { a } else { b }.signum();
    let (c, s) = (a / r, b / r);
    [r, if a_is_larger { s } else { 1.0 / c }, c, s]
}

/// Bounds the errors of [`rotg`] in f32. Nothing is promised of z where c may count as 0, nor of subnormal numbers.
pub fn rotg_bound([r, z, c, s]: [f64; 4]) -> [f64; 4] {
    let least = f64::from(f32::MIN_POSITIVE);
    let of = |x: f64| 16.0 * 2f64.powi(-24) * x.abs() + least;
    if r.abs() < 4.0 * least || r.abs() > f64::from(f32::MAX) / 4.0 {
        return [f64::INFINITY; 4];
    }
    [of(r), if c != 0.0 && c.abs() < 4.0 * least { f64::INFINITY } else { of(z) }, of(c), of(s)]
}

fn judge_rotmg(call: &OpCall) -> Result<Vec<Wanted>> {
    let mut given = [0.0; 4];
    for (at, x) in given.iter_mut().enumerate() {
        *x = input::<f32>(call, at)?[0];
    }
    let (want, bound) = (rotmg(given), rotmg_bound(given));
    let ends = [0..1, 1..2, 2..3, 3..8].into_iter().enumerate();
    let one = |(at, of): (usize, std::ops::Range<usize>)| {
        Wanted::rounded(DType::F32, &output_shape(call, at), &want[of.clone()], &bound[of])
    };
    ends.map(one).collect()
}

/// The bounds between which results are scaled.
const LEAST: f64 = 1.0 / (4096.0 * 4096.0);
const MOST: f64 = 4096.0 * 4096.0;

/// The power of 4096 that scales a row so that the square of its length, times it squared, is between the bounds.
fn scale(d: f64) -> f64 {
    let mut by = 1.0;
    while d != 0.0 && d.abs() / (by * by) <= LEAST {
        by /= 4096.0;
    }
    while d.abs() / (by * by) >= MOST {
        by *= 4096.0;
    }
    by
}

/// Before the scaling: d1, d2, x1, the flag, h11, h21, h12, h22. `None` if nothing changes.
fn unscaled([d1, d2, x1, y1]: [f64; 4]) -> Option<[f64; 8]> {
    let none = [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0];
    if d1 < 0.0 {
        return Some(none);
    }
    let (p1, p2) = (d1 * x1, d2 * y1);
    if p2 == 0.0 {
        return None;
    }
    let (q1, q2) = (p1 * x1, p2 * y1);
    if q1.abs() > q2.abs() {
        let (h21, h12) = (-y1 / x1, p2 / p1);
        let u = 1.0 - h12 * h21;
        return Some([d1 / u, d2 / u, x1 * u, 0.0, 1.0, h21, h12, 1.0]);
    }
    if q2 < 0.0 {
        return Some(none);
    }
    let (h11, h22) = (p1 / p2, x1 / y1);
    let u = 1.0 + h11 * h22;
    Some([d2 / u, d1 / u, y1 * u, 1.0, h11, -1.0, 1.0, h22])
}

/// Returns d1, d2, x1, the flag, h11, h21, h12 and h22 in `f64`, not rounded, from d1, d2, x1 and y1.
pub fn rotmg(given: [f32; 4]) -> [f64; 8] {
    let given = given.map(f64::from);
    let Some([d1, d2, x1, flag, h11, h21, h12, h22]) = unscaled(given) else {
        return [given[0], given[1], given[2], -2.0, 1.0, 0.0, 0.0, 1.0];
    };
    let (s1, s2) = (scale(d1), scale(d2));
    let flag = if s1 == 1.0 && s2 == 1.0 { flag } else { -1.0 };
    [d1 / (s1 * s1), d2 / (s2 * s2), x1 * s1, flag, h11 * s1, h21 * s2, h12 * s1, h22 * s2]
}

/// Bounds the errors of [`rotmg`] in f32. Nothing is promised where a product or a result may overflow or count as 0,
/// nor where roundings decide which of the two terms is larger, or whether a result is scaled.
pub fn rotmg_bound(given: [f32; 4]) -> [f64; 8] {
    let [d1, d2, x1, y1] = given.map(f64::from);
    let (p1, p2) = (d1 * x1, d2 * y1);
    let (q1, q2) = ((p1 * x1).abs(), (p2 * y1).abs());
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * a.max(b);
    let same = d1 == d2 && x1.abs() == y1.abs();
    let want = rotmg(given);
    let safe = |x: f64| x == 0.0 || (2f64.powi(-110)..2f64.powi(110)).contains(&x.abs());
    let scaled = |d: f64| d == 0.0 || !near(d.abs(), LEAST) && !near(d.abs(), MOST);
    let all = [d1, d2, x1, y1, p1, p2, q1, q2].into_iter().chain(want);
    let clear = q1 == 0.0 || q2 == 0.0 || same || !near(q1, q2);
    if d1 >= 0.0 && !(all.clone().all(safe) && clear && scaled(want[0]) && scaled(want[1])) {
        return [f64::INFINITY; 8];
    }
    // How much a difference of the two terms loses.
    let lost = if q1 > q2 && d2 < 0.0 { (q1 + q2) / (q1 - q2) } else { 1.0 };
    let mut bound = want.map(|x| (8.0 + 8.0 * lost) * 2f64.powi(-24) * x.abs() + LEAST_NORMAL);
    bound[3] = 0.0;
    bound
}

fn judge_caxpy(call: &OpCall) -> Result<Vec<Wanted>> {
    let (alpha, x, y) = (descriptor::<Caxpy>(call)?.alpha(), input(call, 0)?, input(call, 1)?);
    let (want, bound) = (caxpy(alpha, x, y), caxpy_bound(alpha, x, y));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Returns `y` after the op, real and imaginary parts in turn, not rounded.
pub fn caxpy(alpha: [f32; 2], x: &[f32], y: &[f32]) -> Vec<f64> {
    let of = |i| {
        let ([a, b], [c, d]) = (times(alpha.map(f64::from), pair(x, i, false)), pair(y, i, false));
        [a + c, b + d]
    };
    (0..x.len() / 2).flat_map(of).collect()
}

/// Bounds the error of each part in f32. Nothing is promised where parts overflow.
pub fn caxpy_bound(alpha: [f32; 2], x: &[f32], y: &[f32]) -> Vec<f64> {
    let of = |i| {
        let alpha = size(alpha.map(f64::from));
        let all = alpha * size(pair(x, i, false)) + size(pair(y, i, false));
        let tiny = 8.0 * f64::from(f32::MIN_POSITIVE) * (1.0 + alpha);
        let overflows = all > f64::from(f32::MAX) / 4.0;
        [if overflows { f64::INFINITY } else { 8.0 * 2f64.powi(-24) * all + tiny }; 2]
    };
    (0..x.len() / 2).flat_map(of).collect()
}

fn judge_cdot(call: &OpCall) -> Result<Vec<Wanted>> {
    let (conjugated, x, y) = (descriptor::<Cdot>(call)?.is_conjugated(), input(call, 0)?, input(call, 1)?);
    let bound = cdot_bound(x, y);
    Ok(vec![Wanted::rounded(DType::F32, &[2], &cdot(conjugated, x, y), &[bound; 2])?])
}

/// Returns the real and the imaginary part, in `f64` and not rounded; of the conjugates of x if they are asked for.
pub fn cdot(conjugated: bool, x: &[f32], y: &[f32]) -> [f64; 2] {
    let products = (0..x.len() / 2).map(|i| times(pair(x, i, conjugated), pair(y, i, false)));
    products.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
}

/// Returns the error bound of both parts in f32, in a tree. Nothing is promised where parts overflow.
pub fn cdot_bound(x: &[f32], y: &[f32]) -> f64 {
    let n = (x.len() / 2) as f64;
    let sum: f64 = (0..x.len() / 2).map(|i| size(pair(x, i, false)) * size(pair(y, i, false))).sum();
    if sum > f64::from(f32::MAX) / 4.0 {
        return f64::INFINITY;
    }
    let depth = n.min(64.0 + n.max(1.0).log2() + n / 8192.0) + 3.0;
    2.0 * depth * 2f64.powi(-24) * sum + 2.0 * n * f64::from(f32::MIN_POSITIVE)
}

#[cfg(test)]
#[path = "tests/vectors.rs"]
mod tests;

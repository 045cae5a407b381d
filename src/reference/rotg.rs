use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/rotg.rs"]
mod tests;

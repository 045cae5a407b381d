use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/rotmg.rs"]
mod tests;

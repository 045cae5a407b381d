use super::prelude::*;
use crate::dense::Cgemm;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    product(call, descriptor::<Cgemm>(call)?)
}

/// Expects this product of the call's inputs.
pub(super) fn product(call: &OpCall, op: &Cgemm) -> Result<Vec<Wanted>> {
    let (a, b, c) = (input(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
    let c = c.unwrap_or(&[]);
    let (want, bound) = (cgemm(op, a, b, c), cgemm_bound(op, a, b, c));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

type Pair = [f64; 2];

/// The product of two complex numbers.
pub(super) fn times([a, b]: Pair, [c, d]: Pair) -> Pair {
    [a * c - b * d, a * d + b * c]
}

/// Number `i` of an interleaved array, conjugated on request.
pub(super) fn pair(x: &[f32], i: usize, conjugated: bool) -> Pair {
    [x[2 * i].into(), if conjugated { -f64::from(x[2 * i + 1]) } else { x[2 * i + 1].into() }]
}

/// The bound of the parts of a number: no part of a product is larger than this.
pub(super) fn size([a, b]: Pair) -> f64 {
    a.abs() + b.abs()
}

/// Each element of C: alpha and its sum of `terms` that `of_terms` combines, and beta and the old element, which is 0
/// with a beta of 0.
fn each<S>(
    op: &Cgemm, [a, b, c]: [&[f32]; 3], of_terms: impl Fn(&mut dyn Iterator<Item = [Pair; 2]>) -> S,
) -> Vec<(Pair, S, Pair, Pair)> {
    let [m, n, k] = op.extents();
    let ([alpha, beta], [trans, conjugated]) = (op.scalars().map(|s| s.map(f64::from)), op.forms());
    let mut all = Vec::with_capacity(m * n);
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let at_a = |p| if trans[0] { p * m + i } else { i * k + p };
        let at_b = |p| if trans[1] { j * k + p } else { p * n + j };
        let read = if alpha == [0.0; 2] { 0 } else { k };
        let mut terms = (0..read).map(|p| [pair(a, at_a(p), conjugated[0]), pair(b, at_b(p), conjugated[1])]);
        let old = if beta == [0.0; 2] { [0.0; 2] } else { pair(c, i * n + j, false) };
        all.push((alpha, of_terms(&mut terms), beta, old));
    }
    all
}

/// Computes `c` after `op`, real and imaginary parts in turn, not rounded.
pub fn cgemm(op: &Cgemm, a: &[f32], b: &[f32], c: &[f32]) -> Vec<f64> {
    let add = |terms: &mut dyn Iterator<Item = [Pair; 2]>| {
        terms.map(|[a, b]| times(a, b)).fold([0.0; 2], |[x, y], [z, w]| [x + z, y + w])
    };
    let of = |(alpha, sum, beta, old): (Pair, Pair, Pair, Pair)| {
        let ([x, y], [z, w]) = (times(alpha, sum), times(beta, old));
        [x + z, y + w]
    };
    each(op, [a, b, c], add).into_iter().flat_map(of).collect()
}

/// Bounds the error of each part in f32, for every order of the sums. Nothing is promised where parts overflow.
pub fn cgemm_bound(op: &Cgemm, a: &[f32], b: &[f32], c: &[f32]) -> Vec<f64> {
    let k = op.extents()[2] as f64;
    let add = |terms: &mut dyn Iterator<Item = [Pair; 2]>| terms.map(|[a, b]| size(a) * size(b)).sum::<f64>();
    let of = |(alpha, sum, beta, old): (Pair, f64, Pair, Pair)| {
        let all = size(alpha) * sum + size(beta) * size(old);
        let tiny = (2.0 * k + 8.0) * f64::from(f32::MIN_POSITIVE) * (1.0 + size(alpha)) * (1.0 + size(beta));
        let steps = 2.0 * (2.0 * k + 8.0);
        let overflows = sum.max(all) > f64::from(f32::MAX) / 4.0;
        [if overflows { f64::INFINITY } else { steps * 2f64.powi(-24) * all + tiny }; 2]
    };
    each(op, [a, b, c], add).into_iter().flat_map(of).collect()
}

#[cfg(test)]
#[path = "tests/cgemm.rs"]
mod tests;

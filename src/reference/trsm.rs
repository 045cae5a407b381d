use super::prelude::*;
use crate::dense::Trsm;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, b) = (descriptor::<Trsm>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let (want, bound) = (trsm(op, a, b), trsm_bound(op, a, b));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Solves for each row (column) of X in turn, from the elements of B. `of` makes an element of X from the right side,
/// the coefficients and values of the elements before it, and the coefficient of the diagonal.
fn solve<V: Copy>(op: &Trsm, a: &[f32], x: &mut [V], of: impl Fn(V, &[(f64, V)], f64) -> V) {
    let triangle = op.triangle;
    let (n, ldb) = (triangle.side(), triangle.layout_b().ld);
    // The coefficient of an unknown in an equation, if it is stored.
    let coefficient = |equation: usize, unknown: usize| {
        let [i, j] = if triangle.right { [unknown, equation] } else { [equation, unknown] };
        triangle.at(i, j).map(|at| if i == j && triangle.unit { 1.0 } else { f64::from(a[at]) })
    };
    let forward = n < 2 || coefficient(1, 0).is_some();
    for other in 0..triangle.others() {
        let at = |i: usize| if triangle.right { other * ldb + i } else { i * ldb + other };
        for step in 0..n {
            let equation = if forward { step } else { n - 1 - step };
            let known = if forward { 0..equation } else { equation + 1..n };
            let terms: Vec<_> = known.filter_map(|i| Some((coefficient(equation, i)?, x[at(i)]))).collect();
            let diagonal = coefficient(equation, equation).unwrap_or(1.0);
            x[at(equation)] = of(x[at(equation)], &terms, diagonal);
        }
    }
}

/// Returns X in `f64`, not rounded, with the elements of `b` between its rows.
pub fn trsm(op: &Trsm, a: &[f32], b: &[f32]) -> Vec<f64> {
    let alpha = f64::from(op.alpha);
    let mut x: Vec<f64> = b.iter().map(|&b| b.into()).collect();
    solve(op, a, &mut x, |b, terms, diagonal| {
        if alpha == 0.0 {
            return 0.0;
        }
        terms.iter().fold(alpha * b, |sum, (a, x)| sum - a * x) / diagonal
    });
    x
}

/// Returns the error bound of each element, computed in f32.
///
/// Let y be the solution where all terms add up, `y_i = (|alpha b_i| + sum |a_ij| y_j) / |a_ii|`. Each unknown has an
/// error of `gamma y_i`, in whatever order its terms are added, and takes on those before it: `e_i = gamma y_i +
/// sum |a_ij| e_j / |a_ii|`. Nothing is promised where y overflows.
pub fn trsm_bound(op: &Trsm, a: &[f32], b: &[f32]) -> Vec<f64> {
    let alpha = f64::from(op.alpha.abs());
    let gamma = (op.triangle.side() + 24) as f64 * 2f64.powi(-23);
    let (tiny, largest) = (f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX));
    let mut all: Vec<[f64; 2]> = b.iter().map(|b| [f64::from(b.abs()), 0.0]).collect();
    solve(op, a, &mut all, |[b, _], terms, diagonal| {
        if alpha == 0.0 {
            return [0.0; 2];
        }
        let diagonal = diagonal.abs();
        let total = terms.iter().fold(alpha * b, |sum, (a, [y, _])| sum + a.abs() * y);
        let before: f64 = terms.iter().map(|(a, [_, e])| a.abs() * e).sum();
        // Numbers that a device takes for 0.
        let flushed = tiny * (1.0 + alpha + terms.iter().map(|(_, [y, _])| 1.0 + y).sum::<f64>());
        let y = total / diagonal;
        // Not where y is NaN.
        let fits = y < largest && total < largest && diagonal >= tiny;
        [y, if fits { gamma * y + (before + flushed) / diagonal + tiny } else { f64::INFINITY }]
    });
    all.into_iter().map(|[_, error]| error).collect()
}

#[cfg(test)]
#[path = "tests/trsm.rs"]
mod tests;

use super::prelude::*;
use super::spmv::product;
use crate::sparse::Csr;

/// Returns the eigenvalue of largest magnitude and its vector of norm 1, after `iterations` steps from `x`.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): A is not square, or `x` has another length.
pub fn power_iteration(a: &Csr, x: &[f32], iterations: usize) -> Result<(f64, Vec<f64>)> {
    if a.cols != a.rows || x.len() != a.rows {
        return Err(err!(Shape, "reference power iteration: A is {} x {}, x has {} elements", a.rows, a.cols, x.len()));
    }
    let mut x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let mut value = 0.0;
    for _ in 0..iterations {
        let q = product(a, &x);
        let (mut along, mut square, mut norm) = (0.0, 0.0, 0.0f64);
        for (x, q) in x.iter().zip(&q) {
            along += x * q;
            square += x * x;
            norm += q * q;
        }
        value = along / square;
        x = q.into_iter().map(|q| q / norm.sqrt()).collect();
    }
    Ok((value, x))
}

/// Returns the ranks after `iterations` steps; `start` is the distribution of starting nodes, with a sum of 1.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): T is not square, or `start` has another length.
pub fn page_rank(t: &Csr, damping: f64, start: Option<&[f32]>, iterations: usize) -> Result<Vec<f64>> {
    let n = t.rows;
    if t.cols != n || start.is_some_and(|start| start.len() != n) {
        return Err(err!(
            Shape,
            "reference page rank: T is {n} x {}, start has {:?} elements; T must be square and start as long",
            t.cols,
            start.map(<[f32]>::len)
        ));
    }
    let begin = |i: usize| start.map_or(1.0 / n as f64, |start| f64::from(start[i]));
    let mut x: Vec<f64> = (0..n).map(begin).collect();
    for _ in 0..iterations {
        let q = product(t, &x);
        // Rank that no link passes on restarts.
        let rest = 1.0 - damping * q.iter().sum::<f64>();
        x = q.iter().enumerate().map(|(i, q)| damping * q + rest * begin(i)).collect();
    }
    Ok(x)
}

#[cfg(test)]
#[path = "tests/power.rs"]
mod tests;

use super::prelude::*;
use super::spmv::product;
use crate::sparse::Csr;

/// Solves `A x = b` from the guess `x`, and returns `|r| / |b|` before each iteration and after the last. Stops at
/// `tolerance`, after `iterations`, or if `p^T A p` is not positive. `jacobi` preconditions by the diagonal.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): A is not square, or a vector has another length.
pub fn conjugate_gradient(
    a: &Csr, b: &[f32], x: &[f32], jacobi: bool, tolerance: f64, iterations: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let n = a.rows;
    if a.cols != n || b.len() != n || x.len() != n {
        return Err(err!(
            Shape,
            "reference conjugate gradient: A is {n} x {}, b has {} elements and x {}",
            a.cols,
            b.len(),
            x.len()
        ));
    }
    let diagonal = |row: usize| a.row(row).filter(|e| e.0 as usize == row).map(|e| f64::from(e.1)).sum::<f64>();
    let inverse: Vec<f64> = (0..n).map(|row| if jacobi { 1.0 / diagonal(row) } else { 1.0 }).collect();
    let mut x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let mut r: Vec<f64> = b.iter().zip(product(a, &x)).map(|(&b, q)| f64::from(b) - q).collect();
    let precondition = |r: &[f64]| -> Vec<f64> { r.iter().zip(&inverse).map(|(r, inverse)| r * inverse).collect() };
    let mut z = precondition(&r);
    let mut p = z.clone();
    let mut rz = dot(&r, &z);
    let scale = b.iter().map(|&b| f64::from(b).powi(2)).sum::<f64>().sqrt();
    let relative = |r: &[f64]| dot(r, r).sqrt() / if scale > 0.0 { scale } else { 1.0 };
    let mut history = vec![relative(&r)];
    while history[history.len() - 1] > tolerance && history.len() <= iterations {
        let q = product(a, &p);
        let curvature = dot(&p, &q);
        if curvature.is_nan() || curvature <= 0.0 {
            break;
        }
        let alpha = rz / curvature;
        for i in 0..n {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        z = precondition(&r);
        let next = dot(&r, &z);
        let beta = next / rz;
        rz = next;
        for i in 0..n {
            p[i] = z[i] + beta * p[i];
        }
        history.push(relative(&r));
    }
    Ok((x, history))
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
#[path = "tests/conjugate_gradient.rs"]
mod tests;

//! The power method in f64.

use super::spmv::product;
use crate::error::{Result, err};
use crate::sparse::Csr;

/// Returns the eigenvalue of largest magnitude and its vector of norm 1, after `iterations` steps from `x`.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): A is not square, or `x` has another length.
pub fn power_iteration(a: &Csr, x: &[f32], iterations: usize) -> Result<(f64, Vec<f64>)> {
    if a.cols != a.rows || x.len() != a.rows {
        return Err(err!(
            Shape,
            "reference power iteration: A is {} x {}, x has {} elements",
            a.rows,
            a.cols,
            x.len()
        ));
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
/// [`Shape`](crate::ErrorKind::Shape): T is not square, or `start` has another length.
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
mod tests {
    use super::*;

    #[test]
    fn largest_eigenvalue_of_2x2_is_found() {
        let (row_ptrs, col_idxs, values) = (vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, 1.0, 1.0, 2.0]);
        let a = Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values };
        let (value, x) = power_iteration(&a, &[1.0, 0.0], 60).unwrap();
        assert!((value - 3.0).abs() < 1e-12 && (x[0] - 0.5f64.sqrt()).abs() < 1e-12, "{value} {x:?}");
        assert!(power_iteration(&a, &[1.0], 1).is_err());
    }

    #[test]
    fn ranks_of_three_nodes_are_known() {
        // 0 and 1 link to 2, which is dangling: x2 = c + d (x0 + x1), x0 = x1 = c, with c = (1 - d) / 3 + d x2 / 3.
        let (row_ptrs, col_idxs, values) = (vec![0, 0, 0, 2], vec![0, 1], vec![1.0, 1.0]);
        let t = Csr { rows: 3, cols: 3, row_ptrs, col_idxs, values };
        let x = page_rank(&t, 0.5, None, 100).unwrap();
        assert!((x[0] - 0.25).abs() < 1e-12 && (x[2] - 0.5).abs() < 1e-12, "{x:?}");
        // All walks start at node 1, so node 0 is never reached.
        let x = page_rank(&t, 0.5, Some(&[0.0, 1.0, 0.0]), 100).unwrap();
        assert!(x[0] == 0.0 && (x[1] - 2.0 / 3.0).abs() < 1e-12, "{x:?}");
        assert!(page_rank(&t, 0.5, Some(&[1.0]), 1).is_err());
    }
}

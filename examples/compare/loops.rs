//! Programs without a GPU: plain loops, tiled loops, and a crate's matrix product.

use tilework::Result;
use tilework::sparse::Csr;

pub(crate) fn map(x: &[f32], y: &mut [f32]) -> Result<()> {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x.tanh());
    Ok(())
}

pub(crate) fn axpy(alpha: f32, x: &[f32], y: &[f32], out: &mut [f32]) -> Result<()> {
    out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (x, y))| *out = alpha * x + y);
    Ok(())
}

pub(crate) fn zip(x: &[f32], y: &[f32], out: &mut [f32]) -> Result<()> {
    out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (x, y))| *out = x * y);
    Ok(())
}

/// Keeps eight sums, for the processor's vector units.
pub(crate) fn reduce(x: &[f32], y: &mut [f32]) -> Result<()> {
    let chunks = x.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().sum();
    let mut sums = [0f32; 8];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x);
    }
    y[0] = sums.iter().sum::<f32>() + rest;
    Ok(())
}

pub(crate) fn scan(x: &[f32], y: &mut [f32]) -> Result<()> {
    let mut sum = 0.0;
    for (x, y) in x.iter().zip(y) {
        sum += x;
        *y = sum;
    }
    Ok(())
}

pub(crate) fn histogram(x: &[u8], counts: &mut [u32]) -> Result<()> {
    counts.fill(0);
    x.iter().for_each(|x| counts[usize::from(*x)] += 1);
    Ok(())
}

pub(crate) fn sort(x: &[u32], y: &mut [u32]) -> Result<()> {
    y.copy_from_slice(x);
    y.sort_unstable();
    Ok(())
}

pub(crate) fn softmax(n: usize, x: &[f32], y: &mut [f32]) -> Result<()> {
    for (x, y) in x.chunks(n).zip(y.chunks_mut(n)) {
        let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - most).exp());
        let sum: f32 = y.iter().sum();
        y.iter_mut().for_each(|y| *y /= sum);
    }
    Ok(())
}

pub(crate) fn transpose(n: usize, x: &[f32], y: &mut [f32]) -> Result<()> {
    for row in 0..n {
        for col in 0..n {
            y[col * n + row] = x[row * n + col];
        }
    }
    Ok(())
}

/// Side of a tile: two tiles fit the first-level cache.
const TILE: usize = 32;

pub(crate) fn transpose_tiled(n: usize, x: &[f32], y: &mut [f32]) -> Result<()> {
    for row_0 in (0..n).step_by(TILE) {
        for col_0 in (0..n).step_by(TILE) {
            for row in row_0..(row_0 + TILE).min(n) {
                for col in col_0..(col_0 + TILE).min(n) {
                    y[col * n + row] = x[row * n + col];
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn gemv(n: usize, a: &[f32], x: &[f32], y: &mut [f32]) -> Result<()> {
    for (row, y) in a.chunks(n).zip(y) {
        *y = row.iter().zip(x).map(|(a, x)| a * x).sum();
    }
    Ok(())
}

pub(crate) fn gemm(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) -> Result<()> {
    for row in 0..n {
        for col in 0..n {
            c[row * n + col] = (0..n).map(|i| a[row * n + i] * b[i * n + col]).sum();
        }
    }
    Ok(())
}

/// Terms and columns of a tile: this part of B fits the second-level cache, and the inner loop runs along rows.
const TERMS: usize = 64;
const COLUMNS: usize = 256;

pub(crate) fn gemm_tiled(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) -> Result<()> {
    c.fill(0.0);
    for col_0 in (0..n).step_by(COLUMNS) {
        let cols = col_0..(col_0 + COLUMNS).min(n);
        for i_0 in (0..n).step_by(TERMS) {
            for row in 0..n {
                let sums = &mut c[row * n..][cols.clone()];
                for i in i_0..(i_0 + TERMS).min(n) {
                    let factor = a[row * n + i];
                    sums.iter_mut().zip(&b[i * n..][cols.clone()]).for_each(|(c, b)| *c += factor * b);
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn gemm_by_crate(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) -> Result<()> {
    debug_assert!(a.len() == n * n && b.len() == n * n && c.len() == n * n);
    let (across, down) = (1, n as isize);
    // SAFETY: each pointer is to n rows of n elements, `down` elements apart; C overlaps neither factor.
    unsafe {
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        matrixmultiply::sgemm(n, n, n, 1.0, a, down, across, b, down, across, 0.0, c, down, across);
    }
    Ok(())
}

/// Elements beyond the edge are zeros.
pub(crate) fn filter2d(n: usize, filter: &[f32], x: &[f32], y: &mut [f32]) -> Result<()> {
    for row in 0..n {
        for col in 0..n {
            let mut sum = 0.0;
            for (i, weight) in filter.iter().enumerate() {
                let (r, c) = ((row + i / 5).wrapping_sub(2), (col + i % 5).wrapping_sub(2));
                if r < n && c < n {
                    sum += weight * x[r * n + c];
                }
            }
            y[row * n + col] = sum;
        }
    }
    Ok(())
}

pub(crate) fn spmv(a: &Csr, x: &[f32], y: &mut [f32]) -> Result<()> {
    for (row, y) in y.iter_mut().enumerate() {
        *y = a.row(row).map(|(col, value)| value * x[col as usize]).sum();
    }
    Ok(())
}

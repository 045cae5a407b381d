use super::prelude::*;
use crate::sparse::{
    Coo, Csc, Csr, Ell, Format, HostMatrix, Hybrid, Jds, List, MatrixLayout, PADDING, Sell, SparseMatrix, Spconvert,
    Spinsert, Spmm, Spmv, Target,
};

judges! { spmv => judge_spmv, spmm => judge_spmm, spconvert => judge_spconvert, spinsert => judge_spinsert }

fn judge_spmv(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Spmv>(call)?;
    let a = matrix(call, &op.matrix)?.0;
    let last = call.inputs().count().saturating_sub(1);
    let (alpha, beta) = scalars(call, op.scalars, op.alpha, op.beta)?;
    let x = input(call, last.saturating_sub(1 + usize::from(op.scalars)))?;
    let (a, y) = (a.to_csr()?, input(call, last)?);
    let want = spmv(alpha, &a, x, beta, y)?;
    let bound = spmv_bound(alpha, &a, x, beta, y)?;
    Ok(vec![unrounded(&output_shape(call, 0), &want, &bound)?])
}

/// Returns alpha and beta: those of the operand before the last if it is there.
pub(super) fn scalars(call: &OpCall, given: bool, alpha: f32, beta: f32) -> Result<(f32, f32)> {
    if !given {
        return Ok((alpha, beta));
    }
    match input(call, call.inputs().count().saturating_sub(2))? {
        &[alpha, beta] => Ok((alpha, beta)),
        other => Err(err!(Shape, "reference: {} scalars; there are two, alpha and beta", other.len())),
    }
}

/// Computes `alpha A x + beta y`, not rounded.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): `x` or `y` has another length than A has columns or rows.
pub fn spmv(alpha: f32, a: &Csr, x: &[f32], beta: f32, y: &[f32]) -> Result<Vec<f64>> {
    Ok(sums(alpha, a, x, beta, y)?.into_iter().map(|sum| sum.value).collect())
}

/// Bounds the error of each element of `y` computed in f32.
///
/// With u = 2^-24 and `gamma(j) = j u / (1 - j u)` (Higham, *Accuracy and Stability of Numerical Algorithms*, section
/// 3.1), a sum of n products in any order, scaled, with a term added, errs by at most
/// `gamma(n + 4) (|alpha| |A| |x| + |beta y|)`, also if terms are scaled before they are added, as with atomics. The
/// bound is infinite if a sum may overflow.
pub fn spmv_bound(alpha: f32, a: &Csr, x: &[f32], beta: f32, y: &[f32]) -> Result<Vec<f64>> {
    let u = 2f64.powi(-24);
    let bound = |(row, sum): (usize, RowSum)| {
        let terms = f64::from(a.row_ptrs[row + 1] - a.row_ptrs[row]) + 4.0;
        let gamma = if terms * u < 1.0 { terms * u / (1.0 - terms * u) } else { f64::INFINITY };
        // A device may flush subnormal numbers.
        let error = gamma * sum.magnitude + terms * 2f64.powi(-126);
        if sum.largest > f64::from(f32::MAX) { f64::INFINITY } else { error }
    };
    Ok(sums(alpha, a, x, beta, y)?.into_iter().enumerate().map(bound).collect())
}

pub(super) fn product(a: &Csr, x: &[f64]) -> Vec<f64> {
    let row = |row: usize| a.row(row).map(|(col, value)| f64::from(value) * x[col as usize]).sum();
    (0..a.rows).map(row).collect()
}

struct RowSum {
    value: f64,
    /// The same with absolute values of all terms.
    magnitude: f64,
    /// The largest possible intermediate sum.
    largest: f64,
}

fn sums(alpha: f32, a: &Csr, x: &[f32], beta: f32, y: &[f32]) -> Result<Vec<RowSum>> {
    let Csr { rows, cols, .. } = *a;
    if x.len() != cols || y.len() != rows {
        return Err(err!(Shape, "reference spmv: A is {rows} x {cols}, x has {} elements and y {}", x.len(), y.len()));
    }
    let row = |row: usize| {
        let (mut value, mut magnitude) = (0.0, 0.0);
        for (col, factor) in a.row(row) {
            let term = f64::from(factor) * f64::from(x[col as usize]);
            value += term;
            magnitude += term.abs();
        }
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        // A factor of 0 hides its operand.
        let product = if alpha == 0.0 { 0.0 } else { alpha * value };
        let size = if alpha == 0.0 { 0.0 } else { alpha.abs() * magnitude };
        let before = if beta == 0.0 { 0.0 } else { beta * f64::from(y[row]) };
        let largest = if alpha == 0.0 { 0.0 } else { magnitude.max(size) };
        RowSum { value: product + before, magnitude: size + before.abs(), largest: largest + before.abs() }
    };
    Ok((0..rows).map(row).collect())
}

fn judge_spmm(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Spmm>(call)?;
    let a = matrix(call, &op.matrix)?.0;
    let last = call.inputs().count().saturating_sub(1);
    let (alpha, beta) = scalars(call, op.scalars, op.alpha, op.beta)?;
    let b = input(call, last.saturating_sub(1 + usize::from(op.scalars)))?;
    let (a, c) = (a.to_csr()?, input(call, last)?);
    let want = spmm(alpha, &a, b, op.n, beta, c)?;
    let bound = spmm_bound(alpha, &a, b, op.n, beta, c)?;
    Ok(vec![unrounded(&output_shape(call, 0), &want, &bound)?])
}

/// Computes `alpha A B + beta C`, not rounded; B and C have `n` columns.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): `b` or `c` has another length than A columns or rows, times `n`.
pub fn spmm(alpha: f32, a: &Csr, b: &[f32], n: usize, beta: f32, c: &[f32]) -> Result<Vec<f64>> {
    by_columns(a, b, n, c, |x, y| spmv(alpha, a, x, beta, y))
}

/// Bounds the error of each element, as [`spmv_bound`].
pub fn spmm_bound(alpha: f32, a: &Csr, b: &[f32], n: usize, beta: f32, c: &[f32]) -> Result<Vec<f64>> {
    by_columns(a, b, n, c, |x, y| spmv_bound(alpha, a, x, beta, y))
}

/// Applies `product` to each column of `b` and `c`.
fn by_columns(
    a: &Csr, b: &[f32], n: usize, c: &[f32], product: impl Fn(&[f32], &[f32]) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let Csr { rows, cols, .. } = *a;
    if b.len() != cols * n || c.len() != rows * n {
        return Err(err!(
            Shape,
            "reference spmm: A is {rows} x {cols}, b of {n} columns has {} elements and c {}",
            b.len(),
            c.len()
        ));
    }
    let column = |list: &[f32], j: usize| list.iter().copied().skip(j).step_by(n).collect::<Vec<_>>();
    let mut out = vec![0.0; rows * n];
    for j in 0..n {
        for (row, value) in product(&column(b, j), &column(c, j))?.into_iter().enumerate() {
            out[row * n + j] = value;
        }
    }
    Ok(out)
}

fn judge_spconvert(call: &OpCall) -> Result<Vec<Wanted>> {
    let Spconvert { from, to, window, .. } = descriptor::<Spconvert>(call)?;
    let target = match to.format {
        Format::Coo { .. } => Target::Coo,
        Format::Csr => Target::Csr,
        Format::Csc => Target::Csc,
        Format::Ell { .. } => Target::Ell,
        Format::Hybrid { width, .. } => Target::Hybrid { width: Some(width) },
        Format::Jds => Target::Jds,
        Format::Sell { slice, .. } => Target::Sell { slice, window: *window },
    };
    let converted = spconvert(&matrix(call, from)?.0, target)?;
    let of = |(at, list): (usize, &List<'_>)| {
        let shape = output_shape(call, at);
        match list {
            List::Indices(list) => Wanted::exact(&shape, list.to_vec()),
            List::Values(list) if to.values == DType::F16 => {
                Wanted::exact(&shape, list.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>())
            }
            List::Values(list) => Wanted::exact(&shape, list.to_vec()),
        }
    };
    converted.lists().iter().enumerate().map(of).collect()
}

/// Returns the matrix whose arrays are the first inputs of a call, and their number.
pub(super) fn matrix(call: &OpCall, layout: &MatrixLayout) -> Result<(HostMatrix, usize)> {
    let MatrixLayout { rows, cols, .. } = *layout;
    let indices = |at| input::<u32>(call, at).map(<[u32]>::to_vec);
    let values = |at| {
        let list = call.inputs().nth(at).map(HostArray::data);
        let list =
            list.ok_or_else(|| err!(InvalidArgument, "reference of spconvert: the values of the matrix are missing"))?;
        Ok(list.to_f32().into_owned())
    };
    let coo = |at| {
        let (row_idxs, col_idxs) = (indices(at)?, indices(at + 1)?);
        Ok(Coo { rows, cols, row_idxs, col_idxs, values: values(at + 2)? })
    };
    let ell = |width| Ok(Ell { rows, cols, width, col_idxs: indices(0)?, values: values(1)? });
    Ok(match layout.format {
        Format::Coo { .. } => (HostMatrix::Coo(coo(0)?), 3),
        Format::Csr => {
            let (row_ptrs, col_idxs) = (indices(0)?, indices(1)?);
            (HostMatrix::Csr(Csr { rows, cols, row_ptrs, col_idxs, values: values(2)? }), 3)
        }
        Format::Csc => {
            let (col_ptrs, row_idxs) = (indices(0)?, indices(1)?);
            (HostMatrix::Csc(Csc { rows, cols, col_ptrs, row_idxs, values: values(2)? }), 3)
        }
        Format::Ell { width } => (HostMatrix::Ell(ell(width)?), 2),
        Format::Hybrid { width, .. } => (HostMatrix::Hybrid(Hybrid { ell: ell(width)?, coo: coo(2)? }), 5),
        Format::Jds => {
            let (row_order, diagonal_ptrs, col_idxs) = (indices(0)?, indices(1)?, indices(2)?);
            let values = values(3)?;
            (HostMatrix::Jds(Jds { rows, cols, row_order, diagonal_ptrs, col_idxs, values }), 4)
        }
        Format::Sell { slice, .. } => {
            let (row_order, slice_ptrs, col_idxs) = (indices(0)?, indices(1)?, indices(2)?);
            let values = values(3)?;
            (HostMatrix::Sell(Sell { rows, cols, slice, row_order, slice_ptrs, col_idxs, values }), 4)
        }
    })
}

/// Converts the matrix to another format. Rows keep the order of their entries; duplicates are not summed. Entries of
/// compressed columns are sorted by row, unsorted coordinates by row, then column.
///
/// # Errors
/// [`TooLarge`](ErrorKind::TooLarge) for 2^32 places or more;
/// [`InvalidArgument`](ErrorKind::InvalidArgument) for slices or windows of 0 rows.
pub fn spconvert(matrix: &HostMatrix, to: Target) -> Result<HostMatrix> {
    let csr = matrix.to_csr()?;
    Ok(match to {
        Target::Coo => HostMatrix::Coo(csr.to_coo()?),
        Target::Csr => HostMatrix::Csr(csr),
        Target::Csc => HostMatrix::Csc(csr.to_csc()?),
        Target::Ell => HostMatrix::Ell(csr.to_ell()?),
        Target::Hybrid { width } => HostMatrix::Hybrid(csr.to_hybrid(width.unwrap_or(csr.analyse().hybrid_width))?),
        Target::Jds => HostMatrix::Jds(csr.to_jds()?),
        Target::Sell { slice, window } => HostMatrix::Sell(csr.to_sell(slice, window)?),
    })
}

fn judge_spinsert(call: &OpCall) -> Result<Vec<Wanted>> {
    let Spinsert { matrix, .. } = descriptor::<Spinsert>(call)?;
    let (rows, cols) = (matrix.rows, matrix.cols);
    let indices = |at| input::<u32>(call, at).map(<[u32]>::to_vec);
    // f32 holds all values of f16.
    let values = |at| match matrix.values {
        DType::F16 => Ok(input::<f16>(call, at)?.iter().map(|x| x.to_f32()).collect()),
        _ => input::<f32>(call, at).map(<[f32]>::to_vec),
    };
    let exact = |shape: &[usize], values: Vec<f32>| match matrix.values {
        DType::F16 => Wanted::exact(shape, values.into_iter().map(f16::from_f32).collect()),
        _ => Wanted::exact(shape, values),
    };
    let coo = |at| Ok(Coo { rows, cols, row_idxs: indices(at)?, col_idxs: indices(at + 1)?, values: values(at + 2)? });
    let (old, new) = match matrix.format {
        Format::Ell { width } => {
            let old = Ell { rows, cols, width, col_idxs: indices(0)?, values: values(1)? };
            (HostMatrix::Ell(old), coo(2)?)
        }
        _ => {
            let mut old: Coo = coo(0)?;
            old.row_idxs.truncate(matrix.entries);
            old.col_idxs.truncate(matrix.entries);
            old.values.truncate(matrix.entries);
            (HostMatrix::Coo(old), coo(3)?)
        }
    };
    let shape = |at| output_shape(call, at);
    Ok(match spinsert(&old, &new)? {
        (HostMatrix::Ell(ell), missing) => vec![
            Wanted::exact(&shape(0), ell.col_idxs)?,
            exact(&shape(1), ell.values)?,
            Wanted::exact(&shape(2), vec![missing as u32])?,
        ],
        (HostMatrix::Coo(coo), missing) => vec![
            Wanted::exact(&shape(0), coo.row_idxs)?,
            Wanted::exact(&shape(1), coo.col_idxs)?,
            exact(&shape(2), coo.values)?,
            Wanted::exact(&shape(3), vec![missing as u32])?,
        ],
        _ => return Err(err!(Shape, "reference of spinsert: the format changed")),
    })
}

/// Inserts entries: behind those of coordinates, or into the first free slots of their rows in ELL. Returns the matrix
/// and the number of missing slots; if there are any, the matrix is unchanged.
///
/// # Errors
/// [`InvalidArgument`](ErrorKind::InvalidArgument): another format. [`Shape`](ErrorKind::Shape): lists of
/// other lengths, or an index out of range.
pub fn spinsert(matrix: &HostMatrix, new: &Coo) -> Result<(HostMatrix, usize)> {
    new.validate()?;
    match matrix {
        HostMatrix::Coo(old) => {
            let joined = |old: &[u32], new: &[u32]| [old, new].concat();
            let (row_idxs, col_idxs) = (joined(&old.row_idxs, &new.row_idxs), joined(&old.col_idxs, &new.col_idxs));
            let values = [old.values.as_slice(), &new.values].concat();
            Ok((HostMatrix::Coo(Coo { rows: old.rows, cols: old.cols, row_idxs, col_idxs, values }), 0))
        }
        HostMatrix::Ell(old) => {
            let (mut ell, mut missing) = (old.clone(), 0);
            if new.rows > old.rows {
                return Err(err!(Shape, "reference spinsert: rows of a matrix with {}, not {}", old.rows, new.rows));
            }
            for ((&row, &col), &value) in new.row_idxs.iter().zip(&new.col_idxs).zip(&new.values) {
                let mut slots = (0..old.width).map(|k| k * old.rows + row as usize);
                match slots.find(|&slot| ell.col_idxs.get(slot) == Some(&PADDING)) {
                    Some(slot) => (ell.col_idxs[slot], ell.values[slot]) = (col, value),
                    None => missing += 1,
                }
            }
            Ok((HostMatrix::Ell(if missing > 0 { old.clone() } else { ell }), missing))
        }
        _ => Err(err!(InvalidArgument, "reference spinsert: only coordinates and ELL have room for new entries")),
    }
}

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
#[path = "tests/sparse.rs"]
mod tests;

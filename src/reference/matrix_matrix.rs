use super::gemm::{ProductOperands, may_run_on_matrices, on_matrices, with_scalars};
use super::prelude::*;
use super::{gemm, gemm_bound};
use crate::dense::{
    BatchLayout, Cgemm, DenseLayout, Gemm, GemmBatched, GemmGrouped, Product, Symm, Syr2k, Syrk, Trmm, Trsm,
};

judges! {
    symm => judge_symm, syrk => judge_syrk, syr2k => judge_syr2k, trmm => judge_trmm, trsm => judge_trsm,
    cgemm => judge_cgemm, gemm_grouped => judge_gemm_grouped, gemm_batched => judge_gemm_batched
}

fn judge_symm(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, b) = (descriptor::<Symm>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let shape = output_shape(call, 0);
    let c = optional_input::<f32>(call, 2)?.map_or(vec![0.0; shape.iter().product()], <[f32]>::to_vec);
    let (want, bound) = (symm(op, a, b, &c)?, symm_bound(op, a, b, &c)?);
    Ok(vec![Wanted::rounded(DType::F32, &shape, &want, &bound)?])
}

/// Calls `of` with the factors in order.
fn whole<R>(op: &Symm, a: &[f32], b: &[f32], of: impl FnOnce(&[f32], &[f32]) -> R) -> R {
    let n = op.triangle.side();
    let element = |i: usize| {
        let (row, column) = (i / n, i % n);
        op.triangle.at(row, column).or(op.triangle.at(column, row)).map_or(0.0, |at| a[at])
    };
    let elements = if op.alpha == 0.0 || op.triangle.others() == 0 { 0 } else { n * n };
    let whole: Vec<f32> = (0..n * n).map(|i| if elements > 0 { element(i) } else { 0.0 }).collect();
    if op.triangle.right { of(b, &whole) } else { of(&whole, b) }
}

/// Returns C in `f64`, not rounded, with the elements of `c` between its rows.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): `b` or `c` is too short.
pub fn symm(op: &Symm, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    whole(op, a, b, |a, b| gemm(&Gemm { product: op.product() }, a, b, None, c))
}

/// Returns the error bound of each element, computed in f32.
pub fn symm_bound(op: &Symm, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    whole(op, a, b, |a, b| gemm_bound(&Gemm { product: op.product() }, a, b, None, c))
}

fn judge_syrk(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, c) = (descriptor::<Syrk>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let (want, bound) = (syrk(op, a, c)?, syrk_bound(op, a, c)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Takes the elements of a triangle of an `n` x `n` matrix from the product, and others from `rest`. `full` takes all,
/// `upper` the upper triangle.
pub(super) fn triangle(
    ld: usize, n: usize, [full, upper]: [bool; 2], product: &[f64], rest: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let written = |i: usize| {
        let (row, column) = (i / ld.max(1), i % ld.max(1));
        let asked = full || if upper { row <= column } else { column <= row };
        row < n && column < n && asked
    };
    product.iter().enumerate().map(|(i, x)| if written(i) { *x } else { rest(i) }).collect()
}

/// Returns C in `f64`, not rounded; elements outside of the triangle are those of `c`.
pub fn syrk(op: &Syrk, a: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let product = gemm(&Gemm { product: op.product() }, a, a, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &product, |i| c[i].into()))
}

/// Returns the error bound of each element, computed in f32: 0 outside of the triangle.
pub fn syrk_bound(op: &Syrk, a: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let bound = gemm_bound(&Gemm { product: op.product() }, a, a, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &bound, |_| 0.0))
}

fn judge_syr2k(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Syr2k>(call)?;
    let (a, b, c) = (input::<f32>(call, 0)?, input::<f32>(call, 1)?, input::<f32>(call, 2)?);
    let (want, bound) = (syr2k(op, a, b, c)?, syr2k_bound(op, a, b, c)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// The rows of a factor, one after another.
fn rows<'a>(op: &Syr2k, x: &'a [f32], pitch: usize) -> Result<Vec<&'a [f32]>> {
    let [rows, columns] = op.update.stored();
    let row = |i: usize| {
        let begin = i * pitch;
        x.get(begin..begin + columns).ok_or_else(|| err!(Shape, "reference syr2k: a factor is too short"))
    };
    (0..rows).map(row).collect()
}

fn sides(op: &Syr2k, a: &[f32], b: &[f32]) -> Result<[Vec<f32>; 2]> {
    let [lda, ldb] = op.pitches();
    let (a, b) = (rows(op, a, lda)?, rows(op, b, ldb)?);
    let join = |first: &[&[f32]], second: &[&[f32]]| match op.update.trans {
        true => [first.concat(), second.concat()].concat(),
        false => first.iter().zip(second).flat_map(|(x, y)| [*x, *y].concat()).collect(),
    };
    Ok([join(&a, &b), join(&b, &a)])
}

/// Returns C in `f64`, not rounded; elements outside of the triangle are those of `c`.
pub fn syr2k(op: &Syr2k, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let [left, right] = sides(op, a, b)?;
    let product = gemm(&Gemm { product: op.product() }, &left, &right, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &product, |i| c[i].into()))
}

/// Returns the error bound of each element, computed in f32: 0 outside of the triangle.
pub fn syr2k_bound(op: &Syr2k, a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    let [left, right] = sides(op, a, b)?;
    let bound = gemm_bound(&Gemm { product: op.product() }, &left, &right, None, c)?;
    Ok(triangle(op.product().layout_c().ld, op.update.n, [op.update.full, op.update.upper], &bound, |_| 0.0))
}

fn judge_trmm(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, a, b) = (descriptor::<Trmm>(call)?, input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let (want, bound) = (trmm(op, a, b), trmm_bound(op, a, b));
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// Makes each element of C, row by row without gaps, from the products of its sum.
fn trmm_each(op: &Trmm, a: &[f32], b: &[f32], of: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let triangle = op.triangle;
    let ldb = triangle.layout_b().ld;
    let element = |row: usize, column: usize| {
        let term = |i: usize| {
            let (of_a, of_b) = match triangle.right {
                true => ([i, column], row * ldb + i),
                false => ([row, i], i * ldb + column),
            };
            let at = triangle.at(of_a[0], of_a[1])?;
            let factor = if of_a[0] == of_a[1] && triangle.unit { 1.0 } else { f64::from(a[at]) };
            Some(factor * f64::from(b[of_b]))
        };
        if op.alpha == 0.0 { 0.0 } else { of(&(0..triangle.side()).filter_map(term).collect::<Vec<_>>()) }
    };
    (0..triangle.m)
        .flat_map(|row| (0..triangle.n).map(move |column| (row, column)))
        .map(|(r, c)| element(r, c))
        .collect()
}

/// Returns C in `f64`, not rounded and without gaps between its rows.
pub fn trmm(op: &Trmm, a: &[f32], b: &[f32]) -> Vec<f64> {
    trmm_each(op, a, b, |terms| f64::from(op.alpha) * terms.iter().sum::<f64>())
}

/// Returns the error bound of each element, computed in f32. Nothing is promised where a sum may overflow.
pub fn trmm_bound(op: &Trmm, a: &[f32], b: &[f32]) -> Vec<f64> {
    let alpha = f64::from(op.alpha.abs());
    let largest = a.iter().chain(b).filter(|x| x.is_finite()).fold(1.0f64, |most, x| most.max(x.abs().into()));
    // Factors that a device takes for 0.
    let tiny = 4.0 * f64::from(f32::MIN_POSITIVE) * largest * (1.0 + alpha);
    trmm_each(op, a, b, |terms| {
        let size: f64 = terms.iter().map(|x| x.abs()).sum();
        // Not where it is NaN.
        let fits = size * alpha.max(1.0) < f32::MAX.into();
        let steps = (terms.len() + 16) as f64;
        if fits { steps * (2f64.powi(-23) * alpha * size + tiny) } else { f64::INFINITY }
    })
}

fn judge_trsm(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_cgemm(call: &OpCall) -> Result<Vec<Wanted>> {
    product(call, descriptor::<Cgemm>(call)?)
}

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
fn cgemm_each<S>(
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
    cgemm_each(op, [a, b, c], add).into_iter().flat_map(of).collect()
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
    cgemm_each(op, [a, b, c], add).into_iter().flat_map(of).collect()
}

fn judge_gemm_grouped(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<GemmGrouped>(call)?;
    let (begins, lens) = op.packed()?;
    let c = optional_input::<f32>(call, 2)?.map_or(vec![0.0; lens[2]], <[f32]>::to_vec);
    let (a, b) = (input::<f32>(call, 0)?, input::<f32>(call, 1)?);
    let (want, bound) = (gemm_grouped(op, &begins, a, b, &c)?, gemm_grouped_bound(op, &begins, a, b, &c)?);
    Ok(vec![Wanted::rounded(DType::F32, &output_shape(call, 0), &want, &bound)?])
}

/// A reference of one product: of the factors, a bias and the old contents.
type OneProduct = fn(&Gemm, &[f32], &[f32], Option<&[f32]>, &[f32]) -> Result<Vec<f64>>;

/// Writes what `f` makes of each product to its place among `rest`. Products that would leave an operand are left out.
fn gemm_grouped_each(
    op: &GemmGrouped, begins: &[[usize; 3]], [a, b, c]: [&[f32]; 3], mut all: Vec<f64>, f: OneProduct,
) -> Result<Vec<f64>> {
    for (&[m, n, k], begin) in op.shapes.iter().zip(begins) {
        let part =
            |x: &'_ [f32], begin: usize, len: usize| x.get(begin..begin.saturating_add(len)).map(<[f32]>::to_vec);
        let parts = [(a, begin[0], m * k), (b, begin[1], k * n), (c, begin[2], m * n)];
        if let [Some(a), Some(b), Some(c)] = parts.map(|(x, begin, len)| part(x, begin, len)) {
            let gemm = Gemm::new(m, n, k).alpha(op.alpha).beta(op.beta);
            all[begin[2]..begin[2] + m * n].copy_from_slice(&f(&gemm, &a, &b, None, &c)?);
        }
    }
    Ok(all)
}

/// Returns C in `f64`, not rounded. `begins` has the places of the matrices of each product.
pub fn gemm_grouped(op: &GemmGrouped, begins: &[[usize; 3]], a: &[f32], b: &[f32], c: &[f32]) -> Result<Vec<f64>> {
    gemm_grouped_each(op, begins, [a, b, c], c.iter().map(|&x| x.into()).collect(), gemm::<f32, f32>)
}

/// Returns the error bound of each element.
pub fn gemm_grouped_bound(
    op: &GemmGrouped, begins: &[[usize; 3]], a: &[f32], b: &[f32], c: &[f32],
) -> Result<Vec<f64>> {
    gemm_grouped_each(op, begins, [a, b, c], vec![0.0; c.len()], gemm_bound::<f32, f32>)
}

fn judge_gemm_batched(call: &OpCall) -> Result<Vec<Wanted>> {
    fn of<T: Number + Into<f64>, R: Number + Into<f64>>(call: &OpCall, op: &GemmBatched) -> Result<Vec<Wanted>> {
        let ProductOperands { a, b, bias, c } = ProductOperands::<T, R>::of(call, &op.product)?;
        let want = gemm_batched(op, a, b, bias, &c)?;
        let bound = if may_run_on_matrices(&op.product, T::DTYPE) {
            each_matrix(op, a, b, &c, vec![0.0; c.len()], |one, a, b, c| {
                on_matrices(one, a, b, &gemm(one, a, b, bias, c)?, &gemm_bound(one, a, b, bias, c)?)
            })?
        } else {
            gemm_batched_bound(op, a, b, bias, &c)?
        };
        Ok(vec![Wanted::rounded(R::DTYPE, &output_shape(call, 0), &want, &bound)?])
    }
    let op = &GemmBatched { product: with_scalars(call, &descriptor::<GemmBatched>(call)?.product)? };
    by_input!(call, 0, [f32, f16], T => {
        if op.product.mixed { of::<T, f32>(call, op) } else { of::<T, T>(call, op) }
    })
}

/// Computes `c` after `op`: `activation(alpha op(A[b]) op(B[b]) + beta C[b] + bias)` for every b, not rounded to
/// `R`.
///
/// `c` holds its old contents; elements between its rows and matrices are returned unchanged. `bias` has an element
/// for each column of C, or for each row with [`GemmBatched::with_row_bias`]. Factors and result may differ in
/// type, as with [`GemmBatched::mixed_precision`].
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): an operand is shorter than `op` needs; those of `op` for its strides.
pub fn gemm_batched<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &GemmBatched, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R],
) -> Result<Vec<f64>> {
    let before = c.iter().map(|&x| x.into()).collect();
    each_matrix(op, a, b, c, before, |one, a, b, c| gemm(one, a, b, bias, c))
}

/// Bounds the difference from [`gemm_batched`] of each element of `c`: [`gemm_bound`] for every matrix, 0 between
/// rows and matrices.
pub fn gemm_batched_bound<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &GemmBatched, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R],
) -> Result<Vec<f64>> {
    each_matrix(op, a, b, c, vec![0.0; c.len()], |one, a, b, c| gemm_bound(one, a, b, bias, c))
}

fn each_matrix<T, R>(
    op: &GemmBatched, a: &[T], b: &[T], c: &[R], mut out: Vec<f64>,
    result: impl Fn(&Gemm, &[T], &[T], &[R]) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let product = &op.product;
    let one = Gemm { product: Product { batched: false, batch: 1, strides: Some([0; 3]), ..product.clone() } };
    let layouts = product.layouts(&product.name())?;
    let part = |name, of: usize, matrix: usize| {
        let BatchLayout { span, stride, .. } = layouts[of];
        let from = if span == 0 { 0 } else { matrix * stride };
        let len = [a.len(), b.len(), c.len()][of];
        if from + span <= len {
            return Ok(from..from + span);
        }
        Err(err!(
            Shape,
            "reference gemm-batched: {name} has {len} elements; matrix {matrix} of {span} begins at {from}"
        ))
    };
    let DenseLayout { cols, ld, .. } = layouts[2].at;
    for matrix in 0..product.batch {
        let (at_a, at_b, at_c) = (part("a", 0, matrix)?, part("b", 1, matrix)?, part("c", 2, matrix)?);
        let computed = result(&one, &a[at_a], &b[at_b], &c[at_c.clone()])?;
        // Elements between its rows may belong to other matrices.
        for (to, row) in out[at_c].chunks_mut(ld.max(1)).zip(computed.chunks(ld.max(1))) {
            to[..cols].copy_from_slice(&row[..cols]);
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "tests/matrix_matrix.rs"]
mod tests;

use super::activate;
use super::maps::activation_errors;
use super::prelude::*;
use crate::dense::{Activation, DenseLayout, Gemm, Precision, Product};
use half::bf16;

judges! { gemm => judge_gemm }

fn judge_gemm(call: &OpCall) -> Result<Vec<Wanted>> {
    fn of<T: Number + Into<f64>, R: Number + Into<f64>>(call: &OpCall, op: &Gemm) -> Result<Vec<Wanted>> {
        let ProductOperands { a, b, bias, c } = ProductOperands::<T, R>::of(call, &op.product)?;
        let want = gemm(op, a, b, bias, &c)?;
        let mut bound = gemm_bound(op, a, b, bias, &c)?;
        if may_run_on_matrices(&op.product, T::DTYPE) {
            bound = on_matrices(op, a, b, &want, &bound)?;
        }
        Ok(vec![Wanted::rounded(R::DTYPE, &output_shape(call, 0), &want, &bound)?])
    }
    let op = &Gemm { product: with_scalars(call, &descriptor::<Gemm>(call)?.product)? };
    by_input!(call, 0, [f32, f16], T => {
        if op.product.mixed { of::<T, f32>(call, op) } else { of::<T, T>(call, op) }
    })
}

/// Returns the product with the alpha and beta of its operand, if it has one.
pub(super) fn with_scalars(call: &OpCall, product: &Product) -> Result<Product> {
    let mut product = product.clone();
    if product.scalars {
        let [alpha, beta] = [0, 1].map(|i| input::<f32>(call, 2).map(|scalars| scalars[i]));
        (product.alpha, product.beta) = (alpha?, beta?);
    }
    Ok(product)
}

/// Says if a device may compute the product on cooperative matrices.
pub(super) fn may_run_on_matrices(product: &Product, factors: DType) -> bool {
    match product.precision {
        Precision::Exact => false,
        Precision::Strict => product.variant == "coop" || product.variant == "auto" && factors == DType::F16,
        Precision::Split | Precision::Tensor => true,
    }
}

/// The factors, the bias, and the old contents of C: zeros, which no op reads, if they are not given.
pub(super) struct ProductOperands<'a, T, R> {
    pub(super) a: &'a [T],
    pub(super) b: &'a [T],
    pub(super) bias: Option<&'a [R]>,
    pub(super) c: Vec<R>,
}

impl<'a, T: Element, R: Element> ProductOperands<'a, T, R> {
    pub(super) fn of(call: &'a OpCall, op: &Product) -> Result<Self> {
        let first = 2 + usize::from(op.scalars);
        let bias = op.bias.then(|| input(call, first)).transpose()?;
        let at = first + usize::from(op.bias);
        let c = if call.inputs().count() > at {
            input(call, at)?.to_vec()
        } else {
            vec![R::default(); output_shape(call, 0).iter().product()]
        };
        Ok(Self { a: input(call, 0)?, b: input(call, 1)?, bias, c })
    }
}

/// The largest difference from `want` on cooperative matrices: four times `bound` of [`gemm_bound`], since they
/// truncate sums, plus the rounding of f32 factors. An element rounded to f16 loses 2^-10 of itself or, if it is
/// smaller, 2^-24. Nothing is promised above the largest f16, or for an infinite result: infinity times a 0 is NaN.
pub(super) fn on_matrices<T: Number + Into<f64>>(
    op: &Gemm, a: &[T], b: &[T], want: &[f64], bound: &[f64],
) -> Result<Vec<f64>> {
    if T::DTYPE == DType::F16 {
        return Ok(bound.iter().map(|bound| 4.0 * bound).collect());
    }
    let terms = op.clone().beta(0.0).activation(Activation::None);
    let zeros = vec![0f32; want.len()];
    let product = |size: fn(f64) -> f64| {
        let sizes = |x: &[T]| x.iter().map(|x| size(x.to_f64().abs()) as f32).collect::<Vec<_>>();
        gemm(&terms, &sizes(a), &sizes(b), None, &zeros)
    };
    let sizes = product(|x| x)?;
    let lost: Vec<f64> = if op.product.precision == Precision::Split {
        sizes.iter().map(|size| 2f64.powi(-20) * size.abs()).collect()
    } else {
        let most = |x| {
            if x > f16::MAX.to_f64() { f64::INFINITY } else { x * (1.0 + 2f64.powi(-10)) + 2f64.powi(-24) }
        };
        product(most)?.iter().zip(&sizes).map(|(most, size)| (most - size).abs()).collect()
    };
    let (slope, _) = activation_errors(op.product.activation);
    let of = |(i, bound): (usize, &f64)| {
        if want[i].is_infinite() { f64::INFINITY } else { 4.0 * bound + slope * lost[i] }
    };
    Ok(bound.iter().enumerate().map(of).collect())
}

/// Computes `c` after `op`: `activation(alpha op(A) op(B) + beta C + bias)`, not rounded to `R`.
///
/// `c` holds its old contents; elements between its rows are returned unchanged. `bias` has an element for each
/// column of C, or for each row with [`Gemm::with_row_bias`]. Factors and result may differ in type, as with
/// [`Gemm::mixed_precision`].
pub fn gemm<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &Gemm, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R],
) -> Result<Vec<f64>> {
    each_element(op, a, b, bias, c, |_, sums| activate(op.product.activation, sums.value))
}

/// Bounds the difference from [`gemm`] of each element of `c` after `op` ran in f32 and rounded to `R`.
///
/// With u = 2^-24 and `gamma(j) = j u / (1 - j u)` (Higham, *Accuracy and Stability of Numerical Algorithms*,
/// section 3.1), a sum of k products in any order, scaled, with two terms added, has an error of at most
/// `gamma(k + 4) (|alpha| |A| |B| + |beta C| + |bias|)`. The steepest slope of the activation scales that; its own
/// error and the rounding to `R` are added. The bound is 0 for elements between the rows, infinite if a sum or the
/// result may overflow, and NaN if the result is infinite or NaN.
pub fn gemm_bound<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &Gemm, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R],
) -> Result<Vec<f64>> {
    let u = 2f64.powi(-24);
    let terms = if op.product.alpha == 0.0 { 4.0 } else { op.product.k as f64 + 4.0 };
    // Beyond 1 / u terms there is no bound.
    let gamma = if terms * u < 1.0 { terms * u / (1.0 - terms * u) } else { f64::INFINITY };
    let (slope, own) = activation_errors(op.product.activation);
    // WGSL lets a conversion to f16 take either neighbour, and a device flush subnormal numbers.
    let (round, flush, largest) = match R::DTYPE {
        DType::F16 => (2f64.powi(-10), 2f64.powi(-14), f16::MAX.to_f64()),
        DType::Bf16 => (2f64.powi(-7), terms * 2f64.powi(-126), bf16::MAX.to_f64()),
        _ => (0.0, terms * 2f64.powi(-126), f64::from(f32::MAX)),
    };
    let mut bound = vec![0.0; c.len()];
    each_element(op, a, b, bias, c, |at, sums| {
        let y = activate(op.product.activation, sums.value);
        let error = slope * gamma * sums.magnitude + own * (1.0 + y.abs());
        let error = error + round * (y.abs() + error) + flush;
        bound[at] = match y.is_finite() {
            true if sums.largest > f64::from(f32::MAX) || y.abs() + error > largest => f64::INFINITY,
            true => error,
            false => f64::NAN,
        };
        y
    })?;
    Ok(bound)
}

struct ElementSums {
    value: f64,
    /// The same with every term made positive.
    magnitude: f64,
    /// The largest possible intermediate sum.
    largest: f64,
}

impl ElementSums {
    fn add(&mut self, term: f64, size: f64) {
        self.value += term;
        self.magnitude += size;
        self.largest = self.largest.max(self.magnitude);
    }
}

fn each_element<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &Gemm, a: &[T], b: &[T], bias: Option<&[R]>, c: &[R], mut result: impl FnMut(usize, ElementSums) -> f64,
) -> Result<Vec<f64>> {
    let op = &op.product;
    let (at_a, at_b, at_c) = (op.layout_a(), op.layout_b(), op.layout_c());
    let operands = [("a", a.len(), at_a), ("b", b.len(), at_b), ("c", c.len(), at_c)];
    for (name, len, DenseLayout { rows, cols, ld }) in operands {
        if rows > 0 && cols > 0 && len < (rows - 1) * ld + cols {
            return Err(err!(
                Shape,
                "reference gemm: {name} has {len} elements; {rows} rows of {cols}, {ld} apart, need more"
            ));
        }
    }
    let (extent, wanted) = if op.row_bias { ("m", op.m) } else { ("n", op.n) };
    if bias.is_some_and(|bias| bias.len() < wanted) {
        return Err(err!(Shape, "reference gemm: bias has fewer than {extent} = {wanted} elements"));
    }
    let (alpha, beta) = (f64::from(op.alpha), f64::from(op.beta));
    let mut out: Vec<f64> = c.iter().map(|&x| x.into()).collect();
    for row in 0..op.m {
        for col in 0..op.n {
            let at = row * at_c.ld + col;
            // op(A) op(B), and the same with every term made positive.
            let (mut product, mut size) = (0.0, 0.0);
            let terms = if op.alpha == 0.0 { 0 } else { op.k };
            for i in 0..terms {
                let x: f64 = a[if op.trans_a { i * at_a.ld + row } else { row * at_a.ld + i }].into();
                let y: f64 = b[if op.trans_b { col * at_b.ld + i } else { i * at_b.ld + col }].into();
                product += x * y;
                size += (x * y).abs();
            }
            let mut sums = ElementSums { value: 0.0, magnitude: 0.0, largest: size };
            if terms > 0 {
                sums.add(alpha * product, alpha.abs() * size);
            }
            if op.beta != 0.0 {
                let term = beta * c[at].into();
                sums.add(term, term.abs());
            }
            if let Some(bias) = bias {
                let term = bias[if op.row_bias { row } else { col }].into();
                sums.add(term, term.abs());
            }
            out[at] = result(at, sums);
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "tests/gemm.rs"]
mod tests;

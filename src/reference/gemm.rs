//! The matrix product, element by element in f64.

use super::Number;
use super::activate;
use super::activation::activation_errors;
use super::judge::{Wanted, by_input, descriptor, input, output_shape};
use crate::dense::{Activation, DenseLayout, Gemm, Precision, Product};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::OpCall;
use half::{bf16, f16};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
    /// Reads the operands of a call of `op`.
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
    op: &Gemm,
    a: &[T],
    b: &[T],
    want: &[f64],
    bound: &[f64],
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
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): an operand is shorter than `op` needs.
pub fn gemm<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &Gemm,
    a: &[T],
    b: &[T],
    bias: Option<&[R]>,
    c: &[R],
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
///
/// # Errors
/// As [`gemm`].
pub fn gemm_bound<T: Element + Into<f64>, R: Element + Into<f64>>(
    op: &Gemm,
    a: &[T],
    b: &[T],
    bias: Option<&[R]>,
    c: &[R],
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

/// An element before the activation.
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
    op: &Gemm,
    a: &[T],
    b: &[T],
    bias: Option<&[R]>,
    c: &[R],
    mut result: impl FnMut(usize, ElementSums) -> f64,
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
mod tests {
    use super::*;
    use crate::Activation;

    const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const B: [f32; 6] = [7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    /// (1 2 3; 4 5 6) (7 8; 9 10; 11 12).
    const AB: [f64; 4] = [58.0, 64.0, 139.0, 154.0];

    #[test]
    fn product_of_2x3_and_3x2_is_known() {
        assert_eq!(gemm(&Gemm::new(2, 2, 3), &A, &B, None, &[0.0; 4]).unwrap(), AB);
    }

    #[test]
    fn transposed_factors_give_the_same_product() {
        let at = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0f32];
        let bt = [7.0, 9.0, 11.0, 8.0, 10.0, 12.0f32];
        let op = Gemm::new(2, 2, 3);
        assert_eq!(gemm(&op.clone().trans_a(), &at, &B, None, &[0.0; 4]).unwrap(), AB);
        assert_eq!(gemm(&op.clone().trans_b(), &A, &bt, None, &[0.0; 4]).unwrap(), AB);
        assert_eq!(gemm(&op.trans_a().trans_b(), &at, &bt, None, &[0.0; 4]).unwrap(), AB);
    }

    #[test]
    fn alpha_beta_bias_and_activation_follow_the_formula() {
        let op = Gemm::new(2, 2, 3).alpha(2.0).beta(-1.0).activation(Activation::Relu);
        let c = [100.0, 200.0, 300.0, 400.0];
        let got = gemm(&op, &A, &B, Some(&[5.0, -50.0]), &c).unwrap();
        assert_eq!(got, [116.0 - 100.0 + 5.0, 0.0, 0.0, 0.0]);
        let rows = Gemm::new(2, 2, 3).with_row_bias();
        assert_eq!(gemm(&rows, &A, &B, Some(&[1.0, -2.0]), &[0.0; 4]).unwrap(), [59.0, 65.0, 137.0, 152.0]);
        let tall = Gemm::new(3, 1, 0).with_row_bias();
        assert!(gemm::<f32, f32>(&tall, &[], &[], Some(&[1.0]), &[0.0; 3]).is_err());
        let sigmoid = Gemm::new(1, 1, 1).activation(Activation::Sigmoid);
        assert_eq!(gemm(&sigmoid, &[0.0f32], &[3.0], None, &[0.0]).unwrap(), [0.5]);
    }

    #[test]
    fn operands_with_factor_0_are_not_read() {
        let nan = [f32::NAN; 6];
        let op = Gemm::new(2, 2, 3);
        assert_eq!(gemm(&op, &A, &B, None, &nan[..4]).unwrap(), AB);
        let c = [1.0, 2.0, 3.0, 4.0f32];
        let scaled = [3.0, 6.0, 9.0, 12.0];
        assert_eq!(gemm(&op.alpha(0.0).beta(3.0), &nan, &nan, None, &c).unwrap(), scaled);
        assert_eq!(gemm::<f32, _>(&Gemm::new(2, 2, 0).beta(3.0), &[], &[], None, &c).unwrap(), scaled);
    }

    #[test]
    fn nan_and_infinities_pass_through_the_product() {
        let a = [f32::INFINITY, 1.0, f32::NAN, 1.0];
        let got = gemm(&Gemm::new(2, 2, 2), &a, &[1.0, 0.0, 1.0, 1.0], None, &[0.0; 4]).unwrap();
        assert_eq!(got[0], f64::INFINITY);
        assert!(got[1].is_nan() && got[2].is_nan() && got[3].is_nan());
    }

    #[test]
    fn leading_dimensions_skip_elements_between_rows() {
        let a = [1.0, 2.0, 3.0, -9.0, 4.0, 5.0, 6.0f32];
        let b = [7.0, 8.0, -9.0, -9.0, 9.0, 10.0, -9.0, -9.0, 11.0, 12.0];
        let c = [0.0, 0.0, 77.0, 0.0, 0.0];
        let op = Gemm::new(2, 2, 3).lda(4).ldb(4).ldc(3);
        assert_eq!(gemm(&op, &a, &b, None, &c).unwrap(), [58.0, 64.0, 77.0, 139.0, 154.0]);
        let bound = gemm_bound(&op, &a, &b, None, &c).unwrap();
        assert!(bound[2] == 0.0 && bound[0] > 0.0);
        assert!(gemm(&op, &a[..6], &b, None, &c).is_err());
    }

    #[test]
    fn the_bound_is_infinite_if_a_sum_may_overflow() {
        let bound = |a: &[f32], op: Gemm| gemm_bound(&op, a, &[1.0, 1.0], None, &[0.0]).unwrap()[0];
        let op = Gemm::new(1, 1, 2);
        assert_eq!(bound(&[f32::MAX, -f32::MAX], op.clone()), f64::INFINITY);
        assert_eq!(bound(&[f32::MAX, f32::MAX], op.clone().alpha(0.25)), f64::INFINITY);
        assert_eq!(bound(&[1e38, 1e38], op.clone().alpha(4.0)), f64::INFINITY);
        assert!(bound(&[1e38, 1e38], op.clone()) < 1e33);
        let (large, one) = (f16::from_f32(40_000.0), f16::ONE);
        let halves = gemm_bound(&op, &[large, large], &[one, one], None, &[f16::ZERO]).unwrap();
        assert_eq!(halves, [f64::INFINITY]);
    }

    #[test]
    fn bound_covers_the_same_sum_in_f32_and_f16() {
        let k = 1000;
        let a: Vec<f32> = (0..k).map(|i| (i as f32 * 0.37).sin()).collect();
        let b: Vec<f32> = (0..k).map(|i| (i as f32 * 0.91).cos()).collect();
        let single: f32 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
        let op = Gemm::new(1, 1, k);
        let exact = gemm(&op, &a, &b, None, &[0.0]).unwrap()[0];
        let bound = gemm_bound(&op, &a, &b, None, &[0.0]).unwrap()[0];
        assert!((f64::from(single) - exact).abs() <= bound && bound < 0.05, "{single} {exact} {bound}");

        let half = |x: &[f32]| x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
        let (a, b, c) = (half(&a), half(&b), [f16::ZERO]);
        let exact = gemm(&op, &a, &b, None, &c).unwrap()[0];
        let bound = gemm_bound(&op, &a, &b, None, &c).unwrap()[0];
        assert!((f64::from(f16::from_f64(exact)) - exact).abs() <= bound && bound < 0.1, "{exact} {bound}");
    }
}

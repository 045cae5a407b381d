//! Cases of products of dense matrices.

use super::draw::{Contents, Draw, typed};
use super::guarded::Case;
use crate::support::Sample;
use half::f16;
use tilework::DType;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference;

/// The number of elements of a matrix with rows `ld` apart.
fn len(rows: usize, cols: usize, ld: usize) -> usize {
    if rows * cols == 0 { 0 } else { (rows - 1) * ld + cols }
}

/// Rows and the leading dimension, of the matrix or of its transpose.
fn stored(draw: &mut Draw, rows: usize, cols: usize, trans: bool) -> (usize, usize, usize) {
    let (rows, cols) = if trans { (cols, rows) } else { (rows, cols) };
    (rows, cols, cols + draw.pick(&[0, 1, 4]))
}

const FACTORS: [(f32, f32); 4] = [(1.0, 0.0), (-0.5, 1.0), (2.0, -0.25), (0.0, 3.0)];

pub(super) fn gemm(draw: &mut Draw) -> Case {
    fn of<T: Sample + Into<f64>>(draw: &mut Draw) -> Case
    where
        Gemm: Op<T>,
    {
        let op = ProductCase::draw(draw, Gemm::variants());
        let (gemm, bias_len, a, b, c) = op.operands::<T, T>(draw);
        let bias = (bias_len > 0).then(|| draw.special::<T>(bias_len));
        let want = reference::gemm(&gemm, &a, &b, bias.as_deref(), &c).unwrap();
        let bound = reference::gemm_bound(&gemm, &a, &b, bias.as_deref(), &c).unwrap();
        let gemm_of = gemm.clone();
        let case = match (&bias, op.row_bias) {
            (None, _) => Case::new::<T>(gemm).given(&a).given(&b),
            (Some(bias), true) => Case::new::<T>(gemm.with_row_bias()).given(&a).given(&b).given(bias),
            (Some(bias), false) => Case::new::<T>(gemm.with_bias()).given(&a).given(&b).given(bias),
        };
        let rounded = on_matrices(&gemm_of, &a, &b, &bound);
        case.updated(&c, want, bound).on_matrices(rounded)
    }
    fn widened<T: Sample>(draw: &mut Draw) -> Case {
        let op = ProductCase { bias: false, ..ProductCase::draw(draw, Gemm::variants()) };
        let (gemm, _, a, b, c) = op.operands::<f16, f32>(draw);
        let want = reference::gemm(&gemm, &a, &b, None, &c).unwrap();
        let bound = reference::gemm_bound(&gemm, &a, &b, None, &c).unwrap();
        let rounded = on_matrices(&gemm, &a, &b, &bound);
        Case::new::<f16>(gemm.mixed_precision()).given(&a).given(&b).updated(&c, want, bound).on_matrices(rounded)
    }
    let forms: [fn(&mut Draw) -> Case; 4] = [of::<f32>, of::<f32>, of::<f16>, widened::<f16>];
    draw.option(&forms)(draw)
}

/// Bounds for cooperative matrices: the hardware truncates sums, and f32 is rounded to either neighbour in f16.
fn on_matrices<T: Sample + Into<f64>>(gemm: &Gemm, a: &[T], b: &[T], bound: &[f64]) -> Vec<f64> {
    let cut = bound.iter().map(|b| 4.0 * b);
    if T::DTYPE != DType::F32 {
        return cut.collect();
    }
    let positive = |x: &[T]| x.iter().map(|x| T::from_f64((*x).into().abs())).collect::<Vec<_>>();
    let sizes = gemm.clone().beta(0.0).activation(Activation::None);
    let sizes = reference::gemm(&sizes, &positive(a), &positive(b), None, &vec![0f32; bound.len()]).unwrap();
    // And the smallest step of f16, for at most 90 terms times 2; no activation is steeper.
    let small = 180.0 / (1 << 24) as f64;
    cut.zip(sizes).map(|(cut, size)| cut + 1.13 * (2.1 / 1024.0 * size.abs() + small)).collect()
}

/// A product of matrices.
struct ProductCase {
    trans_a: bool,
    trans_b: bool,
    bias: bool,
    row_bias: bool,
    activation: Activation,
    variant: &'static str,
}

impl ProductCase {
    fn draw(draw: &mut Draw, variants: &'static [tilework::program::Variant]) -> Self {
        let trues = [false, true];
        Self {
            trans_a: draw.option(&trues),
            trans_b: draw.option(&trues),
            bias: draw.option(&trues),
            row_bias: draw.option(&trues),
            activation: draw.option(&Activation::ALL),
            variant: draw.variant(variants),
        }
    }

    /// The op, and the number of elements of its bias, a, b and c.
    fn operands<T: Sample, R: Sample>(&self, draw: &mut Draw) -> (Gemm, usize, Vec<T>, Vec<T>, Vec<R>) {
        let (m, n, k) = (draw.length(0, 70), draw.length(0, 70), draw.length(0, 90));
        let (alpha, beta) = draw.pick(&FACTORS);
        let (rows_a, cols_a, lda) = stored(draw, m, k, self.trans_a);
        let (rows_b, cols_b, ldb) = stored(draw, k, n, self.trans_b);
        let (_, _, ldc) = stored(draw, m, n, false);
        let mut gemm = Gemm::new(m, n, k)
            .alpha(alpha)
            .beta(beta)
            .when(self.trans_a, |op| op.trans_a())
            .when(self.trans_b, |op| op.trans_b());
        gemm = gemm.lda(lda).ldb(ldb).ldc(ldc).activation(self.activation).variant(self.variant);
        // Numbers outside the range of f16 become infinite when `coop` rounds them.
        let like = if self.variant == "coop" && T::DTYPE == DType::F32 { Contents::Unit } else { Contents::Special };
        let a = draw.elements(len(rows_a, cols_a, lda), like);
        let b = draw.elements(len(rows_b, cols_b, ldb), like);
        let c = draw.special(len(m, n, ldc));
        let bias = match (self.bias, self.row_bias) {
            (false, _) => 0,
            (true, true) => m,
            (true, false) => n,
        };
        let gemm = match (bias > 0, self.row_bias) {
            (true, true) => gemm.with_row_bias(),
            _ => gemm,
        };
        (gemm, bias, a, b, c)
    }
}

pub(super) fn gemm_batched(draw: &mut Draw) -> Case {
    fn of<T: Sample + Into<f64>>(draw: &mut Draw) -> Case
    where
        GemmBatched: Op<T>,
    {
        let mut form = ProductCase::draw(draw, GemmBatched::variants());
        // Elements of f32 would be rounded; `gemm` covers that.
        if T::DTYPE == DType::F32 && form.variant == "coop" {
            form.variant = "auto";
        }
        let (batch, m, n, k) = (draw.length(0, 9), draw.length(0, 40), draw.length(0, 40), draw.length(0, 40));
        let (alpha, beta) = draw.pick(&FACTORS);
        let (rows_a, cols_a, lda) = stored(draw, m, k, form.trans_a);
        let (rows_b, cols_b, ldb) = stored(draw, k, n, form.trans_b);
        let (_, _, ldc) = stored(draw, m, n, false);
        // Batch strides: packed, with a gap, or one A for all.
        let (a, b, c) = (len(rows_a, cols_a, lda), len(rows_b, cols_b, ldb), len(m, n, ldc));
        let gap = draw.pick(&[0, 3]);
        let strides = (draw.pick(&[a + gap, 0]), b + gap, c + gap);
        let whole = |each: usize, stride| if batch == 0 || each == 0 { 0 } else { (batch - 1) * stride + each };
        let op = GemmBatched::new(batch, m, n, k).alpha(alpha).beta(beta).when(form.trans_a, |op| op.trans_a());
        let op = op
            .when(form.trans_b, |op| op.trans_b())
            .lda(lda)
            .ldb(ldb)
            .ldc(ldc)
            .strides(strides.0, strides.1, strides.2);
        let op = op.activation(form.activation).variant(form.variant);
        let a = draw.special::<T>(whole(a, strides.0));
        let b = draw.special::<T>(whole(b, strides.1));
        let c = draw.special::<T>(whole(c, strides.2));
        if form.bias {
            let bias = draw.special::<T>(if form.row_bias { m } else { n });
            let biased = if form.row_bias { op.with_row_bias() } else { op.with_bias() };
            let want = reference::gemm_batched(&biased, &a, &b, Some(&bias), &c).unwrap();
            let bound = reference::gemm_batched_bound(&biased, &a, &b, Some(&bias), &c).unwrap();
            let cut = bound.iter().map(|b| 4.0 * b).collect();
            let case = Case::new::<T>(biased).given(&a).given(&b).given(&bias);
            return case.updated(&c, want, bound).on_matrices(cut);
        }
        let want = reference::gemm_batched(&op, &a, &b, None, &c).unwrap();
        let bound = reference::gemm_batched_bound(&op, &a, &b, None, &c).unwrap();
        let cut = bound.iter().map(|b| 4.0 * b).collect();
        Case::new::<T>(op).given(&a).given(&b).updated(&c, want, bound).on_matrices(cut)
    }
    typed!(draw, of, [f32, f16])
}

pub(super) fn gemv(draw: &mut Draw) -> Case {
    fn of<T: Sample + Into<f64>>(draw: &mut Draw) -> Case
    where
        Gemv: Op<T>,
    {
        let (trans, variant) = (draw.option(&[false, true]), draw.variant(Gemv::variants()));
        let (m, k) = (draw.length(0, 300), draw.length(0, 300));
        let (alpha, beta) = draw.pick(&FACTORS);
        let lda = k + draw.pick(&[0, 1, 4]);
        let (terms, outputs) = if trans { (m, k) } else { (k, m) };
        let a = draw.special::<T>(len(m, k, lda));
        let (x, y) = (draw.special::<T>(terms), draw.special::<T>(outputs));
        let op = Gemv::new(m, k).when(trans, |op| op.trans()).lda(lda).alpha(alpha).beta(beta).variant(variant);
        let want = reference::gemv(&op, &a, &x, &y).unwrap();
        let bound = reference::gemv_bound(&op, &a, &x, &y).unwrap();
        Case::new::<T>(op).given(&a).given(&x).updated(&y, want, bound)
    }
    typed!(draw, of, [f32, f16])
}

use super::prelude::*;
use super::{gemm, gemm_bound};
use crate::dense::{Gemm, GemmGrouped};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
fn each(
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
    each(op, begins, [a, b, c], c.iter().map(|&x| x.into()).collect(), gemm::<f32, f32>)
}

/// Returns the error bound of each element.
pub fn gemm_grouped_bound(
    op: &GemmGrouped, begins: &[[usize; 3]], a: &[f32], b: &[f32], c: &[f32],
) -> Result<Vec<f64>> {
    each(op, begins, [a, b, c], vec![0.0; c.len()], gemm_bound::<f32, f32>)
}

#[cfg(test)]
#[path = "tests/gemm_grouped.rs"]
mod tests;

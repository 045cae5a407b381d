//! Attention on tensor cores against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, assert_close, numbers};
use half::{bf16, f16};
use tilework::attention::Attention;
use tilework::cuda::CudaOp;
use tilework::prelude::*;
use tilework::reference::{AttentionInputs, Number, attention, attention_bound};
use tilework::{Element, ErrorKind};

/// Runs every variant and holds it against the reference: `attention_bound`, four times over as the hardware cuts sums
/// off, and `rounding` of the mean of the values made positive, for weights that are rounded to the type of the values.
fn check<T: Element + Number + Into<f64>>(
    shape: [usize; 6],
    rounding: f64,
    with: impl Fn(Attention) -> Attention,
) where
    Attention: CudaOp<T>,
{
    let Some(cuda) = cuda() else { return };
    let [b, h, g, t, s, d] = shape;
    let op = with(Attention::new(b, h, g, t, s, d));
    let mut random = Random::new((t * 31 + s * 7 + d) as u64);
    let mut elements =
        |n: usize, scale: f64| (0..n).map(|_| T::from_f64(scale * random.unit())).collect::<Vec<T>>();
    let (q, k, v) =
        (elements(b * h * t * d, 3.0), elements(b * g * s * d, 1.0), elements(b * g * s * d, 1.0));
    let none = AttentionInputs::default();
    let want = numbers(&attention(&op, &q, &k, &v, none));
    let sizes: Vec<T> = v.iter().map(|x| T::from_f64((*x).into().abs())).collect();
    let sizes = numbers(&attention(&op, &q, &k, &sizes, none));
    let bound = attention_bound(&op, &q, &k, &v, none);
    let bound: Vec<f64> =
        bound.iter().zip(sizes).map(|(bound, size)| 4.0 * bound + rounding * size).collect();

    let [q, k, v] = [&q, &k, &v].map(|x| cuda.upload(x).unwrap());
    for variant in Attention::cuda_variants() {
        let op = op.clone().variant(variant.name);
        let plan = match op.plan::<T>(cuda) {
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            plan => plan.unwrap(),
        };
        let output = cuda.upload(&vec![T::from_f64(f64::NAN); q.len()]).unwrap();
        plan.run(&cuda.stream().unwrap(), &q, &k, &v, &output).unwrap();
        let what = format!("{} {} {op:?}", variant.name, T::DTYPE);
        assert_close(&what, &numbers(&output.read().unwrap()), &want, &bound);
    }
}

/// Of both types.
fn both(shape: [usize; 6], with: impl Fn(Attention) -> Attention) {
    check::<f16>(shape, 1.0 / 1000.0, &with);
    check::<bf16>(shape, 1.0 / 125.0, &with);
}

#[test]
fn heads_and_tiles_of_every_size_match_the_reference() {
    for head in [8, 64, 72, 128, 136, 256] {
        both([1, 2, 2, 70, 90, head], |op| op);
    }
    both([2, 4, 2, 130, 257, 64], |op| op);
    both([2, 4, 1, 200, 128, 128], |op| op);
    both([1, 1, 1, 1, 1, 64], |op| op);
}

#[test]
fn queries_see_what_they_should() {
    for head in [64, 128] {
        both([1, 2, 1, 300, 300, head], Attention::causal);
        both([1, 2, 1, 100, 333, head], Attention::causal);
        // The first queries see nothing.
        both([1, 2, 1, 200, 90, head], Attention::causal);
        both([1, 1, 1, 290, 290, head], |op| op.causal().window(40));
        both([1, 1, 1, 290, 290, head], |op| op.window(1));
        both([1, 1, 1, 150, 400, head], |op| op.window(130));
    }
}

#[test]
fn a_scale_may_be_anything() {
    for scale in [-0.5, 0.0, 3.0] {
        both([1, 1, 1, 70, 150, 64], |op| op.causal().scale(scale));
    }
}

#[test]
fn what_is_not_a_number_makes_its_row_so() {
    let Some(cuda) = cuda() else { return };
    let (t, s, d) = (70, 130, 64);
    for variant in Attention::cuda_variants() {
        let op = Attention::new(1, 1, 1, t, s, d).variant(variant.name);
        let Ok(plan) = Plannable::plan::<f16>(&op, cuda) else { continue };
        let mut q = vec![f16::ONE; t * d];
        q[3 * d] = f16::NAN;
        let [q, k, v] = [q, vec![f16::ONE; s * d], vec![f16::ONE; s * d]].map(|x| cuda.upload(&x).unwrap());
        let output = cuda.alloc::<f16>(t * d).unwrap();
        plan.run(&cuda.stream().unwrap(), &q, &k, &v, &output).unwrap();
        for (i, x) in output.read().unwrap().iter().enumerate() {
            assert!(if i / d == 3 { x.is_nan() } else { *x == f16::ONE }, "{} {i}: {x}", variant.name);
        }
    }
}

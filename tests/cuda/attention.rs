//! Attention on tensor cores against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, assert_close, numbers, spoil};
use half::{bf16, f16};
use tilework::attention::Attention;
use tilework::cuda::{CudaGpu, CudaOp};
use tilework::prelude::*;
use tilework::reference::{AttentionInputs, Number, attention, attention_bound};
use tilework::{Element, ErrorKind};

/// An attention op and its operands.
struct Case<T> {
    op: Attention,
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
}

impl<T: Element + Number + Into<f64>> Case<T>
where
    Attention: CudaOp<T>,
{
    fn new(shape: [usize; 6], with: impl Fn(Attention) -> Attention) -> Self {
        let [b, h, g, t, s, d] = shape;
        let mut random = Random::new((t * 31 + s * 7 + d) as u64);
        let mut elements = |n: usize, scale: f64| (0..n).map(|_| T::from_f64(scale * random.unit())).collect();
        let (q, k, v) = (elements(b * h * t * d, 3.0), elements(b * g * s * d, 1.0), elements(b * g * s * d, 1.0));
        Self { op: with(Attention::new([b, h, t, d], [g, s])), q, k, v }
    }

    /// Runs every variant and compares it with the reference within 4 times `attention_bound`, since the hardware
    /// truncates sums, plus `rounding` times the mean absolute value, for weights rounded to the type of the values.
    /// Infinities and NaN must match.
    fn check(&self, cuda: &CudaGpu, rounding: f64) {
        let Self { op, q, k, v } = self;
        let none = AttentionInputs::default();
        let want = numbers(&attention(op, q, k, v, none));
        let sizes: Vec<T> = v.iter().map(|x| T::from_f64((*x).into().abs())).collect();
        let sizes = numbers(&attention(op, q, k, &sizes, none));
        let bound = attention_bound(op, q, k, v, none).into_iter().zip(sizes).zip(&want);
        let bound: Vec<f64> = bound
            .map(|((bound, size), want)| if want.is_finite() { 4.0 * bound + rounding * size } else { 0.0 })
            .collect();

        let [q, k, v] = [q, k, v].map(|x| cuda.upload(x).unwrap());
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
}

fn check<T: Element + Number + Into<f64>>(shape: [usize; 6], rounding: f64, with: impl Fn(Attention) -> Attention)
where
    Attention: CudaOp<T>,
{
    if let Some(cuda) = cuda() {
        Case::<T>::new(shape, with).check(cuda, rounding);
    }
}

/// The relative error of rounding a weight to the type.
const F16: f64 = 1.0 / 1000.0;
const BF16: f64 = 1.0 / 125.0;

/// Of both types.
fn both(shape: [usize; 6], with: impl Fn(Attention) -> Attention) {
    check::<f16>(shape, F16, &with);
    check::<bf16>(shape, BF16, &with);
}

#[test]
fn every_head_and_tile_size_matches_reference() {
    for head in [8, 64, 72, 128, 136, 256] {
        both([1, 2, 2, 70, 90, head], |op| op);
    }
    both([2, 4, 2, 130, 257, 64], |op| op);
    both([2, 4, 1, 200, 128, 128], |op| op);
    both([1, 1, 1, 1, 1, 64], |op| op);
    // No keys, then no queries.
    both([1, 2, 1, 70, 0, 64], |op| op);
    both([1, 2, 1, 0, 9, 64], |op| op);
}

#[test]
fn masks_and_windows_match_reference() {
    for head in [64, 128] {
        both([1, 2, 1, 300, 300, head], Attention::causal);
        both([1, 2, 1, 100, 333, head], Attention::causal);
        // The first queries see no key.
        both([1, 2, 1, 200, 90, head], Attention::causal);
        both([1, 1, 1, 290, 290, head], |op| op.causal().window(40));
        both([1, 1, 1, 290, 290, head], |op| op.window(1));
        both([1, 1, 1, 150, 400, head], |op| op.window(130));
    }
}

#[test]
fn any_scale_matches_reference() {
    for scale in [-0.5, 0.0, 3.0] {
        both([1, 1, 1, 70, 150, 64], |op| op.causal().scale(scale));
    }
}

#[test]
fn nan_in_a_query_spoils_only_its_row() {
    let Some(cuda) = cuda() else { return };
    let (t, s, d) = (70, 130, 64);
    for variant in Attention::cuda_variants() {
        let op = Attention::new([1, 1, t, d], [1, s]).variant(variant.name);
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

/// Modifies an attention.
type With = fn(Attention) -> Attention;

/// Both kernels of `hidden_keys_and_values_have_no_effect`, of one type.
fn check_hidden<T: Element + Number + Into<f64>>(cuda: &CudaGpu, rounding: f64)
where
    Attention: CudaOp<T>,
{
    let cases: [([usize; 6], With); 7] = [
        ([1, 2, 1, 300, 300, 64], Attention::causal),
        ([1, 2, 2, 70, 333, 128], Attention::causal),
        ([2, 2, 1, 140, 90, 40], Attention::causal),
        ([1, 1, 1, 290, 290, 128], |op| op.causal().window(40)),
        ([2, 2, 1, 150, 400, 64], |op| op.window(130)),
        ([1, 1, 1, 100, 150, 256], |op| op.causal().window(20).scale(-0.1)),
        // Every row sees every key, and the last tile is partial.
        ([1, 2, 1, 70, 150, 72], |op| op),
    ];
    for (shape, with) in cases {
        let [.., s, d] = shape;
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            // The last of each head, and some that fewer rows see; in keys, in values and in both.
            for (in_k, in_v) in [(false, true), (true, false), (true, true)] {
                let mut case = Case::<T>::new(shape, with);
                let ends = (s - 1..case.k.len() / d).step_by(s);
                if in_k {
                    spoil(&mut case.k, d, ends.clone().chain([s - 5]), value);
                }
                if in_v {
                    spoil(&mut case.v, d, ends.chain([7, s / 2, s / 2 + 1, s - 3]), value);
                }
                case.check(cuda, rounding);
            }
        }
    }
}

/// Hidden keys and values have no effect, whatever they hold; visible ones do.
#[test]
fn hidden_keys_and_values_have_no_effect() {
    let Some(cuda) = cuda() else { return };
    check_hidden::<f16>(cuda, F16);
    check_hidden::<bf16>(cuda, BF16);
}

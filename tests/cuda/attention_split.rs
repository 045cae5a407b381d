//! Attention over caches with lengths, pages and signed bytes on CUDA, against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, assert_close, numbers};
use half::{bf16, f16};
use tilework::Element;
use tilework::attention::{Attention, KvType, Paging};
use tilework::cuda::{CudaGpu, CudaOp, RawCudaSlice};
use tilework::prelude::*;
use tilework::reference::{AttentionInputs, Number, attention, attention_bound};

/// The relative error of rounding a weight, and a value of bytes, to the type.
const F16: f64 = 2.0 / 1000.0;
const BF16: f64 = 2.0 / 125.0;

/// What a cache has.
#[derive(Clone, Debug, Default)]
struct CacheForm {
    lengths: Option<Vec<u32>>,
    page: Option<usize>,
    bytes: bool,
}

/// Runs `split-kv` on a cache of this form and compares it with the reference within 4 times `attention_bound` plus
/// `rounding` times the weighted mean of the magnitudes.
fn check<T: Element + Number + Into<f64>>(
    shape: [usize; 6], form: &CacheForm, rounding: f64, with: impl Fn(Attention) -> Attention,
) where
    Attention: CudaOp<T>,
{
    let Some(cuda) = cuda() else { return };
    let [b, h, g, t, s, d] = shape;
    let mut op = with(Attention::new([b, h, t, d], [g, s])).variant("split-kv");
    let mut random = Random::new((t * 31 + s * 7 + d) as u64);
    let mut rows = b * g * s;
    let mut table = None;
    if let Some(tokens) = form.page {
        // Pages in no order; sequences share their first, and the last does not exist.
        let each = s.div_ceil(tokens);
        let pages = 2 * b * each;
        let mut all: Vec<u32> = (0..b * each).map(|i| ((i * 7 + 3) % pages) as u32).collect();
        (1..b).for_each(|sequence| all[sequence * each] = all[0]);
        if let Some(last) = all.last_mut() {
            *last = u32::MAX;
        }
        (op, rows, table) = (op.paged(Paging { tokens, pages }), pages * g * tokens, Some(all));
    }
    if form.lengths.is_some() {
        op = op.lengths();
    }
    let mut elements = |n: usize, scale: f64| (0..n).map(|_| T::from_f64(scale * random.unit())).collect::<Vec<T>>();
    let (q, k, v) = (elements(b * h * t * d, 3.0), elements(rows * d, 1.0), elements(rows * d, 1.0));
    let (codes, scales): (Vec<_>, Vec<_>) = [&k, &v].map(|x| quantized(x, d)).into_iter().unzip();
    let decoded: Vec<Vec<f32>> = codes
        .iter()
        .zip(&scales)
        .map(|(c, s): (&Vec<i8>, &Vec<f32>)| {
            c.chunks(d).zip(s).flat_map(|(row, s)| row.iter().map(move |x| f32::from(*x) * s)).collect()
        })
        .collect();

    let of_rows = |x: &[T]| x.iter().map(|x| (*x).into() as f32).collect::<Vec<f32>>();
    let [of_k, of_v] = if form.bytes {
        op = op.kv(KvType::Int8);
        [decoded[0].clone(), decoded[1].clone()]
    } else {
        [of_rows(&k), of_rows(&v)]
    };
    let inputs = AttentionInputs { table: table.as_deref(), lengths: form.lengths.as_deref(), mask: None };
    let want = numbers(&attention(&op, &q, &of_k, &of_v, inputs));
    let magnitudes: Vec<f32> = of_v.iter().map(|x| x.abs()).collect();
    let sizes = numbers(&attention(&op, &q, &of_k, &magnitudes, inputs));
    let bound = attention_bound(&op, &q, &of_k, &of_v, inputs);
    let bound: Vec<f64> = bound.iter().zip(sizes).map(|(b, size)| 4.0 * b + rounding * size).collect();

    let output = cuda.upload(&vec![T::from_f64(f64::NAN); q.len()]).unwrap();
    let q = cuda.upload(&q).unwrap();
    let wide = [&k, &v].map(|x| cuda.upload(x).unwrap());
    let narrow = [&codes[0], &codes[1]].map(|x| cuda.upload(x).unwrap());
    let scales = cuda.upload(&scales.concat()).unwrap();
    let words = |x: &Option<Vec<u32>>| x.as_ref().map(|x| cuda.upload(x).unwrap());
    let (table, lengths) = (words(&table), words(&form.lengths));
    let mut operands: Vec<RawCudaSlice<'_>> = vec![q.slice(..).unwrap().untyped()];
    for i in 0..2 {
        let narrow = narrow[i].slice(..).unwrap().untyped();
        operands.push(if form.bytes { narrow } else { wide[i].slice(..).unwrap().untyped() });
    }
    if form.bytes {
        operands.push(scales.slice(..).unwrap().untyped());
    }
    operands.extend([&table, &lengths].into_iter().flatten().map(|x| x.slice(..).unwrap().untyped()));
    operands.push(output.slice(..).unwrap().untyped());
    run::<T>(&op, cuda, &operands);
    let what = format!("{} {op:?} {form:?}", T::DTYPE);
    assert_close(&what, &numbers(&output.read().unwrap()), &want, &bound);
}

fn run<T: Element>(op: &Attention, cuda: &CudaGpu, operands: &[RawCudaSlice<'_>])
where
    Attention: CudaOp<T>,
{
    let plan = Plannable::plan::<T>(op, cuda).unwrap().into_executable();
    plan.run(&cuda.stream().unwrap(), operands).unwrap();
}

/// Codes of rows, and their scales.
fn quantized<T: Copy + Into<f64>>(x: &[T], d: usize) -> (Vec<i8>, Vec<f32>) {
    let mut codes = Vec::with_capacity(x.len());
    let mut scales = Vec::with_capacity(x.len() / d);
    for row in x.chunks(d) {
        let largest = row.iter().map(|x| (*x).into().abs()).fold(0.0, f64::max);
        let scale = (largest / 127.0) as f32;
        scales.push(scale);
        let code = |x: &T| if scale > 0.0 { ((*x).into() / f64::from(scale)).round() as i8 } else { 0 };
        codes.extend(row.iter().map(code));
    }
    (codes, scales)
}

/// Of both types.
fn both(shape: [usize; 6], form: &CacheForm, with: impl Fn(Attention) -> Attention) {
    check::<f16>(shape, form, F16, &with);
    check::<bf16>(shape, form, BF16, &with);
}

#[test]
fn lengths_match_reference() {
    for (lengths, s) in [(vec![300, 1, 0, 77], 300), (vec![16, 64, 65, 5000], 4000)] {
        let form = CacheForm { lengths: Some(lengths), ..CacheForm::default() };
        both([4, 8, 2, 1, s, 64], &form, |op| op);
        both([4, 8, 2, 3, s, 128], &form, Attention::causal);
        both([4, 4, 4, 2, s, 72], &form, |op| op.causal().window(40));
        // More rows than a tile, and more queries than keys.
        both([4, 24, 1, 5, s, 256], &form, Attention::causal);
    }
}

#[test]
fn pages_match_reference() {
    for page in [16, 100, 256] {
        let form = CacheForm { page: Some(page), ..CacheForm::default() };
        both([3, 8, 2, 1, 700, 128], &form, |op| op);
        both([2, 4, 2, 4, 333, 64], &form, Attention::causal);
        let form = CacheForm { lengths: Some(vec![400, 17]), ..form };
        both([2, 4, 2, 1, 400, 40], &form, |op| op.causal().window(100));
    }
}

#[test]
fn signed_bytes_match_reference() {
    for page in [None, Some(16)] {
        let form = CacheForm { page, bytes: true, lengths: None };
        both([3, 8, 2, 1, 700, 128], &form, |op| op);
        both([2, 4, 2, 4, 333, 64], &form, Attention::causal);
        let form = CacheForm { lengths: Some(vec![400, 17]), ..form };
        both([2, 4, 1, 7, 400, 256], &form, |op| op.window(30).scale(-0.2));
        both([2, 4, 1, 1, 400, 48], &form, |op| op.scale(0.0));
    }
}

#[test]
fn many_parts_match_reference() {
    let form = CacheForm::default();
    both([1, 8, 1, 1, 40_000, 128], &form, |op| op);
    both([1, 4, 1, 2, 20_001, 64], &form, Attention::causal);
    both([2, 2, 2, 1, 9, 64], &form, |op| op);
    both([2, 2, 2, 1, 0, 64], &form, |op| op);
}

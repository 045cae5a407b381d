//! `KvAppend` against the reference.

use crate::support::{Device, Random, Sample, devices, gpu, numbers};
use half::f16;
use tilework::attention::Paging;
use tilework::attention::{KvAppend, KvType};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{fp8_value, kv_append};
use tilework::{Element, ErrorKind};

const SHAPE: [usize; 5] = [2, 3, 2, 40, 24];
/// Rows of no whole words.
const ODD: [usize; 5] = [2, 3, 2, 40, 13];
const LENGTHS: [u32; 2] = [39, 5];

/// Runs it on caches of `stored` and returns those of k and v, with their factors.
fn run<T: Element, K: Element>(
    device: &Device, op: &KvAppend, new: [&[T]; 2], table: Option<&[u32]>, stored: &[K], scales: Option<&[f32]>,
) -> ([Vec<K>; 2], Vec<f32>)
where
    KvAppend: Op<T>,
{
    let gpu = &device.gpu;
    let [new_k, new_v] = new.map(|x| gpu.upload(x).unwrap());
    let (k, v, lengths) = (gpu.upload(stored).unwrap(), gpu.upload(stored).unwrap(), gpu.upload(&LENGTHS).unwrap());
    let table = table.map(|table| gpu.upload(table).unwrap());
    let scales = scales.map(|scales| gpu.upload(scales).unwrap());
    let plan = op.plan::<T>(gpu).unwrap();
    let mut with = plan.with();
    if let Some(table) = &table {
        with = with.with_table(table);
    }
    if let Some(scales) = &scales {
        with = with.with_scales(scales);
    }
    let mut rec = gpu.recorder();
    with.record(&mut rec, &new_k, &new_v, &lengths, &k, &v).unwrap();
    rec.submit().unwrap();
    let scales = scales.map(|scales| scales.read().unwrap()).unwrap_or_default();
    ([k.read().unwrap(), v.read().unwrap()], scales)
}

fn new_tokens<T: Sample>([b, g, n, _, d]: [usize; 5]) -> [Vec<T>; 2] {
    let mut random = Random::new(3);
    let mut x = random.elements::<T>(b * g * n * d);
    x[..d].fill(T::from_f64(0.0));
    [x, random.elements::<T>(b * g * n * d)]
}

/// As floats.
fn check<T: Sample, K: Sample>(device: &Device, op: &KvAppend, shape: [usize; 5], rows: usize, table: Option<&[u32]>)
where
    KvAppend: Op<T>,
{
    let new = new_tokens::<T>(shape);
    let stored = vec![K::from_f64(7.0); rows * shape[4]];
    let ([k, v], _) = run(device, op, [&new[0], &new[1]], table, &stored, None);
    for (got, new) in [(k, &new[0]), (v, &new[1])] {
        let mut want = vec![7f32; stored.len()];
        kv_append(op, new, &LENGTHS, table, &mut want);
        assert_eq!(numbers(&got), numbers(&want), "{}: {op:?}", device.label);
    }
}

/// As codes that `value` decodes.
fn check_codes<K: Element>(
    device: &Device, op: &KvAppend, shape: [usize; 5], (step, code): (f32, K), value: impl Fn(K) -> f32,
) {
    let new = new_tokens::<f32>(shape);
    let [b, g, _, s, d] = shape;
    let (stored, scales) = (vec![code; b * g * s * d], vec![0.5f32; 2 * b * g * s]);
    let (caches, scales) = run(device, op, [&new[0], &new[1]], None, &stored, Some(&scales));
    for (of, got) in caches.into_iter().enumerate() {
        let scales = &scales[of * b * g * s..][..b * g * s];
        let mut want = vec![0.5 * value(code); stored.len()];
        kv_append(op, &new[of], &LENGTHS, None, &mut want);
        let got = got.iter().enumerate().map(|(i, c)| value(*c) * scales[i / d]);
        let wrong = got.zip(&want).enumerate().filter(|(i, (got, want))| {
            // A quotient midway between two codes may round to either.
            (got - **want).abs() > step * scales[i / d] * 1.001 + 1e-6
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}: {op:?}: {wrong:?}", device.label);
    }
}

#[test]
fn matches_reference_for_every_type() {
    let table = [4, 1, 0, 2, 9, 3];
    for (device, shape) in devices().iter().flat_map(|device| [(device, SHAPE), (device, ODD)]) {
        let [b, g, n, s, d] = shape;
        let op = KvAppend::new([b, g, n, d], s);
        check::<f32, f32>(device, &op, shape, b * g * s, None);
        check::<f32, f16>(device, &op.clone().kv(KvType::F16), shape, b * g * s, None);
        let paged = op.clone().paged(Paging { tokens: 16, pages: 5 });
        check::<f16, f16>(device, &paged, shape, 5 * g * 16, Some(&table));
        check_codes(device, &op.clone().kv(KvType::Int8), shape, (1.0, 3i8), f32::from);
        check_codes(device, &op.clone().kv(KvType::Fp8), shape, (32.0, 0x40u8), fp8_value);
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: KvAppend| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(KvAppend::new([1, 1, 1, 1025], 8)), ErrorKind::Unsupported);
    assert_eq!(kind(KvAppend::new([1, 1, 1, 0], 8)), ErrorKind::Shape);
    assert_eq!(
        kind(KvAppend::new([1, 1, 1, 16], 8).paged(Paging { tokens: 300, pages: 4 })),
        ErrorKind::InvalidArgument
    );
    assert_eq!(kind(KvAppend::new([1, 1, 1, 16], 8).variant("fast")), ErrorKind::InvalidArgument);
}

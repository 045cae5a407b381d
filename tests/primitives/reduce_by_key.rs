//! Every variant of `ReduceByKey` against the reference.

use super::select::read_counted;
use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::Op;
use tilework::reference::{Number, reduce_by_key, reduce_by_key_bound};
use tilework::{ErrorKind, Result};

/// Output keys and results, or the error. Elements past the count must be unchanged.
fn run<K, T, O>(gpu: &Gpu, desc: &ReduceByKey<O, K>, keys: &[K], values: &[T]) -> Result<(Vec<K>, Vec<T>)>
where
    K: Number + PartialEq,
    T: Number + PartialEq,
    O: Reducer<T, Output = T>,
    ReduceByKey<O, K>: Op<T>,
{
    let plan = desc.plan::<T>(gpu)?;
    let n = keys.len();
    let (dk, dv) = (gpu.upload(keys)?, gpu.upload(values)?);
    let (before_key, before) = (K::from_f64(77.0), T::from_f64(99.0));
    let (keys_out, results) = (gpu.upload(&vec![before_key; n])?, gpu.upload(&vec![before; n])?);
    let count = gpu.upload(&[12_345u32])?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &dk, &dv, &keys_out, &results, &count)?;
    rec.submit()?;
    Ok((read_counted(&keys_out, &count, before_key)?, read_counted(&results, &count, before)?))
}

/// Keys in runs of 1 to `longest`.
fn runs<K: Sample>(n: usize, longest: u64) -> Vec<K> {
    let mut random = Random::new(longest);
    let mut keys = Vec::with_capacity(n);
    while keys.len() < n {
        let (key, length) = (K::sample(&mut random), 1 + (random.next() % longest) as usize);
        keys.extend(std::iter::repeat_n(key, length.min(n - keys.len())));
    }
    keys
}

fn check<K, T, O>(device: &Device, op: &O, desc: &ReduceByKey<O, K>, keys: &[K])
where
    K: Sample + PartialEq,
    T: Sample + PartialEq,
    O: Reducer<T, Output = T>,
    ReduceByKey<O, K>: Op<T>,
{
    let values: Vec<T> = Random::new(keys.len() as u64).elements(keys.len());
    let operator = op.operator();
    let what = format!("{}: {} of {} {}", device.label, operator.name(), keys.len(), T::DTYPE);
    let got = run(&device.gpu, desc, keys, &values).unwrap_or_else(|e| panic!("{what}: {e}"));
    let want = reduce_by_key(&operator, keys, &values).expect("there is a reference");
    let bound = reduce_by_key_bound(&operator, keys, &values);
    assert_eq!(numbers(&got.0), numbers(&want.0), "keys, {what}");
    assert_close(&what, &numbers(&got.1), &want.1, &bound);
}

fn names() -> impl Iterator<Item = &'static str> {
    ReduceByKey::variants().iter().map(|v| v.name)
}

#[test]
fn giant_and_tiny_runs_match_reference() {
    let n = 1 << 20;
    for device in devices().iter().filter(|d| d.main) {
        for variant in names() {
            let desc = ReduceByKey::new(Sum, n).variant(variant);
            check::<u32, u32, _>(device, &Sum, &desc, &vec![7; n]);
            check::<u32, u32, _>(device, &Sum, &desc, &(0..n as u32).collect::<Vec<_>>());
        }
    }
}

#[test]
fn larger_tiles_match_reference() {
    let n = 40_003;
    // SwiftShader takes minutes to compile kernels unrolled over so many items.
    for device in devices().iter().filter(|d| !d.label.contains("SwiftShader")) {
        for (variant, tile) in names().zip([(256, 4), (128, 8)]) {
            let desc = ReduceByKey::new(Sum, n).variant(variant).tile(tile.0, tile.1);
            check::<u32, u32, _>(device, &Sum, &desc, &runs(n, 40));
            check::<u32, u32, _>(device, &Sum, &desc, &runs(n, 9000));
        }
    }
}

#[test]
fn custom_operators_keep_order() {
    // The last nonzero element: associative, not commutative.
    let last = CustomOp::new(
        "fn op_identity() -> T { return 0u; }
         fn op_combine(a: T, b: T) -> T { return select(b, a, b == 0u); }",
    );
    let n = 5001;
    let keys: Vec<u32> = runs(n, 700);
    let values: Vec<u32> = Random::new(5).elements::<u32>(n).iter().map(|x| if x % 3 == 0 { *x } else { 0 }).collect();
    let mut want: Vec<u32> = Vec::new();
    for i in 0..n {
        if i == 0 || keys[i] != keys[i - 1] {
            want.push(0);
        }
        if values[i] != 0 {
            *want.last_mut().unwrap() = values[i];
        }
    }
    for device in devices() {
        for variant in names() {
            let desc = ReduceByKey::new(last.clone(), n).variant(variant);
            let got = run(&device.gpu, &desc, &keys, &values).unwrap();
            assert_eq!(got.1, want, "{}: {variant}", device.label);
        }
    }
}

#[test]
fn floating_keys_are_compared_by_value_and_keep_their_bits() {
    let nan = f32::NAN;
    let tiny = f32::from_bits(1);
    let keys = [0.0, -0.0, 0.0, nan, nan, 1.0, 1.0, -0.0, 0.0, tiny, 0.0, -tiny, f32::INFINITY, f32::INFINITY];
    let values = [1u32; 14];
    let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let want = reduce_by_key(&Operator::Sum, &keys, &values).unwrap();
    for device in devices() {
        for variant in names() {
            let desc = ReduceByKey::new(Sum, 14).with_keys::<f32>().variant(variant);
            let got = run(&device.gpu, &desc, &keys, &values).unwrap();
            assert_eq!(bits(&got.0), bits(&want.0), "{}: {variant}", device.label);
            assert_eq!(numbers(&got.1), want.1, "{}: {variant}", device.label);
        }
    }
}

#[test]
fn results_are_reproducible() {
    let n = 100_001;
    let (keys, values) = (runs::<u32>(n, 5000), Random::new(8).elements::<f32>(n));
    for device in devices() {
        for desc in [ReduceByKey::new(Sum, n), ReduceByKey::new(Sum, n).variant("hierarchical")] {
            let bits = || {
                let got = run(&device.gpu, &desc, &keys, &values).unwrap().1;
                got.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(bits(), bits(), "{}", device.label);
        }
    }
}

#[test]
fn lookback_is_correct_when_workgroups_never_post() {
    let n = 60_001;
    for device in devices() {
        for (one_in, longest) in [(2, u64::MAX >> 33), (2, 900), (8, 20)] {
            let desc = ReduceByKey::new(Sum, n).variant("lookback").leave_out_posts(one_in);
            check::<u32, u32, _>(device, &Sum, &desc, &runs(n, longest));
            let desc = ReduceByKey::new(Sum, n).variant("lookback").leave_out_posts(one_in);
            check::<u32, f32, _>(device, &Sum, &desc, &runs(n, longest));
            if !device.main {
                break;
            }
        }
    }
}

#[test]
fn rejects_operands_of_other_lengths() {
    let Some(device) = devices().first() else { return };
    let gpu = &device.gpu;
    let plan = ReduceByKey::new(Sum, 5).plan::<f32>(gpu).unwrap();
    let (keys, values) = (gpu.upload(&[1u32; 5]).unwrap(), gpu.upload(&[1.0f32; 5]).unwrap());
    let (keys_out, results) = (gpu.alloc::<u32>(5).unwrap(), gpu.alloc::<f32>(4).unwrap());
    let count = gpu.alloc::<u32>(1).unwrap();
    let mut rec = gpu.recorder();
    let e = plan.record(&mut rec, &keys, &values, &keys_out, &results, &count).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert!(e.to_string().contains("results"), "{e}");
    let results = gpu.alloc::<f32>(5).unwrap();
    let e = plan.record(&mut rec, &keys, &values, &keys, &results, &count).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing);
}

#[test]
fn a_value_equal_to_the_empty_post_matches_reference() {
    // Its bits equal the marker for an empty post, and so do those of every prefix of the run.
    let n = 5001;
    let mut values = vec![0u32; n];
    values[0] = 0xffa5_c3e1;
    for device in devices() {
        let desc = ReduceByKey::new(Sum, n).variant("lookback");
        let got = run(&device.gpu, &desc, &vec![7; n], &values).unwrap();
        assert_eq!(got, (vec![7], vec![0xffa5_c3e1]), "{}", device.label);
    }
}

#[test]
fn tiles_for_cards_match_reference() {
    let n = 40_003;
    for device in devices().iter().filter(|d| d.main && d.gpu.profile().limits.max_invocations >= 512) {
        for variant in names() {
            let desc = ReduceByKey::new(Sum, n).variant(variant).tile(512, 4);
            check::<u32, u32, _>(device, &Sum, &desc, &runs(n, 15));
        }
    }
}

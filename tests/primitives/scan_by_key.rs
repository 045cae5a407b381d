//! Every variant of `ScanByKey` against the reference.

use crate::support::coverage::{sample, turn};
use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::program::Op;
use tilework::reference::{scan_by_key, scan_by_key_bound};
use tilework::{Affine, Element, ErrorKind, MinMax};

/// Keys of runs of about `length` elements.
fn runs(n: usize, length: u64) -> Vec<u32> {
    let mut random = Random::new(length);
    let mut key = 0u32;
    let mut next = || {
        key = if random.next().is_multiple_of(length) { random.next() as u32 % 5 } else { key };
        key
    };
    (0..n).map(|_| next()).collect()
}

fn check<K, T, O>(device: &Device, op: O, variant: &str, keys: &[K], (inputs, outputs): (usize, usize))
where
    K: Element + PartialEq,
    T: Sample + PartialEq,
    O: Reducer<T, Output = T>,
    ScanByKey<O, K>: Op<T>,
{
    let (operator, n) = (op.operator(), keys.len());
    let input: Vec<T> = Random::new(n as u64).elements(n * inputs);
    let (k, x) = (device.gpu.upload(keys).unwrap(), device.gpu.upload(&input).unwrap());
    let y = device.gpu.upload(&vec![T::from_f64(77.0); n * outputs + 1]).unwrap();
    let exclusive = n % 2 == 1;
    let what = format!("{}: {} of {n} {}, {variant}", device.label, operator.name(), T::DTYPE);
    let desc = ScanByKey::new(op, n).with_keys::<K>().variant(variant);
    let desc = desc.when(exclusive, |op| op.exclusive());
    let program = desc.lower(device.gpu.profile()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let written = y.slice(..n * outputs).unwrap();
    let operands = [Slice::from(&k).untyped(), Slice::from(&x).untyped(), written.untyped()];
    let mut rec = device.gpu.recorder();
    device.gpu.prepare(program).unwrap().record(&mut rec, &operands).expect(&what);
    rec.submit().unwrap();
    let got = y.read().unwrap();
    assert!(got[n * outputs] == T::from_f64(77.0), "{what}: wrote past the end");
    let want = scan_by_key(&operator, exclusive, keys, &input).expect("there is a reference");
    let bound = scan_by_key_bound(&operator, exclusive, keys, &input);
    assert_close(&what, &numbers(&got[..n * outputs]), &want, &bound);
}

#[test]
fn every_type_and_operator_matches_reference() {
    for device in devices() {
        for (v, variant) in ScanByKey::<Sum>::variants().iter().map(|v| v.name).enumerate() {
            let lists = [(70_001, 9000), (65, 2), (1, 1), (700, 1), (64, 3), (20_004, 40), (70_002, u64::MAX)];
            for &(n, length) in sample(&lists, 3) {
                let keys = runs(n, length);
                let signed: Vec<i32> = keys.iter().map(|key| *key as i32 - 2).collect();
                let floats: Vec<f32> =
                    keys.iter().map(|key| [-0.0, 0.0, 1.5, f32::NAN, 1e-40][*key as usize]).collect();
                let checks: [&dyn Fn(); 8] = [
                    &|| check::<u32, f32, _>(device, Sum, variant, &keys, (1, 1)),
                    &|| check::<u32, f16, _>(device, Max, variant, &keys, (1, 1)),
                    &|| check::<u32, u32, _>(device, Sum, variant, &keys, (1, 1)),
                    &|| check::<u32, i32, _>(device, MinMax, variant, &keys, (1, 2)),
                    &|| check::<u32, f32, _>(device, Affine::maps(), variant, &keys, (2, 2)),
                    &|| check::<i32, f16, _>(device, Min, variant, &signed, (1, 1)),
                    &|| check::<f32, i32, _>(device, Sum, variant, &floats, (1, 1)),
                    &|| check::<f32, f32, _>(device, MinMax, variant, &floats, (1, 2)),
                ];
                // Lengths of each parity, which is that of an exclusive scan, and variants take turns.
                checks.iter().enumerate().filter(|(i, _)| turn(i + v + n, 6)).for_each(|(_, check)| check());
            }
        }
    }
}

#[test]
fn lookback_is_correct_when_workgroups_never_post() {
    let n = 100_001;
    for device in devices() {
        for &(one_in, length) in sample(&[(2, 900), (2, u64::MAX), (8, 20_000)], 2) {
            let keys = runs(n, length);
            let input: Vec<u32> = Random::new(3).elements(n);
            let (k, x, y) =
                (device.gpu.upload(&keys).unwrap(), device.gpu.upload(&input).unwrap(), device.gpu.alloc(n).unwrap());
            let desc = ScanByKey::new(Sum, n).variant("lookback").leave_out_posts(one_in);
            let mut rec = device.gpu.recorder();
            desc.plan::<u32>(&device.gpu).unwrap().record(&mut rec, &k, &x, &y).unwrap();
            rec.submit().unwrap();
            let want = scan_by_key(&tilework::primitives::Operator::Sum, false, &keys, &input).unwrap();
            assert_close(&device.label, &numbers(&y.read().unwrap()), &want, &vec![0.0; n]);
            if !device.main {
                break;
            }
        }
    }
}

#[test]
fn rejects_operands_of_another_length() {
    let Some(device) = devices().first() else { return };
    let (keys, x) = (device.gpu.upload(&[1u32; 5]).unwrap(), device.gpu.upload(&[1.0f32; 4]).unwrap());
    let e = device.gpu.inclusive_scan_by_key(&keys, &x, Sum).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert!(e.to_string().contains("scan-by-key: input"), "{e}");
    let none = device.gpu.alloc::<u32>(0).unwrap();
    assert!(device.gpu.inclusive_scan_by_key(&none, &none, Sum).unwrap().is_empty());
}

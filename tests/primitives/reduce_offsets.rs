//! `ReduceOffsets` and `ScanOffsets` against the references.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::reference::{Number, reduce_offsets, reduce_offsets_bound, scan_offsets, scan_offsets_bound};

#[track_caller]
fn near<T: Number>(what: &str, got: &[T], want: &[f64], bound: &[f64]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, (want, bound))) in got.iter().zip(want.iter().zip(bound)).enumerate() {
        let (got, rounded) = (got.to_f64(), T::from_f64(*want).to_f64());
        let same = got == rounded || got.is_nan() && want.is_nan();
        let near = (got - want).abs() <= bound + (rounded - want).abs();
        assert!(same || near, "{what}: {i} is {got}, not {want} +- {bound}");
    }
}

/// Scans with each variant, with elements behind the output.
#[track_caller]
fn check_scan<T: Sample, O: Reducer<T, Output = T> + Clone>(
    device: &Device, op: &O, x: &[T], offsets: &[u32], exclusive: bool,
) {
    let (gpu, n) = (&device.gpu, x.len());
    let operator = op.operator();
    for variant in ScanOffsets::variants() {
        let scan = ScanOffsets::new(op.clone(), n, offsets.len() - 1).variant(variant.name);
        let plan = match scan.when(exclusive, ScanOffsets::exclusive).plan::<T>(gpu) {
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            plan => plan.unwrap(),
        };
        let output = gpu.upload(&vec![T::from_f64(77.0); n + 2]).unwrap();
        let mut rec = gpu.recorder();
        let (input, at) = (gpu.upload(x).unwrap(), gpu.upload(offsets).unwrap());
        plan.record(&mut rec, &input, &at, output.slice(..n).unwrap()).unwrap();
        rec.submit().unwrap();
        let what = format!("{}: {} {} of {n} {}", device.label, variant.name, operator.name(), T::DTYPE);
        let got = output.read().unwrap();
        let want = scan_offsets(&operator, exclusive, x, offsets).unwrap();
        near(&what, &got[..n], &want, &scan_offsets_bound(&operator, exclusive, x, offsets));
        assert!(got[n..].iter().all(|x| x.to_f64() == 77.0), "{what}");
    }
}

#[track_caller]
fn check_reduce<T: Sample, O: Reducer<T, Output: Sample>>(device: &Device, op: O, x: &[T], offsets: &[u32]) {
    let operator = op.operator();
    let (inputs, each) = if operator == Reducer::<f32>::operator(&Affine::maps()) { (2, 2) } else { (1, 1) };
    let (gpu, n, segments) = (&device.gpu, x.len() / inputs, each * (offsets.len() - 1));
    let results = gpu.upload(&vec![O::Output::from_f64(77.0); segments + 2]).unwrap();
    let plan = ReduceOffsets::new(op, n, offsets.len() - 1).plan::<T>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let (input, at) = (gpu.upload(x).unwrap(), gpu.upload(offsets).unwrap());
    plan.record(&mut rec, &input, &at, results.slice(..segments).unwrap()).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {} of {n} {} in {segments}", device.label, operator.name(), T::DTYPE);
    let got = results.read().unwrap();
    let want = reduce_offsets(&operator, x, offsets).unwrap();
    near(&what, &got[..segments], &want, &reduce_offsets_bound(&operator, x, offsets));
    assert!(got[segments..].iter().all(|x| x.to_f64() == 77.0), "{what}");
}

/// Segments of any lengths, empty ones, offsets that decrease, and such that leave the array.
fn all_offsets(n: u32) -> [Vec<u32>; 4] {
    let wild = Random::new(3).elements::<u32>(50).iter().map(|x| x % (n + 20)).collect();
    [vec![0, 0, 1, 1, 5, n / 2, n, n], vec![7, 9], wild, vec![n / 3, 0, u32::MAX, n - 1]]
}

#[test]
fn segments_between_offsets_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(2);
        let n = if device.main { 9001 } else { 1001 };
        for (i, offsets) in all_offsets(n as u32).iter().enumerate() {
            check_reduce(device, Sum, &random.elements::<f32>(n), offsets);
            check_scan(device, &Sum, &random.elements::<u32>(n), offsets, i % 2 == 1);
            if device.main {
                check_reduce(device, Max, &random.elements::<i32>(n), offsets);
                check_reduce(device, Min, &random.any::<f32>(n), offsets);
                check_scan(device, &Min, &random.elements::<f16>(n), offsets, i % 2 == 0);
            }
        }
        check_reduce::<f32, _>(device, Min, &[], &[0, 0, 3]);
        check_scan::<f32, _>(device, &Sum, &[], &[0, 0], false);
    }
}

/// One offset and so no segment: no results, and elements that are one run.
#[test]
fn zero_segments_give_no_results() {
    for device in devices() {
        let x: Vec<u32> = Random::new(4).elements(300);
        for offsets in [&[0][..], &[70], &[u32::MAX]] {
            check_reduce(device, Sum, &x, offsets);
            check_scan(device, &Sum, &x, offsets, false);
        }
        check_reduce::<f32, _>(device, Min, &[], &[0]);
        let gpu = &device.gpu;
        let (keys, at, sorted) =
            (gpu.upload(&x).unwrap(), gpu.upload(&[0u32]).unwrap(), gpu.alloc::<u32>(300).unwrap());
        let mut rec = gpu.recorder();
        SegmentedSort::new(300, 0).plan::<u32>(gpu).unwrap().record(&mut rec, &keys, &at, &sorted).unwrap();
        rec.submit().unwrap();
        let mut want = x.clone();
        want.sort_unstable();
        assert_eq!(sorted.read().unwrap(), want, "{}", device.label);
    }
}

/// As many segments, or elements, as the device counts: none, some, all, and more than there are.
#[test]
fn counted_segments_and_elements_match_the_reference() {
    let n = 5001;
    let x: Vec<u32> = Random::new(8).elements(n);
    let offsets: Vec<u32> = (0..=100).map(|i| i * i / 2).collect();
    for device in devices() {
        let gpu = &device.gpu;
        let (input, at) = (gpu.upload(&x).unwrap(), gpu.upload(&offsets).unwrap());
        for length in [0, 1, 37, 100, 101, u32::MAX] {
            let held = gpu.upload(&[length]).unwrap();
            let results = gpu.upload(&[77u32; 100]).unwrap();
            let plan = ReduceOffsets::new(Sum, n, 100).counted().plan::<u32>(gpu).unwrap();
            let mut rec = gpu.recorder();
            plan.with_length(&held).record(&mut rec, &input, &at, &results).unwrap();
            rec.submit().unwrap();
            let there = 100.min(length as usize);
            let want = reduce_offsets(&Operator::Sum, &x, &offsets[..=there]).unwrap();
            let want: Vec<u32> = want.iter().map(|x| *x as u32).chain(vec![77; 100 - there]).collect();
            assert_eq!(results.read().unwrap(), want, "{}: {length} segments", device.label);
            let there = n.min(50 * length as usize);
            let held = gpu.upload(&[length.saturating_mul(50)]).unwrap();
            for variant in ScanOffsets::variants() {
                let scan = ScanOffsets::new(Sum, n, 100).variant(variant.name).counted();
                let plan = match scan.plan::<u32>(gpu) {
                    Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                    plan => plan.unwrap(),
                };
                let output = gpu.alloc::<u32>(n).unwrap();
                let mut rec = gpu.recorder();
                plan.with_length(&held).record(&mut rec, &input, &at, &output).unwrap();
                rec.submit().unwrap();
                let want = scan_offsets(&Operator::Sum, false, &x[..there], &offsets).unwrap();
                let want: Vec<u32> = want.iter().map(|x| *x as u32).collect();
                let got = output.read().unwrap();
                assert_eq!(got[..there], want, "{}: {} {there} elements", device.label, variant.name);
            }
        }
    }
}

/// Offsets of `n` elements in segments of which most are empty and one has 20,000: long for the threads of an average.
fn uneven(n: u32) -> Vec<u32> {
    let mut offsets = vec![5, 9, 9, 20_009, 20_010];
    offsets.extend((0..2000).map(|i| 20_010 + i / 2));
    offsets.extend([n, n / 2, n, 0, n, u32::MAX]);
    offsets
}

#[test]
fn long_segments_between_short_ones_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(4);
        let n = 30_000;
        let offsets = uneven(n as u32);
        check_reduce(device, Sum, &random.elements::<f32>(n), &offsets);
        check_reduce(device, Min, &random.any::<f32>(n), &offsets);
        let ties: Vec<u32> = random.elements::<u32>(n).iter().map(|x| x % 50).collect();
        check_reduce(device, ArgMin, &ties, &offsets);
        check_reduce(device, ArgMax, &random.any::<f32>(n), &offsets);
        // Maps do not commute.
        let maps: Vec<f32> = random.elements::<f32>(2 * n).iter().map(|x| 0.5 + 0.4 * x.sin()).collect();
        check_reduce(device, Affine::maps(), &maps, &offsets);
    }
}

#[test]
fn segments_of_each_length_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(5);
        for length in [1, 3, 10, 33, 100, 300, 1500] {
            let n = if device.main { 12 * length + 1 } else { 2 * length };
            let offsets: Vec<u32> = (0..=n / length).map(|i| (i * length) as u32).collect();
            check_reduce(device, Sum, &random.elements::<i32>(n), &offsets);
            check_reduce(device, ArgMax, &random.elements::<i32>(n), &offsets);
        }
    }
}

#[test]
fn statistics_of_segments_match_by_hand() {
    for device in devices() {
        let gpu = &device.gpu;
        let (x, offsets) = (gpu.upload(&[1.0f32, 3.0, 5.0, 5.0]), gpu.upload(&[0u32, 2, 2, 4]));
        let results = gpu.reduce_offsets(&x.unwrap(), &offsets.unwrap(), MeanVariance::population()).unwrap();
        let got = results.read().unwrap();
        assert_eq!((&got[..2], &got[4..]), (&[2.0, 1.0][..], &[5.0, 0.0][..]), "{}", device.label);
    }
}

#[test]
fn offsets_reject_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &ReduceOffsets::new(Sum, 4, 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &ScanOffsets::new(Sum, 4, 1).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f16>(gpu, &ReduceOffsets::new(Sum, 4, 1)), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(gpu, &ReduceOffsets::new(Sum, 4, usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &ScanOffsets::new(Sum, 4, usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &ScanOffsets::new(Sum, 1 << 40, 2)), ErrorKind::TooLarge);
}

//! Both variants of `TopKRows` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::sample;
use crate::support::{Device, Random, Sample, as_card, devices, gpu, numbers, supported};
use tilework::prelude::*;
use tilework::program::{Op, Program};
use tilework::reference::{top_k_rows, top_k_segments};
use tilework::{DType, ErrorKind};

/// Compares positions and bits, with elements behind the outputs.
#[track_caller]
fn check<T: Sample>(device: &Device, op: TopKRows, x: &[T], [n, k]: [usize; 2], smallest: bool)
where
    TopKRows: Op<T>,
{
    let op = op.when(smallest, TopKRows::smallest);
    let gpu = &device.gpu;
    run(device, Op::<T>::lower(&op, gpu.profile()).unwrap(), x, [n, k], smallest);
}

#[track_caller]
fn run<T: Sample>(device: &Device, program: Program, x: &[T], [n, k]: [usize; 2], smallest: bool) {
    let gpu = &device.gpu;
    let what = format!("{}: {} {k} of rows of {n} {}", device.label, program.variant(), T::DTYPE);
    let best = x.len() / n * k;
    let input = gpu.upload(x).unwrap();
    let values = gpu.upload(&vec![x[0]; best + 1]).unwrap();
    let indices = gpu.upload(&vec![77u32; best + 1]).unwrap();
    let raw = [
        Slice::from(&input).untyped(),
        values.slice(..best).unwrap().untyped(),
        indices.slice(..best).unwrap().untyped(),
    ];
    let mut rec = gpu.recorder();
    gpu.prepare(program).unwrap().record(&mut rec, &raw).unwrap();
    rec.submit().unwrap();
    let (mut want, mut places) = top_k_rows(x, n, k, smallest);
    want.push(x[0]);
    places.push(77);
    assert_eq!(indices.read().unwrap(), places, "{what}");
    let values = values.read().unwrap();
    assert!(bytemuck::cast_slice::<T, u8>(&values) == bytemuck::cast_slice::<T, u8>(&want), "{what}: bits");
}

#[test]
fn the_best_of_rows_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(3);
        for variant in TopKRows::variants() {
            let op = |rows, n, k| TopKRows::new([rows, n], k).variant(variant.name);
            for (rows, n, k) in sample(&[(7, 1500, 20), (1, 1, 1), (300, 3, 3), (2, 5000, 512)], 2) {
                let (rows, n, k) = (*rows, *n, *k);
                check(device, op(rows, n, k), &random.any::<f32>(rows * n), [n, k], k % 2 == 0);
            }
            check(device, op(3, 1200, 100), &random.elements::<i32>(3600), [1200, 100], true);
            let few: Vec<u32> = random.elements::<u32>(5000).iter().map(|x| x % 7).collect();
            check(device, op(2, 2500, 300), &few, [2500, 300], false);
            check(device, op(7, 301, 21), &random.any::<half::f16>(7 * 301), [301, 21], true);
            check(device, op(3, 1200, 100), &random.any::<half::f16>(3600), [1200, 100], false);
        }
    }
}

/// Candidates overflow again and again: rising and falling rows, equal elements, the best ones last in each eighth.
#[test]
fn rows_in_any_order_match_the_reference() {
    let n = 6000;
    let rows: [Vec<f32>; 5] = [
        (0..n).map(|i| i as f32).collect(),
        (0..n).rev().map(|i| i as f32).collect(),
        vec![f32::NAN; n],
        (0..n).map(|i| (i % 750 + i / 3000) as f32).collect(),
        (0..n).map(|i| if i % 3 == 0 { f32::NAN } else { -0.0 }).collect(),
    ];
    let x = rows.concat();
    for device in devices() {
        for k in [50, 128, 256] {
            check(device, TopKRows::new([5, n], k), &x, [n, k], k == 128);
        }
    }
}

#[test]
fn as_many_rows_as_the_device_says_are_written() {
    fn of<T: Sample>(device: &Device, [rows, n, k]: [usize; 3], variant: &str)
    where
        TopKRows: Op<T>,
    {
        let gpu = &device.gpu;
        let x: Vec<T> = Random::new(6).elements(rows * n);
        let moved: Vec<u8> = (0..2 * rows * n).map(|i| (i % 251) as u8).collect();
        let op = TopKRows::new([rows, n], k).variant(variant).counted().with_payload(DType::U8, 2);
        let Some(plan) = supported(op.plan::<T>(gpu)) else { return };
        let (input, payload) = (gpu.upload(&x).unwrap(), gpu.upload(&moved).unwrap());
        for length in [0, 1, rows / 2, rows, rows + 1, u32::MAX as usize] {
            let there = gpu.upload(&[length as u32]).unwrap();
            let values = gpu.upload(&vec![T::from_f64(7.0); rows * k]).unwrap();
            let indices = gpu.upload(&vec![77u32; rows * k]).unwrap();
            let out = gpu.upload(&vec![255u8; 2 * rows * k]).unwrap();
            let mut rec = gpu.recorder();
            let call = plan.with_length(&there).with_payload(&payload, &out);
            call.record(&mut rec, &input, &values, &indices).unwrap();
            rec.submit().unwrap();
            let (mut want, mut places) = top_k_rows(&x[..rows.min(length) * n], n, k, false);
            let row = |(at, i): (usize, &u32)| 2 * (at / k * n + *i as usize);
            let mut bytes: Vec<u8> =
                places.iter().enumerate().map(row).flat_map(|at| [moved[at], moved[at + 1]]).collect();
            want.resize(rows * k, T::from_f64(7.0));
            places.resize(rows * k, 77);
            bytes.resize(2 * rows * k, 255);
            let what = format!("{}: {variant} {length} of {rows} rows of {n} {}", device.label, T::DTYPE);
            assert_eq!(indices.read().unwrap(), places, "{what}");
            assert_eq!(numbers(&values.read().unwrap()), numbers(&want), "{what}");
            assert_eq!(out.read().unwrap(), bytes, "{what}");
        }
    }
    for device in devices() {
        for variant in TopKRows::variants() {
            of::<f32>(device, [9, 301, 5], variant.name);
            of::<half::f16>(device, [5, 301, 7], variant.name);
        }
    }
}

#[test]
fn kernels_for_cards_match_the_reference_on_any_device() {
    let x = Random::new(4).any::<f32>(4 * 9001);
    // SwiftShader does not compile bisection.
    for device in devices().iter().filter(|d| d.main && !d.label.contains("SwiftShader")) {
        let card = as_card(&device.gpu);
        for (k, smallest) in [(50, false), (300, true)] {
            let op = TopKRows::new([4, 9001], k).variant("filter").when(smallest, TopKRows::smallest);
            run(device, Op::<f32>::lower(&op, &card).unwrap(), &x, [9001, k], smallest);
        }
    }
}

/// Compares the best of segments, and rows of three halves that move with them.
#[track_caller]
fn check_segments<T: Sample>(device: &Device, x: &[T], offsets: &[u32], k: usize, variant: &str)
where
    TopKRows: Op<T>,
{
    let (gpu, smallest, segments) = (&device.gpu, k.is_multiple_of(2), offsets.len() - 1);
    let what = format!("{}: {variant}, {k} of {segments} segments of {} {}", device.label, x.len(), T::DTYPE);
    let op = TopKRows::segments(x.len(), segments, k).variant(variant).with_payload(DType::F16, 3);
    let Some(plan) = supported(op.when(smallest, TopKRows::smallest).plan::<T>(gpu)) else { return };
    let rows: Vec<half::f16> = (0..3 * x.len()).map(|i| half::f16::from_bits(i as u16)).collect();
    let best = segments * k;
    let (input, at, payload) = (gpu.upload(x).unwrap(), gpu.upload(offsets).unwrap(), gpu.upload(&rows).unwrap());
    let values = gpu.upload(&vec![T::from_f64(7.0); best + 1]).unwrap();
    let indices = gpu.upload(&vec![77u32; best + 1]).unwrap();
    let moved = gpu.upload(&vec![half::f16::NEG_ONE; 3 * best + 1]).unwrap();
    let mut rec = gpu.recorder();
    let call = plan.with_payload(&payload, moved.slice(..3 * best).unwrap());
    let outputs = (values.slice(..best).unwrap(), indices.slice(..best).unwrap());
    call.record_segments(&mut rec, &input, &at, outputs.0, outputs.1).unwrap();
    rec.submit().unwrap();
    let (mut want, places) = top_k_segments(x, offsets, k, smallest);
    let row = |&i: &u32| rows.get(3 * i as usize..).map_or([half::f16::ZERO; 3], |row| [row[0], row[1], row[2]]);
    let mut want_rows: Vec<half::f16> = places.iter().flat_map(row).collect();
    want_rows.push(half::f16::NEG_ONE);
    want.push(T::from_f64(7.0));
    assert_eq!(indices.read().unwrap(), [&places[..], &[77]].concat(), "{what}");
    let bits = bytemuck::cast_slice::<T, u8>;
    assert!(bits(&values.read().unwrap()) == bits(&want), "{what}: values");
    let bits = bytemuck::cast_slice::<half::f16, u8>;
    assert!(bits(&moved.read().unwrap()) == bits(&want_rows), "{what}: payload");
}

/// Empty segments, ones shorter than k, long ones, offsets above the length, and no elements.
#[test]
fn the_best_of_segments_match_the_reference() {
    let offsets = [3u32, 3, 4, 10, 40, 700, 4000, 4000, 5001, 9999];
    for device in devices() {
        let mut random = Random::new(6);
        let x: Vec<f32> = random.any(5001);
        let few: Vec<i32> = random.elements::<i32>(5001).iter().map(|x| x % 5).collect();
        for variant in TopKRows::variants() {
            for k in [1, 20, 300] {
                check_segments(device, &x, &offsets, k, variant.name);
            }
            check_segments(device, &few, &offsets, 9, variant.name);
            check_segments(device, &random.any::<half::f16>(5001), &offsets, 15, variant.name);
            check_segments::<u32>(device, &[], &[0, 0, 5], 2, variant.name);
            check_segments(device, &[5u32], &[0, 1], 3, variant.name);
        }
    }
}

/// Offsets that decrease: nothing is written outside, and no workgroup hangs.
#[test]
fn decreasing_offsets_give_elements_or_none() {
    let (x, offsets) = (Random::new(2).any::<u32>(3000), [2900u32, 10, u32::MAX, 0, 3000, 1]);
    for device in devices() {
        for variant in TopKRows::variants() {
            let gpu = &device.gpu;
            let plan = TopKRows::segments(3000, 5, 7).variant(variant.name).plan::<u32>(gpu).unwrap();
            let (input, at) = (gpu.upload(&x).unwrap(), gpu.upload(&offsets).unwrap());
            let (values, indices) = (gpu.alloc::<u32>(35).unwrap(), gpu.alloc::<u32>(35).unwrap());
            let mut rec = gpu.recorder();
            plan.record_segments(&mut rec, &input, &at, &values, &indices).unwrap();
            rec.submit().unwrap();
            for (value, i) in values.read().unwrap().into_iter().zip(indices.read().unwrap()) {
                let wanted = if i == u32::MAX { 0 } else { x[i as usize] };
                assert_eq!(value, wanted, "{}: {}", device.label, variant.name);
            }
        }
    }
}

/// Rows of two words move with the best of rows.
#[test]
fn payload_moves_with_the_best_of_rows() {
    let (x, payload) = (Random::new(7).any::<f32>(5 * 301), Random::new(8).any::<u32>(2 * 5 * 301));
    for device in devices() {
        let (gpu, op) = (&device.gpu, TopKRows::new([5, 301], 4).with_payload(DType::U32, 2));
        let (input, rows) = (gpu.upload(&x).unwrap(), gpu.upload(&payload).unwrap());
        let (values, indices) = (gpu.alloc::<f32>(20).unwrap(), gpu.alloc::<u32>(20).unwrap());
        let moved = gpu.alloc::<u32>(40).unwrap();
        let mut rec = gpu.recorder();
        let plan = op.plan::<f32>(gpu).unwrap();
        plan.with_payload(&rows, &moved).record(&mut rec, &input, &values, &indices).unwrap();
        rec.submit().unwrap();
        let places = top_k_rows(&x, 301, 4, false).1;
        let row = |(at, i): (usize, &u32)| payload[2 * (at / 4 * 301 + *i as usize)..][..2].to_vec();
        let want: Vec<u32> = places.iter().enumerate().flat_map(row).collect();
        assert_eq!(moved.read().unwrap(), want, "{}", device.label);
    }
}

/// A profile with bindings of 64 KiB, so that a binding holds few rows and a part starts at any of them.
#[test]
fn rows_larger_than_one_binding_are_split() {
    let (rows, n, k) = (23, 1501, 7);
    let x = Random::new(8).any::<f32>(rows * n);
    for device in devices().iter().filter(|d| d.main) {
        let mut profile = device.gpu.profile().clone();
        profile.limits.max_storage_binding = 64 << 10;
        let program = Op::<f32>::lower(&TopKRows::new([rows, n], k), &profile).unwrap();
        assert!(program.dispatches.len() > 1);
        assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= 64 << 10));
        run(device, program, &x, [n, k], false);
    }
}

#[test]
fn top_k_rows_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    for (n, k) in [(0, 0), (0, 1), (5, 0), (5, 6)] {
        assert_eq!(refusal::<f32>(gpu, &TopKRows::new([3, n], k)), ErrorKind::InvalidArgument);
    }
    let op = TopKRows::new([3, 5000], 2);
    assert_eq!(refusal::<f32>(gpu, &op.variant("heap")), ErrorKind::InvalidArgument);
    let large = TopKRows::new([1, 9000], 5000);
    assert_eq!(refusal::<f32>(gpu, &large.variant("filter")), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(gpu, &TopKRows::new([usize::MAX, 9], 5)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &TopKRows::segments(9, 3, 0)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &TopKRows::segments(9, usize::MAX, 5)), ErrorKind::TooLarge);
    let words = TopKRows::new([3, 9], 5).with_payload(DType::U64, 1);
    assert_eq!(refusal::<f32>(gpu, &words), ErrorKind::Unsupported);
    let none = TopKRows::new([0, 9], 5).plan::<f32>(gpu).unwrap();
    assert!(none.program().dispatches.is_empty());
}

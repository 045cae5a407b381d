//! Both variants of `TopKRows` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::sample;
use crate::support::{Device, Random, Sample, as_card, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::{Op, Program};
use tilework::reference::top_k_rows;

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
    let none = TopKRows::new([0, 9], 5).plan::<f32>(gpu).unwrap();
    assert!(none.program().dispatches.is_empty());
}

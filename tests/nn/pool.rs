//! Every variant of `Pool2d` against the reference.

use crate::support::coverage::all;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{pool, pool_bound};

fn kinds(r: usize, s: usize) -> [PoolKind; 4] {
    let weights = (0..r * s).map(|i| 0.25 - 0.1 * i as f32).collect();
    [PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(weights)]
}

/// All variants that accept it, without a bias and with one.
fn check<T: Sample>(device: &Device, op: &Pool2d, channels: usize, x: &[T])
where
    Pool2d: Op<T>,
{
    let gpu = &device.gpu;
    let bias = Random::new(5).elements::<T>(channels);
    let (dx, db) = (gpu.upload(x).unwrap(), gpu.upload(&bias).unwrap());
    let len = op.output_shape().unwrap().iter().product();
    for variant in ["auto", "direct", "large", "pairs"] {
        let op = op.clone().variant(variant);
        let plan = match op.plan::<T>(gpu) {
            Err(e) if variant == "pairs" && e.kind() == ErrorKind::Unsupported => continue,
            plan => plan.unwrap(),
        };
        for bias in [None, Some(bias.as_slice())] {
            let y = gpu.alloc::<T>(len).unwrap();
            let mut rec = gpu.recorder();
            if bias.is_none() {
                plan.record(&mut rec, &dx, &y).unwrap();
            } else {
                op.clone().with_bias().plan::<T>(gpu).unwrap().with_bias(&db).record(&mut rec, &dx, &y).unwrap();
            }
            rec.submit().unwrap();
            let (want, bound) = (pool(&op, x, bias).unwrap(), pool_bound(&op, x, bias).unwrap());
            let what = format!("{}: {} {op:?}", device.label, T::DTYPE);
            assert_close(&what, &numbers(&y.read().unwrap()), &numbers(&want), &bound);
        }
    }
}

fn check_random(device: &Device, shape: [usize; 4], kernel: [usize; 2], form: impl Fn(Pool2d) -> Pool2d) {
    let len = shape.iter().product();
    let mut random = Random::new(len as u64);
    let (x, halves) = (random.elements::<f32>(len), random.elements::<f16>(len));
    for kind in kinds(kernel[0], kernel[1]) {
        let op = form(Pool2d::new(kind, shape, kernel));
        check(device, &op, shape[1], &x);
        if device.main {
            check(device, &op, shape[1], &halves);
        }
    }
}

#[test]
fn pool_matches_reference_for_adjacent_windows() {
    for device in devices() {
        check_random(device, [2, 3, 8, 8], [2, 2], |op| op);
        check_random(device, [1, 2, 5, 12], [2, 2], |op| op);
        check_random(device, [3, 5, 2, 4], [2, 2], |op| op.units(1));
        check_random(device, [1, 1, 7, 7], [2, 2], |op| op);
        check_random(device, [2, 3, 30, 44], [2, 2], |op| op.units(3));
        check_random(device, [1, 2, 1, 1], [1, 1], |op| op);
        check_random(device, [1, 3, 40, 30], [40, 30], |op| op);
        if all() {
            check_random(device, [1, 3, 9, 6], [3, 2], |op| op);
            check_random(device, [1, 1, 1, 9], [1, 9], |op| op);
        }
    }
}

#[test]
fn pool_matches_reference_for_overlapping_and_spaced_windows() {
    for device in devices() {
        check_random(device, [1, 3, 7, 9], [3, 3], |op| op.stride([2, 2]).pad([1, 1]));
        check_random(device, [2, 1, 5, 5], [2, 2], |op| op.stride([1, 3]));
        check_random(device, [1, 1, 9, 8], [2, 3], |op| op.stride([1, 2]).dilation([3, 2]).pad([2, 1]));
        check_random(device, [1, 2, 6, 5], [3, 3], |op| op.stride([2, 2]).pad_each([0, 1, 2, 0]).count_include_pad());
        check_random(device, [1, 1, 4, 4], [4, 4], |op| op.pad([3, 3]).stride([1, 1]));
    }
}

#[test]
fn pool_applies_activations() {
    for device in devices() {
        for (activation, kind) in Activation::ALL.into_iter().zip(kinds(2, 2).into_iter().cycle()) {
            let x = Random::new(3).elements::<f32>(2 * 6 * 8);
            check(device, &Pool2d::new(kind, [1, 2, 6, 8], [2, 2]).activation(activation), 2, &x);
        }
    }
}

#[test]
fn pool_takes_weights_from_an_operand() {
    for device in devices() {
        let gpu = &device.gpu;
        for (shape, kernel) in [([2, 3, 8, 8], [2, 2]), ([1, 2, 7, 9], [3, 2]), ([1, 1, 40, 30], [40, 30])] {
            let (len, cells) = (shape.iter().product(), kernel[0] * kernel[1]);
            let (x, bias) = (Random::new(1).elements::<f32>(len), Random::new(2).elements::<f32>(shape[1]));
            let halves = Random::new(1).elements::<f16>(len);
            let weights = Random::new(3).elements::<f32>(cells);
            let of = |weights| Pool2d::new(PoolKind::Weighted(weights), shape, kernel).activation(Activation::Tanh);
            let ([dx, db, dw], dh) = ([&x, &bias, &weights].map(|v| gpu.upload(v).unwrap()), gpu.upload(&halves));
            let (wanted, given) = (of(weights), of(vec![0.0; cells]).with_weights().with_bias());
            for variant in ["auto", "direct", "large"] {
                let given = given.clone().variant(variant);
                let y = gpu.alloc::<f32>(wanted.output_shape().unwrap().iter().product()).unwrap();
                let mut rec = gpu.recorder();
                let plan = given.plan::<f32>(gpu).unwrap();
                plan.with_weights(&dw).with_bias(&db).record(&mut rec, &dx, &y).unwrap();
                rec.submit().unwrap();
                let want = pool(&wanted, &x, Some(&bias)).unwrap();
                let bound = pool_bound(&wanted, &x, Some(&bias)).unwrap();
                let (got, what) = (y.read().unwrap(), format!("{}: {given:?}", device.label));
                assert_close(&what, &numbers(&got), &numbers(&want), &bound);
            }
            let y = gpu.alloc::<f16>(wanted.output_shape().unwrap().iter().product()).unwrap();
            let mut rec = gpu.recorder();
            let plan = of(vec![0.0; cells]).with_weights().plan::<f16>(gpu).unwrap();
            plan.with_weights(&dw).record(&mut rec, dh.as_ref().unwrap(), &y).unwrap();
            rec.submit().unwrap();
            let want = numbers(&pool(&wanted, &halves, None).unwrap());
            let bound = pool_bound(&wanted, &halves, None).unwrap();
            assert_close(&device.label, &numbers(&y.read().unwrap()), &want, &bound);
        }
    }
    let Some(gpu) = gpu() else { return };
    let e = Pool2d::new(PoolKind::Max, [1, 1, 4, 4], [2, 2]).with_weights().plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("max takes no weights"), "{e}");
}

#[test]
fn pool_propagates_nan_and_infinities() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for device in devices() {
        let x = [1.0, -inf, nan, 2.0, 3.0, -inf, 4.0, 5.0, -inf, -inf, inf, 1.0, -inf, -inf, 2.0, nan];
        for kernel in [[2, 2], [1, 2], [4, 4]] {
            check(device, &Pool2d::new(PoolKind::Max, [1, 1, 4, 4], kernel), 1, &x);
        }
    }
}

#[test]
fn pool_keeps_elements_after_its_output() {
    for device in devices() {
        let x = device.gpu.upload(&[f16::from_f32(1.0); 9]).unwrap();
        let y = device.gpu.upload(&[f16::from_f32(7.0); 4]).unwrap();
        let plan = Pool2d::new(PoolKind::Max, [1, 1, 3, 3], [3, 3]).plan::<f16>(&device.gpu).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &x, y.slice(..1).unwrap()).unwrap();
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap()[1..], [f16::from_f32(7.0); 3], "{}", device.label);
    }
}

#[test]
fn pool_splits_input_larger_than_one_binding() {
    let Some(device) = devices().iter().find(|d| d.gpu.profile().limits.max_storage_binding <= 128 << 20) else {
        return;
    };
    // 5 planes of 40 MB.
    let (h, w) = (2001, 5000);
    let x: Vec<f32> = (0..5 * h * w).map(|i| (i / 1000 % 5 + i / (h * w)) as f32).collect();
    let op = Pool2d::new(PoolKind::Max, [1, 5, h, w], [1000, 1000]);
    let (dx, dy) = (device.gpu.upload(&x).unwrap(), device.gpu.alloc::<f32>(50).unwrap());
    let plan = op.plan::<f32>(&device.gpu).unwrap();
    assert!(plan.program().dispatches.len() > 1);
    let mut rec = device.gpu.recorder();
    plan.record(&mut rec, &dx, &dy).unwrap();
    rec.submit().unwrap();
    let want: Vec<f32> = (0..50).map(|i| (i % 5 + i / 10) as f32).collect();
    assert_eq!(dy.read().unwrap(), want);
}

#[test]
fn pool_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Pool2d| op.plan::<f32>(gpu).unwrap_err().kind();
    let of = |shape, kernel| Pool2d::new(PoolKind::Max, shape, kernel);
    assert_eq!(kind(of([1, 1, 4, 4], [5, 1])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1, 4, 4], [0, 1])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1, 4, 4], [2, 2]).stride([0, 1])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1, 4, 4], [2, 2]).dilation([1, 0])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1, 4, 4], [2, 2]).dilation([4, 1])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1, 4, 4], [2, 2]).pad([2, 0])), ErrorKind::Shape);
    for shape in [[1, 1, 0, 4], [0, 3, 4, 4], [2, 0, 4, 4]] {
        assert_eq!(kind(of(shape, [1, 1])), ErrorKind::Shape);
    }
    assert_eq!(kind(Pool2d::new(PoolKind::Weighted(vec![1.0; 3]), [1, 1, 4, 4], [2, 2])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 1, 4, 5], [2, 2]).variant("pairs")), ErrorKind::Unsupported);
    assert_eq!(kind(of([1, 1, 400, 400], [400, 400]).variant("direct")), ErrorKind::Unsupported);
    assert_eq!(kind(of([1, 1, 4, 4], [2, 2]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(of([1, 1, 4, 4], [2, 2]).units(17)), ErrorKind::InvalidArgument);
    assert_eq!(kind(of([1 << 20, 1 << 20, 4, 4], [2, 2])), ErrorKind::TooLarge);
    let (x, y) = (gpu.upload(&[0f32; 16]).unwrap(), gpu.upload(&[0f32; 4]).unwrap());
    let plan = of([1, 1, 4, 4], [2, 2]).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &x, &x).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &y, &y).unwrap_err().kind(), ErrorKind::Shape);
}

//! Every variant of `Pool2dBackward` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::Pool2dBackward;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{pool_backward, pool_backward_bound};

fn check<T: Sample>(device: &Device, op: &Pool2dBackward, x: &[T])
where
    Pool2dBackward: Op<T>,
{
    let gpu = &device.gpu;
    let windows = op.dy_shape().unwrap().iter().product();
    let dy = Random::new(9).elements::<T>(windows);
    let (want, bound) = (pool_backward(op, x, &dy).unwrap(), pool_backward_bound(op, x, &dy).unwrap());
    let refused = |variant: &str| {
        let lowered = op.clone().variant(variant).lower(gpu.profile());
        lowered.is_err_and(|e| e.kind() == ErrorKind::Unsupported)
    };
    for variant in ["auto", "direct", "pairs"].into_iter().filter(|v| *v != "pairs" || !refused(v)) {
        let (input, gradient) = (gpu.upload(x).unwrap(), gpu.upload(&dy).unwrap());
        let dx = gpu.alloc::<T>(x.len()).unwrap();
        let plan = op.clone().variant(variant).plan::<T>(gpu).unwrap();
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &input, &gradient, &dx).unwrap();
        rec.submit().unwrap();
        let what = format!("{}: {} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&dx.read().unwrap()), &numbers(&want), &bound);
    }
}

fn check_random(
    device: &Device, shape: [usize; 4], kernel: [usize; 2], form: impl Fn(Pool2dBackward) -> Pool2dBackward,
) {
    let len = shape.iter().product();
    let mut random = Random::new(len as u64);
    let weights = PoolKind::Weighted((0..kernel[0] * kernel[1]).map(|i| 0.3 * i as f32 - 0.5).collect());
    for kind in [PoolKind::Max, PoolKind::Average, PoolKind::L2, weights] {
        let op = form(Pool2dBackward::new(kind, shape, kernel));
        check(device, &op, &random.elements::<f32>(len));
        check(device, &op, &random.elements::<f16>(len));
    }
}

#[test]
fn pool_backward_takes_weights_from_an_operand() {
    for device in devices() {
        let gpu = &device.gpu;
        for (shape, kernel) in [([2, 3, 8, 8], [2, 2]), ([1, 2, 7, 9], [3, 2])] {
            let cells = kernel[0] * kernel[1];
            let weights = Random::new(3).elements::<f32>(cells);
            let of = |weights| Pool2dBackward::new(PoolKind::Weighted(weights), shape, kernel);
            let (wanted, given) = (of(weights.clone()), of(vec![0.0; cells]).with_weights());
            let x = Random::new(1).elements::<f32>(shape.iter().product());
            let dy = Random::new(2).elements::<f32>(wanted.dy_shape().unwrap().iter().product());
            let [input, gradient, dw] = [&x, &dy, &weights].map(|v| gpu.upload(v).unwrap());
            let dx = gpu.alloc::<f32>(x.len()).unwrap();
            let mut rec = gpu.recorder();
            let plan = given.plan::<f32>(gpu).unwrap();
            plan.with_weights(&dw).record(&mut rec, &input, &gradient, &dx).unwrap();
            rec.submit().unwrap();
            let (want, bound) =
                (pool_backward(&wanted, &x, &dy).unwrap(), pool_backward_bound(&wanted, &x, &dy).unwrap());
            assert_close(&device.label, &numbers(&dx.read().unwrap()), &numbers(&want), &bound);
        }
    }
    let Some(gpu) = gpu() else { return };
    let max = Pool2dBackward::new(PoolKind::Max, [1, 1, 4, 4], [2, 2]).with_weights();
    assert_eq!(max.plan::<f32>(gpu).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn pool_backward_matches_reference_for_every_window() {
    for device in devices() {
        check_random(device, [2, 3, 8, 8], [2, 2], |op| op);
        check_random(device, [1, 2, 7, 9], [2, 2], |op| op);
        check_random(device, [3, 5, 6, 12], [2, 2], |op| op.count_include_pad());
        check_random(device, [1, 2, 7, 8], [2, 2], |op| op);
        check_random(device, [1, 3, 7, 9], [3, 3], |op| op.stride([2, 2]).pad([1, 1]));
        check_random(device, [1, 1, 9, 8], [2, 3], |op| op.stride([1, 2]).dilation([3, 2]).pad([2, 1]));
        check_random(device, [1, 2, 6, 5], [3, 3], |op| op.stride([1, 1]).pad([1, 1]).count_include_pad());
        check_random(device, [1, 1, 1, 1], [1, 1], |op| op);
    }
}

#[test]
fn pool_backward_matches_reference_on_ties_and_nan() {
    for device in devices() {
        let op = Pool2dBackward::new(PoolKind::Max, [1, 1, 4, 4], [2, 2]);
        let mut x = [1.0f32; 16];
        check(device, &op, &x);
        x[5] = f32::NAN;
        x[10] = f32::NEG_INFINITY;
        check(device, &op, &x);
        let zeros = Pool2dBackward::new(PoolKind::L2, [1, 1, 4, 4], [2, 2]);
        check(device, &zeros, &[0.0f32; 16]);
    }
}

#[test]
fn pool_backward_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Pool2dBackward| op.plan::<f32>(gpu).unwrap_err().kind();
    let of = |kind| Pool2dBackward::new(kind, [1, 1, 4, 4], [2, 2]);
    assert_eq!(kind(of(PoolKind::Weighted(vec![1.0; 3]))), ErrorKind::Shape);
    assert_eq!(kind(of(PoolKind::Max).pad([2, 2])), ErrorKind::Shape);
    assert_eq!(kind(of(PoolKind::Max).stride([0, 2])), ErrorKind::Shape);
    assert_eq!(kind(of(PoolKind::Max).stride([1, 1]).variant("pairs")), ErrorKind::Unsupported);
    assert_eq!(kind(Pool2dBackward::new(PoolKind::Max, [0, 1, 4, 4], [2, 2])), ErrorKind::Shape);
    let odd = Pool2dBackward::new(PoolKind::Max, [1, 1, 5, 4], [2, 2]);
    assert_eq!(kind(odd.variant("pairs")), ErrorKind::Unsupported);
    let wide = Pool2dBackward::new(PoolKind::Max, [1, 1, 300, 300], [300, 300]);
    assert_eq!(kind(wide), ErrorKind::TooLarge);
    assert_eq!(kind(of(PoolKind::Max).variant("fast")), ErrorKind::InvalidArgument);
}

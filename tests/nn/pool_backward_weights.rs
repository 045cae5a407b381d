//! Every variant of `Pool2dBackwardWeights` against the reference.

use super::training::{names, random, refusal};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::nn::Pool2dBackwardWeights;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{pool_backward_weights, pool_backward_weights_bound};

fn check<T: Sample>(device: &Device, op: &Pool2dBackwardWeights, x: &[T], dy: &[T], columns: bool)
where
    Pool2dBackwardWeights: Op<T>,
{
    let gpu = &device.gpu;
    let (want, bound) = (pool_backward_weights(op, x, dy).unwrap(), pool_backward_weights_bound(op, x, dy).unwrap());
    let (x, dy) = (gpu.upload(x).unwrap(), gpu.upload(dy).unwrap());
    for variant in names(Pool2dBackwardWeights::variants()) {
        if variant == "columns" && !columns {
            assert_eq!(refusal::<T>(gpu, &op.clone().variant(variant)), ErrorKind::Unsupported);
            continue;
        }
        let dw = gpu.alloc::<f32>(want.len()).unwrap();
        let mut rec = gpu.recorder();
        op.clone().variant(variant).plan::<T>(gpu).unwrap().record(&mut rec, &x, &dy, &dw).unwrap();
        rec.submit().unwrap();
        let what = format!("{}: {} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&dw.read().unwrap()), &numbers(&want), &bound);
    }
}

fn check_random(
    device: &Device, shape: [usize; 4], kernel: [usize; 2], columns: bool,
    form: impl Fn(Pool2dBackwardWeights) -> Pool2dBackwardWeights,
) {
    let op = form(Pool2dBackwardWeights::new(shape, kernel));
    let (cells, windows) = (shape.iter().product(), op.dy_shape().unwrap().iter().product());
    check(device, &op, &random::<f32>(1, cells), &random::<f32>(2, windows), columns);
    check(device, &op, &random::<f16>(1, cells), &random::<f16>(2, windows), columns);
}

#[test]
fn pool_backward_weights_matches_reference_for_every_window() {
    for device in devices() {
        check_random(device, [2, 3, 8, 8], [2, 2], true, |op| op);
        check_random(device, [1, 1, 1, 1], [1, 1], true, |op| op);
        check_random(device, [1, 2, 7, 9], [3, 3], true, |op| op.stride([1, 2]).pad([1, 1]));
        check_random(device, [3, 1, 9, 8], [2, 3], false, |op| op.stride([1, 2]).dilation([3, 2]).pad([2, 1]));
        // Runs of windows that end early, rows and columns apart.
        check_random(device, [2, 2, 19, 11], [3, 3], true, |op| op.stride([1, 1]).pad([2, 1]));
        check_random(device, [1, 3, 23, 8], [1, 4], true, |op| op.stride([3, 2]).dilation([5, 2]).pad([0, 3]));
        // Four windows across a thread: with some left over, and more rows than a run has.
        check_random(device, [2, 3, 9, 12], [3, 3], true, |op| op.stride([1, 1]));
        check_random(device, [1, 2, 21, 16], [2, 5], true, |op| op.stride([2, 3]));
        // More weights than a workgroup sums, and many parts.
        check_random(device, [1, 2, 13, 11], [5, 7], false, |op| op.stride([1, 1]));
        check_random(device, [5, 7, 60, 61], [2, 2], true, |op| op.stride([1, 1]));
    }
}

#[test]
fn nan_reaches_its_weight_only() {
    for device in devices() {
        let x = [1.0f32, f32::NAN, 3.0, 4.0];
        let op = Pool2dBackwardWeights::new([1, 1, 2, 2], [1, 2]);
        check(device, &op, &x, &[1.0, 2.0], true);
        // Nor by windows that are left over where four go together.
        let mut x = [1.0f32; 12];
        x[11] = f32::NAN;
        let op = Pool2dBackwardWeights::new([1, 1, 1, 12], [1, 3]).stride([1, 1]);
        check(device, &op, &x, &[1.0; 10], true);
        // Nor does one in the gradient, by cells of the padding.
        let op = Pool2dBackwardWeights::new([1, 1, 2, 2], [2, 2]).stride([1, 1]).pad([1, 1]);
        let mut dy = [1.0f32; 9];
        dy[0] = f32::NAN;
        check(device, &op, &[1.0, 2.0, 3.0, 4.0], &dy, true);
    }
}

#[test]
fn pool_backward_weights_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let of = Pool2dBackwardWeights::new;
    assert_eq!(refusal::<f32>(gpu, &of([1, 1, 4, 4], [5, 1])), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &of([1, 0, 4, 4], [2, 2])), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &of([1, 1, 4, 4], [2, 2]).stride([0, 1])), ErrorKind::Shape);
    assert_eq!(refusal::<f32>(gpu, &of([1, 1, 256, 256], [200, 200])), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(gpu, &of([1, 1, 4, 4], [2, 2]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &of([usize::MAX, 1, 4, 4], [2, 2])), ErrorKind::TooLarge);
}

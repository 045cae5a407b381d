//! `IsSorted` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::is_sorted;

fn check<T: Sample>(device: &Device, x: &[T])
where
    IsSorted: Op<T>,
{
    let gpu = &device.gpu;
    let input = gpu.upload(x).unwrap();
    for descending in [false, true] {
        let result = gpu.upload(&[7u32]).unwrap();
        let plan = IsSorted::new(x.len()).when(descending, IsSorted::descending).plan::<T>(gpu).unwrap();
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &input, &result).unwrap();
        rec.submit().unwrap();
        let want = u32::from(is_sorted(x, descending));
        assert_eq!(result.read().unwrap(), [want], "{}: {} {}, {descending}", device.label, x.len(), T::DTYPE);
    }
}

#[test]
fn one_pair_in_the_wrong_order_is_found_wherever_it_is() {
    for device in devices() {
        for n in [0, 1, 2, 2048, 2049, 5001] {
            let mut x: Vec<u32> = (0..n).map(|i| i / 3).collect();
            check(device, &x);
            x.reverse();
            check(device, &x);
            for at in [1, 255, 256, 2047, 2048, 5000].into_iter().filter(|at| *at < x.len()) {
                let mut x: Vec<i32> = (0..n as i32).collect();
                x[at] = -7;
                check(device, &x);
            }
        }
    }
}

#[test]
fn floats_are_sorted_by_value_with_nan_last() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for device in devices() {
        let x = [-inf, -1.0, 0.0, -0.0, 0.0, 3.0, inf, nan, -nan];
        let mut falling = x;
        falling[..7].reverse();
        for x in [&x[..], &falling, &[nan, 1.0], &[0.0, 1e-40], &[-0.0, -1e-40]] {
            check(device, x);
        }
        check(device, &x.map(f16::from_f32));
        check(device, &falling.map(f16::from_f32));
    }
}

#[test]
fn is_sorted_by_one_call() {
    let Some(gpu) = gpu() else { return };
    let is_sorted = |x: &[u32]| gpu.is_sorted(&gpu.upload(x).unwrap()).unwrap().read().unwrap();
    assert_eq!((is_sorted(&[1, 1, 2]), is_sorted(&[2, 1])), (vec![1], vec![0]));
    assert_eq!(refusal::<f32>(gpu, &IsSorted::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &IsSorted::new(usize::MAX)), ErrorKind::TooLarge);
}

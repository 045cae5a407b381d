//! Every variant of `Scatter` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{scatter, scatter_bound};

const ALL: [ScatterOp; 4] = [ScatterOp::Set, ScatterOp::Add, ScatterOp::Min, ScatterOp::Max];

/// Runs the op with elements behind its output. Compares sums of floats by their bound, but in order by their bits.
fn check<T: Sample>(device: &Device, op: ScatterOp, [rows, n]: [usize; 2], x: &[T], indices: &[u32])
where
    Scatter: Op<T>,
{
    let gpu = &device.gpu;
    let into: Vec<T> = Random::new(3).elements(rows * n + 3);
    let (want, bound) =
        (scatter(op, n, x, indices, &into[..rows * n]), scatter_bound(n, x, indices, &into[..rows * n]));
    let invalid = indices.iter().filter(|i| **i as usize >= rows).count();
    for variant in Scatter::variants().iter().map(|v| v.name) {
        let scatter = Scatter::new(op, [rows, n], indices.len()).variant(variant).checked();
        let plan = scatter.plan::<T>(gpu).unwrap();
        let (dx, di, y) = (gpu.upload(x).unwrap(), gpu.upload(indices).unwrap(), gpu.upload(&into).unwrap());
        let count = gpu.alloc::<u32>(1).unwrap();
        let mut rec = gpu.recorder();
        let part = y.slice(..rows * n).unwrap();
        plan.with_invalid(&count).record(&mut rec, &dx, &di, part).unwrap();
        rec.submit().unwrap();
        let got = y.read().unwrap();
        let what = format!("{}: {op:?} {variant} {} into {rows} x {n}", device.label, T::DTYPE);
        let bits = |x: &[T]| bytemuck::cast_slice::<T, u8>(x).to_vec();
        if op == ScatterOp::Add && T::DTYPE.is_float() && variant == "atomic" {
            assert_close(&what, &numbers(&got[..rows * n]), &numbers(&want), &bound);
        } else {
            assert_eq!(bits(&got[..rows * n]), bits(&want), "{what}");
        }
        assert_eq!(bits(&got[rows * n..]), bits(&into[rows * n..]), "{what}: elements past the output");
        assert_eq!(count.read().unwrap(), [invalid as u32], "{what}");
    }
}

#[test]
fn scatter_matches_reference_for_rows_of_every_length() {
    fn of<T: Sample>(device: &Device)
    where
        Scatter: Op<T>,
    {
        let mut random = Random::new(5);
        for ([rows, n], count) in [([7, 1], 40), ([30, 3], 90), ([9, 8], 20)] {
            let mut indices: Vec<u32> = (0..count).map(|_| random.next() as u32 % rows as u32).collect();
            (indices[0], indices[count / 2]) = (rows as u32, u32::MAX);
            let x = random.elements(count * n);
            ALL.into_iter().for_each(|op| check::<T>(device, op, [rows, n], &x, &indices));
        }
        check::<T>(device, ScatterOp::Set, [0, 3], &[T::from_f64(1.0); 3], &[0]);
        check::<T>(device, ScatterOp::Add, [3, 1], &[], &[]);
    }
    for device in devices() {
        of::<f32>(device);
        of::<f16>(device);
        of::<u8>(device);
        of::<i8>(device);
        of::<i32>(device);
        of::<u32>(device);
    }
}

#[test]
fn minima_and_maxima_order_zeros_and_keep_nan() {
    let x = [-0.0, 0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
    for device in devices() {
        for op in [ScatterOp::Min, ScatterOp::Max] {
            check(device, op, [6, 1], &x, &[0, 0, 1, 2, 3, 4, 4]);
            check(device, op, [6, 1], &x.map(f16::from_f32), &[0, 0, 1, 2, 3, 4, 4]);
        }
    }
}

#[test]
fn a_run_longer_than_a_driver_loops_is_added_completely() {
    let Some(device) = devices().first() else { return };
    let x: Vec<u32> = (0..70_000).collect();
    check(device, ScatterOp::Add, [3, 1], &x, &vec![1; x.len()]);
}

#[test]
fn distinct_rows_are_stored_in_one_pass() {
    let Some(gpu) = gpu() else { return };
    let plan = Scatter::new(ScatterOp::Set, [4, 2], 3).distinct().plan::<u32>(gpu).unwrap();
    assert_eq!(plan.program().dispatches.len(), 1);
    let (x, into) = (gpu.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap(), gpu.alloc_zeroed::<u32>(8).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &gpu.upload(&[3u32, 9, 0]).unwrap(), &into).unwrap();
    rec.submit().unwrap();
    assert_eq!(into.read().unwrap(), [5, 6, 0, 0, 0, 0, 1, 2]);
}

#[test]
fn scatter_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let op = |rows, n, m| Scatter::new(ScatterOp::Add, [rows, n], m);
    assert_eq!(refusal::<f32>(gpu, &op(4, 4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &op(usize::MAX, 2, 1)), ErrorKind::TooLarge);
    let (x, indices) = (gpu.upload(&[1.0f32; 6]).unwrap(), gpu.upload(&[0u32; 3]).unwrap());
    let into = gpu.upload(&[1.0f32; 8]).unwrap();
    let kind = |width| gpu.scatter(ScatterOp::Add, &x, &indices, &into, width).unwrap_err().kind();
    assert_eq!(kind(3), ErrorKind::Shape); // no rows of 3 in 8 elements
    assert_eq!(kind(4), ErrorKind::Shape); // x would have 12 elements
}

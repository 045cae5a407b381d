//! Every variant of `LayerNorm` against the reference.

use super::rows::{MORE, SHAPES, numbers, refused};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers as as_numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::nn::WithBeta;
use tilework::prelude::*;
use tilework::program::{In, Op, Out};
use tilework::reference::{layer_norm, layer_norm_bound};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(LayerNorm::variants().iter().map(|v| v.name))
}

/// With and without a shift.
fn check<T: Sample>(device: &Device, op: &LayerNorm, rows: usize, n: usize, x: &[T])
where
    LayerNorm: Op<T, Operands = (In<T>, In<T>, Out<T>)>,
    WithBeta<LayerNorm>: Op<T, Operands = (In<T>, In<T>, In<T>, Out<T>)>,
{
    let gpu = &device.gpu;
    let (gamma, beta) = (numbers::<T>(1, n), numbers::<T>(2, n)[n..].to_vec());
    let (dx, dg, db) = (gpu.upload(x).unwrap(), gpu.upload(&gamma).unwrap(), gpu.upload(&beta).unwrap());
    for variant in names().filter(|v| !refused(device, v, n)) {
        let op = op.clone().variant(variant);
        // Both where a workgroup has several rows, one of them elsewhere.
        let shifts = [None, Some(beta.as_slice())];
        for shift in if n < 128 { &shifts[..] } else { &shifts[n % 2..][..1] } {
            let shift = *shift;
            let output = gpu.alloc::<T>(x.len()).unwrap();
            let mut rec = gpu.recorder();
            if shift.is_none() {
                op.plan::<T>(gpu).unwrap().record(&mut rec, &dx, &dg, &output).unwrap();
            } else {
                let plan = op.clone().with_beta().plan::<T>(gpu).unwrap();
                plan.record(&mut rec, &dx, &dg, &db, &output).unwrap();
            }
            rec.submit().unwrap();
            let want = as_numbers(&layer_norm(&op, x, &gamma, shift));
            let bound = layer_norm_bound(&op, x, &gamma, shift);
            let what = format!("{}: {} {variant} {rows} x {n}", device.label, T::DTYPE);
            assert_close(&what, &as_numbers(&output.read().unwrap()), &want, &bound);
        }
    }
}

#[test]
fn layer_norm_matches_reference_for_rows_of_every_length() {
    for device in devices() {
        for (rows, n) in SHAPES {
            let op = LayerNorm::new(rows, n);
            check(device, &op, rows, n, &numbers::<f32>(rows, n));
            check(device, &op.eps(0.5), rows, n, &numbers::<f16>(rows, n));
        }
        for (rows, n) in MORE.into_iter().filter(|_| device.main) {
            check(device, &LayerNorm::new(rows, n), rows, n, &numbers::<f32>(rows, n));
        }
    }
}

#[test]
fn layer_norm_matches_reference_when_lanes_are_asked_for() {
    let Some(device) = devices().first() else { return };
    for (rows, n, lanes) in
        [(5, 100, 32), (5, 99, 32), (3, 1000, 64), (3, 1000, 128), (9, 3, 1), (2, 1024, 256)]
    {
        check(device, &LayerNorm::new(rows, n).lanes(lanes), rows, n, &numbers::<f32>(rows, n));
    }
}

#[test]
fn layer_norm_of_a_large_mean_keeps_its_digits() {
    for device in devices() {
        for n in [64, 1000, 9000] {
            let x: Vec<f32> = numbers::<f32>(3, n).iter().map(|x| x + 1000.0).collect();
            check(device, &LayerNorm::new(3, n), 3, n, &x);
        }
    }
}

#[test]
fn layer_norm_of_what_is_no_number_is_none() {
    for device in devices() {
        for n in [4, 5, 5000] {
            let mut x = vec![1.0f32; 2 * n];
            x[n / 2] = f32::NAN;
            x[n] = 3.0;
            check(device, &LayerNorm::new(2, n), 2, n, &x);
        }
    }
}

#[test]
fn layer_norm_of_nothing_is_nothing() {
    for device in devices() {
        check::<f32>(device, &LayerNorm::new(0, 5), 0, 5, &[]);
        check::<f32>(device, &LayerNorm::new(5, 0), 5, 0, &[]);
    }
}

#[test]
fn layer_norm_refuses_what_it_cannot_do() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: LayerNorm| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(LayerNorm::new(4, 4).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(LayerNorm::new(4, 4).lanes(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(LayerNorm::new(4, 4).eps(-1.0)), ErrorKind::InvalidArgument);
    assert_eq!(kind(LayerNorm::new(4, 4).eps(f32::NAN)), ErrorKind::InvalidArgument);
    assert_eq!(kind(LayerNorm::new(4, 1 << 20).variant("whole")), ErrorKind::TooLarge);
    assert_eq!(kind(LayerNorm::new(usize::MAX, 2)), ErrorKind::TooLarge);
    let x = |n: usize| gpu.upload(&vec![1.0f32; n]).unwrap();
    let (six, other, three, two) = (x(6), x(6), x(3), x(2));
    let plan = LayerNorm::new(2, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &six, &two, &other).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &three, &three, &other).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &six, &three, &six).unwrap_err().kind(), ErrorKind::Aliasing);
}

//! Every variant of `Softmax` against the reference.

use super::rows::{MORE, SHAPES, numbers, refused};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers as as_numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::{In, Op, Out};
use tilework::reference::{softmax, softmax_bound};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Softmax::variants().iter().map(|v| v.name))
}

fn run<T: Sample>(device: &Device, op: &Softmax, x: &[T]) -> Vec<T>
where
    Softmax: Op<T, Operands = (In<T>, Out<T>)>,
{
    let (input, output) = (device.gpu.upload(x).unwrap(), device.gpu.alloc::<T>(x.len()).unwrap());
    let plan = op.plan::<T>(&device.gpu).unwrap();
    let mut rec = device.gpu.recorder();
    plan.record(&mut rec, &input, &output).unwrap();
    rec.submit().unwrap();
    output.read().unwrap()
}

fn check<T: Sample>(device: &Device, rows: usize, n: usize, x: &[T])
where
    Softmax: Op<T, Operands = (In<T>, Out<T>)>,
{
    let (want, bound) = (as_numbers(&softmax(n, x)), softmax_bound(n, x));
    for variant in names().filter(|v| !refused(device, v, n)) {
        let got = run(device, &Softmax::new(rows, n).variant(variant), x);
        let what = format!("{}: {} {variant} {rows} x {n}", device.label, T::DTYPE);
        assert_close(&what, &as_numbers(&got), &want, &bound);
    }
}

#[test]
fn softmax_matches_reference_for_rows_of_every_length() {
    for device in devices() {
        for (rows, n) in SHAPES {
            check(device, rows, n, &numbers::<f32>(rows, n));
            check(device, rows, n, &numbers::<f16>(rows, n));
        }
        for (rows, n) in MORE.into_iter().filter(|_| device.main) {
            check(device, rows, n, &numbers::<f32>(rows, n));
        }
    }
}

#[test]
fn softmax_matches_reference_when_lanes_are_asked_for() {
    let Some(device) = devices().first() else { return };
    for (rows, n, lanes) in
        [(5, 100, 32), (5, 99, 32), (3, 1000, 64), (3, 1000, 128), (9, 3, 1), (2, 1024, 256)]
    {
        let x = numbers::<f32>(rows, n);
        for variant in names() {
            let got = run(device, &Softmax::new(rows, n).lanes(lanes).variant(variant), &x);
            let (want, bound) = (as_numbers(&softmax(n, &x)), softmax_bound(n, &x));
            assert_close(&format!("{variant} {rows} x {n} by {lanes}"), &as_numbers(&got), &want, &bound);
        }
    }
}

#[test]
fn softmax_of_what_is_not_finite_is_as_documented() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for device in devices() {
        for n in [3, 4, 300, 5000] {
            let mut x = vec![1.0f32; 6 * n];
            x[..n].fill(-inf);
            x[n + 1] = -inf;
            x[2 * n + 2] = inf;
            x[3 * n] = nan;
            x[4 * n..5 * n].fill(nan);
            x[5 * n..].fill(-3e38);
            x[6 * n - 1] = 3e38;
            check(device, 6, n, &x);
            // Whole parts of nothing but -infinity beside numbers.
            let mut x = vec![-inf; 2 * n];
            x[0] = 2.0;
            x[2 * n - 1] = -1000.0;
            check(device, 2, n, &x);
        }
    }
}

#[test]
fn softmax_leaves_what_lies_behind_alone() {
    for device in devices() {
        let x = numbers::<f16>(3, 3);
        let input = device.gpu.upload(&x).unwrap();
        for variant in names() {
            let buffer = device.gpu.upload(&[f16::from_f32(7.0); 12]).unwrap();
            let plan = Softmax::new(3, 3).variant(variant).plan::<f16>(&device.gpu).unwrap();
            let mut rec = device.gpu.recorder();
            plan.record(&mut rec, &input, buffer.slice(..9).unwrap()).unwrap();
            rec.submit().unwrap();
            assert_eq!(buffer.read().unwrap()[9..], [f16::from_f32(7.0); 3], "{}: {variant}", device.label);
        }
    }
}

#[test]
fn softmax_of_nothing_is_nothing() {
    for device in devices() {
        check::<f32>(device, 0, 5, &[]);
        check::<f32>(device, 5, 0, &[]);
    }
}

#[test]
fn softmax_refuses_what_it_cannot_do() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Softmax| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Softmax::new(4, 4).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Softmax::new(4, 4).lanes(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Softmax::new(4, 4).lanes(1 << 20)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Softmax::new(4, 1 << 20).variant("whole")), ErrorKind::TooLarge);
    assert_eq!(kind(Softmax::new(usize::MAX, 2)), ErrorKind::TooLarge);
    assert_eq!(kind(Softmax::new(1 << 30, 1 << 30)), ErrorKind::TooLarge);
    let (six, five) = (gpu.upload(&[0f32; 6]).unwrap(), gpu.upload(&[0f32; 5]).unwrap());
    let plan = Softmax::new(2, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &five, &six).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &six, &five).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &six, &six).unwrap_err().kind(), ErrorKind::Aliasing);
}

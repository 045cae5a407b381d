//! `Dropout` against the reference.

use super::training::{random, refusal};
use crate::support::{Device, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::nn::Dropout;
use tilework::program::Op;
use tilework::reference::{dropout, dropout_bound};
use tilework::{DType, ErrorKind, Plannable};

fn check<T: Sample>(device: &Device, op: &Dropout, x: &[T])
where
    Dropout: Op<T>,
{
    let (gpu, n) = (&device.gpu, x.len());
    let behind = T::from_f64(7.0);
    let (given, y) = (gpu.upload(x).unwrap(), gpu.upload(&vec![behind; n + 3]).unwrap());
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu).unwrap().record(&mut rec, &given, y.slice(..n).unwrap()).unwrap();
    rec.submit().unwrap();
    let got = numbers(&y.read().unwrap());
    let want: Vec<T> = dropout(op, x).iter().map(|y| T::from_f64(*y)).collect();
    let mut bound = dropout_bound(op, x);
    if T::DTYPE == DType::F16 {
        bound.iter_mut().zip(numbers(&want)).filter(|(b, _)| **b > 0.0).for_each(|(b, w)| *b += w.abs() / 1024.0);
    }
    assert_close(&format!("{}: {op:?} {}", device.label, T::DTYPE), &got[..n], &numbers(&want), &bound);
    assert_eq!(got[n..], [7.0; 3]);
}

#[test]
fn dropout_matches_the_reference() {
    for device in devices() {
        for n in [0, 1, 3, 4, 5, 257, 4099] {
            for (p, offset) in [(0.0, 0), (0.3, 8), (0.999, (1 << 34) - 4)] {
                let op = Dropout::new(p, n).seed(u64::MAX).stream(1 << 33).offset(offset);
                check(device, &op, &random::<f32>(1, n));
                check(device, &op, &random::<f16>(2, n));
            }
        }
        let ends = [f32::NAN, f32::INFINITY, -0.0, f32::MAX, 1e-40];
        check(device, &Dropout::new(0.5, 5), &ends);
    }
}

/// The mask of the gradient is that of the result, and about `p` of it is 0.
#[test]
fn the_gradient_has_the_same_mask() {
    for device in devices() {
        let (gpu, n) = (&device.gpu, 100_000);
        let op = Dropout::new(0.2, n).seed(11);
        let (x, dy) = (gpu.upload(&vec![1.0f32; n]).unwrap(), gpu.upload(&vec![3.0f32; n]).unwrap());
        let (y, dx) = (gpu.alloc::<f32>(n).unwrap(), gpu.alloc::<f32>(n).unwrap());
        let plan = op.plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, &y).unwrap();
        plan.record(&mut rec, &dy, &dx).unwrap();
        rec.submit().unwrap();
        let (y, dx) = (y.read().unwrap(), dx.read().unwrap());
        assert!(y.iter().zip(&dx).all(|(y, dx)| (dx - 3.0 * y).abs() < 1e-5), "{}", device.label);
        let dropped = y.iter().filter(|y| **y == 0.0).count();
        // Within 6 deviations of 0.2 n.
        assert!((dropped as f64 - 20_000.0).abs() < 6.0 * (0.16 * n as f64).sqrt(), "{dropped}");
    }
}

#[test]
fn dropout_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    for p in [-0.1, 1.0, f64::NAN] {
        assert_eq!(refusal::<f32>(gpu, &Dropout::new(p, 8)), ErrorKind::InvalidArgument);
    }
    assert_eq!(refusal::<f32>(gpu, &Dropout::new(0.5, 8).offset(3)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Dropout::new(0.5, 8).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Dropout::new(0.5, usize::MAX)), ErrorKind::TooLarge);
}

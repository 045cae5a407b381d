//! `Categorical` against the reference.

use crate::nn::training::refusal;
use crate::support::{devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::categorical;

#[test]
fn categories_equal_the_reference() {
    let zipf: Vec<f64> = (1..3000).map(|k| 1.0 / f64::from(k)).collect();
    for device in devices() {
        let gpu = &device.gpu;
        for n in [0, 1, 2, 511, 1003] {
            for weights in [&[2.5][..], &[1.0, 0.0, 3.0], &[0.0, 0.0, 1e-30], &zipf] {
                let op = Categorical::new(weights, n).seed(n as u64).stream(u64::MAX).offset((1 << 34) - 40);
                let output = gpu.upload(&vec![77u32; n + 3]).unwrap();
                let mut rec = gpu.recorder();
                op.plan::<u32>(gpu).unwrap().record(&mut rec, output.slice(..n).unwrap()).unwrap();
                rec.submit().unwrap();
                let want = [categorical(&op), vec![77; 3]].concat();
                assert_eq!(output.read().unwrap(), want, "{}: {n} of {} weights", device.label, weights.len());
            }
        }
    }
}

#[test]
fn categorical_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    for weights in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY], &[f64::MAX, f64::MAX]] {
        assert_eq!(refusal::<u32>(gpu, &Categorical::new(weights, 8)), ErrorKind::InvalidArgument, "{weights:?}");
    }
    assert_eq!(refusal::<u32>(gpu, &Categorical::new(&[1.0], 8).offset(2)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &Categorical::new(&[1.0], 8).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &Categorical::new(&[1.0], usize::MAX)), ErrorKind::TooLarge);
}

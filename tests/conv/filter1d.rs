//! Every variant of `Filter1d` against the reference.

use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::conv::ThreadOutputs;
use tilework::prelude::*;
use tilework::reference::{filter1d, filter1d_bound};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Filter1d::variants().iter().map(|v| v.name))
}

/// Runs a variant; `None` if it does not accept this filter or device.
fn run(device: &Device, op: &Filter1d, x: &[f32], variant: &str) -> Option<Vec<f32>> {
    let plan = match op.clone().variant(variant).plan::<f32>(&device.gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported && variant != "auto" => return None,
        plan => plan.unwrap(),
    };
    let input = device.gpu.upload(x).unwrap();
    let output = device.gpu.upload(&vec![f32::NAN; x.len()]).unwrap();
    let mut rec = device.gpu.recorder();
    plan.record(&mut rec, &input, &output).unwrap();
    rec.submit().unwrap();
    Some(output.read().unwrap())
}

/// Compares all variants and returns the number that ran.
fn check(device: &Device, n: usize, f: usize, boundary: Boundary) -> usize {
    let mut random = Random::new((n * 31 + f) as u64);
    let (x, filter) = (random.elements::<f32>(n), random.elements::<f32>(f));
    let op = Filter1d::new(n, &filter).boundary(boundary);
    let (want, bound) = (filter1d(&op, &x), filter1d_bound(&op, &x));
    let ran = names().filter(|variant| {
        let Some(got) = run(device, &op, &x, variant) else { return false };
        let what = format!("{}: {variant}, {n} under {f}, {boundary:?}", device.label);
        assert_close(&what, &numbers(&got), &want, &bound);
        true
    });
    ran.count()
}

#[test]
fn filter1d_accepts_long_filters_that_fit() {
    let Some(device) = devices().first() else { return };
    // Above the registers; above the threads of a workgroup; above the uniform.
    assert!(check(device, 4000, 601, Boundary::Zero) >= 5);
    assert!(check(device, 3000, 2001, Boundary::Wrap) >= 4);
    assert!(check(device, 1001, 16_385, Boundary::Clamp) >= 2);
}

#[test]
fn filter1d_folds_its_grid() {
    let Some(device) = devices().first() else { return };
    // More workgroups than one dimension holds, for tiles of 4 outputs.
    let n = 4 * 33_000 + 1;
    let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
    let filter: Vec<f32> = (0..253).map(|i| f32::from(u8::from(i == 252))).collect();
    let got = run(device, &Filter1d::new(n, &filter), &x, "strategy2").unwrap();
    assert!(got.iter().enumerate().all(|(i, v)| *v == x.get(i + 126).copied().unwrap_or(0.0)));
}

#[test]
fn filter1d_propagates_nan_and_infinity() {
    let Some(device) = devices().first() else { return };
    let mut x = vec![1.0f32; 64];
    (x[20], x[40]) = (f32::NAN, f32::INFINITY);
    for variant in names() {
        let got = run(device, &Filter1d::new(64, &[1.0, 1.0, 1.0]), &x, variant).unwrap();
        for (i, v) in got.iter().enumerate() {
            match i {
                19..=21 => assert!(v.is_nan(), "{variant} {i}"),
                39..=41 => assert_eq!(*v, f32::INFINITY, "{variant} {i}"),
                0 | 63 => assert_eq!(*v, 2.0, "{variant} {i}"),
                _ => assert_eq!(*v, 3.0, "{variant} {i}"),
            }
        }
    }
}

#[test]
fn filter1d_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Filter1d| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Filter1d::new(9, &[])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Filter1d::new(9, &[1.0; 4])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Filter1d::new(9, &[f32::NAN])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Filter1d::new(9, &[1.0]).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(
        kind(Filter1d::new(9, &[1.0]).outputs(ThreadOutputs { rows: 3, planes: 1 })),
        ErrorKind::InvalidArgument
    );
    assert_eq!(kind(Filter1d::new(1 << 40, &[1.0])), ErrorKind::TooLarge);
    assert_eq!(kind(Filter1d::new(99_999, &[1.0; 16_379]).variant("constant")), ErrorKind::Unsupported);
    assert_eq!(Filter1d::new(9, &[1.0]).plan::<u8>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    // Empty input, empty output.
    let plan = Filter1d::new(0, &[1.0; 3]).plan::<f32>(gpu).unwrap();
    let (x, y) = (gpu.alloc::<f32>(0).unwrap(), gpu.alloc::<f32>(0).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &y).unwrap();
    rec.submit().unwrap();
    let eight = gpu.alloc::<f32>(8).unwrap();
    let plan = Filter1d::new(8, &[1.0; 3]).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &eight, &eight).unwrap_err().kind(), ErrorKind::Aliasing);
    assert_eq!(plan.record(&mut rec, &x, &eight).unwrap_err().kind(), ErrorKind::Shape);
}

//! Every variant of `Conv2d` against the reference.

use super::layers::{layers, lengths, shape};
use crate::support::coverage::turn;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::{conv, conv_bound};
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights};
use tilework::{ErrorKind, Result};

fn run(device: &Device, op: &Conv2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<f32>> {
    let gpu = &device.gpu;
    let outputs = op.output_shape()?.iter().product();
    let (dx, dw) = (gpu.upload(x)?, gpu.upload(w)?);
    let y = gpu.alloc::<f32>(outputs)?;
    let mut rec = gpu.recorder();
    match bias {
        Some(bias) => {
            op.clone().with_bias().plan::<f32>(gpu)?.with_bias(&gpu.upload(bias)?).record(&mut rec, &dx, &dw, &y)?;
        }
        None => op.plan::<f32>(gpu)?.record(&mut rec, &dx, &dw, &y)?,
    }
    rec.submit()?;
    y.read()
}

/// All variants that accept the layer; `auto` must.
fn check(device: &Device, op: &Conv2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) {
    check_in(device, op, x, w, bias, Conv2d::variants().iter().map(|v| v.name));
}

/// `auto`, and those of these variants that accept the layer.
fn check_in<'a>(
    device: &Device, op: &Conv2d, x: &[f32], w: &[f32], bias: Option<&[f32]>, variants: impl Iterator<Item = &'a str>,
) {
    let want = conv(op, x, w, bias).unwrap();
    for name in std::iter::once("auto").chain(variants) {
        let op = op.clone().variant(name);
        let got = match run(device, &op, x, w, bias) {
            Err(e) if name != "auto" && e.kind() == ErrorKind::Unsupported => continue,
            got => got.unwrap(),
        };
        let bound = conv_bound(&op, x, w, bias).unwrap();
        assert_close(&format!("{}: {op:?}", device.label), &numbers(&got), &numbers(&want), &bound);
    }
}

#[test]
fn conv_matches_reference_for_every_layer() {
    for device in devices() {
        for (number, op) in layers(device) {
            let [x, w, _] = lengths(&op, shape(number));
            let mut random = Random::new(number);
            let (x, w) = (random.elements::<f32>(x), random.elements::<f32>(w));
            let bias = random.elements::<f32>(op.weights_shape()[0]);
            // In the short run a layer meets every fourth variant.
            let variants = Conv2d::variants().iter().map(|v| v.name).enumerate();
            let variants = variants.filter(|(v, _)| turn(v + number as usize, 4)).map(|(_, name)| name);
            check_in(device, &op, &x, &w, (number % 2 == 0).then_some(&bias), variants);
        }
    }
}

#[test]
fn implicit_adds_slices_of_its_sums() {
    for device in devices() {
        for (number, op) in layers(device).filter(|(number, _)| turn(*number as usize, 8)) {
            let [x, w, _] = lengths(&op, shape(number));
            let mut random = Random::new(number);
            let (x, w) = (random.elements::<f32>(x), random.elements::<f32>(w));
            let bias = random.elements::<f32>(op.weights_shape()[0]);
            let bias = (number % 2 == 0).then_some(&bias[..]);
            let op = op.activation(Activation::Tanh).variant("implicit").slices([2, 3, 2000][number as usize % 3]);
            let (want, bound) = (conv(&op, &x, &w, bias).unwrap(), conv_bound(&op, &x, &w, bias).unwrap());
            let got = run(device, &op, &x, &w, bias).unwrap();
            assert_close(&format!("{}: {op:?}", device.label), &numbers(&got), &numbers(&want), &bound);
        }
    }
}

#[test]
fn a_layer_of_few_outputs_is_cut_into_slices_on_a_card() {
    let lowered = |op: &Conv2d| Op::<f32>::lower(op, &DeviceProfile::h100()).unwrap();
    let few = lowered(&Conv2d::new([1, 2048, 7, 7], 512, [1, 1]));
    assert_eq!((few.variant(), few.dispatches.len()), ("implicit", 2), "{}", few.decision.why);
    assert!(few.scratch_bytes() > 0);
    let many = lowered(&Conv2d::new([32, 3, 224, 224], 64, [7, 7]).stride([2, 2]).pad([3, 3]));
    assert_eq!((many.variant(), many.dispatches.len(), many.scratch_bytes()), ("implicit", 1, 0));
}

#[test]
fn conv_applies_activations_after_the_bias() {
    for device in devices() {
        let mut random = Random::new(5);
        let (x, w) = (random.elements::<f32>(4 * 36), random.elements::<f32>(8 * 36));
        let bias = random.elements::<f32>(8);
        // The first, no activation, is that of other tests.
        let some = Activation::ALL.into_iter().enumerate().filter(|(i, _)| turn(i + 4, 5));
        for activation in some.map(|(_, activation)| activation) {
            let op = Conv2d::new([1, 4, 6, 6], 8, [3, 3]).activation(activation);
            check(device, &op, &x, &w, Some(&bias));
        }
    }
}

#[test]
fn winograd_is_close_on_average() {
    let Some(device) = devices().first() else { return };
    let mut random = Random::new(8);
    let (x, w) = (random.elements::<f32>(32 * 144), random.elements::<f32>(32 * 32 * 9));
    let op = Conv2d::new([1, 32, 12, 12], 32, [3, 3]).pad([1, 1]).variant("winograd");
    let got = run(device, &op, &x, &w, None).unwrap();
    let want = conv(&op, &x, &w, None).unwrap();
    let square = |x: f64| x * x;
    let error: f64 = got.iter().zip(&want).map(|(g, w)| square(f64::from(g - w))).sum();
    let size: f64 = want.iter().map(|w| square(f64::from(*w))).sum();
    let ulps = (error / size).sqrt() / f64::from(f32::EPSILON);
    assert!(ulps < 20.0, "{ulps}");
}

#[test]
fn rejects_an_empty_batch() {
    let h100 = DeviceProfile::h100();
    let layer = Conv2d::new([0, 4, 5, 5], 4, [3, 3]);
    let transposed = ConvTranspose2d::new([0, 4, 5, 5], 4, [3, 3]);
    let errors = [
        Op::<f32>::lower(&layer, &h100).unwrap_err(),
        Op::<f32>::lower(&Conv2dBackwardData::new(&layer), &h100).unwrap_err(),
        Op::<f32>::lower(&Conv2dBackwardWeights::new(&layer), &h100).unwrap_err(),
        Op::<f32>::lower(&transposed, &h100).unwrap_err(),
    ];
    for e in errors {
        assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("0 images of 4 channels of"), "{e}");
    }
}

#[test]
fn conv_propagates_nan_and_infinities_only_where_read() {
    for device in devices() {
        let mut x = vec![1.0f32; 2 * 64];
        x[9] = f32::NAN;
        x[64 + 54] = f32::INFINITY;
        let w = vec![1.0f32; 4 * 18];
        for variant in ["direct", "im2col", "implicit"] {
            let op = Conv2d::new([1, 2, 8, 8], 4, [3, 3]).variant(variant);
            let got = run(device, &op, &x, &w, None).unwrap();
            let want = conv(&op, &x, &w, None).unwrap();
            let same = |(g, w): (&f32, &f32)| g == w || g.is_nan() && w.is_nan();
            assert!(got.iter().zip(&want).all(same), "{}: {variant} {got:?}", device.label);
        }
    }
}

#[test]
fn conv_splits_a_batch_larger_than_one_binding() {
    let Some(device) = devices().iter().find(|d| d.gpu.profile().limits.max_storage_binding <= 128 << 20) else {
        return;
    };
    // Three images of 60 MB, one window each.
    let shape = [3, 1, 3000, 5000];
    let x: Vec<f32> = (0..3).flat_map(|i| vec![i as f32 + 1.0; 15_000_000]).collect();
    for variant in ["direct", "implicit", "im2col"] {
        let op = Conv2d::new(shape, 2, [2, 2]).stride([2999, 4999]).variant(variant);
        let got = run(device, &op, &x, &[1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, -1.0], None).unwrap();
        assert_eq!(got, [4.0, -1.0, 8.0, -2.0, 12.0, -3.0], "{variant}");
    }
}

#[test]
fn conv_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Conv2d| op.plan::<f32>(gpu).unwrap_err().kind();
    let of = |shape, kernel| Conv2d::new(shape, 4, kernel);
    let small = [1, 4, 4, 4];
    assert_eq!(kind(of(small, [5, 1])), ErrorKind::Shape);
    assert_eq!(kind(of(small, [0, 1])), ErrorKind::Shape);
    assert_eq!(kind(of(small, [2, 2]).stride([0, 1])), ErrorKind::Shape);
    assert_eq!(kind(of(small, [2, 2]).dilation([1, 0])), ErrorKind::Shape);
    assert_eq!(kind(of(small, [2, 2]).dilation([4, 1])), ErrorKind::Shape);
    assert_eq!(kind(of(small, [2, 2]).groups(3)), ErrorKind::Shape);
    assert_eq!(kind(of(small, [2, 2]).groups(0)), ErrorKind::Shape);
    assert_eq!(kind(Conv2d::new(small, 6, [2, 2]).groups(4)), ErrorKind::Shape);
    assert_eq!(kind(of([1, 0, 4, 4], [2, 2])), ErrorKind::Shape);
    assert_eq!(kind(Conv2d::new(small, 0, [2, 2])), ErrorKind::Shape);
    assert_eq!(kind(of([1, 4, 0, 4], [1, 1]).pad([1, 0])), ErrorKind::Shape);
    assert_eq!(kind(of(small, [2, 2]).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(kind(of(small, [2, 2]).variant("winograd")), ErrorKind::Unsupported);
    assert_eq!(kind(of(small, [2, 2]).variant("depthwise")), ErrorKind::Unsupported);
    assert_eq!(kind(of([1 << 20, 1 << 20, 4, 4], [2, 2])), ErrorKind::TooLarge);
    assert_eq!(kind(of([1, 1, usize::MAX, 4], [2, 2])), ErrorKind::TooLarge);
    assert_eq!(kind(of([1 << 61, 1, 1, 1], [1, 1])), ErrorKind::TooLarge);
    assert_eq!(kind(of([1, 1 << 30, 1 << 15, 1 << 15], [3, 3])), ErrorKind::TooLarge);
    let (x, w) = (gpu.upload(&[0f32; 64]).unwrap(), gpu.upload(&[0f32; 16]).unwrap());
    let plan = of(small, [1, 1]).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &x, &w, &x).unwrap_err().kind(), ErrorKind::Aliasing);
    assert_eq!(plan.record(&mut rec, &x, &x, &w).unwrap_err().kind(), ErrorKind::Shape);
}

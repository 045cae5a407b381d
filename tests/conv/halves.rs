//! Layers of f16, and layers whose channels come last, by every variant against the reference.

use super::layers::{layers, lengths, shape};
use crate::support::coverage::all;
use crate::support::matrices::{run_emulated, with_matrices};
use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Choice, DeviceProfile, Op, Program, Variant};
use tilework::reference as wanted;
use tilework::{Buffer, Conv2dBackwardData, Conv2dBackwardWeights, ErrorKind, Result};

/// What a layer and its gradients compute from.
struct Operands<T> {
    x: Vec<T>,
    w: Vec<T>,
    y: Vec<T>,
    bias: Option<Vec<T>>,
}

impl<T: Sample> Operands<T> {
    /// Of layer `number`; every second layer has a bias.
    fn of(layer: &Conv2d, number: u64) -> Self {
        let mut random = Random::new(number);
        let [x, w, y] = lengths(layer, shape(number)).map(|n| random.elements(n));
        let bias = number.is_multiple_of(2).then(|| random.elements(layer.weights_shape()[0]));
        Self { x, w, y, bias }
    }
}

/// The layers, or in the short run every third, from this one on.
fn some(device: &Device, first: u64) -> impl Iterator<Item = (u64, Conv2d)> {
    layers(device).filter(move |(number, _)| all() || number % 3 == first)
}

/// All in the complete run, else `n`: each kernel is long, and compiles slowly.
fn most(n: usize) -> usize {
    if all() { usize::MAX } else { n }
}

fn names(variants: &'static [Variant]) -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(variants.iter().map(|v| v.name))
}

/// Compares an output, unless the variant does not take the layer or the device.
fn compare<T: Sample>(what: &str, variant: &str, got: Result<Vec<T>>, want: &[T], bound: &[f64]) {
    match got {
        Err(e) if variant != "auto" && e.kind() == ErrorKind::Unsupported => {}
        got => assert_close(what, &numbers(&got.unwrap()), &numbers(want), bound),
    }
}

/// Every op of a layer by every variant.
fn check<T: Sample>(device: &Device, layer: &Conv2d, number: u64)
where
    Conv2d: Op<T>,
    Conv2dBackwardData: Op<T>,
    Conv2dBackwardWeights: Op<T>,
{
    let gpu = &device.gpu;
    let Operands { x, w, y, bias } = &Operands::<T>::of(layer, number);
    let [on_x, on_w, on_y] = [x, w, y].map(|of| gpu.upload(of).unwrap());
    let what = |op: &dyn std::fmt::Debug| format!("{} {}: {op:?}", device.label, T::DTYPE);
    for name in names(Conv2d::variants()) {
        let op = layer.clone().variant(name);
        let want = wanted::conv(&op, x, w, bias.as_deref()).unwrap();
        let bound = wanted::conv_bound(&op, x, w, bias.as_deref()).unwrap();
        let got = || {
            let (to, mut rec) = (gpu.alloc::<T>(y.len())?, gpu.recorder());
            if let Some(bias) = bias {
                let bias = gpu.upload(bias)?;
                let plan = op.clone().with_bias().plan::<T>(gpu)?;
                plan.with_bias(&bias).record(&mut rec, &on_x, &on_w, &to)?;
            } else {
                op.plan::<T>(gpu)?.record(&mut rec, &on_x, &on_w, &to)?;
            }
            rec.submit()?;
            to.read()
        };
        compare(&what(&op), name, got(), &want, &bound);
    }
    for name in names(Conv2dBackwardData::variants()) {
        let op = Conv2dBackwardData::new(layer).variant(name);
        let want = wanted::conv_backward_data(&op, y, w).unwrap();
        let bound = wanted::conv_backward_data_bound(&op, y, w).unwrap();
        let got = || {
            let (to, mut rec) = (gpu.alloc::<T>(x.len())?, gpu.recorder());
            op.plan::<T>(gpu)?.record(&mut rec, &on_y, &on_w, &to)?;
            rec.submit()?;
            to.read()
        };
        compare(&what(&op), name, got(), &want, &bound);
    }
    for name in names(Conv2dBackwardWeights::variants()) {
        let op = Conv2dBackwardWeights::new(layer).variant(name);
        let want = wanted::conv_backward_weights(&op, x, y).unwrap();
        let bound = wanted::conv_backward_weights_bound(&op, x, y).unwrap();
        let filters = layer.weights_shape()[0];
        let (to, db) = (gpu.alloc::<T>(w.len()).unwrap(), gpu.alloc::<T>(filters).unwrap());
        let got = || {
            let mut rec = gpu.recorder();
            op.clone().with_bias().plan::<T>(gpu)?.with_db(&db).record(&mut rec, &on_x, &on_y, &to)?;
            rec.submit()?;
            to.read()
        };
        let got = got();
        if got.is_ok() {
            let want = wanted::conv_backward_bias(&op, y).unwrap();
            let bound = wanted::conv_backward_bias_bound(&op, y).unwrap();
            compare(&what(&op), name, db.read(), &want, &bound);
        }
        compare(&what(&op), name, got, &want, &bound);
    }
}

#[test]
fn layers_of_f16_match_reference() {
    for device in devices().iter().filter(|d| d.gpu.profile().features.f16) {
        for (number, layer) in some(device, 0).take(most(2)) {
            check::<f16>(device, &if number % 3 == 0 { layer.channels_last() } else { layer }, number);
        }
    }
}

#[test]
fn layers_with_channels_last_match_reference() {
    for device in devices() {
        for (number, layer) in some(device, 1).take(most(1)) {
            check::<f32>(device, &layer.clone().channels_last(), number);
            if number % 3 != 0 && device.gpu.profile().features.f16 {
                check::<f16>(device, &layer.channels_last(), number);
            }
        }
    }
}

/// A transposed layer of f16 with options by its number: channels, filters, orders.
fn transposed(number: usize) -> ([usize; 4], ConvTranspose2d) {
    let (shape, filters, kernel) =
        [([2, 3, 4, 5], 5, [3, 3]), ([1, 8, 5, 4], 16, [2, 2]), ([2, 6, 3, 3], 4, [3, 2]), ([1, 20, 6, 5], 12, [4, 4])]
            [number % 4];
    let op = ConvTranspose2d::new(shape, filters, kernel).activation(Activation::Relu);
    let op = op.stride([[1, 1], [2, 2], [2, 1], [2, 3]][number % 4]).output_padding([0, number % 4 / 3]);
    let op = op.when(number % 4 == 2, |op| op.groups(2));
    (shape, op.when(number / 4 == 1, |op| op.channels_last()))
}

#[test]
fn transposed_layers_of_f16_match_reference() {
    for device in devices().iter().filter(|d| d.gpu.profile().features.f16) {
        for number in (0..8).filter(|number| all() || number % 3 == 0) {
            let (shape, op) = transposed(number);
            let mut random = Random::new(number as u64);
            let x = random.elements::<f16>(shape.iter().product());
            let w = random.elements::<f16>(op.weights_shape().iter().product());
            let bias = random.elements::<f16>(op.output_shape().unwrap()[1]);
            for name in names(ConvTranspose2d::variants()) {
                let op = op.clone().variant(name);
                let want = wanted::conv_transpose(&op, &x, &w, Some(&bias)).unwrap();
                let bound = wanted::conv_transpose_bound(&op, &x, &w, Some(&bias)).unwrap();
                let got = || {
                    let gpu = &device.gpu;
                    let (x, w, bias) = (gpu.upload(&x)?, gpu.upload(&w)?, gpu.upload(&bias)?);
                    let (to, mut rec) = (gpu.alloc::<f16>(want.len())?, gpu.recorder());
                    let plan = op.clone().with_bias().plan::<f16>(gpu)?;
                    plan.with_bias(&bias).record(&mut rec, &x, &w, &to)?;
                    rec.submit()?;
                    to.read()
                };
                compare(&format!("{}: {op:?}", device.label), name, got(), &want, &bound);
            }
        }
    }
}

/// The last operand after the program; its kernels run one by one, with emulated matrices.
fn emulate(gpu: &Gpu, side: u32, program: &Program, inputs: &[&[f16]]) -> Vec<f16> {
    let mut operands: Vec<Buffer<f16>> = inputs.iter().map(|of| gpu.upload(of).unwrap()).collect();
    let len = program.operands.last().unwrap().len;
    operands.push(gpu.upload(&vec![f16::NAN; len]).unwrap());
    run_emulated(gpu, side, program, "conv_coop", |i| Arg::from(&operands[i]));
    operands[inputs.len()].read().unwrap()
}

/// A profile with matrices, and tiles of few blocks, so that a software driver compiles quickly.
fn small(gpu: &Gpu, side: u32, row: &str) -> DeviceProfile {
    let mut profile = with_matrices(gpu, side);
    for op in ["conv", "conv-backward-data", "conv-backward-weights", "conv-transpose"] {
        let row = Some(row.to_owned());
        profile.choices.forced.insert(op.into(), Choice { row, ..Choice::variant("coop", "short") });
    }
    profile
}

#[test]
fn emulated_matrices_match_reference() {
    let Some(device) = devices().first().filter(|d| d.gpu.profile().features.f16) else { return };
    let gpu = &device.gpu;
    for (number, layer) in some(device, 2).take(most(1)) {
        let i = number as usize;
        let side = if i % 5 == 3 { 8 } else { 16 };
        let profile = small(gpu, side, ["32x32x32 by 16x32", "32x32x64 by 16x16"][i % 2]);
        let layer = layer.variant("coop").when((i / 2) % 2 == 1, |op| op.channels_last());
        let Operands { x, w, y, bias } = &Operands::<f16>::of(&layer, number);
        let op = layer.clone().activation(Activation::Tanh).when(i % 3 == 1, |op| op.slices(3));
        let what = |op: &dyn std::fmt::Debug| format!("side {side}: {op:?}");

        let want = wanted::conv(&op, x, w, bias.as_deref()).unwrap();
        let bound = wanted::conv_bound(&op, x, w, bias.as_deref()).unwrap();
        let (program, got) = match bias {
            Some(bias) => {
                let program = Op::<f16>::lower(&op.clone().with_bias(), &profile).unwrap();
                let got = emulate(gpu, side, &program, &[x, w, bias]);
                (program, got)
            }
            None => {
                let program = Op::<f16>::lower(&op, &profile).unwrap();
                let got = emulate(gpu, side, &program, &[x, w]);
                (program, got)
            }
        };
        assert_eq!(program.variant(), "coop");
        assert_close(&what(&op), &numbers(&got), &numbers(&want), &bound);

        let op = Conv2dBackwardData::new(&layer).variant("coop");
        let want = wanted::conv_backward_data(&op, y, w).unwrap();
        let bound = wanted::conv_backward_data_bound(&op, y, w).unwrap();
        let got = emulate(gpu, side, &Op::<f16>::lower(&op, &profile).unwrap(), &[y, w]);
        assert_close(&what(&op), &numbers(&got), &numbers(&want), &bound);

        let op = Conv2dBackwardWeights::new(&layer).variant("coop");
        let want = wanted::conv_backward_weights(&op, x, y).unwrap();
        let bound = wanted::conv_backward_weights_bound(&op, x, y).unwrap();
        let got = emulate(gpu, side, &Op::<f16>::lower(&op, &profile).unwrap(), &[x, y]);
        assert_close(&what(&op), &numbers(&got), &numbers(&want), &bound);
    }
    for number in (0..8).filter(|number| all() || *number == 1) {
        let (shape, op) = transposed(number);
        let op = op.variant("coop");
        let profile = small(gpu, 16, "32x32x32 by 16x32");
        let mut random = Random::new(number as u64);
        let x = random.elements::<f16>(shape.iter().product());
        let w = random.elements::<f16>(op.weights_shape().iter().product());
        let want = wanted::conv_transpose(&op, &x, &w, None).unwrap();
        let bound = wanted::conv_transpose_bound(&op, &x, &w, None).unwrap();
        let got = emulate(gpu, 16, &Op::<f16>::lower(&op, &profile).unwrap(), &[&x, &w]);
        assert_close(&format!("{op:?}"), &numbers(&got), &numbers(&want), &bound);
    }
}

#[test]
fn matrices_keep_nan_and_infinities_to_their_windows() {
    let Some(gpu) = gpu().filter(|gpu| gpu.profile().features.f16) else { return };
    let profile = small(gpu, 16, "32x32x32 by 16x32");
    for last in [false, true] {
        let op = Conv2d::new([2, 3, 8, 8], 5, [3, 3]).pad([1, 1]).variant("coop");
        let op = op.when(last, |op| op.channels_last());
        let mut x = vec![f16::ONE; 2 * 3 * 64];
        (x[9], x[200]) = (f16::NAN, f16::INFINITY);
        let w = vec![f16::ONE; 5 * 27];
        let want = wanted::conv(&op, &x, &w, None).unwrap();
        let got = emulate(gpu, 16, &Op::<f16>::lower(&op, &profile).unwrap(), &[&x, &w]);
        let same = |(g, w): (&f16, &f16)| g == w || g.is_nan() && w.is_nan();
        assert!(got.iter().zip(&want).all(same), "{got:?}");
        assert!(want.iter().any(|x| x.is_nan()) && want.contains(&f16::from_f32(27.0)));
    }
}

#[test]
fn f16_runs_on_matrices_unless_exact_sums_are_asked_for() {
    let h100 = DeviceProfile::h100();
    for (shape, filters, kernel) in
        [([32, 256, 28, 28], 256, [3, 3]), ([32, 64, 56, 56], 64, [1, 1]), ([32, 3, 224, 224], 64, [7, 7])]
    {
        let layer = Conv2d::new(shape, filters, kernel).pad([kernel[0] / 2; 2]);
        for layer in [layer.clone(), layer.channels_last()] {
            let variant = |op: &Conv2d| Op::<f16>::lower(op, &h100).unwrap().variant().to_owned();
            assert_eq!(variant(&layer), "coop", "{layer:?}");
            assert_eq!(variant(&layer.clone().precision(Precision::Tensor)), "coop");
            let exact = layer.clone().precision(Precision::Exact);
            assert_ne!(variant(&exact), "coop");
            let of = |layer| Op::<f16>::lower(&Conv2dBackwardData::new(layer), &h100).unwrap().variant();
            assert_eq!((of(&layer), of(&exact) == "coop"), ("coop", false));
            let of = |layer| Op::<f16>::lower(&Conv2dBackwardWeights::new(layer), &h100).unwrap().variant();
            assert_eq!((of(&layer), of(&exact) == "coop"), ("coop", false));
        }
    }
}

#[test]
fn rejects_variants_that_do_not_take_the_elements_or_their_order() {
    let h100 = DeviceProfile::h100();
    let layer = Conv2d::new([1, 4, 9, 9], 4, [3, 3]);
    let refused = |op: &Conv2d, half: bool, words: &str| {
        let lowered = if half { Op::<f16>::lower(op, &h100) } else { Op::<f32>::lower(op, &h100) };
        let e = lowered.unwrap_err();
        assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains(words), "{e}");
    };
    for variant in ["im2col", "tiled", "winograd"] {
        refused(&layer.clone().variant(variant), true, "takes f32 in the order N, C, H, W");
        refused(&layer.clone().variant(variant).channels_last(), false, "takes f32 in the order N, C, H, W");
    }
    refused(&layer.clone().variant("coop"), false, "takes f16");
    refused(&layer.clone().variant("coop").precision(Precision::Exact), true, "Precision::Exact");
    refused(&layer.clone().variant("direct").precision(Precision::Tensor), true, "Precision::Tensor");
    refused(&layer.clone().precision(Precision::Tensor), false, "Precision::Strict");
    let e = Op::<f16>::lower(&layer, &DeviceProfile::webgpu_defaults()).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("convert them to f32"), "{e}");
    let e = Op::<f16>::lower(&layer.precision(Precision::Tensor), &DeviceProfile::mesa()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
}

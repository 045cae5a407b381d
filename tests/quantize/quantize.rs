//! Every variant of `Quantize` against the reference.

use crate::support::{Device, Random, Sample, devices, gpu, numbers};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::quantize::{Code, Dequantize, Quantize, Scales};
use tilework::reference::{code_value, quantize, quantize_by};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Quantize::<i8>::variants().iter().map(|v| v.name))
}

fn run<Q: Code, T: Sample>(device: &Device, op: &Quantize<Q>, x: &[T]) -> Option<(Vec<Q>, Vec<f32>)>
where
    Quantize<Q>: Op<T>,
{
    let gpu = &device.gpu;
    // `whole` rejects rows that it cannot hold.
    let plan = op.plan::<T>(gpu).ok()?;
    let input = gpu.upload(x).unwrap();
    let output = gpu.upload(&vec![Q::default(); x.len() + 3]).unwrap();
    let scale = gpu.alloc::<f32>(plan.program().operands[2].len).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &input, output.slice(..x.len()).unwrap(), &scale).unwrap();
    rec.submit().unwrap();
    let mut bytes = output.read().unwrap();
    assert_eq!(bytes.split_off(x.len()), [Q::default(); 3], "{}: {op:?}", device.label);
    Some((bytes, scale.read().unwrap()))
}

/// A device's quotient may be off by 3 ULP, so a value near a midpoint may round either way.
#[track_caller]
fn assert_codes<Q: Code, T: Sample>(what: &str, x: &[T], scales: &[f32], span: usize, got: &[Q], want: &[Q]) {
    if let Some(wrong) = far_codes(x, scales, span, got, want) {
        panic!("{what}: {wrong}");
    }
}

/// The first code that is neither the expected one nor as close.
pub(crate) fn far_codes<Q: Code, T: Sample>(
    x: &[T], scales: &[f32], span: usize, got: &[Q], want: &[Q],
) -> Option<String> {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).enumerate().find_map(|(i, (g, w))| {
        let scale = f64::from(scales[i / span.max(1)]);
        let y = x[i].to_f64() / if scale == 0.0 { 1.0 } else { scale };
        let off = |code: Q| (f64::from(code_value(code)) - y).abs();
        let near = (off(*g) - off(*w)).abs() <= 1e-6 * y.abs();
        (g != w && !near).then(|| format!("element {i}, {y}, is {g:?}, wanted {w:?}"))
    })
}

/// The first factor that is off by more than the error of a division.
pub(crate) fn far_scales(got: &[f32], want: &[f32]) -> Option<String> {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).find_map(|(got, want)| {
        let near = (got - want).abs() <= 4e-7 * want;
        (!near).then(|| format!("scale {got}, wanted {want}"))
    })
}

fn check<Q: Code, T: Sample>(device: &Device, op: &Quantize<Q>, x: &[T])
where
    Quantize<Q>: Op<T>,
{
    let (want, scales) = quantize(op, x);
    // Other devices run `auto` only.
    for variant in names().filter(|v| device.main || *v == "auto") {
        let what = format!("{}: {} {} {variant} {op:?}", device.label, T::DTYPE, Q::NAME);
        let Some((got, scale)) = run(device, &op.clone().variant(variant), x) else {
            assert_eq!(variant, "whole", "{what}");
            continue;
        };
        let wrong = far_scales(&scale, &scales);
        assert!(wrong.is_none(), "{what}: {wrong:?}");
        assert_codes(&what, x, &scale, op.span(), &got, &want);
    }
}

/// Numbers between -4 and 4, larger in some rows.
fn elements<T: Sample>(rows: usize, n: usize) -> Vec<T> {
    let mut random = Random::new((rows * 31 + n) as u64);
    (0..rows)
        .flat_map(|row| random.elements::<f32>(n).into_iter().map(move |x| x * (1 + row % 4) as f32))
        .map(|x| T::from_f64(x.into()))
        .collect()
}

/// Rows of whole words or not, at any alignment, of one lane and of many.
const SHAPES: [(usize, usize); 8] = [(3, 4), (5, 3), (300, 8), (3, 130), (7, 132), (2, 1028), (2, 4099), (1, 20_000)];

#[test]
fn matches_reference_for_rows_of_every_length() {
    for device in devices() {
        for (i, (rows, n)) in SHAPES.into_iter().enumerate() {
            if device.main || i < 3 {
                check(device, &Quantize::<i8>::new(rows, n), &elements::<f32>(rows, n));
            }
            if device.main || i == 3 {
                check(device, &Quantize::<u8>::new(rows, n), &elements::<f16>(rows, n));
            }
        }
        check(device, &Quantize::<i8>::new(5, 3), &elements::<f16>(5, 3));
        check(device, &Quantize::<u8>::new(5, 3), &elements::<f32>(5, 3));
    }
}

#[test]
fn matches_reference_for_groups_and_tensors() {
    for device in devices() {
        for (rows, n, scales) in [
            (3, 256, Scales::Group(64)),
            (2, 99, Scales::Group(33)),
            (5, 128, Scales::Group(128)),
            (7, 33, Scales::Tensor),
            (3, 1028, Scales::Tensor),
        ] {
            check(device, &Quantize::<i8>::new(rows, n).scales(scales), &elements::<f32>(rows, n));
            if device.main {
                check(device, &Quantize::<u8>::new(rows, n).scales(scales), &elements::<f16>(rows, n));
            }
        }
    }
}

#[test]
fn non_finite_values_are_as_documented() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for device in devices() {
        for n in [4, 5] {
            let mut x = vec![1.0f32; 5 * n];
            x[..n].fill(0.0);
            x[1] = -0.0;
            x[n + 1] = inf;
            x[n + 2] = -inf;
            x[n + 3] = nan;
            x[2 * n..3 * n].fill(nan);
            x[3 * n..4 * n].fill(1e-39);
            x[3 * n + 1] = -1e-37;
            x[4 * n + 1] = f32::MAX;
            let (int8, fp8) = (Quantize::<i8>::new(5, n), Quantize::<u8>::new(5, n));
            for (variant, got) in names().filter_map(|v| Some((v, run(device, &int8.clone().variant(v), &x)?))) {
                let (want, scale) = quantize(&int8, &x);
                let what = format!("{}: {variant} {n}", device.label);
                assert_eq!(got.0, want, "{what}");
                assert!(scale.iter().zip(&got.1).all(|(w, g)| (w - g).abs() <= 4e-7 * w), "{what}");
            }
            for variant in names() {
                let Some((got, _)) = run(device, &fp8.clone().variant(variant), &x) else { continue };
                let value = |i: usize| code_value(got[i]);
                assert!(value(n + 3).is_nan() && value(2 * n).is_nan(), "{}: {variant}", device.label);
                assert_eq!([value(n + 1), value(n + 2), value(3 * n), value(0)], [448.0, -448.0, 0.0, 0.0]);
            }
        }
    }
}

#[test]
fn given_scales_match_reference() {
    fn run_by<Q: Code>(device: &Device, op: &Quantize<Q>, x: &[f32], scale: &[f32]) -> Vec<Q> {
        let gpu = &device.gpu;
        let (input, scale) = (gpu.upload(x).unwrap(), gpu.upload(scale).unwrap());
        let output = gpu.alloc::<Q>(x.len()).unwrap();
        let mut rec = gpu.recorder();
        op.plan::<f32>(gpu).unwrap().record(&mut rec, &input, &output, &scale).unwrap();
        rec.submit().unwrap();
        output.read().unwrap()
    }
    for device in devices() {
        for (rows, n) in [(3, 5), (3, 8)] {
            let x = elements::<f32>(rows, n);
            // One saturates, one is 0, one is in range.
            let scale = [0.001, 0.0, 0.25];
            let got = run_by(device, &Quantize::<i8>::new(rows, n).with_scale(), &x, &scale);
            let want: Vec<i8> = x.chunks(n).zip(&scale).flat_map(|(x, s)| quantize_by(*s, x)).collect();
            assert_codes(&device.label, &x, &scale, n, &got, &want);
            let tensor = Quantize::<u8>::new(rows, n).scales(Scales::Tensor).with_scale();
            let got = run_by(device, &tensor, &x, &[0.25]);
            assert_codes(&device.label, &x, &[0.25], rows * n, &got, &quantize_by(0.25, &x));
        }
    }
}

/// Root mean square of the quantisation error, relative to that of the elements.
fn error<Q: Code>(device: &Device, rows: usize, n: usize, scales: Scales) -> f64
where
    Quantize<Q>: Op<f32>,
    Dequantize<Q>: Op<f32>,
{
    let mut random = Random::new(5);
    let normal = |_| {
        let (x, y) = (0.5 * (1.0 - random.unit()), random.unit());
        ((-2.0 * x.ln()).sqrt() * (std::f64::consts::PI * y).cos()) as f32
    };
    let x: Vec<f32> = (0..rows * n).map(normal).collect();
    let gpu = &device.gpu;
    let (codes, scale) = run(device, &Quantize::<Q>::new(rows, n).scales(scales), &x).unwrap();
    let (codes, scale) = (gpu.upload(&codes).unwrap(), gpu.upload(&scale).unwrap());
    let output = gpu.alloc::<f32>(x.len()).unwrap();
    let mut rec = gpu.recorder();
    let plan = Dequantize::<Q>::new(rows, n).scales(scales).plan::<f32>(gpu).unwrap();
    plan.record(&mut rec, &codes, &scale, &output).unwrap();
    rec.submit().unwrap();
    let squares = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
    let (x, y) = (numbers(&x), numbers(&output.read().unwrap()));
    let off: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
    (squares(&off) / squares(&x)).sqrt()
}

#[test]
fn errors_stay_within_the_documented_bound() {
    let Some(device) = devices().first() else { return };
    let (rows, n) = (64, 4096);
    let all = [
        (error::<i8>(device, rows, n, Scales::Row), 0.009),
        (error::<i8>(device, rows, n, Scales::Tensor), 0.011),
        (error::<i8>(device, rows, n, Scales::Group(64)), 0.006),
        (error::<u8>(device, rows, n, Scales::Row), 0.027),
        (error::<u8>(device, rows, n, Scales::Tensor), 0.027),
        (error::<u8>(device, rows, n, Scales::Group(64)), 0.027),
    ];
    println!("{all:?}");
    for (got, documented) in all {
        assert!((got / documented - 1.0).abs() < 0.1, "{all:?}");
    }
}

#[test]
fn empty_input_returns_empty() {
    for device in devices() {
        check::<i8, f32>(device, &Quantize::new(0, 5), &[]);
        assert_eq!(run::<i8, f32>(device, &Quantize::new(3, 0), &[]).unwrap(), (vec![], vec![0.0; 3]));
        let all = Quantize::<u8>::new(3, 0).scales(Scales::Tensor);
        assert_eq!(run::<u8, f32>(device, &all, &[]).unwrap().1, [0.0]);
    }
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let kind = |op: Quantize<i8>| Op::<f32>::lower(&op, &profile).unwrap_err().kind();
    for (n, group) in [(64, 16), (256, 256), (100, 64), (64, 0), (64, 31)] {
        let op = Quantize::new(2, n).scales(Scales::Group(group));
        assert_eq!(kind(op), ErrorKind::InvalidArgument, "{n} {group}");
    }
    assert_eq!(kind(Quantize::new(2, 8).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantize::new(2, 6).variant("whole")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantize::new(2, 8).scales(Scales::Tensor).variant("whole")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Quantize::new(1, 20_000).variant("whole")), ErrorKind::TooLarge);
    assert_eq!(kind(Quantize::new(1, 1 << 26)), ErrorKind::TooLarge);
    assert_eq!(kind(Quantize::new(usize::MAX, 2)), ErrorKind::TooLarge);
    let Some(gpu) = gpu() else { return };
    let (six, five) = (gpu.upload(&[0f32; 6]).unwrap(), gpu.upload(&[0f32; 5]).unwrap());
    let (bytes, scale) = (gpu.alloc::<i8>(6).unwrap(), gpu.alloc::<f32>(2).unwrap());
    let plan = Quantize::<i8>::new(2, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    assert_eq!(plan.record(&mut rec, &five, &bytes, &scale).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(plan.record(&mut rec, &six, &bytes, &six).unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn input_larger_than_one_binding_is_split() {
    // No data: checks that all of it is read, and where.
    let profile = DeviceProfile::webgpu_defaults();
    let limit = profile.limits.max_storage_binding;
    for (rows, n, scales) in [(50_000, 1000, Scales::Row), (50_001, 1001, Scales::Row), (40_000, 1024, Scales::Tensor)]
    {
        let program = Op::<f32>::lower(&Quantize::<i8>::new(rows, n).scales(scales), &profile).unwrap();
        let bindings = program.dispatches.iter().flat_map(|d| &d.bindings);
        assert!(bindings.clone().all(|b| b.size <= limit && b.offset.is_multiple_of(256)));
        let of_output = bindings.filter(|b| b.resource == tilework::program::Resource::Operand(1));
        assert_eq!(of_output.map(|b| b.size).sum::<u64>(), (rows * n) as u64);
    }
}

//! Every variant of `Zip` against the reference.

use crate::support::{Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::reference::{zip, zip_bound};
use tilework::{Element, ErrorKind, Result};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Zip::variants().iter().map(|v| v.name))
}

fn run<T: Element>(gpu: &Gpu, op: &Zip, x: &[T], y: &[T]) -> Result<Vec<T>> {
    let (x, y, z) = (gpu.upload(x)?, gpu.upload(y)?, gpu.alloc(x.len())?);
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu)?.record(&mut rec, &x, &y, &z)?;
    rec.submit()?;
    z.read()
}

/// Every pair of extremes, then any bits, then numbers in [-1, 1): an odd number in all.
fn pairs<T: Sample>(seed: u64) -> (Vec<T>, Vec<T>) {
    let mut random = Random::new(seed);
    let extremes = T::extremes();
    let mut x: Vec<T> = extremes.iter().flat_map(|&x| vec![x; extremes.len()]).collect();
    let mut y = extremes.repeat(extremes.len());
    for side in [&mut x, &mut y] {
        side.extend(random.any::<T>(20_000));
        side.extend(random.elements::<T>(20_000 + 1 - extremes.len() % 2));
    }
    (x, y)
}

fn check_functions<T: Sample>(seed: u64) {
    let (x, y) = pairs::<T>(seed);
    for function in ZipFn::BUILT_IN {
        let (want, bound) = (zip(&function, &x, &y).unwrap(), zip_bound(&function, &x, &y).unwrap());
        for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
            let what = format!("{}: {function} of {} {}, {variant}", device.label, x.len(), T::DTYPE);
            let op = Zip::new(function.clone(), x.len()).variant(variant);
            let got = run(&device.gpu, &op, &x, &y).unwrap();
            assert_close(&what, &numbers(&got), &numbers(&want), &bound);
        }
    }
}

#[test]
fn f32_matches_reference_within_wgsl_accuracy() {
    check_functions::<f32>(1);
}

#[test]
fn f16_matches_reference_and_rounds_once() {
    check_functions::<f16>(2);
}

#[test]
fn i32_matches_reference_wraps_and_divides_by_zero() {
    check_functions::<i32>(3);
}

#[test]
fn u32_matches_reference_wraps_and_divides_by_zero() {
    check_functions::<u32>(4);
}

#[test]
fn min_and_max_of_equal_zeros_take_the_first() {
    for device in devices() {
        for function in [ZipFn::Min, ZipFn::Max] {
            let got = run(&device.gpu, &Zip::new(function.clone(), 2), &[0.0f32, -0.0], &[-0.0, 0.0]).unwrap();
            assert_eq!([got[0].to_bits(), got[1].to_bits()], [0, 1 << 31], "{}: {function}", device.label);
        }
    }
}

#[test]
fn both_inputs_may_be_the_same_large_buffer() {
    // WebGPU's default limits: 128 MiB per binding, 256 MiB per buffer.
    let Some(device) = devices().iter().find(|d| d.label.contains("WebGPU")) else { return };
    let gpu = &device.gpu;
    let host: Vec<u32> = (0..(128 << 20) / 4 + 77).collect();
    let x = gpu.upload(&host).unwrap();
    let z = gpu.zip(&x, &x, ZipFn::Mul).unwrap();
    drop(x);
    assert!(z.read().unwrap().iter().zip(&host).all(|(z, x)| *z == x.wrapping_mul(*x)));
    drop(z);
    gpu.trim();
}

#[test]
fn custom_functions_run_on_every_type() {
    let function = ZipFn::custom(
        "fn zip(x: T, y: T) -> T { return T(2) * farther(x, y); }
         fn farther(x: T, y: T) -> T { if x > y { return x - y; } return y - x; }",
    );
    fn check<T: Sample>(gpu: &Gpu, function: &ZipFn, variant: &str, what: &str) {
        let number = |i: i32| T::from_f64(f64::from(i));
        let (x, y): (Vec<T>, Vec<T>) = (0..203).map(|i| (number(i % 7), number(i % 5))).unzip();
        let want: Vec<f64> = (0..203).map(|i| f64::from(2 * i32::abs(i % 7 - i % 5))).collect();
        let got = run(gpu, &Zip::new(function.clone(), 203).variant(variant), &x, &y).unwrap();
        assert_eq!(numbers(&got), want, "{what} of {}", T::DTYPE);
    }
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let what = format!("{}: {variant}", device.label);
        check::<f32>(&device.gpu, &function, variant, &what);
        check::<f16>(&device.gpu, &function, variant, &what);
        check::<i32>(&device.gpu, &function, variant, &what);
        check::<u32>(&device.gpu, &function, variant, &what);
    }
}

#[test]
fn errors_in_custom_functions_name_their_line() {
    let Some(gpu) = gpu() else { return };
    for (text, place) in [
        ("fn zip(x: T, y: T) -> T {\n    return x + ;\n}", "<user function>:2:"),
        ("fn zip(x: T, y: T) -> T {\n    let z = vec2(x, y);\n    return z * bool(x);\n}", "<user function>:3:"),
        ("fn map(x: T) -> T { return x; }", "zip"),
    ] {
        let e = Zip::new(ZipFn::custom(text), 100).plan::<f32>(gpu).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Shader, "{text}: {e}");
        assert!(e.to_string().contains(place), "{text}: {e}");
    }
}

#[test]
fn rejects_mismatched_buffers() {
    let Some(gpu) = gpu() else { return };
    let [x, y] = [gpu.upload(&[1u32; 64]).unwrap(), gpu.upload(&[2u32; 65]).unwrap()];
    let plan = Zip::new(ZipFn::Add, 64).plan::<u32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let e = plan.record(&mut rec, &x, y.slice(..64).unwrap(), &x).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing, "{e}");
    assert_eq!(gpu.zip(&x, &y, ZipFn::Add).unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn the_one_line_call_zips() {
    for device in devices() {
        let gpu = &device.gpu;
        let (x, y) = (gpu.upload(&[7, -7, i32::MIN]).unwrap(), gpu.upload(&[2, 0, -1]).unwrap());
        assert_eq!(gpu.zip(&x, &y, ZipFn::Div).unwrap().read().unwrap(), [3, -7, i32::MIN]);
    }
}

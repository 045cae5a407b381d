//! Every variant of `Map` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::reference::{map, map_bound};
use tilework::{Element, ErrorKind, Result};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Map::variants().iter().map(|v| v.name))
}

fn run<T: Element>(gpu: &Gpu, op: &Map, x: &[T]) -> Result<Vec<T>> {
    let (x, y) = (gpu.upload(x)?, gpu.alloc(x.len())?);
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu)?.record(&mut rec, &x, &y)?;
    rec.submit()?;
    y.read()
}

fn run_in_place<T: Element>(gpu: &Gpu, op: &Map, x: &[T]) -> Result<Vec<T>> {
    let x = gpu.upload(x)?;
    let mut rec = gpu.recorder();
    op.clone().in_place().plan::<T>(gpu)?.record_in_place(&mut rec, &x)?;
    rec.submit()?;
    x.read()
}

/// Every function that is defined on `T`, in every variant, of `x`; in place too on the main device.
fn check_functions<T: Sample>(x: &[T]) {
    for function in MapFn::BUILT_IN.into_iter().filter(|f| f.supports(T::DTYPE)) {
        let (want, bound) = (map(&function, x).unwrap(), map_bound(&function, x).unwrap());
        for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
            let what = format!("{}: {function} of {} {}, {variant}", device.label, x.len(), T::DTYPE);
            let op = Map::new(function.clone(), x.len()).variant(variant);
            let got = run(&device.gpu, &op, x).unwrap();
            assert_close(&what, &numbers(&got), &numbers(&want), &bound);
            if device.main {
                let again = run_in_place(&device.gpu, &op, x).unwrap();
                assert_close(&format!("{what}, in place"), &numbers(&again), &numbers(&want), &bound);
            }
        }
    }
}

#[test]
fn f32_matches_reference_within_wgsl_accuracy() {
    let mut random = Random::new(1);
    let near_zero = random.elements::<f32>(5000).into_iter().map(|x| 20.0 * x);
    let x: Vec<f32> = f32::extremes().into_iter().chain(near_zero).chain(random.any(20_001)).collect();
    check_functions(&x);
}

#[test]
fn f16_matches_reference_at_every_value() {
    let x: Vec<f16> = (0..=u16::MAX).chain([0x3c00]).map(f16::from_bits).collect();
    check_functions(&x);
}

#[test]
fn i32_matches_reference_and_wraps() {
    let x: Vec<i32> = i32::extremes().into_iter().chain(Random::new(2).any(2_000)).collect();
    check_functions(&x);
}

#[test]
fn signs_of_zero_follow_ieee() {
    for device in devices() {
        for (function, want) in [(MapFn::Neg, [1 << 31, 0]), (MapFn::Abs, [0, 0]), (MapFn::Relu, [0, 0])] {
            let got = run(&device.gpu, &Map::new(function.clone(), 2), &[0.0f32, -0.0]).unwrap();
            assert_eq!(got.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), want, "{}: {function}", device.label);
        }
    }
}

#[test]
fn grids_beyond_one_dimension_are_folded() {
    let Some(gpu) = gpu() else { return };
    let x: Vec<i32> = (0..256 * 65_536 + 1).collect();
    let got = run_in_place(gpu, &Map::new(MapFn::Neg, x.len()).variant("plain"), &x).unwrap();
    assert!(got.iter().zip(&x).all(|(y, x)| *y == -x));
    gpu.trim();
}

#[test]
fn operands_larger_than_one_binding_are_split() {
    // WebGPU's default limits: 128 MiB per binding, 256 MiB per buffer. The second run has a remainder.
    let Some(device) = devices().iter().find(|d| d.label.contains("WebGPU")) else { return };
    let x: Vec<i32> = (0..(128 << 20) / 4 + 1001).collect();
    let got = run_in_place(&device.gpu, &Map::new(MapFn::Neg, x.len()), &x).unwrap();
    assert!(got.iter().zip(&x).all(|(y, x)| *y == -x));
    device.gpu.trim();
}

#[test]
fn custom_functions_run_on_every_type() {
    let chain = MapFn::custom(
        "fn map(x: T) -> T { return shift(clip(x)); }
         fn clip(x: T) -> T { return clamp(x, T(1), T(4)); }
         const OFFSET = 3;
         fn shift(x: T) -> T { return T(2) * x + T(OFFSET); }",
    );
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let what = format!("{}: {variant}", device.label);
        fn check<T: Sample>(device: &Device, function: &MapFn, variant: &str, what: &str) {
            // More than 256 bytes and not a multiple, so that `vec4` has a remainder.
            let x: Vec<T> = (0..203).map(|i| T::from_f64(f64::from(i % 7))).collect();
            let want: Vec<f64> = numbers(&x).into_iter().map(|x| 2.0 * x.clamp(1.0, 4.0) + 3.0).collect();
            let op = Map::new(function.clone(), x.len()).variant(variant);
            let got = [run(&device.gpu, &op, &x).unwrap(), run_in_place(&device.gpu, &op, &x).unwrap()];
            assert!(got.iter().all(|got| numbers(got) == want), "{what} of {}: {got:?}", T::DTYPE);
        }
        check::<f32>(device, &chain, variant, &what);
        check::<f16>(device, &chain, variant, &what);
        check::<i32>(device, &chain, variant, &what);
        check::<u32>(device, &chain, variant, &what);
    }
}

#[test]
fn custom_functions_may_test_for_nan_and_divide_by_zero() {
    let fill = MapFn::custom("fn map(x: T) -> T { if is_nan(x) { return T(7); } return x; }");
    let over = MapFn::custom("fn map(x: T) -> T { return 100 / x + 100 % x; }");
    for device in devices() {
        let x = [1.0, f32::NAN, f32::INFINITY, -f32::NAN];
        let got = device.gpu.map(&device.gpu.upload(&x).unwrap(), fill.clone()).unwrap().read().unwrap();
        assert_eq!(got, [1.0, 7.0, f32::INFINITY, 7.0], "{}", device.label);
        // WGSL's rule: x / 0 = x and x % 0 = 0. naga's translation to GLSL does not keep it.
        if device.gpu.profile().backend != "gl" {
            let got = run(&device.gpu, &Map::new(over.clone(), 3), &[7, 0, -100]).unwrap();
            assert_eq!(got, [14 + 2, 100, -1], "{}", device.label);
        }
    }
}

/// Text after a comment that ends with CR, with an index of `w` far out of bounds, which checks clamp.
#[test]
fn text_after_any_line_end_runs_with_checks() {
    for device in devices().iter().filter(|d| d.gpu.profile().backend != "gl") {
        for end in ["\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
            let writes = MapFn::custom(&format!(
                "//{end}var<workgroup> w: array<f32, 4>; fn map(x: T) -> T {{ w[u32(x)] = 7.0; return w[u32(x)]; }}"
            ));
            let got = run(&device.gpu, &Map::new(writes, 100), &[1e8f32; 100]).unwrap();
            assert_eq!(got, [7.0; 100], "{}: {end:?}", device.label);
        }
    }
}

#[test]
fn errors_in_custom_functions_name_their_line() {
    let Some(gpu) = gpu() else { return };
    let error = |text: &str| {
        let e = Map::new(MapFn::custom(text), 100).plan::<f32>(gpu).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Shader, "{text}: {e}");
        e.to_string()
    };
    for (text, place) in [
        ("fn map(x: T) -> T {\n    return x +;\n}", "<user function>:2:"),
        ("fn map(x: T) -> T {\n    return unknown(x);\n}", "<user function>:2:"),
        ("\n\nfn map(x: T) -> T { return vec2(x, x); }", "<user function>:3:"),
        ("#if FAST\nfn map(x: T) -> T { return x; }", "<user function>:1:"),
        ("#include <math.h>\nfn map(x: T) -> T { return x; }", "<user function>:1:"),
        // The kernel's names are reserved; the error points at the second definition of a function.
        ("fn compute(i: u32) -> Word { return 0u; }\nfn map(x: T) -> T { return x; }", "compute"),
        ("alias T = f32;\nfn map(x: T) -> T { return x; }", "`T`"),
        ("fn other(x: T) -> T { return x; }", "map"),
        ("", "map"),
    ] {
        let e = error(text);
        assert!(e.contains(place), "{text}: {e}");
    }
    // Custom functions cannot bind buffers.
    let text = "@group(0) @binding(7) var<storage, read> table: array<f32>;\nfn map(x: T) -> T { return table[0]; }";
    let e = Map::new(MapFn::custom(text), 100).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("table at 7"), "{e}");
}

#[test]
fn rejects_mismatched_buffers() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = (gpu.upload(&[1.0f32; 200]).unwrap(), gpu.alloc::<f32>(100).unwrap());
    let plan = Map::new(MapFn::Exp, 100).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let mut kind = |x: Slice<'_, f32>, y: Slice<'_, f32>| plan.record(&mut rec, x, y).unwrap_err().kind();
    assert_eq!(kind((&x).into(), (&y).into()), ErrorKind::Shape);
    assert_eq!(kind(x.slice(..100).unwrap(), x.slice(..100).unwrap()), ErrorKind::Aliasing);
    assert_eq!(kind(x.slice(..100).unwrap(), x.slice(64..164).unwrap()), ErrorKind::Aliasing);
    // Nothing was recorded.
    rec.submit().unwrap();
    assert_eq!(x.read().unwrap(), [1.0; 200]);
}

#[test]
fn the_one_line_call_maps_a_slice() {
    for device in devices() {
        let x = device.gpu.upload(&(0..200).collect::<Vec<i32>>()).unwrap();
        let y = device.gpu.map(x.slice(64..67).unwrap(), MapFn::Neg).unwrap();
        assert_eq!(y.read().unwrap(), [-64, -65, -66]);
        assert!(device.gpu.map(x.slice(0..0).unwrap(), MapFn::Neg).unwrap().is_empty());
        let e = device.gpu.map(&x, MapFn::Tanh).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
    }
}

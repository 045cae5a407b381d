//! Every variant of `Filter2d` against the reference, of f32 and of u8.

use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::conv::ThreadOutputs;
use tilework::prelude::*;
use tilework::reference::{filter2d, filter2d_bound};
use tilework::{Element, ErrorKind};

/// All but `separable`, which accepts only separable filters.
fn names() -> impl Iterator<Item = &'static str> {
    let all = std::iter::once("auto").chain(Filter2d::variants().iter().map(|v| v.name));
    all.filter(|name| *name != "separable")
}

/// Runs a variant; `None` if it does not accept this filter or device.
fn run<T: Element>(device: &Device, op: &Filter2d, x: &[T], fill: T) -> Option<Vec<T>> {
    let plan = match op.plan::<T>(&device.gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return None,
        plan => plan.unwrap(),
    };
    let input = device.gpu.upload(x).unwrap();
    let output = device.gpu.upload(&vec![fill; x.len()]).unwrap();
    let mut rec = device.gpu.recorder();
    plan.record(&mut rec, &input, &output).unwrap();
    rec.submit().unwrap();
    Some(output.read().unwrap())
}

type Case = ([usize; 2], [usize; 2]);

fn check_floats(device: &Device, ([h, w], f): Case, boundary: Boundary) -> usize {
    let mut random = Random::new((h * 31 + w) as u64);
    let (x, filter) = (random.elements::<f32>(h * w), random.elements::<f32>(f[0] * f[1]));
    let op = Filter2d::new([h, w], f, &filter).boundary(boundary);
    let (want, bound) = (filter2d(&op, &x), filter2d_bound(&op, &x));
    let ran = names().filter(|variant| {
        let Some(got) = run(device, &op.clone().variant(variant), &x, f32::NAN) else { return false };
        let what = format!("{}: {variant}, {h} x {w} under {f:?}, {boundary:?}", device.label);
        assert_close(&what, &numbers(&got), &want, &bound);
        true
    });
    ran.count()
}

/// The nearest u8, ties to even, saturated.
fn byte(x: f64) -> u8 {
    x.round_ties_even().clamp(0.0, 255.0) as u8
}

/// Weights are multiples of 1/8: every sum is exact, and some lie midway between two bytes.
fn check_bytes(device: &Device, ([h, w], f): Case, boundary: Boundary) -> usize {
    let mut random = Random::new((h * 31 + w) as u64);
    let x = random.elements::<u8>(h * w);
    let filter: Vec<f32> = (0..f[0] * f[1]).map(|_| (random.next() % 9) as f32 / 8.0 - 0.375).collect();
    let op = Filter2d::new([h, w], f, &filter).boundary(boundary);
    let want: Vec<u8> = filter2d(&op, &x).into_iter().map(byte).collect();
    let ran = names().filter(|variant| {
        let Some(got) = run(device, &op.clone().variant(variant), &x, 7) else { return false };
        let wrong = got.iter().zip(&want).position(|(g, w)| g != w);
        let what = format!("{}: {variant}, u8, {h} x {w} under {f:?}, {boundary:?}", device.label);
        assert!(wrong.is_none(), "{what}: element {wrong:?}");
        true
    });
    ran.count()
}

#[test]
fn filter2d_matches_reference_with_many_outputs_per_thread() {
    let Some(device) = devices().first() else { return };
    let mut random = Random::new(5);
    for (w, rows) in [(136, 8), (70, 4)] {
        let (x, filter) = (random.elements::<f32>(75 * w), random.elements::<f32>(25));
        for boundary in Boundary::ALL {
            let op = Filter2d::new([75, w], [5, 5], &filter)
                .boundary(boundary)
                .variant("register")
                .outputs(ThreadOutputs { rows, planes: 1 });
            let got = run(device, &op, &x, f32::NAN).unwrap();
            let bound = filter2d_bound(&op, &x);
            assert_close(&format!("{rows} rows, {boundary:?}"), &numbers(&got), &filter2d(&op, &x), &bound);
        }
    }
}

#[test]
fn filter2d_accepts_large_filters_that_fit() {
    let Some(device) = devices().first() else { return };
    // Above the registers and the threads of a workgroup; above workgroup memory too; above the uniform.
    assert!(check_floats(device, ([40, 41], [31, 33]), Boundary::Zero) >= 5);
    assert!(check_bytes(device, ([66, 70], [65, 61]), Boundary::Wrap) >= 3);
    assert!(check_floats(device, ([30, 36], [129, 129]), Boundary::Clamp) >= 2);
}

/// The exact product of two 1-D filters of multiples of 1/8: the largest weight of the first is 1.
fn product_of_lines(random: &mut Random, [fy, fx]: [usize; 2]) -> Vec<f32> {
    let mut line = |n: usize| (0..n).map(|_| (random.next() % 13) as f32 / 8.0 - 0.75).collect::<Vec<_>>();
    let (mut y, x) = (line(fy), line(fx));
    y[fy / 3] = 1.0;
    y.iter().flat_map(|y| x.iter().map(move |x| x * y)).collect()
}

#[test]
fn filter2d_matches_reference_with_separable_filters() {
    for device in devices() {
        // In registers, or one dispatch per axis if rows are not whole vec4s or lines are long.
        let cases: [Case; 6] = [
            ([33, 64], [3, 5]),
            ([18, 67], [5, 3]),
            ([40, 132], [1, 5]),
            ([61, 48], [29, 21]),
            ([70, 31], [33, 1]),
            ([3, 3], [3, 3]),
        ];
        let cases = if device.main { &cases[..] } else { &cases[..2] };
        for (&(size, f), boundary) in cases.iter().flat_map(|c| Boundary::ALL.map(|b| (c, b))) {
            let mut random = Random::new((size[1] * f[0]) as u64);
            let filter = product_of_lines(&mut random, f);
            let op = Filter2d::new([size[0], size[1]], f, &filter).boundary(boundary).variant("separable");
            let what = format!("{}: {size:?} under {f:?}, {boundary:?}", device.label);
            let x = random.elements::<f32>(size[0] * size[1]);
            let got = run(device, &op, &x, f32::NAN).unwrap();
            assert_close(&what, &numbers(&got), &filter2d(&op, &x), &filter2d_bound(&op, &x));
            let x = random.elements::<u8>(size[0] * size[1]);
            let want: Vec<u8> = filter2d(&op, &x).into_iter().map(byte).collect();
            assert_eq!(run(device, &op, &x, 7).unwrap(), want, "{what}, u8");
        }
    }
}

#[test]
fn separable_is_exact_on_bytes_when_its_factors_are_not() {
    // Quotients by the largest weight, -5/16, are not exact floats.
    let y = [-0.375, -0.25, -0.25, 0.0, -0.625, 0.5, 0.375];
    let x = [0.375, 0.5, 0.375, 0.125, -0.375];
    let filter: Vec<f32> = y.iter().flat_map(|y| x.map(|x| x * y)).collect();
    for (device, boundary) in devices().iter().flat_map(|d| Boundary::ALL.map(|b| (d, b))) {
        let op = Filter2d::new([64, 32], [7, 5], &filter).boundary(boundary).variant("separable");
        // Small bytes: many sums lie midway between two bytes.
        let bytes: Vec<u8> = Random::new(4).elements::<u8>(64 * 32).iter().map(|x| x % 7).collect();
        let want: Vec<u8> = filter2d(&op, &bytes).into_iter().map(byte).collect();
        let what = format!("{}: {boundary:?}", device.label);
        assert_eq!(run(device, &op, &bytes, 7).unwrap(), want, "{what}");
    }
}

#[test]
fn filter2d_reports_filters_that_are_not_separable() {
    let Some(gpu) = gpu() else { return };
    let laplace = [0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0];
    let op = Filter2d::new([9, 8], [3, 3], &laplace).variant("separable");
    let e = op.plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("product of lines"), "{e}");
    // Rounding is harmless.
    let thirds: Vec<f32> = [0.1f32, 0.7, 0.3].iter().flat_map(|y| [0.3, 0.9, 0.11].map(|x| x * y)).collect();
    let plan = Filter2d::new([9, 8], [3, 3], &thirds).variant("separable").plan::<f32>(gpu).unwrap();
    assert!(plan.report().decision.why.contains("reuse"), "{}", plan.report().decision.why);
}

#[test]
fn filter2d_keeps_bytes_after_its_output() {
    for device in devices() {
        let gpu = &device.gpu;
        for variant in names() {
            let input = gpu.upload(&[1u8, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
            let buffer = gpu.upload(&[0xee_u8; 12]).unwrap();
            let plan = Filter2d::new([3, 3], [1, 1], &[2.0]).variant(variant).plan::<u8>(gpu).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &input, buffer.slice(..9).unwrap()).unwrap();
            rec.submit().unwrap();
            let want = [2, 4, 6, 8, 10, 12, 14, 16, 18, 0xee, 0xee, 0xee];
            assert_eq!(buffer.read().unwrap(), want, "{}: {variant}", device.label);
        }
    }
}

#[test]
fn filter2d_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let error = |op: Filter2d| op.plan::<f32>(gpu).unwrap_err();
    let ones = [1.0; 25];
    for f in [[2, 3], [3, 2], [0, 1], [4, 4]] {
        let e = error(Filter2d::new([9, 9], f, &ones[..f[0] * f[1]]));
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("odd"), "{e}");
    }
    assert_eq!(error(Filter2d::new([9, 9], [3, 3], &ones)).kind(), ErrorKind::Shape);
    assert_eq!(error(Filter2d::new([9, 9], [1, 1], &[f32::INFINITY])).kind(), ErrorKind::InvalidArgument);
    assert_eq!(error(Filter2d::new([9, 9], [1, 1], &[1.0]).variant("fast")).kind(), ErrorKind::InvalidArgument);
    assert_eq!(
        error(Filter2d::new([9, 9], [1, 1], &[1.0]).outputs(ThreadOutputs { rows: 1, planes: 2 })).kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(error(Filter2d::new([usize::MAX, 9], [1, 1], &[1.0])).kind(), ErrorKind::TooLarge);
    assert_eq!(error(Filter2d::new([1 << 20, 1 << 20], [1, 1], &[1.0])).kind(), ErrorKind::TooLarge);
    let heavy = Filter2d::new([9, 9], [1, 1], &[1e31]);
    assert_eq!(heavy.plan::<u8>(gpu).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(heavy.plan::<i32>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    for (h, w) in [(0, 9), (9, 0), (0, 0)] {
        let plan = Filter2d::new([h, w], [3, 3], &ones[..9]).plan::<u8>(gpu).unwrap();
        assert!(plan.program().dispatches.is_empty());
    }
}

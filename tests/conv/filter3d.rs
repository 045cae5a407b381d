//! Every variant of `Filter3d` against the reference.

use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::ErrorKind;
use tilework::conv::ThreadOutputs;
use tilework::prelude::*;
use tilework::reference::{filter3d, filter3d_bound};

/// All but `separable`, which accepts only separable filters.
fn names() -> impl Iterator<Item = &'static str> {
    let all = std::iter::once("auto").chain(Filter3d::variants().iter().map(|v| v.name));
    all.filter(|name| *name != "separable")
}

fn run(device: &Device, op: &Filter3d, x: &[f32]) -> Option<Vec<f32>> {
    let plan = match op.plan::<f32>(&device.gpu) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return None,
        plan => plan.unwrap(),
    };
    let input = device.gpu.upload(x).unwrap();
    let output = device.gpu.upload(&vec![f32::NAN; x.len()]).unwrap();
    let mut rec = device.gpu.recorder();
    plan.record(&mut rec, &input, &output).unwrap();
    rec.submit().unwrap();
    Some(output.read().unwrap())
}

fn check(device: &Device, extents: [usize; 3], f: [usize; 3], boundary: Boundary) -> usize {
    let mut random = Random::new(extents[2] as u64);
    let x = random.elements::<f32>(extents.iter().product());
    let filter = random.elements::<f32>(f.iter().product());
    let op = Filter3d::new(extents, f, &filter).boundary(boundary);
    let (want, bound) = (filter3d(&op, &x), filter3d_bound(&op, &x));
    let ran = names().filter(|variant| {
        let Some(got) = run(device, &op.clone().variant(variant), &x) else { return false };
        let what = format!("{}: {variant}, {extents:?} under {f:?}, {boundary:?}", device.label);
        assert_close(&what, &numbers(&got), &want, &bound);
        true
    });
    ran.count()
}

#[test]
fn filter3d_matches_reference_with_separable_filters() {
    for device in devices() {
        // In registers, or one dispatch per axis if rows are not whole vec4s or lines are long.
        let cases = [([9, 10, 24], [3, 3, 3]), ([5, 8, 21], [1, 3, 5]), ([19, 18, 20], [11, 17, 9])];
        let cases = if device.main { &cases[..] } else { &cases[..2] };
        for (&(extents, f), boundary) in cases.iter().flat_map(|c| Boundary::ALL.map(|b| (c, b))) {
            let mut random = Random::new(extents[0] as u64);
            let x = random.elements::<f32>(extents.iter().product());
            let [z, y, x_line] = f.map(|n| (0..n).map(|_| (random.next() % 9) as f32 / 8.0).collect::<Vec<_>>());
            let planes = z.iter().flat_map(|z| y.iter().map(move |y| z * y));
            let filter: Vec<f32> = planes.flat_map(|p| x_line.iter().map(move |x| p * x)).collect();
            let op = Filter3d::new(extents, f, &filter).boundary(boundary).variant("separable");
            let what = format!("{}: {extents:?} under {f:?}, {boundary:?}", device.label);
            // The rounding of the 1-D filters, in addition to that of the sums.
            let bound: Vec<f64> = filter3d_bound(&op, &x).into_iter().map(|b| 2.0 * b).collect();
            assert_close(&what, &numbers(&run(device, &op, &x).unwrap()), &filter3d(&op, &x), &bound);
        }
    }
}

#[test]
fn filter3d_matches_reference_on_thin_volumes_and_with_large_filters() {
    let Some(device) = devices().first() else { return };
    check(device, [1, 1, 1], [1, 1, 1], Boundary::Zero);
    check(device, [1, 1, 50], [1, 1, 5], Boundary::Wrap);
    check(device, [50, 1, 1], [5, 1, 1], Boundary::Clamp);
    check(device, [1, 40, 12], [1, 5, 5], Boundary::Wrap);
    assert!(check(device, [11, 12, 13], [7, 9, 11], Boundary::Clamp) >= 4);
}

#[test]
fn filter3d_matches_reference_with_many_outputs_per_thread() {
    let Some(device) = devices().first() else { return };
    let mut random = Random::new(3);
    for w in [40, 13] {
        let (x, filter) = (random.elements::<f32>(11 * 9 * w), random.elements::<f32>(27));
        let op = Filter3d::new([11, 9, w], [3, 3, 3], &filter)
            .variant("register")
            .outputs(ThreadOutputs { rows: 2, planes: 4 });
        let got = run(device, &op, &x).unwrap();
        assert_close("2 x 4 outputs", &numbers(&got), &filter3d(&op, &x), &filter3d_bound(&op, &x));
    }
}

#[test]
fn filter3d_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Filter3d| op.plan::<f32>(gpu).unwrap_err().kind();
    let ones = [1.0; 27];
    assert_eq!(kind(Filter3d::new([9, 9, 9], [2, 3, 3], &ones[..18])), ErrorKind::InvalidArgument);
    assert_eq!(kind(Filter3d::new([9, 9, 9], [3, 3, 1], &ones)), ErrorKind::Shape);
    assert_eq!(kind(Filter3d::new([9, 9, 9], [usize::MAX, 3, 1], &ones)), ErrorKind::TooLarge);
    assert_eq!(kind(Filter3d::new([1 << 12, 1 << 12, 1 << 12], [1, 1, 1], &[1.0])), ErrorKind::TooLarge);
    assert_eq!(Filter3d::new([9, 9, 9], [1, 1, 1], &[1.0]).plan::<u8>(gpu).unwrap_err().kind(), ErrorKind::Unsupported);
    let plan = Filter3d::new([4, 0, 4], [3, 3, 3], &ones).plan::<f32>(gpu).unwrap();
    assert!(plan.program().dispatches.is_empty());
}

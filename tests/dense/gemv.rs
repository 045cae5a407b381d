//! Every variant of `Gemv` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{gemv, gemv_bound};
use tilework::{Element, ErrorKind, Result};

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Gemv::variants().iter().map(|v| v.name))
}

/// The operands of a product: stored A, x and y.
struct Data<T> {
    a: Vec<T>,
    x: Vec<T>,
    y: Vec<T>,
}

impl<T: Sample> Data<T> {
    /// Random elements; rows of A lie `ld` elements apart.
    fn random(seed: u64, (m, k, ld): (usize, usize, usize), trans: bool) -> Self {
        let mut random = Random::new(seed);
        let len = if m * k == 0 { 0 } else { (m - 1) * ld + k };
        let (x, y) = if trans { (m, k) } else { (k, m) };
        Self { a: random.elements(len), x: random.elements(x), y: random.elements(y) }
    }
}

fn run<T: Element>(gpu: &Gpu, op: &Gemv, data: &Data<T>) -> Result<Vec<T>>
where
    Gemv: Op<T>,
{
    let (a, x, y) = (gpu.upload(&data.a)?, gpu.upload(&data.x)?, gpu.upload(&data.y)?);
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu)?.record(&mut rec, &a, &x, &y)?;
    rec.submit()?;
    y.read()
}

/// Runs `op` on a device in all variants.
fn check<T: Sample + Into<f64>>(device: &Device, op: &Gemv, data: &Data<T>)
where
    Gemv: Op<T>,
{
    let want = gemv(op, &data.a, &data.x, &data.y).unwrap();
    let bound = gemv_bound(op, &data.a, &data.x, &data.y).unwrap();
    for variant in names() {
        let got = run(&device.gpu, &op.clone().variant(variant), data).unwrap();
        let what = format!("{}: {} {variant} {op:?}", device.label, T::DTYPE);
        assert_close(&what, &numbers(&got), &want, &bound);
    }
}

#[test]
fn variants_that_share_loads_match_reference() {
    for device in devices() {
        // Enough rows for teams of every width to take four each, or two for the last two shapes.
        let shapes = [(140_001, 4), (70_003, 20), (2_207, 512), (531, 2048), (1_601, 512), (531, 1024)];
        for (m, k) in shapes {
            let op = Gemv::new(m, k);
            check::<f32>(device, &op, &Data::random(m as u64, (m, k, k), false));
            if device.main && device.gpu.profile().features.f16 {
                check::<f16>(device, &op, &Data::random(m as u64, (m, k, k), false));
            }
        }
    }
}

#[test]
fn alpha_and_beta_match_reference() {
    for device in devices() {
        for (i, (alpha, beta)) in [(-2.5, 1.0), (0.0, 0.5), (0.5, -1.0), (0.0, 0.0)].into_iter().enumerate() {
            for (m, k) in [(37, 52), (3, 20_000), (20_000, 3)] {
                for trans in [false, true] {
                    let op = Gemv::new(m, k).when(trans, |op| op.trans()).alpha(alpha).beta(beta);
                    check::<f32>(device, &op, &Data::random(i as u64, (m, k, k), trans));
                    if device.gpu.profile().features.f16 {
                        check::<f16>(device, &op, &Data::random(i as u64, (m, k, k), trans));
                    }
                }
            }
        }
    }
}

#[test]
fn scalars_on_the_device_match_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        for (m, k) in [(37, 52), (3, 20_000), (20_000, 3)] {
            for (trans, variant) in [false, true].into_iter().flat_map(|t| names().map(move |v| (t, v))) {
                let op = Gemv::new(m, k).when(trans, |op| op.trans()).variant(variant);
                let plan = op.clone().alpha(7.0).with_scalars().plan::<f32>(gpu).unwrap();
                for [alpha, beta] in [[-2.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]] {
                    let mut data = Data::<f32>::random(m as u64, (m, k, k), trans);
                    // A NaN that a factor of 0 must stop.
                    if alpha == 0.0 {
                        data.a.fill(f32::NAN);
                    }
                    if beta == 0.0 {
                        data.y.fill(f32::NAN);
                    }
                    let op = op.clone().alpha(alpha).beta(beta);
                    let want = gemv(&op, &data.a, &data.x, &data.y).unwrap();
                    let bound = gemv_bound(&op, &data.a, &data.x, &data.y).unwrap();
                    let [a, x, y] = [&data.a, &data.x, &data.y].map(|list| gpu.upload(list).unwrap());
                    let scalars = gpu.upload(&[alpha, beta]).unwrap();
                    let mut rec = gpu.recorder();
                    plan.with_scalars(&scalars).record(&mut rec, &a, &x, &y).unwrap();
                    rec.submit().unwrap();
                    let what = format!("{}: {alpha} {beta} {op:?}", device.label);
                    assert_close(&what, &numbers(&y.read().unwrap()), &want, &bound);
                }
            }
        }
    }
}

#[test]
fn extents_of_zero_follow_the_definition() {
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let empty = Data::<f32> { a: vec![], x: vec![1.0; 5], y: vec![] };
        assert_eq!(run(&device.gpu, &Gemv::new(0, 5).variant(variant), &empty).unwrap(), [0.0; 0]);
        // No products, only beta y.
        let data = Data::<f32> { a: vec![], x: vec![], y: vec![2.0, f32::INFINITY] };
        for op in [Gemv::new(2, 0), Gemv::new(0, 2).trans()] {
            let op = op.variant(variant);
            let scaled = op.clone().alpha(f32::NAN).beta(0.5);
            assert_eq!(run(&device.gpu, &scaled, &data).unwrap(), [1.0, f32::INFINITY], "{}", device.label);
            assert_eq!(run(&device.gpu, &op, &data).unwrap(), [0.0, 0.0], "{}", device.label);
        }
    }
}

#[test]
fn beta_zero_never_reads_y_and_alpha_zero_never_reads_a_and_x() {
    let nan = f32::NAN;
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        let op = Gemv::new(2, 2).variant(variant);
        let data = Data { a: vec![1.0, 2.0, 3.0, 4.0], x: vec![1.0, 1.0], y: vec![nan; 2] };
        assert_eq!(run(&device.gpu, &op, &data).unwrap(), [3.0, 7.0], "{}: {variant}", device.label);
        let data = Data { a: vec![nan; 4], x: vec![f32::INFINITY; 2], y: vec![5.0; 2] };
        let got = run(&device.gpu, &op.alpha(0.0).beta(2.0), &data).unwrap();
        assert_eq!(got, [10.0; 2], "{}: {variant}", device.label);
    }
}

#[test]
fn nan_and_infinities_affect_only_their_sums() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (device, variant) in devices().iter().flat_map(|d| names().map(move |v| (d, v))) {
        for (n, trans) in [(21, false), (21, true), (600, false), (600, true)] {
            let mut data = Data::<f32>::random(3, (n, n, n), trans);
            // The last of a row and of a column, to which loads past the end are clamped.
            let at = |output: usize, term: usize| if trans { term * n + output } else { output * n + term };
            data.a[at(2, 7)] = nan;
            data.a[at(3, n - 1)] = inf;
            data.a[at(n - 1, 1)] = -inf;
            let got = run(&device.gpu, &Gemv::new(n, n).when(trans, |op| op.trans()).variant(variant), &data).unwrap();
            for (i, y) in got.iter().enumerate() {
                let fits = match i {
                    2 => y.is_nan(),
                    3 => *y == inf * data.x[n - 1].signum(),
                    _ if i == n - 1 => *y == -inf * data.x[1].signum(),
                    _ => y.is_finite(),
                };
                assert!(fits, "{}: {variant}: {n} {trans}: element {i} is {y}", device.label);
            }
        }
    }
}

#[test]
fn a_matrix_larger_than_one_binding_matches_reference() {
    let Some(gpu) = gpu() else { return };
    let limits = &gpu.profile().limits;
    // Chunks begin within the 256 bytes that a binding is aligned to: at a vec4, and anywhere.
    for k in [4100, 4095] {
        let m = (limits.max_storage_binding as usize / 4).div_ceil(k) + 3;
        let bytes = (4 * m * k) as u64;
        if bytes > limits.max_buffer_size || bytes > 1 << 30 {
            return;
        }
        let a: Vec<f32> = (0..m * k).map(|i| (i % 5) as f32).collect();
        let x: Vec<f32> = (0..m.max(k)).map(|i| (i % 7) as f32).collect();
        let on_a = gpu.upload(&a).unwrap();
        for (trans, terms, outputs) in [(false, k, m), (true, m, k)] {
            let (x, y) = (&x[..terms], gpu.alloc::<f32>(outputs).unwrap());
            let on_x = gpu.upload(x).unwrap();
            // Integers below 2^24 add up without rounding, in any order.
            let mut want = vec![0.0f32; outputs];
            for (i, row) in a.chunks(k).enumerate() {
                if trans {
                    want.iter_mut().zip(row).for_each(|(sum, a)| *sum += a * x[i]);
                } else {
                    want[i] = row.iter().zip(x).map(|(a, x)| a * x).sum();
                }
            }
            for variant in names() {
                let plan = Gemv::new(m, k).when(trans, |op| op.trans()).variant(variant).plan::<f32>(gpu).unwrap();
                assert!(plan.program().dispatches.len() > 1);
                let mut rec = gpu.recorder();
                plan.record(&mut rec, &on_a, &on_x, &y).unwrap();
                rec.submit().unwrap();
                assert!(y.read().unwrap() == want, "{variant} {m} x {k} {trans}");
            }
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let kind = |op: Gemv| op.plan::<f32>(gpu).unwrap_err().kind();
    assert_eq!(kind(Gemv::new(4, 4).lda(3)), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemv::new(4, 4).variant("fastest")), ErrorKind::InvalidArgument);
    assert_eq!(kind(Gemv::new(usize::MAX, 2)), ErrorKind::TooLarge);
    assert_eq!(kind(Gemv::new(1 << 20, 1 << 20)), ErrorKind::TooLarge);
    let x = |n: usize| gpu.upload(&vec![1.0f32; n]).unwrap();
    let (a, three, two) = (x(6), x(3), x(2));
    let plan = Gemv::new(2, 3).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let mut kind = |a, x, y| plan.record(&mut rec, a, x, y).unwrap_err().kind();
    assert_eq!(kind(&three, &three, &two), ErrorKind::Shape);
    assert_eq!(kind(&a, &two, &two), ErrorKind::Shape);
    assert_eq!(kind(&a, &three, &three), ErrorKind::Shape);
    let square = Gemv::new(2, 2).plan::<f32>(gpu).unwrap();
    let e = square.record(&mut gpu.recorder(), x(4).slice(..).unwrap(), &two, &two).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing, "{e}");
}

#[test]
fn the_one_line_call_multiplies() {
    for device in devices() {
        let gpu = &device.gpu;
        let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let x = gpu.upload(&[1.0f32, 10.0, 100.0]).unwrap();
        assert_eq!(gpu.gemv(&a, &x, 2, 3).unwrap().read().unwrap(), [321.0, 654.0], "{}", device.label);
    }
}

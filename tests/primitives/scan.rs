//! Every variant of `Scan` against the reference.

use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::{Determinism, Op};
use tilework::reference::{Number, scan, scan_bound, scan_with};
use tilework::{Element, ErrorKind, Result};

/// `(exclusive, reverse)`.
const FORMS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

fn run<T: Element, O>(gpu: &Gpu, desc: &Scan<O>, input: &[T]) -> Result<Vec<T>>
where
    O: Reducer<T, Output = T>,
{
    let x = gpu.upload(input)?;
    let y = gpu.alloc::<T>(input.len())?;
    let plan = desc.plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &y)?;
    rec.submit()?;
    y.read()
}

/// Runs one form of one variant and compares; what the device lacks is skipped.
fn check<T: Sample, O>(
    device: &Device,
    op: O,
    variant: &str,
    (rows, n): (usize, usize),
    (exclusive, reverse): (bool, bool),
    input: &[T],
) where
    O: Reducer<T, Output = T>,
{
    let operator = op.operator();
    let what = format!(
        "{}: {} of {rows} x {n} {}, {variant}{}{}",
        device.label,
        operator.name(),
        T::DTYPE,
        if exclusive { ", exclusive" } else { "" },
        if reverse { ", reverse" } else { "" },
    );
    let desc = Scan::rows(op, rows, n).exclusive(exclusive).reverse(reverse).variant(variant);
    let got = match run(&device.gpu, &desc, input) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let want = scan(&operator, rows, n, exclusive, reverse, input).expect("there is a reference");
    let bound = scan_bound(&operator, rows, n, exclusive, reverse, input);
    assert_close(&what, &numbers(&got), &want, &bound);
}

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Scan::variants().iter().map(|v| v.name))
}

/// All operators on one type; products of numbers near 1, so that they neither vanish nor overflow.
fn check_all_ops<T: Sample>(device: &Device, variant: &str, shape: (usize, usize), form: (bool, bool))
where
    Sum: Reducer<T, Output = T>,
    Prod: Reducer<T, Output = T>,
    Min: Reducer<T, Output = T>,
    Max: Reducer<T, Output = T>,
{
    let input: Vec<T> = Random::new(shape.1 as u64).elements(shape.0 * shape.1);
    let near_one = |x: &T| if T::DTYPE.is_float() { T::from_f64(1.0 + 0.01 * x.to_f64()) } else { *x };
    check(device, Sum, variant, shape, form, &input);
    check(device, Prod, variant, shape, form, &input.iter().map(near_one).collect::<Vec<_>>());
    check(device, Min, variant, shape, form, &input);
    check(device, Max, variant, shape, form, &input);
}

#[test]
fn arrays_match_reference_at_every_length() {
    let lengths = [
        0, 1, 2, 3, 4, 5, 63, 64, 65, 67, 128, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096,
        4097, 16_383, 16_384, 16_385, 70_001,
    ];
    for device in devices() {
        for variant in names() {
            for (i, &n) in lengths.iter().enumerate().filter(|(i, _)| device.main || i % 5 == 1) {
                let input: Vec<f32> = Random::new(i as u64).elements(n);
                check(device, Sum, variant, (1, n), FORMS[i % 4], &input);
                check(device, Sum, variant, (1, n), FORMS[(i + 1) % 4], &input);
            }
        }
    }
}

#[test]
fn every_type_and_operator_matches_reference() {
    for device in devices() {
        for (i, variant) in names().enumerate() {
            for (j, &n) in [3, 1001, 9003].iter().enumerate() {
                let form = FORMS[(i + j) % 4];
                check_all_ops::<f32>(device, variant, (1, n), form);
                check_all_ops::<f16>(device, variant, (1, n), form);
                check_all_ops::<i32>(device, variant, (1, n), form);
                check_all_ops::<u32>(device, variant, (1, n), form);
            }
        }
    }
}

#[test]
fn rows_match_reference_wherever_they_begin() {
    let shapes = [
        (3, 1),
        (5, 7),
        (17, 33),
        (50, 256),
        (9, 1023),
        (2, 35_001),
        (3000, 3),
        (70, 64),
        (4, 0),
        (0, 4),
        (3, 8192),
    ];
    for device in devices() {
        for variant in names() {
            for (i, &(rows, n)) in shapes.iter().enumerate().filter(|(i, _)| device.main || i % 4 == 1) {
                let input: Vec<f32> = Random::new(i as u64).elements(rows * n);
                check(device, Sum, variant, (rows, n), FORMS[i % 4], &input);
                let input: Vec<u32> = Random::new(i as u64).elements(rows * n);
                check(device, Max, variant, (rows, n), FORMS[(i + 1) % 4], &input);
            }
            for form in FORMS {
                let input: Vec<f16> = Random::new(7).elements(7 * 129);
                check(device, Sum, variant, (7, 129), form, &input);
            }
        }
    }
}

#[test]
fn nan_and_infinities_stay_where_they_come() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let input = [1.0, -inf, 2.0, nan, inf, -nan, 0.5];
    for device in devices() {
        for variant in names() {
            for form in FORMS {
                check(device, Min, variant, (1, 7), form, &input);
                check(device, Max, variant, (1, 7), form, &input);
                check(device, Sum, variant, (1, 7), form, &input);
            }
            // Nothing but what a post may hold at the most: sums of which all bits are set, and NaN.
            let n = 5000;
            check(device, Sum, variant, (1, n), (false, false), &[vec![u32::MAX], vec![0; n - 1]].concat());
            check(device, Max, variant, (1, n), (false, false), &vec![u32::MAX; n]);
            check(device, Min, variant, (1, n), (false, false), &vec![nan; n]);
            check(device, Max, variant, (1, n), (true, false), &vec![nan; n]);
            check(device, Sum, variant, (1, n), (false, false), &vec![f32::from_bits(u32::MAX); n]);
        }
    }
}

#[test]
fn own_operators_keep_order() {
    // The last element that is not zero: associative, and does not commute.
    let last = CustomOp::new(
        "fn op_identity() -> T { return T(0); }
         fn op_combine(a: T, b: T) -> T { return select(b, a, b == T(0)); }",
    );
    for device in devices() {
        for (i, variant) in names().enumerate() {
            for (rows, n) in [(1, 1), (1, 1000), (1, 30_003), (40, 70)] {
                let (exclusive, reverse) = FORMS[(i + n) % 4];
                let mut random = Random::new(9);
                let sparse: Vec<u32> = (0..rows * n)
                    .map(|_| if random.next().is_multiple_of(500) { random.next() as u32 } else { 0 })
                    .collect();
                let want = scan_with(rows, n, exclusive, reverse, &sparse, 0, |a, b| if b == 0 { a } else { b });
                let desc =
                    Scan::rows(last.clone(), rows, n).exclusive(exclusive).reverse(reverse).variant(variant);
                match run(&device.gpu, &desc, &sparse) {
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}"),
                    Ok(got) => assert_eq!(got, want, "{}: {variant} {rows} x {n}", device.label),
                }
                let floats: Vec<f32> = sparse.iter().map(|&x| (x % 1000) as f32).collect();
                let want = scan_with(rows, n, exclusive, reverse, &floats, 0.0, |a, b| if b == 0.0 { a } else { b });
                if let Ok(got) = run(&device.gpu, &desc, &floats) {
                    assert_eq!(got, want, "{}: {variant} {rows} x {n}", device.label);
                }
            }
        }
    }
}

#[test]
fn lookback_is_right_when_workgroups_never_post() {
    let n = 300_001;
    let ints: Vec<u32> = Random::new(3).elements(n);
    let floats: Vec<f32> = Random::new(4).elements(n);
    for device in devices() {
        for (i, one_in) in [2, 3, 8, 64, 512].into_iter().enumerate() {
            let what = format!("{}: one in {one_in} does not post", device.label);
            let (exclusive, reverse) = FORMS[i % 4];
            for rows in [1, 3] {
                let n = n / rows;
                let form = |scan: Scan| {
                    let scan = scan.exclusive(exclusive).reverse(reverse);
                    scan.variant("lookback").leave_out_posts(one_in)
                };
                let ints = &ints[..rows * n];
                let got = run(&device.gpu, &form(Scan::rows(Sum, rows, n)), ints).unwrap();
                let want = scan(&Operator::Sum, rows, n, exclusive, reverse, ints).unwrap();
                assert_close(&what, &numbers(&got), &want, &vec![0.0; rows * n]);
                let floats = &floats[..rows * n];
                let got = run(&device.gpu, &form(Scan::rows(Sum, rows, n)), floats).unwrap();
                let want = scan(&Operator::Sum, rows, n, exclusive, reverse, floats).unwrap();
                let bound = scan_bound(&Operator::Sum, rows, n, exclusive, reverse, floats);
                assert_close(&what, &numbers(&got), &want, &bound);
            }
        }
    }
}

#[test]
fn inputs_above_one_binding_are_taken_in_pieces() {
    let n = 100_003;
    let ints: Vec<u32> = Random::new(5).elements(n);
    for device in devices() {
        // A device that binds 64 KiB at the most, for a scan of 400 KB.
        let mut small = device.gpu.profile().clone();
        small.limits.max_storage_binding = 64 << 10;
        for variant in names() {
            for (exclusive, reverse) in FORMS {
                for (leave_out, rows) in [(0, 1), (2, 1), (3, 7)] {
                    let what = format!("{}: {variant}, {rows} rows, reverse {reverse}", device.label);
                    let n = n / rows;
                    let desc = Scan::rows(Sum, rows, n).exclusive(exclusive).reverse(reverse).variant(variant);
                    let desc = desc.leave_out_posts(leave_out);
                    let Ok(program) = Op::<u32>::lower(&desc, &small) else { continue };
                    assert!(program.dispatches.len() > 6, "{what}");
                    let x = device.gpu.upload(&ints[..rows * n]).unwrap();
                    let y = device.gpu.alloc::<u32>(rows * n).unwrap();
                    let ready = device.gpu.prepare(program).unwrap();
                    let mut rec = device.gpu.recorder();
                    ready.record(&mut rec, &[x.slice(..).unwrap().untyped(), y.slice(..).unwrap().untyped()]).unwrap();
                    rec.submit().unwrap();
                    let want = scan(&Operator::Sum, rows, n, exclusive, reverse, &ints[..rows * n]).unwrap();
                    assert_close(&what, &numbers(&y.read().unwrap()), &want, &vec![0.0; rows * n]);
                }
            }
        }
    }
}

#[test]
fn same_device_gives_same_bits() {
    let input: Vec<f32> = Random::new(11).elements(200_000);
    for device in devices() {
        for v in Scan::variants() {
            let desc = Scan::new(Sum, input.len()).variant(v.name);
            let Ok(plan) = desc.plan::<f32>(&device.gpu) else { continue };
            if plan.program().determinism == Determinism::RoundingVaries {
                assert!(desc.deterministic(true).plan::<f32>(&device.gpu).is_err());
                continue;
            }
            let bits = || {
                let got = run(&device.gpu, &desc, &input).unwrap();
                got.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let once = bits();
            for _ in 0..2 {
                assert!(bits() == once, "{}: {}", device.label, v.name);
            }
        }
    }
}

#[test]
fn slices_are_scanned_and_neighbours_of_the_output_stay() {
    for device in devices() {
        let gpu = &device.gpu;
        for variant in names() {
            let halves: Vec<f16> = (0..1000).map(|i| f16::from_f32((i % 3) as f32)).collect();
            let x = gpu.upload(&halves).unwrap();
            let y = gpu.upload(&[f16::from_f32(7.0); 600]).unwrap();
            let Ok(plan) = Scan::new(Sum, 203).variant(variant).plan::<f16>(gpu) else { continue };
            let mut rec = gpu.recorder();
            plan.record(&mut rec, x.slice(256..459).unwrap(), y.slice(128..331).unwrap()).unwrap();
            rec.submit().unwrap();
            let mut want = vec![f16::from_f32(7.0); 600];
            let mut run = 0.0;
            for i in 0..203 {
                run += halves[256 + i].to_f32();
                want[128 + i] = f16::from_f32(run);
            }
            assert_eq!(y.read().unwrap(), want, "{}: {variant}", device.label);
        }
    }
}

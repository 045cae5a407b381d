//! Every variant of `Scan` against the reference.

use crate::support::coverage::{all, sample};
use crate::support::{Device, Random, Sample, as_card, assert_close, devices, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::{Determinism, Op, Program};
use tilework::reference::{scan, scan_bound, scan_with};
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

/// Runs a program lowered for a modified profile.
fn run_program<T: Element>(gpu: &Gpu, program: Program, input: &[T]) -> Vec<T> {
    let x = gpu.upload(input).unwrap();
    let y = gpu.alloc::<T>(input.len()).unwrap();
    let ready = gpu.prepare(program).unwrap();
    let mut rec = gpu.recorder();
    ready.record(&mut rec, &[Slice::from(&x).untyped(), Slice::from(&y).untyped()]).unwrap();
    rec.submit().unwrap();
    y.read().unwrap()
}

/// Runs one form of one variant and compares; skips variants that the device lacks.
fn check<T: Sample, O>(
    device: &Device, op: O, variant: &str, (rows, n): (usize, usize), (exclusive, reverse): (bool, bool), input: &[T],
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
    let desc =
        Scan::rows(op, rows, n).when(exclusive, |op| op.exclusive()).when(reverse, |op| op.reverse()).variant(variant);
    let got = match run(&device.gpu, &desc, input) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let want = scan(&operator, rows, n, exclusive, reverse, input).expect("there is a reference");
    let bound = scan_bound(&operator, rows, n, exclusive, reverse, input);
    assert_close(&what, &numbers(&got), &want, &bound);
}

/// The variants, each with the one form to test if kernels compile slowly.
fn variants() -> impl Iterator<Item = (&'static str, (bool, bool))> {
    Scan::variants().iter().enumerate().map(|(i, v)| (v.name, FORMS[(i + 1) % 4]))
}

/// The variants whose kernels have the most forms.
const FAST: [&str; 2] = ["hierarchical", "lookback"];

#[test]
fn kernels_for_cards_match_reference() {
    // The kernels for cards, as far as this device can run them: large workgroups, four vec4 per lane.
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        let card = as_card(&device.gpu);
        let cases = [("lookback", 40_001), ("hierarchical", 40_001), ("lookback", (1 << 22) + 3)];
        for &(variant, n) in sample(&cases, 2) {
            let input: Vec<u32> = Random::new(n as u64).elements(n);
            for (exclusive, reverse) in [FORMS[0], FORMS[3]] {
                let desc = Scan::new(Sum, n)
                    .when(exclusive, |op| op.exclusive())
                    .when(reverse, |op| op.reverse())
                    .variant(variant);
                let program = Op::<u32>::lower(&desc, &card).unwrap();
                let got = run_program(&device.gpu, program, &input);
                let want = scan(&Operator::Sum, 1, n, exclusive, reverse, &input).unwrap();
                let what = format!("{}: {variant} of {n}, reverse {reverse}", device.label);
                assert_close(&what, &numbers(&got), &want, &vec![0.0; n]);
            }
        }
    }
}

#[test]
fn nan_and_infinities_propagate_from_their_position() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let input = [1.0, -inf, 2.0, nan, inf, -nan, 0.5].repeat(300);
    for device in devices() {
        for (v, (variant, form)) in variants().enumerate() {
            let n = input.len();
            if !FAST.contains(&variant) && !device.main {
                continue;
            }
            if FAST.contains(&variant) || v % 2 == 0 {
                check(device, Min, variant, (1, n), form, &input);
                check(device, Sum, variant, (1, n), form, &input);
            } else {
                check(device, Max, variant, (1, n), form, &input);
            }
        }
        // Values that cannot be posted, since they equal the empty marker: as total of every tile, and as NaN.
        let (n, variant, form) = (3000, "lookback", FORMS[3]);
        let spare = 0xffa5_c3e1_u32;
        check(device, Sum, variant, (1, n), form, &[vec![0; n - 1], vec![spare]].concat());
        check(device, Max, variant, (1, n), form, &vec![spare; n]);
        check(device, Max, variant, (1, n), form, &vec![spare as i32; n]);
        check(device, Sum, variant, (1, n), form, &vec![f32::from_bits(spare); n]);
        check(device, Max, variant, (1, n), form, &vec![nan; n]);
        check(device, Max, variant, (1, n), form, &vec![-inf; n]);
        check(device, Min, variant, (1, n), form, &vec![nan; n]);
        check(device, Min, variant, (1, n), form, &vec![inf; n]);
    }
}

#[test]
fn custom_operators_keep_order() {
    // The last nonzero element: associative, not commutative.
    let last = CustomOp::new(
        "fn op_identity() -> T { return T(0); }
         fn op_combine(a: T, b: T) -> T { return select(b, a, b == T(0)); }",
    );
    for device in devices() {
        for (v, (variant, (exclusive, reverse))) in variants().enumerate() {
            // Users' kernels start by clearing workgroup memory, which takes OpenGL's compiler seconds.
            if device.gpu.profile().backend == "gl" && variant != "lookback" {
                continue;
            }
            let (rows, n) = [(1, 5003), (7, 700)][v % 2];
            let mut random = Random::new(9);
            let sparse: Vec<u32> = (0..rows * n)
                .map(|_| if random.next().is_multiple_of(300) { random.next() as u32 } else { 0 })
                .collect();
            let what = format!("{}: {variant} {rows} x {n}", device.label);
            let desc = Scan::rows(last.clone(), rows, n)
                .when(exclusive, |op| op.exclusive())
                .when(reverse, |op| op.reverse())
                .variant(variant);
            if v % 3 == 0 || device.main {
                let floats: Vec<f32> = sparse.iter().map(|&x| (x % 1000) as f32).collect();
                let later = |a, b| if b == 0.0 { a } else { b };
                let want = scan_with(rows, n, exclusive, reverse, &floats, 0.0, later);
                match run(&device.gpu, &desc, &floats) {
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{what}: {e}"),
                    Ok(got) => assert_eq!(got, want, "{what}"),
                }
            }
            let want = scan_with(rows, n, exclusive, reverse, &sparse, 0, |a, b| if b == 0 { a } else { b });
            match run(&device.gpu, &desc, &sparse) {
                Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{what}: {e}"),
                Ok(got) => assert_eq!(got, want, "{what}"),
            }
        }
    }
}

#[test]
fn lookback_is_correct_when_workgroups_never_post() {
    let n = 200_001;
    let ints: Vec<u32> = Random::new(3).elements(n);
    let floats: Vec<f32> = Random::new(4).elements(n);
    for device in devices() {
        for (i, one_in) in sample(&[2, 3, 8, 64, 512], 3).iter().enumerate().filter(|(i, _)| device.main || i % 3 == 0)
        {
            let what = format!("{}: one in {one_in} does not post", device.label);
            let (exclusive, reverse) = FORMS[i % 4];
            let rows = 1 + 2 * (i % 2);
            let n = n / rows;
            let desc = Scan::rows(Sum, rows, n)
                .when(exclusive, |op| op.exclusive())
                .when(reverse, |op| op.reverse())
                .variant("lookback");
            let desc = desc.leave_out_posts(*one_in);
            let got = run(&device.gpu, &desc, &ints).unwrap();
            let want = scan(&Operator::Sum, rows, n, exclusive, reverse, &ints).unwrap();
            assert_close(&what, &numbers(&got), &want, &vec![0.0; rows * n]);
            let got = run(&device.gpu, &desc, &floats).unwrap();
            let want = scan(&Operator::Sum, rows, n, exclusive, reverse, &floats).unwrap();
            let bound = scan_bound(&Operator::Sum, rows, n, exclusive, reverse, &floats);
            assert_close(&what, &numbers(&got), &want, &bound);
        }
    }
}

#[test]
fn inputs_larger_than_one_binding_are_split() {
    let n = 50_001;
    let ints: Vec<u32> = Random::new(5).elements(n);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        // A device that binds at most 32 KiB, for a scan of 200 KB.
        let mut small = device.gpu.profile().clone();
        small.limits.max_storage_binding = 32 << 10;
        for (variant, one_form) in variants() {
            for (i, (exclusive, reverse)) in FORMS.into_iter().enumerate() {
                if (exclusive, reverse) != one_form && (variant != "lookback" || !all()) {
                    continue;
                }
                let (leave_out, rows) = [(0, 1), (2, 1), (3, 7), (0, 3)][i];
                let desc = Scan::rows(Sum, rows, n / rows)
                    .when(exclusive, |op| op.exclusive())
                    .when(reverse, |op| op.reverse());
                let desc = desc.variant(variant).leave_out_posts(leave_out);
                let Ok(program) = Op::<u32>::lower(&desc, &small) else { continue };
                let what = format!("{}: {variant}, {rows} rows, reverse {reverse}", device.label);
                assert!(program.dispatches.len() > 6, "{what}");
                let ints = &ints[..n / rows * rows];
                let got = run_program(&device.gpu, program, ints);
                let want = scan(&Operator::Sum, rows, n / rows, exclusive, reverse, ints).unwrap();
                assert_close(&what, &numbers(&got), &want, &vec![0.0; ints.len()]);
            }
        }
    }
}

#[test]
fn results_are_reproducible_on_one_device() {
    let input: Vec<f32> = Random::new(11).elements(20_000);
    for device in devices().iter().filter(|d| d.main) {
        for (variant, (exclusive, reverse)) in variants() {
            let desc = Scan::new(Sum, input.len())
                .when(exclusive, |op| op.exclusive())
                .when(reverse, |op| op.reverse())
                .variant(variant);
            let Ok(plan) = desc.plan::<f32>(&device.gpu) else { continue };
            if plan.program().determinism == Determinism::RoundingVaries {
                assert!(desc.deterministic().plan::<f32>(&device.gpu).is_err());
                continue;
            }
            let bits = || {
                let got = run(&device.gpu, &desc, &input).unwrap();
                got.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let once = bits();
            for _ in 0..2 {
                assert!(bits() == once, "{}: {variant}", device.label);
            }
        }
    }
}

#[test]
fn slices_are_scanned_and_neighbours_kept() {
    for device in devices() {
        let gpu = &device.gpu;
        for (variant, _) in variants() {
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

#[test]
fn many_tiles_match_reference_in_any_order() {
    // More tiles than a software driver's loop has iterations to compute posts for.
    let n = 1 << 24;
    let ones = vec![1u32; n];
    for device in devices().iter().filter(|d| d.main) {
        let desc = Scan::new(Sum, n).variant("lookback");
        let got = run(&device.gpu, &desc, &ones).unwrap();
        let wrong = got.iter().zip(1..).position(|(got, want)| *got != want);
        assert_eq!(wrong, None, "{}", device.label);
    }
}

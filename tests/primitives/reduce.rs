//! Every variant of `Reduce` against the reference.

use crate::support::coverage::{sample, turn};
use crate::support::{Device, Random, Sample, assert_close, devices, numbers};
use half::f16;
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::Determinism;
use tilework::reference::{Number, reduce, reduce_bound, reduce_with};
use tilework::{Element, ErrorKind, Result};

fn run<T: Element, O: Reducer<T>>(gpu: &Gpu, desc: &Reduce<O>, rows: usize, input: &[T]) -> Result<Vec<O::Output>> {
    let x = gpu.upload(input)?;
    let y = gpu.alloc::<O::Output>(rows)?;
    let plan = desc.plan::<T>(gpu)?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &y)?;
    rec.submit()?;
    y.read()
}

/// Runs one variant and compares; skips variants that the device lacks.
fn check<T: Sample, O>(device: &Device, op: O, variant: &str, rows: usize, n: usize, input: &[T])
where
    O: Reducer<T>,
    O::Output: Number,
{
    let operator = op.operator();
    let what = format!("{}: {} of {rows} x {n} {}, {variant}", device.label, operator.name(), T::DTYPE);
    let got = match run(&device.gpu, &Reduce::rows(op, rows, n).variant(variant), rows, input) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let want = reduce(&operator, rows, n, input).expect("built-in operators have a reference");
    assert_close(&what, &numbers(&got), &want, &reduce_bound(&operator, rows, n, input));
}

fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once("auto").chain(Reduce::variants().iter().map(|v| v.name))
}

/// All operators on one type; factors near 1, so that products neither vanish nor overflow.
fn check_all_ops<T: Sample>(device: &Device, variant: &str, rows: usize, n: usize, seed: u64)
where
    Sum: Reducer<T, Output: Number>,
    Prod: Reducer<T, Output: Number>,
    Min: Reducer<T, Output: Number>,
    Max: Reducer<T, Output: Number>,
    ArgMin: Reducer<T, Output: Number>,
    ArgMax: Reducer<T, Output: Number>,
{
    let input: Vec<T> = Random::new(seed).elements(rows * n);
    let near_one = |x: &T| if T::DTYPE.is_float() { T::from_f64(1.0 + 0.01 * x.to_f64()) } else { *x };
    let checks: [&dyn Fn(); 6] = [
        &|| check(device, Sum, variant, rows, n, &input),
        &|| check(device, Prod, variant, rows, n, &input.iter().map(near_one).collect::<Vec<_>>()),
        &|| check(device, Min, variant, rows, n, &input),
        &|| check(device, ArgMax, variant, rows, n, &input),
        &|| check(device, Max, variant, rows, n, &input),
        &|| check(device, ArgMin, variant, rows, n, &input),
    ];
    // Each compiles kernels of its own. An empty row has no least element.
    let some = checks.iter().take(if n > 0 { 6 } else { 2 }).enumerate();
    some.filter(|(i, _)| turn(i + seed as usize, 3)).for_each(|(_, check)| check());
}

#[test]
fn rows_match_reference_at_every_alignment() {
    let shapes = [(17, 33), (2, 70_001), (50, 256), (4, 0), (300, 3), (3, 1), (5, 7), (9, 1023), (0, 4)];
    let shapes = sample(&shapes, 5);
    for device in devices() {
        for (v, variant) in names().enumerate() {
            for (i, &(rows, n)) in shapes.iter().enumerate().filter(|(i, _)| device.main || i % 3 == 1) {
                check_all_ops::<f32>(device, variant, rows, n, i as u64);
            }
            // Each type compiles other kernels.
            let others: [&dyn Fn(); 3] = [
                &|| check_all_ops::<u8>(device, variant, 5, 37, 6),
                &|| check_all_ops::<f16>(device, variant, 7, 129, 7),
                &|| check_all_ops::<i8>(device, variant, 3, 1001, 8),
            ];
            others.iter().enumerate().filter(|(i, _)| turn(i + v, 3)).for_each(|(_, check)| check());
        }
    }
    // More rows than one dimension of a folded grid holds.
    let Some(device) = devices().first() else { return };
    let (rows, n) = (33_000, 2);
    let input: Vec<f32> = Random::new(9).elements(rows * n);
    for variant in ["auto", "interleaved", "subgroup", "atomic"] {
        check(device, Sum, variant, rows, n, &input);
    }
}

#[test]
fn nan_and_infinities_follow_numpy() {
    let nan = f32::NAN;
    let cases: &[(&[f32], f32, u32)] = &[
        (&[1.0, nan, -2.0, nan], nan, 1),
        (&[f32::INFINITY, f32::INFINITY], f32::INFINITY, 0),
        (&[-0.0, 0.0], -0.0, 0),
        (&[0.0, -0.0], 0.0, 0),
        (&[f32::MAX, -f32::INFINITY, 0.0], -f32::INFINITY, 1),
        (&[-nan, 1.0], nan, 0),
    ];
    for device in devices() {
        for variant in names() {
            for (input, least, at) in cases {
                let what = format!("{}: {variant} of {input:?}", device.label);
                let run = |r: Result<Vec<f32>>| match r {
                    Err(e) if e.kind() == ErrorKind::Unsupported => None,
                    other => Some(other.expect(&what)[0]),
                };
                let n = input.len();
                if let Some(got) = run(self::run(&device.gpu, &Reduce::new(Min, n).variant(variant), 1, input)) {
                    assert!(got == *least || (got.is_nan() && least.is_nan()), "{what}: {got}");
                }
                match self::run(&device.gpu, &Reduce::new(ArgMin, n).variant(variant), 1, input) {
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{what}"),
                    Ok(got) => assert_eq!(got, [*at], "{what}"),
                }
                if let Some(got) = run(self::run(&device.gpu, &Reduce::new(Sum, n).variant(variant), 1, input)) {
                    let want: f32 = input.iter().sum();
                    assert!(got == want || (got.is_nan() && want.is_nan()), "{what}: sum {got}");
                }
            }
        }
    }
}

#[test]
fn ties_give_the_first_position() {
    let mut input = vec![5u32; 10_000];
    input[7_777] = 1;
    input[3_333] = 1;
    for device in devices() {
        for variant in names() {
            for (op, want) in [(Operator::ArgMin, 3_333), (Operator::ArgMax, 0)] {
                let got = match op {
                    Operator::ArgMin => run(&device.gpu, &Reduce::new(ArgMin, input.len()).variant(variant), 1, &input),
                    _ => run(&device.gpu, &Reduce::new(ArgMax, input.len()).variant(variant), 1, &input),
                };
                match got {
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported),
                    Ok(got) => assert_eq!(got, [want], "{}: {variant}", device.label),
                }
            }
        }
    }
}

#[test]
fn custom_operators_keep_order_unless_they_commute() {
    // The last nonzero element: associative, not commutative.
    let last = CustomOp::new(
        "fn op_identity() -> T { return 0u; }
         fn op_combine(a: T, b: T) -> T { return select(b, a, b == 0u); }",
    );
    let gcd = CustomOp::new(
        "fn op_identity() -> T { return 0u; }
         fn op_combine(a: T, b: T) -> T {
             var x = a;
             var y = b;
             while y != 0u { let r = x % y; x = y; y = r; }
             return x;
         }",
    )
    .commutative();
    let host_gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    for device in devices() {
        for (rows, n) in [(1, 1), (1, 1000), (3, 100_003), (40, 70)] {
            let mut random = Random::new(9);
            let sparse: Vec<u32> = (0..rows * n)
                .map(|_| if random.next().is_multiple_of(50) { random.next() as u32 } else { 0 })
                .collect();
            let want = reduce_with(rows, n, &sparse, 0, |a, b| if b == 0 { a } else { b });
            for variant in ["auto", "interleaved", "coarsened"] {
                let got =
                    run(&device.gpu, &Reduce::rows(last.clone(), rows, n).variant(variant), rows, &sparse).unwrap();
                assert_eq!(got, want, "{}: {variant}", device.label);
            }
            let multiples: Vec<u32> = (0..rows * n).map(|_| 6 * (random.next() as u32 % 1000)).collect();
            let want = reduce_with(rows, n, &multiples, 0, host_gcd);
            for variant in names() {
                match run(&device.gpu, &Reduce::rows(gcd.clone(), rows, n).variant(variant), rows, &multiples) {
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}"),
                    Ok(got) => assert_eq!(got, want, "{}: {variant}", device.label),
                }
            }
        }
    }
}

#[test]
fn errors_in_custom_operators_name_their_line() {
    let Some(gpu) = crate::support::gpu() else { return };
    let bad = CustomOp::new("fn op_identity() -> T { return T(0); }\nfn op_combine(a: T, b: T) -> T { return a +; }");
    let e = Reduce::new(bad, 10).plan::<f32>(gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shader);
    assert!(e.to_string().contains("<user op>:2"), "{e}");
}

#[test]
fn grids_beyond_one_dimension_are_folded() {
    let n = 256 * 65_536 + 1;
    let input: Vec<u8> = (0..n).map(|i| (i % 3) as u8).collect();
    let want = input.iter().map(|x| u32::from(*x)).sum::<u32>();
    let Some(device) = devices().first() else { return };
    for variant in ["interleaved", "atomic", "coarsened"] {
        let got = run(&device.gpu, &Reduce::new(Sum, n).variant(variant), 1, &input).unwrap();
        assert_eq!(got, [want], "{variant}");
    }
}

#[test]
fn inputs_larger_than_one_binding_are_split() {
    // WebGPU's default limits: 128 MiB per binding, 256 MiB per buffer.
    let Some(device) = devices().iter().find(|d| d.label.contains("WebGPU")) else { return };
    let n = 150_000_001;
    let mut input = vec![1u8; n];
    input[140_000_000] = 9;
    let x = device.gpu.upload(&input).unwrap();
    let reduced = |desc: Reduce| -> u32 {
        let y = device.gpu.alloc::<u32>(1).unwrap();
        let mut rec = device.gpu.recorder();
        desc.plan::<u8>(&device.gpu).unwrap().record(&mut rec, &x, &y).unwrap();
        rec.submit().unwrap();
        y.read().unwrap()[0]
    };
    assert_eq!(reduced(Reduce::new(Sum, n)), n as u32 + 8);
    assert_eq!(reduced(Reduce::new(Sum, n).variant("shared")), n as u32 + 8);
    assert_eq!(device.gpu.reduce(&x, ArgMax).unwrap().read().unwrap(), [140_000_000]);
    drop(x);
    device.gpu.trim();
}

#[test]
fn results_are_reproducible_on_one_device() {
    let input: Vec<f32> = Random::new(11).elements(300_000);
    for device in devices() {
        for v in Reduce::variants() {
            let desc = Reduce::new(Sum, input.len()).variant(v.name);
            let Ok(plan) = desc.plan::<f32>(&device.gpu) else { continue };
            if plan.program().determinism == Determinism::RoundingVaries {
                assert!(desc.deterministic().plan::<f32>(&device.gpu).is_err());
                continue;
            }
            let once = run(&device.gpu, &desc, 1, &input).unwrap()[0].to_bits();
            for _ in 0..3 {
                assert_eq!(run(&device.gpu, &desc, 1, &input).unwrap()[0].to_bits(), once, "{}", v.name);
            }
        }
    }
}

#[test]
fn slices_are_reduced_and_neighbours_kept() {
    for device in devices() {
        let gpu = &device.gpu;
        let x = gpu.upload(&(0..1000).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let y = gpu.upload(&[7u8; 600]).unwrap();
        let bytes = gpu.upload(&(0..90).map(|i| i as u8).collect::<Vec<_>>()).unwrap();
        let sum = gpu.reduce(x.slice(64..167).unwrap(), Sum).unwrap().read().unwrap();
        assert_eq!(sum, [(64..167).sum::<i32>() as f32], "{}", device.label);
        let mut rec = gpu.recorder();
        Reduce::rows(Max, 5, 18).plan::<u8>(gpu).unwrap().record(&mut rec, &bytes, y.slice(256..261).unwrap()).unwrap();
        rec.submit().unwrap();
        let mut want = vec![7u8; 600];
        want[256..261].copy_from_slice(&[17, 35, 53, 71, 89]);
        assert_eq!(y.read().unwrap(), want, "{}", device.label);
    }
}

#[test]
fn the_first_of_equal_elements_wins_also_at_the_end_of_their_range() {
    let Some(gpu) = crate::support::gpu() else { return };
    for n in [4096, 4097, 70_001] {
        let zeros = gpu.upload(&vec![0u32; n]).unwrap();
        assert_eq!(gpu.reduce(&zeros, ArgMax).unwrap().read().unwrap(), [0], "{n} zeros");
        let largest = gpu.upload(&vec![i32::MAX; n]).unwrap();
        assert_eq!(gpu.reduce(&largest, ArgMin).unwrap().read().unwrap(), [0], "{n} largest");
        let bytes = gpu.upload(&vec![0u8; n]).unwrap();
        assert_eq!(gpu.reduce(&bytes, ArgMax).unwrap().read().unwrap(), [0], "{n} bytes");
    }
}

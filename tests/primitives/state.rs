//! Operators over a state in every op that takes an operator, against the reference.

use crate::support::coverage::{all, sample, turn};
use crate::support::{Device, Random, assert_close, devices, numbers};
use tilework::prelude::*;
use tilework::primitives::{Operator, Reducer};
use tilework::program::{Op, Program};
use tilework::reference::{
    reduce, reduce_bound, reduce_offsets, scan, scan_bound, segmented_reduce, segmented_reduce_bound, segmented_scan,
    segmented_scan_bound,
};
use tilework::{Element, ErrorKind, Result};

/// Runs a program, the last of whose operands are outputs of these types and lengths.
fn run<T: Element>(gpu: &Gpu, program: Program, inputs: &[Slice<'_, T>], output: usize) -> Result<Vec<T>> {
    let y = gpu.alloc::<T>(output)?;
    let operands: Vec<_> = inputs.iter().map(|x| x.untyped()).chain([Slice::from(&y).untyped()]).collect();
    let mut rec = gpu.recorder();
    gpu.prepare(program)?.record(&mut rec, &operands)?;
    rec.submit()?;
    y.read()
}

/// Elements of a row of an operator: of moderate size around 3, factors of maps near 1.
fn elements(op: &Operator, n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    if matches!(op, Operator::Affine(_)) {
        return (0..n).flat_map(|_| [1.0 + 0.01 * random.unit() as f32, random.unit() as f32]).collect();
    }
    (0..n).map(|_| 3.0 + 2.0 * random.unit() as f32).collect()
}

/// `numbers of an element, numbers of a result`.
fn numbers_of(op: &Operator) -> (usize, usize) {
    match op {
        Operator::Affine(op) => (2, if *op == Affine::maps() { 2 } else { 1 }),
        Operator::MinMax | Operator::MeanVariance(_) => (1, 2),
        _ => (1, 1),
    }
}

/// Runs `$check` for two of the six ready-made operators: three turns in a row meet all.
macro_rules! each_operator {
    ($op:ident, $turn:expr => $check:expr) => {{
        let mut turn: usize = $turn;
        each_operator!($op, turn => $check; MinMax, MeanVariance::population(), MeanVariance::sample(), LogSumExp,
            Affine::maps(), Affine::recurrence());
    }};
    ($op:ident, $turn:ident => $check:expr; $($value:expr),*) => {$({
        let $op = $value;
        $turn += 1;
        if $turn.is_multiple_of(3) {
            $check
        }
    })*};
}

fn check_reduce<O>(device: &Device, op: O, variant: &str, rows: usize, n: usize, input: &[f32])
where
    O: Reducer<f32, Output = f32>,
{
    let operator = op.operator();
    let what = format!("{}: {} of {rows} x {n}, {variant}", device.label, operator.name());
    let program = match Op::<f32>::lower(&Reduce::rows(op, rows, n).variant(variant), device.gpu.profile()) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let x = device.gpu.upload(input).unwrap();
    let got = run(&device.gpu, program, &[(&x).into()], rows * numbers_of(&operator).1).expect(&what);
    let want = reduce(&operator, rows, n, input).expect("there is a reference");
    assert_close(&what, &numbers(&got), &want, &reduce_bound(&operator, rows, n, input));
}

#[test]
fn reductions_match_reference() {
    let shapes = [(1, 100_003), (7, 129), (3, 4097), (1, 1), (300, 3), (5, 0)];
    for device in devices() {
        let variants = std::iter::once("auto").chain(Reduce::variants().iter().map(|v| v.name));
        for (v, variant) in variants.enumerate() {
            for (i, &(rows, n)) in sample(&shapes, 2).iter().enumerate().filter(|(i, _)| turn(i + v, 2)) {
                each_operator!(op, i + v => {
                    let operator = Reducer::<f32>::operator(&op);
                    if n > 0 || operator != Operator::MinMax {
                        check_reduce(device, op, variant, rows, n, &elements(&operator, rows * n, i as u64));
                    }
                });
            }
        }
    }
}

#[test]
fn minimum_and_maximum_take_every_type() {
    fn check<T: crate::support::Sample>(device: &Device, n: usize)
    where
        MinMax: Reducer<T, Output = T>,
    {
        let input: Vec<T> = Random::new(5).elements(n);
        let got = device.gpu.reduce_rows(&input_of(device, &input), MinMax, 3).unwrap().read().unwrap();
        let want = reduce(&Operator::MinMax, 3, n / 3, &input).unwrap();
        assert_close(&device.label, &numbers(&got), &want, &[0.0; 6]);
    }
    fn input_of<T: Element>(device: &Device, input: &[T]) -> Buffer<T> {
        device.gpu.upload(input).unwrap()
    }
    for device in devices() {
        let checks: [fn(&Device, usize); 6] =
            [check::<f32>, check::<half::f16>, check::<i32>, check::<u32>, check::<u8>, check::<i8>];
        for (i, n) in [3, 999, 30_003].into_iter().enumerate() {
            // Each type compiles kernels of its own.
            checks.iter().enumerate().filter(|(t, _)| turn(i + t, 3)).for_each(|(_, check)| check(device, n));
        }
    }
}

/// Sums of 64 bits by every op, of words of which most are near the ends of their type.
#[test]
fn sums_of_64_bits_match_the_reference() {
    fn check<T: crate::support::Sample>(device: &Device, n: usize)
    where
        Sum64: Reducer<T, Output = T>,
    {
        let gpu = &device.gpu;
        let x: Vec<T> = Random::new(6).any(n);
        let input = gpu.upload(&x).unwrap();
        let exact = |what: &str, got: Vec<T>, want: Option<Vec<f64>>| {
            assert_eq!(numbers(&got), want.unwrap(), "{}: {what} of {n} {}", device.label, T::DTYPE);
        };
        let sums = gpu.reduce_rows(&input, Sum64, 1).unwrap().read().unwrap();
        exact("reduce", sums, reduce(&Operator::Sum64, 1, n, &x));
        let prefixes = gpu.inclusive_scan(&input, Sum64).unwrap().read().unwrap();
        exact("scan", prefixes, scan(&Operator::Sum64, 1, n, false, false, &x));
        let offsets = [0, 3, 3, n as u32 / 2, n as u32];
        let of = gpu.reduce_offsets(&input, &gpu.upload(&offsets).unwrap(), Sum64).unwrap();
        exact("reduce-offsets", of.read().unwrap(), reduce_offsets(&Operator::Sum64, &x, &offsets));
        let heads: Vec<u32> = (0..n).map(|i| u32::from(i % 37 == 5)).collect();
        let (of, count) = gpu.segmented_reduce(&input, &gpu.upload(&heads).unwrap(), Sum64).unwrap();
        let segments = count.read().unwrap()[0] as usize;
        let got = of.slice(..2 * segments).unwrap().read().unwrap();
        exact("segmented-reduce", got, segmented_reduce(&Operator::Sum64, &x, &heads));
    }
    for device in devices() {
        for (i, n) in [7, 5003].into_iter().enumerate() {
            if turn(i, 2) {
                check::<u32>(device, n);
            }
            if turn(i + 1, 2) {
                check::<i32>(device, n);
            }
        }
    }
}

#[test]
fn non_finite_elements_give_documented_results() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for device in devices() {
        let of = |x: &[f32]| device.gpu.upload(x).unwrap();
        let min_max = |x: &[f32]| device.gpu.reduce(&of(x), MinMax).unwrap().read().unwrap();
        let log_sum_exp = |x: &[f32]| device.gpu.reduce(&of(x), LogSumExp).unwrap().read().unwrap()[0];
        let mean = |x: &[f32], op: MeanVariance| device.gpu.reduce(&of(x), op).unwrap().read().unwrap();
        assert!(min_max(&[1.0, nan, 2.0]).iter().all(|x| x.is_nan()), "{}", device.label);
        assert_eq!(min_max(&[inf, 1.0, -inf]), [-inf, inf]);
        assert_eq!(min_max(&[0.0, -0.0])[0].to_bits(), (-0.0f32).to_bits());
        assert_eq!(log_sum_exp(&[]), -inf);
        assert_eq!(log_sum_exp(&[-inf, -inf]), -inf);
        assert_eq!(log_sum_exp(&[-inf, 2.5]), 2.5);
        assert_eq!(log_sum_exp(&[1.0, inf, -inf]), inf);
        assert!(log_sum_exp(&[1.0, nan, inf]).is_nan());
        assert_eq!(log_sum_exp(&[f32::MAX, f32::MIN]), f32::MAX);
        assert_eq!(log_sum_exp(&[f32::MIN]), f32::MIN);
        assert!(mean(&[], MeanVariance::population()).iter().all(|x| x.is_nan()));
        let one = mean(&[7.0], MeanVariance::sample());
        assert!(one[0] == 7.0 && one[1].is_nan());
        assert_eq!(mean(&[7.0], MeanVariance::population()), [7.0, 0.0]);
        assert!(mean(&[1.0, inf, 2.0, 3.0], MeanVariance::population()).iter().all(|x| !x.is_finite()));
        assert!(mean(&[1.0, nan, 2.0, 3.0], MeanVariance::population()).iter().all(|x| x.is_nan()));
        // A mean of 10^4 deviations: the textbook's difference of squares would give nothing but noise.
        let far: Vec<f32> = (0..10_000).map(|i| 10_000.0 + (i % 2) as f32).collect();
        let got = mean(&far, MeanVariance::population());
        assert!((got[0] - 10_000.5).abs() < 0.01 && (got[1] - 0.25).abs() < 1e-3, "{got:?}");
    }
}

/// A sum of triples modulo 2^32, as a state without `state_result`.
fn triples() -> StateOp {
    StateOp::new(
        "struct State { x: u32, y: u32, z: u32 }
         fn state_identity() -> State { return State(0u, 0u, 0u); }
         fn state_of(x: T, y: T, z: T) -> State { return State(x, y, z); }
         fn state_combine(a: State, b: State) -> State { return State(a.x + b.x, a.y + b.y, a.z + b.z); }",
    )
}

/// The longest run of ones in bits, and where it stands: first, last and longest run, and the length. Does not commute.
fn longest_run() -> StateOp {
    StateOp::new(
        "// Runs of ones.
         struct State {
             first: u32,
             last: u32,
             longest: u32,
             count: u32,
         }
         fn state_identity() -> State { return State(0u, 0u, 0u, 0u); }
         fn state_of(x: T) -> State { let one = u32(x != T(0)); return State(one, one, one, 1u); }
         fn state_combine(a: State, b: State) -> State {
             let first = a.first + select(0u, b.first, a.first == a.count);
             let last = b.last + select(0u, a.last, b.last == b.count);
             return State(first, last, max(max(a.longest, b.longest), a.last + b.first), a.count + b.count);
         }
         fn state_result(s: State) -> T { return T(s.longest); }",
    )
}

/// The longest run of nonzero elements up to each, from no elements on.
fn longest_runs(x: &[u32]) -> Vec<f64> {
    let (mut run, mut longest) = (0u32, 0u32);
    let later = x.iter().map(|&x| {
        run = if x == 0 { 0 } else { run + 1 };
        longest = longest.max(run);
        f64::from(longest)
    });
    std::iter::once(0.0).chain(later).collect()
}

#[test]
fn reductions_by_own_states_keep_order() {
    for device in devices() {
        for (s, (rows, n)) in [(1, 50_001), (9, 700), (2, 0)].into_iter().enumerate() {
            let bits: Vec<u32> = (0..rows * n).map(|i| u32::from(i % 37 != 5 && i % 11 != 3)).collect();
            let want: Vec<f64> = (0..rows).map(|r| *longest_runs(&bits[r * n..(r + 1) * n]).last().unwrap()).collect();
            let words: Vec<u32> = Random::new(3).elements(rows * n * 3);
            let sums: Vec<f64> = (0..rows * 3)
                .map(|i| {
                    let row = words[i / 3 * 3 * n..(i / 3 + 1) * 3 * n].iter().skip(i % 3).step_by(3);
                    f64::from(row.fold(0u32, |a, x| a.wrapping_add(*x)))
                })
                .collect();
            let names = Reduce::variants().iter().map(|v| v.name).enumerate();
            for variant in names.filter(|(v, _)| turn(v + s, 2)).map(|(_, name)| name) {
                let run = |op: StateOp, x: &[u32], results: usize| {
                    let program = Op::<u32>::lower(&Reduce::rows(op, rows, n).variant(variant), device.gpu.profile());
                    let x = device.gpu.upload(x).unwrap();
                    program.and_then(|program| run(&device.gpu, program, &[(&x).into()], results))
                };
                let what = format!("{}: {variant} of {rows} x {n}", device.label);
                let checked = |got: Result<Vec<u32>>, want: &[f64]| match got {
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{what}: {e}"),
                    Ok(got) => assert_close(&what, &numbers(&got), want, &vec![0.0; want.len()]),
                };
                checked(run(longest_run(), &bits, rows), &want);
                checked(run(triples().commutative(), &words, 3 * rows), &sums);
                checked(run(triples(), &words, 3 * rows), &sums);
            }
        }
    }
}

#[test]
fn reductions_of_states_are_split_at_bindings() {
    let n = 30_001;
    let words: Vec<u32> = Random::new(8).elements(3 * n);
    let maps = elements(&Operator::Affine(Affine::maps()), n, 4);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        let mut small = device.gpu.profile().clone();
        small.limits.max_storage_binding = 32 << 10;
        for variant in ["coarsened", "interleaved"] {
            let program = Op::<u32>::lower(&Reduce::new(triples(), n).variant(variant), &small).unwrap();
            assert!(program.dispatches.len() > 6);
            let x = device.gpu.upload(&words).unwrap();
            let got = run(&device.gpu, program, &[(&x).into()], 3).unwrap();
            let sum = |k: usize| words.iter().skip(k).step_by(3).fold(0u32, |a, x| a.wrapping_add(*x));
            assert_eq!(got, [sum(0), sum(1), sum(2)], "{variant}");
            let program = Op::<f32>::lower(&Reduce::new(Affine::maps(), n).variant(variant), &small).unwrap();
            let x = device.gpu.upload(&maps).unwrap();
            let got = run(&device.gpu, program, &[(&x).into()], 2).unwrap();
            let op = Operator::Affine(Affine::maps());
            let (want, bound) = (reduce(&op, 1, n, &maps).unwrap(), reduce_bound(&op, 1, n, &maps));
            assert_close(variant, &numbers(&got), &want, &bound);
        }
    }
}

/// A valid text with one part replaced, and the error it must give.
#[test]
fn errors_in_states_name_the_line() {
    let text = "struct State { sum: f32, count: u32 }
fn state_identity() -> State { return State(0.0, 0u); }
fn state_of(x: T) -> State { return State(x, 1u); }
fn state_combine(a: State, b: State) -> State { return State(a.sum + b.sum, a.count + b.count); }
fn state_result(s: State) -> T { return s.sum / f32(s.count); }";
    let profile = tilework::program::DeviceProfile::webgpu_defaults();
    let lowered = |text: &str| {
        let op = StateOp::new(text);
        [
            Op::<f32>::lower(&Reduce::new(op.clone(), 9), &profile),
            Op::<f32>::lower(&Scan::new(op.clone(), 9), &profile),
            Op::<f32>::lower(&SegmentedScan::new(op.clone(), 9), &profile),
            Op::<f32>::lower(&SegmentedReduce::new(op.clone(), 9), &profile),
            Op::<f32>::lower(&ReduceByKey::new(op, 9), &profile),
        ]
    };
    assert!(lowered(text).iter().all(Result::is_ok));
    for (part, other, want) in [
        ("sum: f32, count", "sum: vec2<f32>, count", "<user state>:1"),
        ("count: u32 }", "count: u32, a: u32, b: u32, c: u32 }", "<user state>:2"),
        ("State(0.0, 0u)", "State(0.0)", "<user state>:2"),
        ("state_identity()", "identity()", "must define `fn state_identity() -> State`"),
        ("state_of(x: T)", "state_of(x: i32)", "<user state>:3"),
        ("a: State, b: State", "a: State, b: f32", "<user state>:4"),
        ("a.count + b.count", "a.count + b.total", "<user state>:4"),
        ("s: State) -> T { return s.sum", "s: State) -> bool { return 1.0 < s.sum", "<user state>:5"),
        ("fn state_result", "fn other_result", "define `fn state_result"),
        ("struct State", "struct Other", "State"),
    ] {
        for e in lowered(&text.replace(part, other)).map(|r| r.expect_err(part)) {
            assert_eq!(e.kind(), ErrorKind::Shader, "{e}");
            assert!(e.to_string().contains(want), "{part}: {e}");
        }
    }
    let wide = "struct State { a: vec2<f32> }\nfn state_identity() -> State { return State(vec2<f32>(0.0)); }";
    for e in lowered(wide).map(Result::unwrap_err) {
        let want = "<user state>:1: the member `a` of `State` is not f32, i32 or u32";
        assert!(e.to_string().contains(want), "{e}");
    }
    let refused = |r: Result<Program>| r.unwrap_err().kind();
    assert_eq!(refused(Op::<f32>::lower(&Reduce::new(MinMax, 0), &profile)), ErrorKind::Shape);
    assert_eq!(
        refused(Op::<f32>::lower(&Reduce::new(LogSumExp, 5).variant("atomic"), &profile)),
        ErrorKind::Unsupported
    );
    assert_eq!(
        refused(Op::<f32>::lower(&Reduce::new(Affine::maps(), 5).variant("shared"), &profile)),
        ErrorKind::Unsupported
    );
    let Some(gpu) = crate::support::gpu() else { return };
    let odd = gpu.upload(&[1.0f32; 5]).unwrap();
    assert_eq!(gpu.reduce(&odd, Affine::maps()).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(gpu.inclusive_scan(&odd, Affine::maps()).unwrap_err().kind(), ErrorKind::Shape);
}

/// `(exclusive, reverse)`.
const FORMS: [(bool, bool); 4] = [(false, false), (true, true), (true, false), (false, true)];

fn check_scan<O>(device: &Device, op: O, variant: &str, (rows, n): (usize, usize), form: (bool, bool), leave_out: u32)
where
    O: Reducer<f32, Output = f32>,
{
    let operator = op.operator();
    let what = format!("{}: {} of {rows} x {n}, {variant} {form:?}", device.label, operator.name());
    let desc = Scan::rows(op, rows, n).variant(variant).leave_out_posts(leave_out);
    let desc = desc.when(form.0, |op| op.exclusive()).when(form.1, |op| op.reverse());
    let program = match Op::<f32>::lower(&desc, device.gpu.profile()) {
        Err(e) if e.kind() == ErrorKind::Unsupported => return,
        other => other.unwrap_or_else(|e| panic!("{what}: {e}")),
    };
    let input = elements(&operator, rows * n, n as u64);
    let x = device.gpu.upload(&input).unwrap();
    let got = run(&device.gpu, program, &[(&x).into()], rows * n * numbers_of(&operator).1).expect(&what);
    let want = scan(&operator, rows, n, form.0, form.1, &input).expect("there is a reference");
    assert_close(&what, &numbers(&got), &want, &scan_bound(&operator, rows, n, form.0, form.1, &input));
}

#[test]
fn scans_match_reference() {
    let shapes = [(1, 20_001), (13, 777), (1, 1), (1, 128), (1, 65_536)];
    for device in devices() {
        for (v, variant) in Scan::variants().iter().map(|v| v.name).enumerate() {
            for (i, &shape) in sample(&shapes, 1).iter().enumerate() {
                let form = FORMS[(i + v) % 4];
                each_operator!(op, i + v => check_scan(device, op, variant, shape, form, 0));
            }
        }
    }
}

#[test]
fn lookback_of_states_is_right_when_workgroups_never_post() {
    for device in devices() {
        for (i, one_in) in [2, 3, 64].into_iter().enumerate() {
            let shape = [(1, 60_001), (3, 20_001)][i % 2];
            check_scan(device, Affine::maps(), "lookback", shape, FORMS[i], one_in);
            check_scan(device, MeanVariance::population(), "lookback", shape, FORMS[i + 1], one_in);
        }
        // A word that cannot be posted, since it equals the empty marker.
        let n = 5000;
        let spare = f32::from_bits(0xffa5_c3e1);
        let input: Vec<f32> = (0..n).flat_map(|i| [1.0, if i == n - 1 { spare } else { 0.0 }]).collect();
        let x = device.gpu.upload(&input).unwrap();
        let got = device.gpu.inclusive_scan(&x, Affine::recurrence()).unwrap().read().unwrap();
        assert!(got[..n - 1].iter().all(|y| *y == 0.0) && got[n - 1].is_nan());
    }
}

#[test]
fn scans_by_own_states_keep_order() {
    for device in devices() {
        let n = 30_011;
        let bits: Vec<u32> = (0..n).map(|i| u32::from(i % 37 != 5 && i % 11 != 3)).collect();
        let want = &longest_runs(&bits)[1..];
        let words: Vec<u32> = Random::new(3).elements(n * 3);
        let mut sums = words.clone();
        (3..3 * n).for_each(|i| sums[i] = sums[i].wrapping_add(sums[i - 3]));
        let (x, y) = (device.gpu.upload(&bits).unwrap(), device.gpu.upload(&words).unwrap());
        for (v, variant) in Scan::variants().iter().map(|v| v.name).enumerate() {
            let what = format!("{}: {variant}", device.label);
            let lowered = |op: StateOp| Op::<u32>::lower(&Scan::new(op, n).variant(variant), device.gpu.profile());
            let Ok(program) = lowered(longest_run()) else { continue };
            // Operators take turns.
            if turn(v, 2) {
                let got = run(&device.gpu, program, &[(&x).into()], n).unwrap();
                assert_close(&what, &numbers(&got), want, &vec![0.0; n]);
            }
            if turn(v + 1, 2) {
                let got = run(&device.gpu, lowered(triples()).unwrap(), &[(&y).into()], 3 * n).unwrap();
                assert!(got == sums, "{what}");
            }
        }
    }
}

#[test]
fn scans_of_states_are_split_at_bindings() {
    let n = 20_001;
    let input = elements(&Operator::Affine(Affine::maps()), n, 4);
    for device in devices().iter().filter(|d| d.main || d.label.contains("WebGPU")) {
        let mut small = device.gpu.profile().clone();
        small.limits.max_storage_binding = 32 << 10;
        for (i, variant) in Scan::variants().iter().map(|v| v.name).enumerate() {
            for (op, outputs) in [(Affine::maps(), 2), (Affine::recurrence(), 1)] {
                let reverse = i % 2 == 0;
                let desc = Scan::new(op, n).variant(variant).when(reverse, |op| op.reverse());
                let Ok(program) = Op::<f32>::lower(&desc, &small) else { continue };
                assert!(program.dispatches.len() > 5);
                let x = device.gpu.upload(&input).unwrap();
                let got = run(&device.gpu, program, &[(&x).into()], n * outputs).unwrap();
                let op = Operator::Affine(op);
                let bound = scan_bound(&op, 1, n, false, reverse, &input);
                assert_close(variant, &numbers(&got), &scan(&op, 1, n, false, reverse, &input).unwrap(), &bound);
            }
        }
    }
}

#[test]
fn segments_and_runs_match_reference() {
    for device in devices() {
        // Three in a row meet all operators.
        let lists = [(20_003, 40), (700, 3), (20_003, 3000), (1, 1), (0, 1)];
        for (i, &(n, every)) in sample(&lists, 3).iter().enumerate() {
            let heads: Vec<u32> = (0..n).map(|i| u32::from(i % every == every / 2)).collect();
            let keys: Vec<u32> = (0..n).map(|i| ((i + every - every / 2) / every) as u32).collect();
            let variants = ["hierarchical", "lookback"].into_iter().enumerate();
            for (_, variant) in variants.filter(|(v, _)| turn(i + v, 2)) {
                each_operator!(op, i => {
                    let operator = Reducer::<f32>::operator(&op);
                    let what = format!("{}: {} of {n}, {variant}", device.label, operator.name());
                    let input = elements(&operator, n, 7);
                    let outputs = numbers_of(&operator).1;
                    let gpu = &device.gpu;
                    let (x, h, k) = (gpu.upload(&input).unwrap(), gpu.upload(&heads).unwrap(), gpu.upload(&keys).unwrap());
                    let (y, count) = (gpu.alloc::<f32>(n * outputs).unwrap(), gpu.alloc::<u32>(1).unwrap());
                    let mut rec = gpu.recorder();
                    let plan = SegmentedScan::new(op, n).exclusive().variant(variant).plan::<f32>(gpu).unwrap();
                    plan.record(&mut rec, &x, &h, &y).unwrap();
                    rec.submit().unwrap();
                    if n > 0 {
                        let want = segmented_scan(&operator, true, &input, &heads).unwrap();
                        let bound = segmented_scan_bound(&operator, true, &input, &heads);
                        assert_close(&format!("{what}, scan"), &numbers(&y.read().unwrap()), &want, &bound);
                    }
                    let want = segmented_reduce(&operator, &input, &heads).unwrap();
                    let bound = segmented_reduce_bound(&operator, &input, &heads);
                    let read = |what: &str| {
                        let segments = count.read().unwrap()[0] as usize * outputs;
                        assert_eq!(segments, want.len(), "{what}");
                        let got = if segments > 0 { y.slice(..segments).unwrap().read().unwrap() } else { Vec::new() };
                        assert_close(what, &numbers(&got), &want, &bound);
                    };
                    let mut rec = gpu.recorder();
                    let plan = SegmentedReduce::new(op, n).variant(variant).leave_out_posts(u32::from(n > 9) * 3);
                    plan.plan::<f32>(gpu).unwrap().record(&mut rec, &x, &h, &y, &count).unwrap();
                    rec.submit().unwrap();
                    read(&format!("{what}, reduce"));
                    let mut rec = gpu.recorder();
                    let out = gpu.alloc::<u32>(n).unwrap();
                    let plan = ReduceByKey::new(op, n).variant(variant).plan::<f32>(gpu).unwrap();
                    plan.record(&mut rec, &k, &x, &out, &y, &count).unwrap();
                    rec.submit().unwrap();
                    read(&format!("{what}, by key"));
                });
            }
        }
    }
}

#[test]
fn segments_and_runs_by_own_states_keep_order() {
    let n = 30_011;
    let bits: Vec<u32> = (0..n).map(|i| u32::from(i % 37 != 5 && i % 11 != 3)).collect();
    let words: Vec<u32> = Random::new(3).elements(n * 3);
    let heads: Vec<u32> = (0..n).map(|i| u32::from(i % 977 == 400 || i % 8192 < 3)).collect();
    let keys: Vec<u32> = heads.iter().scan(0, |key, head| Some((*key += head, *key).1)).collect();
    let starts: Vec<usize> = (0..n).filter(|&i| heads[i] != 0 || i == 0).chain([n]).collect();
    let segments = || starts.windows(2).map(|s| s[0]..s[1]);
    let runs: Vec<f64> = segments().flat_map(|s| longest_runs(&bits[s])[1..].to_vec()).collect();
    let mut sums = words.clone();
    for i in segments().flat_map(|s| 3 * (s.start + 1)..3 * s.end) {
        sums[i] = sums[i].wrapping_add(sums[i - 3]);
    }
    let last = |all: &[f64], each: usize| -> Vec<f64> {
        segments().flat_map(|s| all[(s.end - 1) * each..s.end * each].to_vec()).collect()
    };
    for device in devices() {
        let gpu = &device.gpu;
        let [x, words, h, k] = [&bits, &words, &heads, &keys].map(|data| gpu.upload(data).unwrap());
        for (variant, leave_out) in [("hierarchical", 0), ("lookback", 2), ("lookback", 0)] {
            for (op, x, want, each) in [(longest_run(), &x, &runs, 1), (triples(), &words, &numbers(&sums), 3)] {
                if !all() && (variant == "hierarchical") == (each == 1) {
                    continue;
                }
                let what = format!("{}: {variant}, {leave_out}, {each}", device.label);
                let zeros = vec![0.0; n * each];
                let [y, out, count] = [n * each, n, 1].map(|len| gpu.alloc::<u32>(len).unwrap());
                let scan = SegmentedScan::new(op.clone(), n).variant(variant).leave_out_posts(leave_out);
                let reduce = SegmentedReduce::new(op.clone(), n).variant(variant).leave_out_posts(leave_out);
                let by_key = ReduceByKey::new(op, n).variant(variant).leave_out_posts(leave_out);
                let mut rec = gpu.recorder();
                scan.plan::<u32>(gpu).unwrap().record(&mut rec, x, &h, &y).unwrap();
                rec.submit().unwrap();
                assert_close(&what, &numbers(&y.read().unwrap()), want, &zeros);
                let want = last(want, each);
                let check = |what: &str| {
                    assert_eq!(count.read().unwrap()[0] as usize * each, want.len(), "{what}");
                    let got = y.slice(..want.len()).unwrap().read().unwrap();
                    assert_close(what, &numbers(&got), &want, &zeros[..want.len()]);
                };
                let mut rec = gpu.recorder();
                reduce.plan::<u32>(gpu).unwrap().record(&mut rec, x, &h, &y, &count).unwrap();
                rec.submit().unwrap();
                check(&format!("{what}, reduce"));
                let mut rec = gpu.recorder();
                by_key.plan::<u32>(gpu).unwrap().record(&mut rec, &k, x, &out, &y, &count).unwrap();
                rec.submit().unwrap();
                check(&format!("{what}, by key"));
            }
        }
    }
}

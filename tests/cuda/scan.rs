//! Prefix sums on CUDA against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, Sample, assert_close, numbers};
use tilework::cuda::{CudaOp, CudaProfile};
use tilework::prelude::*;
use tilework::primitives::Reducer;
use tilework::reference::{scan, scan_bound};

/// `(exclusive, reverse)`.
const FORMS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

/// Around vectors, tiles and one block; several waves of all blocks of an H100, whole and partial.
const LENGTHS: [usize; 11] = [0, 1, 3, 4, 129, 2047, 2048, 2049, 100_003, 2 * 2_162_688, 5_000_001];

fn check<T: Sample, O: Reducer<T, Output = T>>(
    op: O, variant: &str, (rows, n): (usize, usize), (exclusive, reverse): (bool, bool), input: &[T],
) {
    let Some(cuda) = cuda() else { return };
    let operator = op.operator();
    let what = format!(
        "{} of {rows} x {n} {}, {variant}, exclusive {exclusive}, reverse {reverse}",
        operator.name(),
        T::DTYPE
    );
    let want = scan(&operator, rows, n, exclusive, reverse, input).unwrap();
    let bound = scan_bound(&operator, rows, n, exclusive, reverse, input);
    let (x, y) = (cuda.upload(input).unwrap(), cuda.alloc::<T>(input.len()).unwrap());
    let desc =
        Scan::rows(op, rows, n).when(exclusive, |op| op.exclusive()).when(reverse, |op| op.reverse()).variant(variant);
    let plan = desc.plan::<T>(cuda).unwrap();
    let stream = cuda.stream().unwrap();
    let mut first = None;
    // Twice: the second finds the scratch as the first left it, and must give the same bits.
    for _ in 0..2 {
        stream.clear(&y).unwrap();
        plan.run(&stream, &x, &y).unwrap();
        let got = y.read().unwrap();
        assert_close(&what, &numbers(&got), &want, &bound);
        let bytes = bytemuck::cast_slice::<T, u8>(&got).to_vec();
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{what}: other bits");
    }
}

fn all_operators<T: Sample>()
where
    Sum: Reducer<T, Output = T>,
    Prod: Reducer<T, Output = T>,
    Min: Reducer<T, Output = T>,
    Max: Reducer<T, Output = T>,
{
    let mut random = Random::new(15);
    for (i, n) in LENGTHS.into_iter().enumerate() {
        let input: Vec<T> = random.elements(n);
        // Products of numbers near 1 neither vanish nor overflow.
        let near_one = |x: &T| if T::DTYPE.is_float() { T::from_f64(1.0 + 0.01 * x.to_f64()) } else { *x };
        let near_one: Vec<T> = input.iter().map(near_one).collect();
        check(Sum, "grid", (1, n), FORMS[i % 4], &input);
        check(Sum, "grid", (1, n), FORMS[(i + 1) % 4], &input);
        check(Prod, "grid", (1, n), FORMS[(i + 2) % 4], &near_one);
        check(Min, "grid", (1, n), FORMS[(i + 3) % 4], &input);
        check(Max, "grid", (1, n), FORMS[i % 4], &input);
    }
    for (i, (rows, n)) in [(1, 5000), (7, 1), (50, 777), (3, 20_001), (70_000, 12)].into_iter().enumerate() {
        let input: Vec<T> = random.elements(rows * n);
        check(Sum, "rows", (rows, n), FORMS[i % 4], &input);
        check(Max, "auto", (rows, n), FORMS[(i + 1) % 4], &input);
    }
}

#[test]
fn f32_scans_match_reference() {
    all_operators::<f32>();
}

#[test]
fn i32_scans_match_reference() {
    all_operators::<i32>();
}

#[test]
fn u32_scans_match_reference() {
    all_operators::<u32>();
}

#[test]
fn scans_keep_special_values() {
    let mut input: Vec<f32> = Random::new(3).any(20_000);
    // So that minima do not all stop at one NaN.
    let odd = |x: &f32| x.is_nan() || x.is_infinite();
    input.iter_mut().take(15_000).filter(|x| odd(x)).for_each(|x| *x = 1.0);
    for form in FORMS {
        check(Min, "grid", (1, 20_000), form, &input);
        check(Max, "rows", (20, 1000), form, &input);
    }
}

#[test]
fn the_same_descriptor_plans_on_both_backends() {
    let desc = Scan::new(Sum, 1000).exclusive();
    let want: Vec<u32> = (0..1000).map(|i| i * (i + 1) / 2).collect();
    let input: Vec<u32> = (1..=1000).collect();
    if let Some(gpu) = crate::support::gpu() {
        let (x, y) = (gpu.upload(&input).unwrap(), gpu.alloc::<u32>(1000).unwrap());
        let mut rec = gpu.recorder();
        desc.plan::<u32>(gpu).unwrap().record(&mut rec, &x, &y).unwrap();
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap(), want);
    }
    if let Some(cuda) = cuda() {
        let (x, y) = (cuda.upload(&input).unwrap(), cuda.alloc::<u32>(1000).unwrap());
        let plan = desc.plan::<u32>(cuda).unwrap();
        plan.run(&cuda.stream().unwrap(), &x, &y).unwrap();
        assert_eq!(y.read().unwrap(), want);
        assert!(plan.report().to_string().contains("primitives/scan_grid:scan_grid"));
    }
    let lowered = CudaOp::<u32>::lower(&desc, &CudaProfile::h100()).unwrap();
    assert_eq!((lowered.variant(), lowered.operands[1].name), ("grid", "output"));
}

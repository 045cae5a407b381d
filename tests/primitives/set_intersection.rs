//! The operations on sorted multisets against the references.

use super::select::read_counted;
use crate::nn::training::refusal;
use crate::support::coverage::{all, sample, turn};
use crate::support::{Device, Random, Sample, devices, gpu, supported};
use half::f16;
use tilework::prelude::*;
use tilework::program::{Op, Program};
use tilework::reference::{
    Number, set_difference, set_difference_positions, set_intersection, set_intersection_positions, set_union,
    set_union_positions,
};
use tilework::{DType, ErrorKind, Gpu};

/// Each variant of these ops on each device.
fn cases() -> impl Iterator<Item = (&'static Device, &'static str)> {
    devices().iter().flat_map(|d| SetIntersection::variants().iter().map(move |v| (d, v.name)))
}

/// Runs `$op`, or gives `None` if the device lacks the variant.
macro_rules! run {
    ($op:ident, $gpu:expr, $variant:expr, $a:expr, $b:expr, $len:expr) => {{
        let (gpu, a, b): (&Gpu, &[T], &[T]) = ($gpu, $a, $b);
        match $op::new(a.len(), b.len()).variant($variant).plan::<T>(gpu) {
            Err(e) if e.kind() == ErrorKind::Unsupported => None,
            plan => {
                let before = T::from_f64(9.0);
                let (x, y) = (gpu.upload(a).unwrap(), gpu.upload(b).unwrap());
                let output = gpu.upload(&vec![before; $len]).unwrap();
                let count = gpu.upload(&[99u32]).unwrap();
                let mut rec = gpu.recorder();
                plan.unwrap().record(&mut rec, &x, &y, &output, &count).unwrap();
                rec.submit().unwrap();
                Some(read_counted(&output, &count, before).unwrap())
            }
        }
    }};
}

/// Compares bits.
#[track_caller]
fn same<T: Sample>(got: &[T], want: &[T], what: &str) {
    assert!(bytemuck::cast_slice::<T, u8>(got) == bytemuck::cast_slice::<T, u8>(want), "{what}");
}

/// Sorted elements by value, of which about one in `every` differs from the one before.
fn sorted<T: Sample>(random: &mut Random, n: usize, every: u64) -> Vec<T> {
    let mut number = 0;
    let mut next = || {
        number += u64::from(random.next().is_multiple_of(every)) * (1 + random.next() % 2);
        T::from_f64(number as f64)
    };
    (0..n).map(|_| next()).collect()
}

fn subsets<T: Sample + PartialEq>(gpu: &Gpu, variant: &str, a: &[T], b: &[T], what: &str)
where
    SetIntersection: Op<T>,
    SetDifference: Op<T>,
{
    let Some(got) = run!(SetIntersection, gpu, variant, a, b, a.len()) else { return };
    same(&got, &set_intersection(a, b), &format!("intersection of {what}"));
    let got = run!(SetDifference, gpu, variant, a, b, a.len()).unwrap();
    same(&got, &set_difference(a, b), &format!("difference of {what}"));
}

fn union<T: Sample + PartialEq>(gpu: &Gpu, variant: &str, a: &[T], b: &[T], what: &str)
where
    SetUnion: Op<T>,
{
    if SetUnion::variants().iter().all(|v| v.name != variant) {
        return;
    }
    let Some(got) = run!(SetUnion, gpu, variant, a, b, a.len() + b.len()) else { return };
    same(&got, &set_union(a, b), &format!("union of {what}"));
}

#[test]
fn sets_match_the_reference() {
    for (device, variant) in cases() {
        let gpu = &device.gpu;
        let mut random = Random::new(7);
        let shapes = [
            (9000, 8000, 2),
            (70_001, 447, 40),
            (0, 0, 1),
            (1, 0, 1),
            (0, 5, 1),
            (449, 1, 3),
            (40_000, 30_000, 3000),
            (5000, 9000, 9000),
            (600, 60_000, 1),
        ];
        for &(n, m, every) in sample(&shapes, 3) {
            let what = format!("{n} and {m}, one new in {every}, {}: {variant}", device.label);
            let (a, b) = (sorted::<u32>(&mut random, n, every), sorted::<u32>(&mut random, m, every));
            subsets(gpu, variant, &a, &b, &what);
            union(gpu, variant, &a, &b, &what);
            // Types differ by keys only.
            if !all() {
                continue;
            }
            if matches!(variant, "lookback" | "merge-path") {
                let half = |x: &[u32]| x.iter().map(|x| f16::from_f32((x / 4) as f32)).collect::<Vec<_>>();
                subsets(gpu, variant, &half(&a), &half(&b), &what);
            } else if variant == "hierarchical" {
                let signed = |x: &[u32]| x.iter().map(|x| *x as i32 - 1000).collect::<Vec<_>>();
                union(gpu, variant, &signed(&a), &signed(&b), &what);
            }
        }
    }
}

/// Runs a program with lengths and rows of three bytes. `want` are the places in the first `lens` elements of both.
#[track_caller]
fn check_counted<T: Sample + PartialEq>(
    device: &Device, program: Program, [a, b]: [&[T]; 2], lens: [u32; 2], want: &[usize],
) {
    let (gpu, i) = (&device.gpu, a.len().min(lens[0] as usize));
    let both = program.op == "set-union";
    let what = format!("{}: {} {} of {lens:?} {}", device.label, program.op, program.variant(), T::DTYPE);
    let rows = |x: &[T], first: u8| (0..3 * x.len()).map(|k| first.wrapping_add(k as u8)).collect::<Vec<_>>();
    let (of_a, of_b) = (rows(a, 0), rows(b, 101));
    let most = a.len() + if both { b.len() } else { 0 };
    let (x, y) = (gpu.upload(a).unwrap(), gpu.upload(b).unwrap());
    let lengths = lens.map(|len| gpu.upload(&[len]).unwrap());
    let values = [&of_a, &of_b].map(|rows| gpu.upload(rows).unwrap());
    let before = T::from_f64(9.0);
    let (output, count) = (gpu.upload(&vec![before; most]).unwrap(), gpu.upload(&[99u32]).unwrap());
    let moved = gpu.upload(&vec![255u8; 3 * most]).unwrap();
    let mut raw = vec![Slice::from(&x).untyped(), Slice::from(&y).untyped()];
    raw.extend(lengths.iter().map(|length| Slice::from(length).untyped()));
    raw.extend(values[..1 + usize::from(both)].iter().map(|rows| Slice::from(rows).untyped()));
    raw.extend([Slice::from(&output).untyped(), Slice::from(&moved).untyped(), Slice::from(&count).untyped()]);
    let mut rec = gpu.recorder();
    gpu.prepare(program).unwrap().record(&mut rec, &raw).unwrap();
    rec.submit().unwrap();
    let wanted: Vec<T> = want.iter().map(|&p| if p < i { a[p] } else { b[p - i] }).collect();
    same(&read_counted(&output, &count, before).unwrap(), &wanted, &what);
    let row = |&p: &usize| if p < i { &of_a[3 * p..][..3] } else { &of_b[3 * (p - i)..][..3] };
    let mut rows: Vec<u8> = want.iter().flat_map(row).copied().collect();
    rows.resize(3 * most, 255);
    assert!(moved.read().unwrap() == rows, "{what}: rows");
}

/// Lengths of 0, in the middle of a tile, and above the maximum.
#[test]
fn sets_take_lengths_and_values_from_the_device() {
    /// In the default run each variant, by its number, meets some of the operations.
    fn of<T: Sample + PartialEq>(device: &Device, (number, variant): (usize, &str), [a, b]: [&[T]; 2], lens: [u32; 2])
    where
        SetUnion: Op<T>,
        SetIntersection: Op<T>,
        SetDifference: Op<T>,
    {
        let (n, m, profile) = (a.len(), b.len(), device.gpu.profile());
        let [x, y] = [(a, lens[0]), (b, lens[1])].map(|(x, len)| &x[..x.len().min(len as usize)]);
        let shared = SetIntersection::new(n, m).counted().with_values(DType::U8, 3).variant(variant);
        let Some(shared) = supported(Op::<T>::lower(&shared, profile)) else { return };
        if turn(number, 2) {
            check_counted(device, shared, [a, b], lens, &set_intersection_positions(x, y));
        }
        let alone = SetDifference::new(n, m).counted().with_values(DType::U8, 3).variant(variant);
        let alone = Op::<T>::lower(&alone, profile).unwrap();
        if turn(number + 1, 2) {
            check_counted(device, alone, [a, b], lens, &set_difference_positions(x, y));
        }
        if SetUnion::variants().iter().any(|v| v.name == variant) {
            let all = SetUnion::new(n, m).counted().with_values(DType::U8, 3).variant(variant);
            let all = Op::<T>::lower(&all, profile).unwrap();
            check_counted(device, all, [a, b], lens, &set_union_positions(x, y));
        }
    }
    let mut random = Random::new(9);
    let (a, b) = (sorted::<u32>(&mut random, 9001, 3), sorted::<u32>(&mut random, 7000, 3));
    let halves = |x: &[u32]| x.iter().map(|x| f16::from_f32((x / 4) as f32)).collect::<Vec<_>>();
    let (half_a, half_b) = (halves(&a), halves(&b));
    for (number, (device, variant)) in cases().enumerate() {
        let variant = (number, variant);
        let lens = [[5000, 3001], [0, 0], [u32::MAX, u32::MAX], [0, 700], [1, 7000], [9001, 0], [4000, 1]];
        for &lens in sample(&lens, 3) {
            of(device, variant, [&a, &b], lens);
        }
        // Types compile other kernels.
        if all() {
            of(device, variant, [&half_a, &half_b], [4001, 3000]);
        }
        of::<u32>(device, variant, [&[], &[]], [3, 3]);
    }
}

#[test]
fn sets_of_floats_compare_by_value() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let a = [-inf, -1.0, -0.0, 0.0, 0.0, 1e-40, 3.0, inf, nan, -nan, nan];
    let b = [-1.0, 0.0, -0.0, 1e-40, 2.0, 3.0, 3.0, inf, inf, -nan];
    for (device, variant) in cases().filter(|(_, variant)| matches!(*variant, "lookback" | "merge-path")) {
        let what = format!("{}: {variant}", device.label);
        for (a, b) in [(&a[..], &b[..]), (&b, &a), (&a, &a)] {
            subsets(&device.gpu, variant, a, b, &what);
            union(&device.gpu, variant, a, b, &what);
        }
    }
}

/// Some elements of `a` in their order, and no others.
#[test]
fn sets_of_unsorted_elements_are_as_documented() {
    let mut random = Random::new(2);
    let mut few = |n| (0..n).map(|_| random.next() as u32 % 50).collect::<Vec<u32>>();
    let (a, b) = (few(3000), few(2000));
    type T = u32;
    for (device, variant) in cases() {
        let (gpu, what) = (&device.gpu, format!("{}: {variant}", device.label));
        let Some(shared) = run!(SetIntersection, gpu, variant, &a, &b, 3000) else { continue };
        let alone = run!(SetDifference, gpu, variant, &a, &b, 3000).unwrap();
        // A walk may meet an element twice, or not at all.
        assert!(variant == "merge-path" || shared.len() + alone.len() == 3000, "{what}");
        for kept in [&shared, &alone] {
            let mut rest = a.iter();
            assert!(kept.iter().all(|x| rest.any(|y| y == x)), "{what}");
        }
    }
}

#[test]
fn union_of_unsorted_elements_has_elements_of_both() {
    let mut random = Random::new(4);
    let (a, mut b) = (random.any::<u32>(3000), random.any::<u32>(2000));
    b[..500].copy_from_slice(&a[..500]);
    type T = u32;
    for device in devices() {
        for variant in SetUnion::variants() {
            let united = run!(SetUnion, &device.gpu, variant.name, &a, &b, 5000).unwrap();
            let what = format!("{}: {}", device.label, variant.name);
            assert!(united.iter().all(|x| a.contains(x) || b.contains(x)), "{what}");
        }
    }
}

#[test]
fn union_is_correct_when_workgroups_never_post() {
    let mut random = Random::new(3);
    let (a, b) = (sorted::<u32>(&mut random, 9000, 3), sorted::<u32>(&mut random, 8000, 3));
    for device in devices() {
        for one_in in [1, 2, 3] {
            let gpu = &device.gpu;
            let op = SetUnion::new(a.len(), b.len()).variant("lookback").leave_out_posts(one_in);
            let (x, y) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
            let (output, count) = (gpu.upload(&[9_999_999u32; 17_000]).unwrap(), gpu.upload(&[99u32]).unwrap());
            let mut rec = gpu.recorder();
            op.plan::<u32>(gpu).unwrap().record(&mut rec, &x, &y, &output, &count).unwrap();
            rec.submit().unwrap();
            let what = format!("{}: one in {one_in} posts nothing", device.label);
            same(&read_counted(&output, &count, 9_999_999).unwrap(), &set_union(&a, &b), &what);
        }
    }
}

#[test]
fn sets_reject_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &SetIntersection::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &SetDifference::new(1, usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &SetUnion::new(usize::MAX, 1)), ErrorKind::TooLarge);
    let wide = |width| SetUnion::new(4, 4).with_values(DType::U32, width);
    assert_eq!(refusal::<f32>(gpu, &wide(usize::MAX)), ErrorKind::TooLarge);
    let words = SetIntersection::new(4, 4).with_values(DType::U64, 1);
    assert_eq!(refusal::<f32>(gpu, &words), ErrorKind::Unsupported);
    assert_eq!(refusal::<f32>(gpu, &SetUnion::new(4, 4).with_values(DType::U64, 1)), ErrorKind::Unsupported);
}

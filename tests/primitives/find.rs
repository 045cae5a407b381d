//! `Find` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::find;

/// Runs the op on one array, or two, of which the device says that there are `length`.
fn run<T: Sample>(device: &Device, op: Find, x: &[T], y: Option<&[T]>, length: Option<u32>) -> Vec<u32>
where
    Find: Op<T>,
{
    let (gpu, op) = (&device.gpu, op.when(length.is_some(), Find::counted));
    let (input, other) = (gpu.upload(x).unwrap(), gpu.upload(y.unwrap_or_default()).unwrap());
    let (length, result) = (gpu.upload(&[length.unwrap_or(0)]).unwrap(), gpu.upload(&[7u32, 7]).unwrap());
    let plan = op.plan::<T>(gpu).unwrap();
    let counted = plan.program().operands.iter().any(|operand| operand.name == "length");
    let call = if counted { plan.with_length(&length) } else { plan.with() };
    let mut rec = gpu.recorder();
    match y {
        None => call.record(&mut rec, &input, &result).unwrap(),
        Some(_) => call.record_pairs(&mut rec, &input, &other, &result).unwrap(),
    }
    rec.submit().unwrap();
    result.read().unwrap()
}

#[test]
fn places_match_the_reference() {
    fn of<T: Sample>(device: &Device, n: usize, first: usize)
    where
        Find: Op<T>,
    {
        let mut random = Random::new(n as u64);
        let number = |i: usize, random: &mut Random| if i >= first { (random.next() % 3) as f64 } else { 0.0 };
        let x: Vec<T> = (0..n).map(|i| T::from_f64(number(i, &mut random))).collect();
        let what = format!("{}: {n} from {first} {}", device.label, T::DTYPE);
        let zero = T::from_f64(0.0);
        let holds: Vec<bool> = x.iter().map(|x| *x != zero).collect();
        for length in [None, Some(0), Some(1), Some(n as u32 / 2), Some(u32::MAX)] {
            let there = length.map_or(n, |length| n.min(length as usize));
            let got = run(device, Find::new(n, Predicate::NonZero), &x, None, length);
            assert_eq!(got, find(&holds[..there]), "{what}, {length:?}");
        }
        // Two arrays, and neighbours in one.
        let y = vec![zero; n];
        assert_eq!(run(device, Find::mismatch(n), &x, Some(&y), None), find(&holds), "{what}, mismatch");
        let falls = Find::pairs(n.saturating_sub(1), "fn keep(x: T, y: T) -> bool { return y < x; }");
        let pairs: Vec<bool> = x.windows(2).map(|x| x[1].to_f64() < x[0].to_f64()).collect();
        let (before, after) = (&x[..n.saturating_sub(1)], x.get(1..).unwrap_or_default());
        assert_eq!(run(device, falls, before, Some(after), None), find(&pairs), "{what}, falls");
    }
    for device in devices() {
        for (n, first) in [(0, 0), (1, 0), (1, 1), (4096, 4095), (4097, 4096), (70_001, 69_999), (70_001, 90_000)] {
            of::<u32>(device, n, first);
        }
        of::<f32>(device, 5001, 300);
        of::<f16>(device, 5001, 300);
        of::<i32>(device, 5001, 4999);
    }
}

#[test]
fn mismatch_compares_floats_by_value() {
    let (x, y) = ([0.0f32, 1.0, f32::NAN, 1e-40, 2.0], [-0.0f32, 1.0, f32::NAN, -1e-40, 2.0]);
    for device in devices() {
        assert_eq!(run(device, Find::mismatch(5), &x, Some(&y), None), [2, 2], "{}", device.label);
    }
}

/// One buffer gives both arrays: its elements and their successors.
#[test]
fn neighbours_of_one_buffer_are_pairs() {
    let Some(gpu) = gpu() else { return };
    let (x, result) = (gpu.upload(&[1u32, 3, 5, 4, 9]).unwrap(), gpu.alloc::<u32>(2).unwrap());
    let falls = Find::pairs(4, "fn keep(x: T, y: T) -> bool { return y < x; }").plan::<u32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    falls.record_pairs(&mut rec, x.slice(..4).unwrap(), x.slice(1..).unwrap(), &result).unwrap();
    rec.submit().unwrap();
    assert_eq!(result.read().unwrap(), [2, 1]);
}

#[test]
fn find_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let some = |n| Find::new(n, Predicate::NonZero);
    assert_eq!(refusal::<f32>(gpu, &some(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &some(usize::MAX)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &Find::pairs(4, "fn keep(x: T) -> bool { return true; }")), ErrorKind::Shader);
}

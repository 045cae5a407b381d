//! `Merge` against the reference.

use crate::nn::training::refusal;
use crate::support::coverage::all;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{merge_positions, sort_positions};

/// Elements in the order of the sort.
pub(super) fn sorted<T: Sample>(mut x: Vec<T>, descending: bool) -> Vec<T> {
    let places = sort_positions(&x, descending, 0..8 * size_of::<T>() as u32);
    x = places.iter().map(|&i| x[i]).collect();
    x
}

/// Merges keys and values, with elements behind the outputs. Compares bits.
fn check<T: Sample>(device: &Device, a: &[T], b: &[T], descending: bool)
where
    Merge: Op<T>,
{
    let (gpu, len) = (&device.gpu, a.len() + b.len());
    let numbers: Vec<u32> = (0..len as u32).collect();
    let (of_a, of_b) = numbers.split_at(a.len());
    let (x, y) = (gpu.upload(a).unwrap(), gpu.upload(b).unwrap());
    let (of_x, of_y) = (gpu.upload(of_a).unwrap(), gpu.upload(of_b).unwrap());
    let behind = T::from_f64(7.0);
    let output = gpu.upload(&vec![behind; len + 1]).unwrap();
    let values = gpu.upload(&vec![77u32; len + 1]).unwrap();
    let alone = gpu.alloc::<T>(len).unwrap();
    let op = Merge::new(a.len(), b.len()).when(descending, Merge::descending);
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu).unwrap().record(&mut rec, &x, &y, &alone).unwrap();
    let plan = op.with_values().plan::<T>(gpu).unwrap();
    let call = plan.with_values(&of_x, &of_y, values.slice(..len).unwrap());
    call.record(&mut rec, &x, &y, output.slice(..len).unwrap()).unwrap();
    rec.submit().unwrap();
    let what = format!("{}: {} and {} {}, {descending}", device.label, a.len(), b.len(), T::DTYPE);
    let places = merge_positions(a, b, descending);
    let all = [a, b, &[behind]].concat();
    let want: Vec<T> = places.iter().map(|&i| all[i]).chain([behind]).collect();
    let bits = bytemuck::cast_slice::<T, u8>;
    assert!(bits(&output.read().unwrap()) == bits(&want), "{what}");
    assert!(bits(&alone.read().unwrap()) == bits(&want[..len]), "{what}, without values");
    let want: Vec<u32> = places.iter().map(|&i| i as u32).chain([77]).collect();
    assert!(values.read().unwrap() == want, "{what}, values");
}

#[test]
fn merges_match_the_reference_in_every_type() {
    fn of<T: Sample>(device: &Device, descending: bool)
    where
        Merge: Op<T>,
    {
        let mut random = Random::new(3);
        // A tile has 448 elements on a software driver and 2304 on a card.
        for (n, m) in [(0, 0), (0, 1), (449, 0), (1, 447), (224, 224), (2305, 1), (1, 2303), (9000, 5000)] {
            let (a, b) = (random.any::<T>(n), random.any::<T>(m));
            check(device, &sorted(a, descending), &sorted(b, descending), descending);
        }
        // Many equal elements, and all equal.
        let mut few = |n, k| (0..n).map(|_| T::from_f64((random.next() % k) as f64)).collect();
        for k in [1, 3] {
            let (a, b) = (few(5000, k), few(4000, k));
            check(device, &sorted(a, descending), &sorted(b, descending), descending);
        }
    }
    for device in devices() {
        of::<f32>(device, false);
        of::<i32>(device, true);
        of::<f16>(device, true);
        // Types and directions compile other kernels.
        if all() {
            of::<f32>(device, true);
            of::<u32>(device, false);
            of::<f16>(device, false);
        }
    }
}

/// Lengths below, at and above the maximum. Nothing is written behind the merged elements.
#[test]
fn merges_as_many_elements_as_the_device_counts() {
    fn of<T: Sample>(device: &Device, [n, m]: [usize; 2], [of_a, of_b]: [u32; 2])
    where
        Merge: Op<T>,
    {
        let (gpu, mut random, len) = (&device.gpu, Random::new(4), n + m);
        let (a, b) = (random.any::<T>(n), random.any::<T>(m));
        let (i, j) = (n.min(of_a as usize), m.min(of_b as usize));
        let (a, b) =
            ([&sorted(a[..i].to_vec(), false), &a[i..]].concat(), [&sorted(b[..j].to_vec(), false), &b[j..]].concat());
        let (x, y) = (gpu.upload(&a).unwrap(), gpu.upload(&b).unwrap());
        let (of_x, of_y) = (gpu.upload(&vec![1u32; n]).unwrap(), gpu.upload(&vec![2u32; m]).unwrap());
        let behind = T::from_f64(7.0);
        let (output, values) = (gpu.upload(&vec![behind; len]).unwrap(), gpu.upload(&vec![7u32; len]).unwrap());
        let (lengths, count) = ([of_a, of_b].map(|l| gpu.upload(&[l]).unwrap()), gpu.alloc::<u32>(1).unwrap());
        let plan = Merge::new(n, m).with_values().counted().plan::<T>(gpu).unwrap();
        let mut rec = gpu.recorder();
        let call = plan.with_values(&of_x, &of_y, &values).with_lengths(&lengths[0], &lengths[1], &count);
        call.record(&mut rec, &x, &y, &output).unwrap();
        rec.submit().unwrap();
        let what = format!("{}: {i} of {n} and {j} of {m} {}", device.label, T::DTYPE);
        assert_eq!(count.read().unwrap(), [(i + j) as u32], "{what}");
        let places = merge_positions(&a[..i], &b[..j], false);
        let both = [&a[..i], &b[..j]].concat();
        let want: Vec<T> = places.iter().map(|&p| both[p]).chain(vec![behind; len - i - j]).collect();
        let bits = bytemuck::cast_slice::<T, u8>;
        assert!(bits(&output.read().unwrap()) == bits(&want), "{what}");
        let of_values = places.iter().map(|&p| if p < i { 1 } else { 2 });
        let want: Vec<u32> = of_values.chain(vec![7; len - i - j]).collect();
        assert!(values.read().unwrap() == want, "{what}, values");
    }
    for device in devices() {
        for lengths in [[0, 0], [1, 0], [0, 700], [2000, 1001], [2306, 1000], [9999, 9999]] {
            of::<u32>(device, [2306, 1001], lengths);
            of::<f16>(device, [2306, 1001], lengths);
        }
        of::<f32>(device, [0, 0], [3, 3]);
    }
}

#[test]
fn merge_places_zeros_and_nan_as_the_sort_does() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for device in devices() {
        for descending in [false, true] {
            let a = sorted(vec![nan, 0.0, -0.0, -inf, 1.0, -nan, 1e-40], descending);
            let b = sorted(vec![-nan, -0.0, 0.0, inf, 1.0, nan, -1e-40], descending);
            check(device, &a, &b, descending);
        }
    }
}

#[test]
fn merge_of_unsorted_arrays_writes_elements_of_both() {
    let mut random = Random::new(8);
    let (a, b) = (random.any::<u32>(5000), random.any::<u32>(4321));
    let mut all = [&a[..], &b].concat();
    all.sort_unstable();
    for device in devices() {
        let gpu = &device.gpu;
        let got = gpu.merge(&gpu.upload(&a).unwrap(), &gpu.upload(&b).unwrap()).unwrap().read().unwrap();
        assert!(got.iter().all(|x| all.binary_search(x).is_ok()), "{}", device.label);
    }
}

#[test]
fn merge_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Merge::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &Merge::new(usize::MAX, 1)), ErrorKind::TooLarge);
    let (x, y) = (gpu.upload(&[1u32; 4]).unwrap(), gpu.upload(&[1u32; 2]).unwrap());
    let short = gpu.alloc::<u32>(5).unwrap();
    let plan = Merge::new(4, 2).plan::<u32>(gpu).unwrap();
    let kind = plan.record(&mut gpu.recorder(), &x, &y, &short).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::Shape);
}

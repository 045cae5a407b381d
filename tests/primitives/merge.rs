//! `Merge` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{merge_positions, sort_positions};

/// Elements in the order of the sort.
pub(super) fn sorted<T: Sample>(mut x: Vec<T>, descending: bool) -> Vec<T> {
    let places = sort_positions(&x, descending, 0..32);
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
    let bits = bytemuck::cast_slice::<T, u32>;
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
        of::<f32>(device, true);
        of::<i32>(device, true);
        of::<u32>(device, false);
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

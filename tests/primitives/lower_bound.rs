//! `LowerBound` and `UpperBound` against the references.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{lower_bound, upper_bound};

/// Searches with both ops and every variant.
pub(super) fn check<T: Sample>(device: &Device, sorted: &[T], needles: &[T])
where
    LowerBound: Op<T>,
    UpperBound: Op<T>,
{
    for variant in LowerBound::variants() {
        check_variant(device, variant.name, sorted, needles);
    }
}

/// Searches with both ops, with elements behind the output.
fn check_variant<T: Sample>(device: &Device, variant: &str, sorted: &[T], needles: &[T])
where
    LowerBound: Op<T>,
    UpperBound: Op<T>,
{
    let gpu = &device.gpu;
    let (x, y) = (gpu.upload(sorted).unwrap(), gpu.upload(needles).unwrap());
    let m = needles.len();
    let places = [(); 2].map(|()| gpu.upload(&vec![77u32; m + 2]).unwrap());
    let lower = LowerBound::new(sorted.len(), m).variant(variant).plan::<T>(gpu).unwrap();
    let upper = UpperBound::new(sorted.len(), m).variant(variant).plan::<T>(gpu).unwrap();
    let mut rec = gpu.recorder();
    lower.record(&mut rec, &x, &y, places[0].slice(..m).unwrap()).unwrap();
    upper.record(&mut rec, &x, &y, places[1].slice(..m).unwrap()).unwrap();
    rec.submit().unwrap();
    for (places, want) in places.iter().zip([lower_bound(sorted, needles), upper_bound(sorted, needles)]) {
        let what = format!("{}, {variant}: {m} {} in {}", device.label, T::DTYPE, sorted.len());
        assert_eq!(places.read().unwrap(), [want, vec![77; 2]].concat(), "{what}");
    }
}

#[test]
fn bounds_match_the_reference_in_every_type() {
    fn of<T: Sample>(device: &Device)
    where
        LowerBound: Op<T>,
        UpperBound: Op<T>,
    {
        let mut random = Random::new(9);
        for (n, m) in [(0, 3), (1, 5), (2, 1), (1000, 300), (1023, 0)] {
            let mut sorted: Vec<T> = random.elements(n);
            sorted.sort_by(|a, b| a.to_f64().total_cmp(&b.to_f64()));
            // Every element, and others.
            let needles: Vec<T> = sorted.iter().copied().chain(random.any(m)).take(m).collect();
            check(device, &sorted, &needles);
            check(device, &sorted, &random.any::<T>(m));
        }
    }
    for device in devices() {
        of::<f32>(device);
        of::<f16>(device);
        of::<i32>(device);
        of::<u32>(device);
    }
}

#[test]
fn bounds_of_nan_zeros_and_unsorted_elements_are_as_documented() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let sorted = [-inf, -1.0, -0.0, 0.0, 0.0, 3.0, 3.0, inf, nan, -nan, nan];
    let needles = [nan, -nan, -0.0, 0.0, -inf, inf, 3.0, 2.0, -5.0, f32::MAX];
    let mixed = Random::new(4).any::<f32>(500);
    for device in devices() {
        check(device, &sorted, &needles);
        check(device, &sorted[..8], &needles);
        check(device, &sorted.map(f16::from_f32), &needles.map(f16::from_f32));
        check_variant(device, "bisection", &mixed, &needles);
        let (x, y) = (device.gpu.upload(&mixed).unwrap(), device.gpu.upload(&needles).unwrap());
        let places = device.gpu.alloc::<u32>(needles.len()).unwrap();
        let plan = LowerBound::new(500, needles.len()).variant("tree").plan::<f32>(&device.gpu).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &x, &y, &places).unwrap();
        rec.submit().unwrap();
        assert!(places.read().unwrap().iter().all(|&place| place <= 500), "{}", device.label);
    }
}

/// The highest level of a tree has at most 2,048 keys: one level up to 16,384 elements, three from 131,073 on.
#[test]
fn trees_of_several_levels_find_every_place() {
    for device in devices().iter().filter(|device| device.main) {
        for n in [16_384, 16_385, 131_073, 140_007] {
            let sorted: Vec<u32> = (0..n).map(|i| i / 3 * 2).collect();
            let needles: Vec<u32> = (0..3000).map(|i| i * 97 % n).chain([0, n, u32::MAX]).collect();
            check(device, &sorted, &needles);
        }
    }
}

/// Both lengths, with both variants: elements behind them are not sorted.
#[test]
fn bounds_of_as_many_elements_as_the_device_counts_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        for (variant, n) in [("bisection", 1000), ("tree", 1000), ("tree", 20_000)] {
            for (there, of_needles) in [(0, 50), (1, 0), (n / 2 + 3, 200), (n + 1, 301)] {
                let kept = there.min(n);
                let sorted: Vec<u32> = (0..n as u32).map(|i| if (i as usize) < kept { i / 3 * 2 } else { 5 }).collect();
                let needles: Vec<u32> = (0..300).map(|i| i * 97 % (n as u32)).collect();
                let (x, y) = (gpu.upload(&sorted).unwrap(), gpu.upload(&needles).unwrap());
                let [of_x, of_y] = [there, of_needles].map(|len| gpu.upload(&[len as u32]).unwrap());
                let places = [(); 2].map(|()| gpu.alloc::<u32>(300).unwrap());
                let mut rec = gpu.recorder();
                let lower = LowerBound::new(n, 300).counted().sorted_counted().variant(variant);
                let lower = lower.plan::<u32>(gpu).unwrap();
                let call = lower.with_length(&of_y).with_sorted_length(&of_x);
                call.record(&mut rec, &x, &y, &places[0]).unwrap();
                let upper = UpperBound::new(n, 300).sorted_counted().variant(variant).plan::<u32>(gpu).unwrap();
                upper.with_sorted_length(&of_x).record(&mut rec, &x, &y, &places[1]).unwrap();
                rec.submit().unwrap();
                let what = format!("{}, {variant}: {of_needles} in {there} of {n}", device.label);
                let counted = of_needles.min(300);
                let want = lower_bound(&sorted[..kept], &needles[..counted]);
                assert_eq!(places[0].slice(..counted).unwrap().read().unwrap(), want, "{what}");
                assert_eq!(places[1].read().unwrap(), upper_bound(&sorted[..kept], &needles), "{what}");
            }
        }
    }
}

#[test]
fn bounds_reject_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &LowerBound::new(4, 4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &UpperBound::new(usize::MAX, 1)), ErrorKind::TooLarge);
    assert_eq!(refusal::<f32>(gpu, &UpperBound::new(1, usize::MAX)), ErrorKind::TooLarge);
}

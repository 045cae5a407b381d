//! `Argsort` against the reference of the sort.

use crate::nn::training::refusal;
use crate::support::coverage::{all, sample};
use crate::support::{Device, Random, devices, gpu};
use tilework::prelude::*;
use tilework::program::{Op, Program};
use tilework::reference::sort_positions;
use tilework::{Element, ErrorKind};

/// Compares the indices, with elements behind them.
#[track_caller]
fn run<T: Element>(device: &Device, program: Program, keys: &[T], descending: bool) {
    let (gpu, n) = (&device.gpu, keys.len());
    let what = format!("{}: {} {n} {}", device.label, program.variant(), T::DTYPE);
    let (input, indices) = (gpu.upload(keys).unwrap(), gpu.upload(&vec![77u32; n + 1]).unwrap());
    let raw = [Slice::from(&input).untyped(), indices.slice(..n).unwrap().untyped()];
    let mut rec = gpu.recorder();
    gpu.prepare(program).unwrap().record(&mut rec, &raw).unwrap();
    rec.submit().unwrap();
    let places = sort_positions(keys, descending, 0..8 * size_of::<T>() as u32);
    let want: Vec<u32> = places.into_iter().map(|i| i as u32).chain([77]).collect();
    assert_eq!(indices.read().unwrap(), want, "{what}");
}

fn check<T: Element>(device: &Device, keys: &[T], descending: bool)
where
    Argsort: Op<T>,
{
    // A device may have no integers of 64 bits.
    if device.gpu.upload(keys).is_err_and(|e| e.kind() == ErrorKind::Unsupported) {
        return;
    }
    for variant in Argsort::variants() {
        let op = Argsort::new(keys.len()).variant(variant.name).when(descending, Argsort::descending);
        match Op::<T>::lower(&op, device.gpu.profile()) {
            Ok(program) => run(device, program, keys, descending),
            Err(e) => assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}"),
        }
    }
}

#[test]
fn orders_match_the_reference_in_every_type() {
    for device in devices() {
        let mut random = Random::new(5);
        for n in sample(&[3001, 0, 1, 257], 1) {
            check(device, &random.any::<f32>(*n), n % 2 == 1);
        }
        let few: Vec<u32> = random.elements::<u32>(2500).iter().map(|x| x % 5).collect();
        if all() {
            check(device, &few, true);
        }
        if device.main {
            if all() {
                check(device, &random.elements::<i32>(1000), false);
            }
            let wide: Vec<u64> = random.elements::<u32>(1000).iter().map(|&x| u64::from(x % 9) << 33 | 5).collect();
            check(device, &wide, true);
        }
    }
}

/// Positions count from the start of the keys, not of the binding that holds them.
#[test]
fn keys_larger_than_one_binding_are_split() {
    let keys = Random::new(8).any::<f32>(40_001);
    for device in devices().iter().filter(|d| d.main) {
        let mut profile = device.gpu.profile().clone();
        profile.limits.max_storage_binding = 64 << 10;
        let program = Op::<f32>::lower(&Argsort::new(keys.len()).variant("counting"), &profile).unwrap();
        assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= 64 << 10));
        run(device, program, &keys, false);
    }
}

#[test]
fn one_pass_of_some_bits_matches_the_reference() {
    let keys = [0x31u32, 0x12, 0x21, 0x10, 0x2f];
    for device in devices() {
        let indices = device.gpu.alloc::<u32>(5).unwrap();
        let plan = Argsort::new(5).bits(4..8).plan::<u32>(&device.gpu).unwrap();
        let mut rec = device.gpu.recorder();
        plan.record(&mut rec, &device.gpu.upload(&keys).unwrap(), &indices).unwrap();
        rec.submit().unwrap();
        assert_eq!(indices.read().unwrap(), [1, 3, 2, 4, 0], "{}", device.label);
    }
}

/// Every variant, with passes that make the positions and passes that move them; a count above n counts as n.
#[test]
fn orders_of_as_many_keys_as_the_device_counts_match_the_reference() {
    fn of<T: Element>(device: &Device, keys: &[T], there: u32)
    where
        Argsort: Op<T>,
    {
        let gpu = &device.gpu;
        for variant in Argsort::variants() {
            let op = Argsort::new(keys.len()).counted().variant(variant.name);
            let plan = match op.plan::<T>(gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                plan => plan.unwrap(),
            };
            let indices = gpu.alloc::<u32>(keys.len()).unwrap();
            let mut rec = gpu.recorder();
            let length = gpu.upload(&[there]).unwrap();
            plan.with_length(&length).record(&mut rec, &gpu.upload(keys).unwrap(), &indices).unwrap();
            rec.submit().unwrap();
            let there = keys.len().min(there as usize);
            let places = sort_positions(&keys[..there], false, 0..8 * size_of::<T>() as u32);
            let want: Vec<u32> = places.into_iter().map(|i| i as u32).collect();
            let what = format!("{}: {} {there} {}", device.label, variant.name, T::DTYPE);
            assert!(indices.slice(..there).unwrap().read().unwrap() == want, "{what}");
        }
    }
    for device in devices() {
        let mut random = Random::new(11);
        let keys = random.any::<f32>(2001);
        for there in [0, 1, 1500, 2002] {
            of(device, &keys, there);
        }
        of(device, &random.any::<half::f16>(700), 333);
    }
}

#[test]
fn argsort_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    assert_eq!(refusal::<f32>(gpu, &Argsort::new(4).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Argsort::new(4).bits(3..33)), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &Argsort::new(usize::MAX)), ErrorKind::TooLarge);
}

//! `NthElement` against the reference.

use crate::nn::training::refusal;
use crate::support::{Device, Random, Sample, devices, gpu};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{Number, nth_element};

#[track_caller]
fn check<T: Sample + Number>(device: &Device, x: &[T], ranks: &[usize])
where
    NthElement: Op<T>,
{
    let gpu = &device.gpu;
    let input = gpu.upload(x).unwrap();
    for &rank in ranks {
        for largest in [false, true] {
            let op = NthElement::new(x.len(), rank).when(largest, NthElement::largest);
            let output = gpu.alloc::<T>(1).unwrap();
            let mut rec = gpu.recorder();
            op.plan::<T>(gpu).unwrap().record(&mut rec, &input, &output).unwrap();
            rec.submit().unwrap();
            let (got, want) = (output.read().unwrap()[0], nth_element(x, rank, largest).unwrap());
            let bits = |x: T| bytemuck::bytes_of(&x).to_vec();
            assert_eq!(bits(got), bits(want), "{}: {rank} of {} {}", device.label, x.len(), T::DTYPE);
        }
    }
}

#[test]
fn elements_at_ranks_match_the_reference() {
    for device in devices() {
        let mut random = Random::new(7);
        check(device, &random.any::<f32>(5001), &[0, 2500, 5000]);
        check(device, &random.elements::<i32>(777), &[0, 300]);
        check(device, &[9u32; 300], &[0, 299]);
        check(device, &[f32::NAN, -0.0, 0.0, f32::INFINITY, -f32::NAN], &[0, 1, 2, 3, 4]);
    }
}

#[test]
fn inputs_larger_than_one_binding_are_split() {
    let x = Random::new(8).any::<f32>(40_001);
    for device in devices().iter().filter(|d| d.main) {
        let mut profile = device.gpu.profile().clone();
        profile.limits.max_storage_binding = 64 << 10;
        let program = Op::<f32>::lower(&NthElement::new(x.len(), 30_000), &profile).unwrap();
        assert!(program.dispatches.iter().flat_map(|d| &d.bindings).all(|b| b.size <= 64 << 10));
        let (input, output) = (device.gpu.upload(&x).unwrap(), device.gpu.alloc::<f32>(1).unwrap());
        let raw = [Slice::from(&input).untyped(), Slice::from(&output).untyped()];
        let mut rec = device.gpu.recorder();
        device.gpu.prepare(program).unwrap().record(&mut rec, &raw).unwrap();
        rec.submit().unwrap();
        let want = nth_element(&x, 30_000, false).unwrap();
        assert_eq!(output.read().unwrap()[0].to_bits(), want.to_bits(), "{}", device.label);
    }
}

#[test]
fn nth_element_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    for (n, rank) in [(0, 0), (5, 5)] {
        assert_eq!(refusal::<f32>(gpu, &NthElement::new(n, rank)), ErrorKind::InvalidArgument);
    }
    assert_eq!(refusal::<f32>(gpu, &NthElement::new(5, 1).variant("heap")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<f32>(gpu, &NthElement::new(usize::MAX, 1)), ErrorKind::TooLarge);
}

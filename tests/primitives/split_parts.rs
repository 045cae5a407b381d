//! `SplitParts` against the reference.

use crate::nn::training::{names, refusal};
use crate::support::{Random, devices, gpu, supported};
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::split_parts;

#[test]
fn parts_by_number_match_the_reference() {
    for device in devices() {
        let gpu = &device.gpu;
        for (n, count) in [(0, 3), (1, 1), (5000, 3), (4097, 2), (3001, 256), (700, 5)] {
            let x: Vec<i32> = Random::new(n as u64).elements(n);
            // One in eight numbers is beyond the last part.
            let parts: Vec<u32> =
                Random::new(1).elements::<u32>(n).iter().map(|p| p % (count + count / 8 + 1)).collect();
            for variant in names(SplitParts::variants()) {
                for length in [None, Some(n as u32 / 2), Some(u32::MAX)] {
                    let there = length.map_or(n, |length| n.min(length as usize));
                    let op = SplitParts::new(n, count as usize).variant(variant);
                    let op = op.when(length.is_some(), SplitParts::counted);
                    let (a, b) = (gpu.upload(&x).unwrap(), gpu.upload(&parts).unwrap());
                    let (output, counts) = (gpu.alloc::<i32>(n).unwrap(), gpu.alloc::<u32>(count as usize).unwrap());
                    let held = gpu.upload(&[length.unwrap_or(0)]).unwrap();
                    let mut rec = gpu.recorder();
                    let Some(plan) = supported(op.plan::<i32>(gpu)) else { continue };
                    let call = if length.is_some() { plan.with_length(&held) } else { plan.with() };
                    call.record(&mut rec, &a, &b, &output, &counts).unwrap();
                    rec.submit().unwrap();
                    let (moved, of_each) = split_parts(&x[..there], &parts[..there], count as usize);
                    let what = format!("{}: {variant} {n} into {count} {length:?}", device.label);
                    assert_eq!(counts.read().unwrap(), of_each, "{what}");
                    assert_eq!(output.slice(..there).unwrap().read().unwrap(), moved, "{what}");
                }
            }
        }
    }
}

/// The caller's function, on floats; the input is read twice and not written.
#[test]
fn parts_by_function_match_the_reference() {
    let text = "fn part(x: T) -> u32 { return select(select(2u, 1u, x < 0.5), 0u, x < -0.5); }";
    let x: Vec<f32> = Random::new(3).elements(3001);
    let parts: Vec<u32> = x.iter().map(|x| if *x < -0.5 { 0 } else { 2 - u32::from(*x < 0.5) }).collect();
    for device in devices() {
        let gpu = &device.gpu;
        for variant in names(SplitParts::variants()) {
            let plan = SplitParts::by(3001, 3, text).variant(variant).plan::<f32>(gpu);
            let Some(plan) = supported(plan) else { continue };
            let (a, output, counts) =
                (gpu.upload(&x).unwrap(), gpu.alloc::<f32>(3001).unwrap(), gpu.alloc::<u32>(3).unwrap());
            let mut rec = gpu.recorder();
            plan.record_by(&mut rec, &a, &output, &counts).unwrap();
            rec.submit().unwrap();
            assert_eq!(
                (output.read().unwrap(), counts.read().unwrap()),
                split_parts(&x, &parts, 3),
                "{}",
                device.label
            );
            assert_eq!(a.read().unwrap(), x);
        }
    }
}

#[test]
fn split_parts_rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    for parts in [0, 257] {
        assert_eq!(refusal::<u32>(gpu, &SplitParts::new(9, parts)), ErrorKind::InvalidArgument);
    }
    assert_eq!(refusal::<u32>(gpu, &SplitParts::new(9, 3).variant("fast")), ErrorKind::InvalidArgument);
    assert_eq!(refusal::<u32>(gpu, &SplitParts::by(9, 3, "fn part(x: T) -> u32 { return y; }")), ErrorKind::Shader);
    assert_eq!(refusal::<u32>(gpu, &SplitParts::new(usize::MAX, 3)), ErrorKind::TooLarge);
}

//! Every variant of `UniqueByKey` against the reference.

use super::select::{cases, read_counted};
use crate::nn::training::refusal;
use crate::support::coverage::sample;
use crate::support::{Random, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::reference::unique_by_key;

#[test]
fn heads_and_their_values_match_the_reference() {
    for (device, variant) in cases().filter(|(_, variant)| *variant != "auto") {
        let gpu = &device.gpu;
        for &(n, every) in sample(&[(20_001, 3), (0, 1), (1, 1), (4097, 900), (70_001, 2)], 2) {
            let mut random = Random::new(n as u64);
            let keys: Vec<u32> = (0..n as u64).map(|_| (random.next().is_multiple_of(every)).into()).collect();
            let values: Vec<f32> = random.elements(n);
            let (x, v) = (gpu.upload(&keys).unwrap(), gpu.upload(&values).unwrap());
            let halves: Vec<f16> = keys.iter().map(|key| f16::from_f32([0.0, -1.5][*key as usize])).collect();
            let h = gpu.upload(&halves).unwrap();
            let op = UniqueByKey::new(n).variant(variant).with_values::<f32>();
            let plan = match op.plan::<u32>(gpu) {
                Err(e) if e.kind() == ErrorKind::Unsupported => continue,
                other => other.unwrap(),
            };
            let (keys_out, halves_out) = (gpu.upload(&vec![9u32; n]).unwrap(), gpu.upload(&vec![f16::MAX; n]).unwrap());
            let values_out = [(); 2].map(|()| gpu.upload(&vec![9.0f32; n]).unwrap());
            let counts = [(); 2].map(|()| gpu.upload(&[99u32]).unwrap());
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &x, &v, &keys_out, &values_out[0], &counts[0]).unwrap();
            let plan = op.plan::<f16>(gpu).unwrap();
            plan.record(&mut rec, &h, &v, &halves_out, &values_out[1], &counts[1]).unwrap();
            rec.submit().unwrap();
            let what = format!("{}: {n}, {variant}", device.label);
            let (want, of_heads) = unique_by_key(&keys, &values);
            assert!(read_counted(&keys_out, &counts[0], 9).unwrap() == want, "{what}");
            assert!(read_counted(&values_out[0], &counts[0], 9.0).unwrap() == of_heads, "{what}");
            assert!(read_counted(&values_out[1], &counts[1], 9.0).unwrap() == of_heads, "{what}, f16");
            let want = unique_by_key(&halves, &values).0;
            assert!(read_counted(&halves_out, &counts[1], f16::MAX).unwrap() == want, "{what}, f16");
        }
    }
}

#[test]
fn unique_by_key_rejects_other_values() {
    let Some(gpu) = gpu() else { return };
    let op = UniqueByKey::new(4);
    assert_eq!(refusal::<u32>(gpu, &op.clone().with_values::<f16>()), ErrorKind::Unsupported);
    assert_eq!(refusal::<u32>(gpu, &op.variant("fast")), ErrorKind::InvalidArgument);
    let (keys, values) = (gpu.upload(&[1i32, 1, 2]).unwrap(), gpu.upload(&[5u32, 6, 7]).unwrap());
    let (_, values_out, count) = gpu.unique_by_key(&keys, &values).unwrap();
    assert_eq!(count.read().unwrap(), [2]);
    assert_eq!(values_out.slice(..2).unwrap().read().unwrap(), [5, 7]);
    assert_eq!(gpu.unique_by_key(&keys, &gpu.upload(&[5u32]).unwrap()).unwrap_err().kind(), ErrorKind::Shape);
}

//! Data-parallel training against one device with the whole batch.

use super::{LIMIT, group};
use crate::support::{Random, gpu};
use tilework::nn::{Adam, Optimizer, PoolKind, Sequential, Sgd};
use tilework::prelude::*;
use tilework::{ErrorKind, shard};

fn network() -> Sequential {
    Sequential::new([1, 6, 6])
        .conv(4, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .flatten()
        .linear(3)
}

/// Ten samples, which ranks share unevenly.
const SAMPLES: usize = 10;

#[test]
fn losses_are_those_of_one_device() {
    let Some(gpu) = gpu() else { return };
    let net = network();
    let x: Vec<f32> = Random::new(4).elements(SAMPLES * 36);
    let labels: Vec<u32> = (0..SAMPLES as u32).map(|i| i % 3).collect();
    let optimizers: [Optimizer; 3] =
        [Adam::for_network(0.01).into(), Sgd::for_network(0.1).into(), Sgd::for_network(0.1).with_momentum(0.9).into()];
    for optimizer in optimizers {
        let step = net.train(SAMPLES, optimizer.clone()).plan::<f32>(gpu).unwrap();
        let (images, target) = (gpu.upload(&x).unwrap(), gpu.upload(&labels).unwrap());
        let parameters = gpu.upload(&net.initial(7).unwrap()).unwrap();
        let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer).unwrap()).unwrap();
        let loss = gpu.alloc::<f32>(1).unwrap();
        let mut want = Vec::new();
        for _ in 0..12 {
            let mut rec = gpu.recorder();
            step.record(&mut rec, &images, &target, &parameters, &state, &loss).unwrap();
            rec.submit().unwrap();
            want.push(loss.read().unwrap()[0]);
        }
        let parameters = parameters.read().unwrap();
        for p in 1..=4 {
            let ends: Vec<usize> = (0..=p).map(|i| SAMPLES * i * i / (p * p)).collect();
            let ends: Vec<usize> = ends.iter().enumerate().map(|(i, e)| (*e).max(i)).collect();
            let results = shard::run(&group(p).unwrap(), LIMIT, |rank| {
                let (begin, end) = (ends[rank.index()], ends[rank.index() + 1]);
                let images = rank.gpu().upload(&x[36 * begin..36 * end])?;
                let target = rank.gpu().upload(&labels[begin..end])?;
                let mut trainer = rank.trainer(&net, end - begin, optimizer.clone(), 7)?;
                let losses = (0..12).map(|_| trainer.step(&images, &target)).collect::<tilework::Result<Vec<_>>>()?;
                Ok((losses, trainer.parameters().read()?))
            });
            for (losses, trained) in results.unwrap() {
                let apart = losses.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(apart < 1e-3, "{optimizer:?} on {p}: {losses:?}, wanted {want:?}");
                assert!(losses[11] < losses[0], "{losses:?}");
                let apart = trained.iter().zip(&parameters).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(apart < 5e-3, "{optimizer:?} on {p}: parameters differ by {apart}");
            }
        }
    }
}

#[test]
fn all_ranks_have_the_same_parameters() {
    let Some(gpus) = group(3) else { return };
    let results = shard::run(&gpus, LIMIT, |rank| {
        let x: Vec<f32> = Random::new(rank.index() as u64).elements(2 * 36);
        let (x, labels) = (rank.gpu().upload(&x)?, rank.gpu().upload(&[0u32, 2])?);
        let mut trainer = rank.trainer(&network(), 2, Adam::for_network(0.01), 1)?;
        for _ in 0..5 {
            trainer.step(&x, &labels)?;
        }
        trainer.parameters().read()
    });
    let all = results.unwrap();
    assert!(all.iter().all(|p| bytemuck::cast_slice::<f32, u32>(p) == bytemuck::cast_slice::<f32, u32>(&all[0])));
}

#[test]
fn rejects_what_ranks_cannot_share() {
    let Some(gpus) = group(2) else { return };
    let kinds = |net: &(dyn Fn(usize) -> Sequential + Sync), batch: [usize; 2], seed: u64, optimizer: Optimizer| {
        let results = shard::run_each(&gpus, LIMIT, |rank| {
            let r = rank.index();
            rank.trainer(&net(r), batch[r], optimizer.clone(), 1 + seed * r as u64).map(|_| ())
        });
        results.unwrap().into_iter().map(|r| r.unwrap_err().kind()).collect::<Vec<_>>()
    };
    let adam: Optimizer = Adam::for_network(0.01).into();
    assert_eq!(kinds(&|_| network(), [1, 0], 0, adam.clone()), [ErrorKind::InvalidArgument; 2]);
    assert_eq!(kinds(&|_| network(), [1, 1], 1, adam.clone()), [ErrorKind::InvalidArgument; 2]);
    let other = |r| if r == 0 { network() } else { network().linear(2) };
    assert_eq!(kinds(&other, [1, 1], 0, adam.clone()), [ErrorKind::InvalidArgument; 2]);
    assert_eq!(kinds(&|_| network().batch_norm(), [1, 1], 0, adam), [ErrorKind::Unsupported; 2]);
    let rated = Sgd::for_network(0.1).with_rate().into();
    assert_eq!(kinds(&|_| network(), [1, 1], 0, rated), [ErrorKind::Unsupported; 2]);
}

/// Two layers of over 4 MiB each: their gradients travel in two buckets, with the results of one device.
#[test]
fn gradients_of_large_layers_travel_in_buckets() {
    let Some(gpu) = gpu() else { return };
    let net = || Sequential::new([1, 1, 1030]).flatten().linear(1024).activation(Activation::Relu).linear(1028);
    let parameters = net().parameter_len().unwrap();
    let (x, label): (Vec<f32>, _) = (Random::new(3).elements(2 * 1030), [5u32, 900]);
    let adam = || Adam::for_network(0.001);
    let step = net().train(2, adam()).plan::<f32>(gpu).unwrap();
    let (images, target) = (gpu.upload(&x).unwrap(), gpu.upload(&label).unwrap());
    let there = gpu.upload(&net().initial(7).unwrap()).unwrap();
    let state = gpu.alloc_zeroed::<f32>(net().state_len(&adam().into()).unwrap()).unwrap();
    let loss = gpu.alloc::<f32>(1).unwrap();
    let mut want = Vec::new();
    for _ in 0..3 {
        let mut rec = gpu.recorder();
        step.record(&mut rec, &images, &target, &there, &state, &loss).unwrap();
        rec.submit().unwrap();
        want.push(loss.read().unwrap()[0]);
    }
    let results = shard::run(&group(2).unwrap(), LIMIT, |rank| {
        let i = rank.index();
        let (images, target) = (rank.gpu().upload(&x[1030 * i..1030 * (i + 1)])?, rank.gpu().upload(&label[i..=i])?);
        let mut trainer = rank.trainer(&net(), 1, adam(), 7)?;
        let before = rank.traffic();
        let losses = (0..3).map(|_| trainer.step(&images, &target)).collect::<tilework::Result<Vec<_>>>()?;
        let after = rank.traffic();
        Ok((losses, after.messages - before.messages, after.bytes - before.bytes))
    });
    let results = results.unwrap();
    for (losses, ..) in &results {
        let apart = losses.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-3, "{losses:?}, wanted {want:?}");
    }
    // Along a ring of two each rank sends half of a bucket twice; devices that reach memory of the host agree on a
    // bucket once. The loss goes along a tree: a message of each.
    let messages: Vec<u64> = results.iter().map(|(_, messages, _)| *messages).collect();
    assert!([2, 1].iter().any(|of_bucket| messages == [3 * (2 * of_bucket + 1); 2]), "{messages:?}");
    let bytes: u64 = results.iter().map(|(.., bytes)| *bytes).sum();
    let sent = 3 * (2 * 4 * parameters as u64 + 2 * 4);
    assert!(bytes.abs_diff(sent) <= 3 * 4 * 64 * 8, "{bytes} bytes, {sent} by count");
}

//! Networks: against their layers one by one, gradients against finite differences, and training.

use super::training::{Given, random, run};
use crate::support::{devices, gpu};
use tilework::nn::{Adam, Optimizer, Sequential, Sgd};
use tilework::prelude::*;
use tilework::{ErrorKind, Result, reference};

/// Every kind of layer, with fused and separate activations.
fn networks() -> Vec<Sequential> {
    vec![
        Sequential::new([1, 4, 4]).linear(3),
        Sequential::new([1, 6, 6])
            .pool(PoolKind::Max, [2, 2], [2, 2])
            .linear(8)
            .activation(Activation::Tanh)
            .linear(4)
            .activation(Activation::Gelu)
            .linear(3)
            .softmax(),
        Sequential::new([1, 8, 8])
            .conv(3, [3, 3], [1, 1], [1, 1])
            .activation(Activation::Relu)
            .pool(PoolKind::Max, [2, 2], [2, 2])
            .conv(4, [2, 2], [2, 2], [0, 0])
            .activation(Activation::Gelu)
            .pool(PoolKind::L2, [2, 2], [1, 1])
            .linear(3),
        Sequential::new([2, 4, 4])
            .linear(18)
            .activation(Activation::Sigmoid)
            .activation(Activation::Relu)
            .pool(PoolKind::Average, [1, 1], [1, 1])
            .activation(Activation::Relu)
            .flatten()
            .linear(3),
    ]
}

fn labels(n: usize, classes: u32) -> Vec<u32> {
    (0..n as u32).map(|i| i * 7 % classes).collect()
}

#[test]
fn forward_equals_the_layers_one_by_one() {
    let net = Sequential::new([1, 4, 4])
        .pool(PoolKind::Average, [2, 2], [2, 2])
        .linear(5)
        .activation(Activation::Relu)
        .linear(3)
        .softmax();
    let parameters = net.initial(7).unwrap();
    let x = random::<f32>(1, 2 * 16);
    let pooled = reference::pool(&Pool2d::new(PoolKind::Average, [2, 1, 4, 4], [2, 2]), &x, None).unwrap();
    let all = net.parameters().unwrap();
    let tensor = |i: usize| &parameters[all[i].offset..all[i].offset + all[i].len()];
    let linear = |x: &[f32], weights: &[f32], bias: &[f32], activation| -> Vec<f32> {
        let n = weights.len() / bias.len();
        let of = |row: &[f32]| -> Vec<f32> {
            let sums = weights.chunks(n).zip(bias).map(|(w, b)| {
                let sum: f64 = w.iter().zip(row).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
                reference::activate(activation, sum + f64::from(*b)) as f32
            });
            sums.collect()
        };
        x.chunks(n).flat_map(of).collect()
    };
    let hidden = linear(&pooled, tensor(0), tensor(1), Activation::Relu);
    let want = reference::softmax(3, &linear(&hidden, tensor(2), tensor(3), Activation::None));
    for device in devices() {
        let got = run(&device.gpu, &net.forward(2), &[Given::Floats(&x), Given::Floats(&parameters)]);
        let near = got[0].iter().zip(&want).all(|(g, w)| (g - w).abs() < 1e-5);
        assert!(near, "{}: {:?} for {want:?}", device.label, got[0]);
    }
}

#[test]
fn gradients_match_finite_differences() {
    let batch = 4;
    for device in devices() {
        for net in networks() {
            let x = random::<f32>(3, batch * net.input_len());
            let labels = labels(batch, 3);
            let parameters = net.initial(5).unwrap();
            let op = net.gradient(batch);
            let of = |parameters: &[f32]| {
                run(&device.gpu, &op, &[Given::Floats(&x), Given::Labels(&labels), Given::Floats(parameters)])
            };
            let gradients = of(&parameters)[1].clone();
            // Along the gradient, and along other directions: a few parameters of each tensor.
            let slope = |direction: &[f32]| {
                let h = 2e-2 / direction.iter().map(|d| d * d).sum::<f32>().sqrt();
                let moved = |h: f32| -> Vec<f32> {
                    parameters.iter().zip(direction).map(|(p, d)| p + h * d).collect()
                };
                f64::from(of(&moved(h))[0][0] - of(&moved(-h))[0][0]) / (2.0 * f64::from(h))
            };
            let mut directions = vec![gradients.clone()];
            for (i, parameter) in net.parameters().unwrap().iter().enumerate() {
                let mut one = vec![0.0; parameters.len()];
                let part = &mut one[parameter.offset..parameter.offset + parameter.len()];
                part.copy_from_slice(&random::<f32>(i as u64, parameter.len()));
                directions.push(one);
            }
            for (i, direction) in directions.iter().enumerate() {
                let want: f64 =
                    direction.iter().zip(&gradients).map(|(d, g)| f64::from(*d) * f64::from(*g)).sum();
                let size = direction.iter().map(|d| f64::from(*d).powi(2)).sum::<f64>().sqrt();
                let got = slope(direction);
                assert!((got - want).abs() < 4e-3 * size, "{}: {i}: {got} {want} of {net:?}", device.label);
            }
        }
    }
}

/// Rings around the origin: classes that no straight line separates.
fn rings(n: usize) -> (Vec<f32>, Vec<u32>) {
    let numbers = random::<f32>(11, 2 * n);
    let of = |i: usize| {
        let (angle, class) = (numbers[2 * i] * 3.2, i % 3);
        let radius = 0.3 + 0.6 * class as f32 + 0.1 * numbers[2 * i + 1];
        ([radius * angle.cos(), radius * angle.sin()], class as u32)
    };
    let all: Vec<_> = (0..n).map(of).collect();
    (all.iter().flat_map(|(x, _)| *x).collect(), all.iter().map(|(_, class)| *class).collect())
}

/// Losses of one training run from fixed initial parameters, and the final parameters.
fn train(gpu: &Gpu, net: &Sequential, optimizer: Optimizer, steps: usize) -> Result<(Vec<f32>, Vec<f32>)> {
    let (x, labels) = rings(128);
    let (x, labels) = (gpu.upload(&x)?, gpu.upload(&labels)?);
    let parameters = gpu.upload(&net.initial(1)?)?;
    let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer)?)?;
    let losses = gpu.alloc_zeroed::<f32>(64 * steps)?;
    let plan = net.train(128, optimizer).plan::<f32>(gpu)?;
    let mut rec = gpu.recorder();
    for i in 0..steps {
        plan.record(&mut rec, &x, &labels, &parameters, &state, losses.slice(64 * i..64 * i + 1)?)?;
    }
    rec.submit()?;
    Ok((losses.read()?.into_iter().step_by(64).collect(), parameters.read()?))
}

#[test]
fn training_reaches_its_loss_and_is_reproducible() {
    let net = Sequential::new([2, 1, 1]).linear(32).activation(Activation::Tanh).linear(3);
    for device in devices() {
        let ways: [(&str, Optimizer); 3] = [
            ("adam", Adam::new(0, 0.05).into()),
            ("sgd", Sgd::new(0, 0.5).into()),
            ("momentum", Sgd::new(0, 0.1).nesterov().with_momentum(0.9).into()),
        ];
        for (name, optimizer) in ways {
            let (losses, after) = train(&device.gpu, &net, optimizer.clone(), 150).unwrap();
            let what = format!("{}: {name}", device.label);
            assert!((losses[0] - 3f32.ln()).abs() < 0.3, "{what}: begins at {}", losses[0]);
            let last = losses[losses.len() - 1];
            assert!(last < if name == "adam" { 0.1 } else { 0.5 }, "{what}: ends at {last}");
            let again = train(&device.gpu, &net, optimizer, 150).unwrap();
            assert!(again == (losses, after), "{what}: another run gives different bits");
        }
    }
}

#[test]
fn rejects_invalid_networks() {
    let Some(gpu) = gpu() else { return };
    let kind = |net: &Sequential| net.forward(2).plan::<f32>(gpu).unwrap_err();
    assert_eq!(kind(&Sequential::new([1, 4, 4])).kind(), ErrorKind::Shape);
    assert_eq!(kind(&Sequential::new([1, 4, 4]).softmax().linear(3)).kind(), ErrorKind::Shape);
    let wide = Sequential::new([1, 4, 4]).linear(3).pool(PoolKind::Max, [2, 2], [2, 2]);
    let e = kind(&wide);
    assert!(
        e.kind() == ErrorKind::Shape && e.to_string().starts_with("sequential: layer 1 (pool): pool:"),
        "{e}"
    );
    let still = Sequential::new([1, 4, 4]).pool(PoolKind::Max, [2, 2], [2, 2]);
    let e = still.train(2, Adam::new(0, 0.1)).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("nothing to train"), "{e}");
    let e = Sequential::new([1, 4, 4]).linear(3).train(0, Adam::new(0, 0.1)).plan::<f32>(gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert_eq!(kind(&Sequential::new([usize::MAX, 2, 2]).linear(3)).kind(), ErrorKind::TooLarge);
    // A network that only flattens is a copy.
    let flat = Sequential::new([1, 2, 2]).flatten();
    let x = random::<f32>(1, 8);
    assert_eq!(run(gpu, &flat.forward(2), &[Given::Floats(&x), Given::Floats(&[])])[0], x);
    let net = Sequential::new([1, 2, 2]).linear(3);
    let e = net.forward(0).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("the batch is 0"), "{e}");
}

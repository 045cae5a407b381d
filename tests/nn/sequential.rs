//! Networks: against their layers one by one, gradients against finite differences, training, and going on with it.

use super::training::{Given, random, run};
use crate::support::{devices, gpu};
use tilework::nn::{Adam, Loss, Optimizer, Sequential, Sgd};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op, When};
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
        Sequential::new([4, 9, 9])
            .conv_with(6, [3, 3], |conv| conv.groups(2).dilation([2, 1]).pad_each([1, 0, 2, 1]).stride([2, 1]))
            .batch_norm()
            .activation(Activation::Tanh)
            .pool_with(PoolKind::Weighted(vec![0.5, -0.25, 0.125, 0.3, 0.2, 0.1]), [2, 3], |pool| {
                pool.with_weights().with_bias().stride([1, 2]).pad([1, 1])
            })
            .activation(Activation::Sigmoid)
            .pool_with(PoolKind::Average, [2, 2], |pool| pool.with_bias().dilation([2, 1]).stride([1, 1]))
            .linear(5)
            .batch_norm_with(|norm| norm.eps(0.01).momentum(0.5))
            .activation(Activation::Gelu)
            .linear(3),
        Sequential::new([3, 2, 2])
            .batch_norm()
            .activation(Activation::Sigmoid)
            .linear(3)
            .softmax()
            .loss(Loss::SquaredError),
        Sequential::new([3, 2, 2])
            .pool_with(PoolKind::Weighted(vec![0.25; 4]), [2, 2], |pool| pool.with_weights())
            .linear(4)
            .activation(Activation::Tanh)
            .linear(3)
            .activation(Activation::Sigmoid)
            .loss(Loss::BinaryCrossEntropy),
        Sequential::new([2, 3, 1]).linear(4).activation(Activation::Tanh).loss(Loss::SquaredError),
    ]
}

/// Targets of a batch: classes, or numbers from 0 to 1.
enum Targets {
    Classes(Vec<u32>),
    Numbers(Vec<f32>),
}

impl Targets {
    fn of(net: &Sequential, batch: usize) -> Self {
        let outputs: usize = net.output_shape().unwrap().iter().product();
        let lowered = net.gradient(batch).lower(&DeviceProfile::webgpu_defaults()).unwrap();
        match lowered.operands[1].dtype {
            tilework::DType::U32 => Self::Classes(labels(batch, 3)),
            _ => Self::Numbers(random::<f32>(9, batch * outputs).iter().map(|t| t.abs()).collect()),
        }
    }

    fn given(&self) -> Given<'_, f32> {
        match self {
            Self::Classes(labels) => Given::Labels(labels),
            Self::Numbers(numbers) => Given::Floats(numbers),
        }
    }
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
            let targets = Targets::of(&net, batch);
            let parameters = net.initial(5).unwrap();
            let op = net.gradient(batch);
            let of = |parameters: &[f32]| {
                run(&device.gpu, &op, &[Given::Floats(&x), targets.given(), Given::Floats(parameters)])
            };
            let gradients = of(&parameters)[1].clone();
            assert_eq!(gradients.len(), net.trained_len().unwrap());
            // Along the gradient, and along other directions: a few parameters of each tensor.
            let slope = |direction: &[f32]| {
                let h = 2e-2 / direction.iter().map(|d| d * d).sum::<f32>().sqrt();
                let moved = |h: f32| -> Vec<f32> {
                    let mut moved = parameters.clone();
                    moved.iter_mut().zip(direction).for_each(|(p, d)| *p += h * d);
                    moved
                };
                f64::from(of(&moved(h))[0][0] - of(&moved(-h))[0][0]) / (2.0 * f64::from(h))
            };
            let mut directions = vec![gradients.clone()];
            let trained = net.parameters().unwrap();
            let trained = trained.iter().filter(|p| p.offset < gradients.len());
            for (i, parameter) in trained.enumerate() {
                let mut one = vec![0.0; gradients.len()];
                let part = &mut one[parameter.offset..parameter.offset + parameter.len()];
                part.copy_from_slice(&random::<f32>(i as u64, parameter.len()));
                directions.push(one);
            }
            for (i, direction) in directions.iter().enumerate() {
                let want: f64 = direction.iter().zip(&gradients).map(|(d, g)| f64::from(*d) * f64::from(*g)).sum();
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
            ("adam", Adam::for_network(0.05).into()),
            ("sgd", Sgd::for_network(0.5).into()),
            ("momentum", Sgd::for_network(0.1).nesterov().with_momentum(0.9).into()),
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

/// A network with each kind of layer that keeps more than weights.
fn normed() -> Sequential {
    let mean = PoolKind::Weighted(vec![0.25; 4]);
    Sequential::new([1, 6, 6])
        .conv(4, [3, 3], [1, 1], [1, 1])
        .batch_norm()
        .activation(Activation::Relu)
        .pool_with(mean, [2, 2], |pool| pool.with_weights().with_bias())
        .linear(3)
}

#[test]
fn training_goes_on_from_saved_parameters_and_state_with_the_same_bits() {
    let (net, batch) = (normed(), 8);
    let x = random::<f32>(3, batch * net.input_len());
    for device in devices() {
        let gpu = &device.gpu;
        let (x, labels) = (gpu.upload(&x).unwrap(), gpu.upload(&labels(batch, 3)).unwrap());
        for optimizer in [Optimizer::from(Adam::for_network(0.01)), Sgd::for_network(0.1).with_momentum(0.9).into()] {
            let plan = net.train(batch, optimizer.clone()).plan::<f32>(gpu).unwrap();
            let steps = |parameters: &[f32], state: &[f32], n: usize| {
                let (parameters, state) = (gpu.upload(parameters).unwrap(), gpu.upload(state).unwrap());
                let loss = gpu.alloc::<f32>(1).unwrap();
                let mut rec = gpu.recorder();
                for _ in 0..n {
                    plan.record(&mut rec, &x, &labels, &parameters, &state, &loss).unwrap();
                }
                rec.submit().unwrap();
                (parameters.read().unwrap(), state.read().unwrap(), loss.read().unwrap()[0])
            };
            let (first, state) = (net.initial(4).unwrap(), vec![0.0; net.state_len(&optimizer).unwrap()]);
            let whole = steps(&first, &state, 7);
            let (parameters, state, _) = steps(&first, &state, 3);
            // Only the tensors by name, as a file would hold them.
            let kept = |values: &[f32], tensors: &[tilework::nn::Parameter]| {
                let mut kept = vec![0.0; values.len()];
                tensors.iter().map(|t| t.offset..t.offset + t.len()).for_each(|range| {
                    kept[range.clone()].copy_from_slice(&values[range]);
                });
                kept
            };
            let parameters = kept(&parameters, &net.parameters().unwrap());
            let state = kept(&state, &net.state(&optimizer).unwrap());
            assert!(steps(&parameters, &state, 4) == whole, "{}: {optimizer:?}", device.label);
            assert!(whole.2.is_finite() && whole.0 != first);
        }
    }
}

#[test]
fn training_updates_running_statistics_and_forward_takes_them() {
    let net = Sequential::new([2, 2, 2]).batch_norm_with(|norm| norm.momentum(1.0).population()).linear(2);
    let batch = 6;
    let x: Vec<f32> = random::<f32>(1, batch * 8).iter().map(|x| 3.0 * x + 5.0).collect();
    let tensors = net.parameters().unwrap();
    let names: Vec<_> = tensors.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["0.weight", "0.bias", "1.weight", "1.bias", "0.running_mean", "0.running_var"]);
    let channel = |c: usize| (0..batch).flat_map(move |n| (0..4).map(move |i| 8 * n + 4 * c + i));
    let mean = |c: usize| channel(c).map(|i| f64::from(x[i])).sum::<f64>() / 24.0;
    let variance = |c| channel(c).map(|i| (f64::from(x[i]) - mean(c)).powi(2)).sum::<f64>() / 24.0;
    for device in devices() {
        let gpu = &device.gpu;
        let first = net.initial(1).unwrap();
        let parameters = gpu.upload(&first).unwrap();
        let optimizer = Optimizer::from(Sgd::for_network(0.0).decay(0.5));
        let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer).unwrap()).unwrap();
        let (dx, classes) = (gpu.upload(&x).unwrap(), gpu.upload(&labels(batch, 2)).unwrap());
        let loss = gpu.alloc::<f32>(1).unwrap();
        let mut rec = gpu.recorder();
        let plan = net.train(batch, optimizer).plan::<f32>(gpu).unwrap();
        plan.record(&mut rec, &dx, &classes, &parameters, &state, &loss).unwrap();
        rec.submit().unwrap();
        let after = parameters.read().unwrap();
        // A rate of 0 leaves the rest alone.
        assert_eq!(after[..tensors[4].offset], first[..tensors[4].offset]);
        for c in 0..2 {
            let [got, spread] = [4, 5].map(|i: usize| f64::from(after[tensors[i].offset + c]));
            assert!((got - mean(c)).abs() < 1e-4, "{}: {got} for {}", device.label, mean(c));
            assert!((spread - variance(c)).abs() < 1e-3, "{}: {spread} for {}", device.label, variance(c));
        }
        // The loss of the step is that of the statistics of the batch, which the forward pass takes from now on.
        let given = [Given::Floats(&x), Given::Floats(&after)];
        let logits = run(gpu, &net.forward(batch), &given).remove(0);
        let (_, want, _) = reference::cross_entropy(2, &logits, &labels(batch, 2));
        let got = loss.read().unwrap()[0];
        assert!((got - want).abs() < 1e-4, "{}: {got} for {want}", device.label);
    }
}

#[test]
fn a_rate_on_the_device_steps_like_the_same_rate_in_the_plan() {
    let net = Sequential::new([2, 1, 1]).linear(8).activation(Activation::Tanh).linear(3);
    let (x, labels) = rings(32);
    for device in devices() {
        let gpu = &device.gpu;
        let (x, labels) = (gpu.upload(&x).unwrap(), gpu.upload(&labels).unwrap());
        let rates: Vec<f32> = (0..4).flat_map(|i| [0.1 / (i + 1) as f32; 64]).collect();
        let on_device = gpu.upload(&rates).unwrap();
        type At = fn(f32, bool) -> Optimizer;
        let at: [At; 2] = [
            |rate, rated| Adam::for_network(rate).when(rated, |op| op.with_rate()).into(),
            |rate, rated| Sgd::for_network(rate).when(rated, |op| op.with_rate()).into(),
        ];
        for at in at {
            let steps = |rated: bool| {
                let parameters = gpu.upload(&net.initial(1).unwrap()).unwrap();
                let state = gpu.alloc_zeroed::<f32>(net.state_len(&at(1.0, false)).unwrap()).unwrap();
                let loss = gpu.alloc::<f32>(1).unwrap();
                let mut rec = gpu.recorder();
                for (i, rate) in rates.iter().copied().step_by(64).enumerate() {
                    let plan = net.train(32, at(if rated { 7.0 } else { rate }, rated));
                    let plan = plan.plan::<f32>(gpu).unwrap();
                    let mut call = plan.with();
                    if rated {
                        call = call.with_rate(on_device.slice(64 * i..64 * i + 1).unwrap());
                    }
                    call.record(&mut rec, &x, &labels, &parameters, &state, &loss).unwrap();
                }
                rec.submit().unwrap();
                parameters.read().unwrap()
            };
            assert!(steps(true) == steps(false), "{}", device.label);
        }
    }
}

#[test]
fn a_perceptron_learns_a_linear_boundary() {
    // 1 above the line x + y = 0.2, else -1.
    let net = Sequential::new([2, 1, 1]).linear(1).sign().loss(Loss::SquaredError);
    let x = random::<f32>(2, 2 * 200);
    let target: Vec<f32> = x.chunks(2).map(|p| if p[0] + p[1] > 0.2 { 1.0 } else { -1.0 }).collect();
    for device in devices() {
        let gpu = &device.gpu;
        let (dx, dt) = (gpu.upload(&x).unwrap(), gpu.upload(&target).unwrap());
        let optimizer = Optimizer::from(Sgd::for_network(0.1));
        let plan = net.train(200, optimizer.clone()).plan::<f32>(gpu).unwrap();
        let parameters = gpu.upload(&net.initial(1).unwrap()).unwrap();
        let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer).unwrap()).unwrap();
        let loss = gpu.alloc::<f32>(1).unwrap();
        let mut rec = gpu.recorder();
        (0..100).for_each(|_| plan.record(&mut rec, &dx, &dt, &parameters, &state, &loss).unwrap());
        rec.submit().unwrap();
        let parameters = parameters.read().unwrap();
        let answers = run(gpu, &net.forward(200), &[Given::Floats(&x), Given::Floats(&parameters)]).remove(0);
        let wrong = answers.iter().zip(&target).filter(|(a, t)| a != t).count();
        assert!(wrong <= 4, "{}: {wrong} of 200 wrong", device.label);
    }
}

#[test]
fn invalid_targets_make_the_loss_nan() {
    let Some(gpu) = gpu() else { return };
    let loss = |loss: Loss, target: Given<'_, f32>| {
        let net = Sequential::new([2, 1, 1]).linear(2).loss(loss);
        let parameters = net.initial(1).unwrap();
        let given = [Given::Floats(&[1.0, 2.0]), target, Given::Floats(&parameters)];
        run(gpu, &net.gradient(1), &given)[0][0]
    };
    assert!(loss(Loss::CrossEntropy, Given::Labels(&[2])).is_nan());
    assert!(loss(Loss::BinaryCrossEntropy, Given::Floats(&[0.0, 1.5])).is_nan());
    assert!(loss(Loss::SquaredError, Given::Floats(&[0.0, f32::NAN])).is_nan());
    // A list of another type or length is an error.
    let net = Sequential::new([2, 1, 1]).linear(2).loss(Loss::SquaredError);
    let plan = net.gradient(1).plan::<f32>(gpu).unwrap();
    let (x, labels, mean) = (gpu.upload(&[0f32; 2]).unwrap(), gpu.upload(&[0u32]).unwrap(), gpu.alloc(1).unwrap());
    let parameters = gpu.upload(&net.initial(1).unwrap()).unwrap();
    let gradients = gpu.alloc::<f32>(net.trained_len().unwrap()).unwrap();
    let e = plan.record(&mut gpu.recorder(), &x, &labels, &parameters, &mean, &gradients).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("target holds u32"), "{e}");
}

#[test]
fn rejects_invalid_networks() {
    let Some(gpu) = gpu() else { return };
    let kind = |net: &Sequential| net.forward(2).plan::<f32>(gpu).unwrap_err();
    assert_eq!(kind(&Sequential::new([1, 4, 4])).kind(), ErrorKind::Shape);
    assert_eq!(kind(&Sequential::new([1, 4, 4]).softmax().linear(3)).kind(), ErrorKind::Shape);
    let wide = Sequential::new([1, 4, 4]).linear(3).pool(PoolKind::Max, [2, 2], [2, 2]);
    let e = kind(&wide);
    assert!(e.kind() == ErrorKind::Shape && e.to_string().starts_with("sequential: layer 1 (pool): pool:"), "{e}");
    let still = Sequential::new([1, 4, 4]).pool(PoolKind::Max, [2, 2], [2, 2]);
    let e = still.train(2, Adam::for_network(0.1)).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("nothing to train"), "{e}");
    let e = Sequential::new([1, 4, 4]).linear(3).train(0, Adam::for_network(0.1)).plan::<f32>(gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    assert_eq!(kind(&Sequential::new([usize::MAX, 2, 2]).linear(3)).kind(), ErrorKind::TooLarge);
    // A network that only flattens is a copy.
    let flat = Sequential::new([1, 2, 2]).flatten();
    let x = random::<f32>(1, 8);
    assert_eq!(run(gpu, &flat.forward(2), &[Given::Floats(&x), Given::Floats(&[])])[0], x);
    let e = kind(&Sequential::new([2, 4, 4]).conv_with(4, [1, 1], |conv| conv.activation(Activation::Relu)));
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("layer 0 (conv): has an"), "{e}");
    let e = kind(&Sequential::new([2, 4, 4]).conv_with(4, [1, 1], |conv| conv.groups(3)));
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("3 groups"), "{e}");
    let few = PoolKind::Weighted(vec![1.0; 3]);
    let few = Sequential::new([2, 4, 4]).pool_with(few, [2, 2], |pool| pool.with_weights());
    assert_eq!(kind(&few).kind(), ErrorKind::Shape);
    assert!(few.initial(1).is_ok());
    let soft = Sequential::new([1, 4, 4]).linear(3).softmax().loss(Loss::BinaryCrossEntropy);
    let e = soft.gradient(2).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("takes logits"), "{e}");
    let one = Sequential::new([4, 1, 1]).batch_norm().linear(2).train(1, Adam::for_network(0.1));
    let e = one.plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("layer 0 (batch norm)"), "{e}");
    let e = Sequential::new([1, 4, 4]).linear(3).train(2, Adam::for_network(-1.0)).plan::<f32>(gpu).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let net = Sequential::new([1, 2, 2]).linear(3);
    let e = net.forward(0).plan::<f32>(gpu).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("the batch is 0"), "{e}");
}

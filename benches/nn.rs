//! Softmax, norms, pooling.

mod support;

use half::f16;
use support::{Bench, Operand, centred, half, random};
use tilework::nn::{
    ActivationBackward, Adam, BatchNorm, BatchNormBackward, BatchNormTrain, BiasBackward, BinaryCrossEntropy,
    CrossEntropy, Dropout, LayerNorm, LayerNormBackward, LogSoftmax, LogSoftmaxBackward, MeanPool, Pool2d,
    Pool2dBackward, Pool2dBackwardWeights, PoolKind, RmsNorm, RmsNormBackward, Rope, SampleLogits, Sequential, Sgd,
    Softmax, SoftmaxBackward, SquaredError,
};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{DType, Element, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("softmax", softmax),
        ("dropout", dropout),
        ("sample-logits", sample_logits),
        ("log-softmax", log_softmax),
        ("layer-norm", layer_norm),
        ("rms-norm", rms_norm),
        ("rope", rope),
        ("rows-lanes", rows_lanes),
        ("pool", pool),
        ("pool-backward", pool_backward),
        ("pool-backward-weights", pool_backward_weights),
        ("batch-norm", batch_norm),
        ("batch-norm-train", batch_norm_train),
        ("cross-entropy", cross_entropy),
        ("squared-error", squared_error),
        ("binary-cross-entropy", binary_cross_entropy),
        ("activation-backward", activation_backward),
        ("bias-backward", bias_backward),
        ("softmax-backward", softmax_backward),
        ("log-softmax-backward", log_softmax_backward),
        ("layer-norm-backward", layer_norm_backward),
        ("rms-norm-backward", rms_norm_backward),
        ("sgd", sgd),
        ("adam", adam),
        ("sequential", sequential),
        ("mean-pool", mean_pool),
    ])
}

/// Rows and their lengths: the one compared with peers first, then short, odd and long ones.
fn shapes(bench: &Bench) -> Vec<(usize, usize)> {
    bench.scale(
        vec![
            (16384, 4096),
            (16384, 4095),
            (16, 4096),
            (256, 4096),
            (1 << 20, 64),
            (1 << 22, 16),
            (65536, 1000),
            (32768, 2048),
            (8192, 8192),
            (4096, 16384),
            (1024, 65536),
            (4, 1 << 24),
        ],
        vec![(256, 1024), (256, 1023), (4096, 64), (4, 1 << 16)],
    )
}

/// Input and output for the largest shape.
fn buffers<T: Element>(bench: &Bench, value: impl Fn(u32) -> T) -> Result<(Buffer<T>, Buffer<T>)> {
    let largest = shapes(bench).iter().map(|(rows, n)| rows * n).max().unwrap_or(0);
    Ok((random(&bench.gpu, largest, value)?, bench.gpu.alloc(largest)?))
}

fn softmax(bench: &mut Bench) -> Result<()> {
    let (x, y) = buffers(bench, centred)?;
    for (rows, n) in shapes(bench) {
        for v in Softmax::variants() {
            let op = Softmax::new(rows, n).variant(v.name);
            bench.op::<f32>(&op, format!("{rows}x{n}"), &[&x, &y])?;
        }
    }
    drop((x, y));
    let (x, y) = buffers(bench, half)?;
    for (rows, n) in shapes(bench) {
        bench.op::<f16>(&Softmax::new(rows, n), format!("{rows}x{n}"), &[&x, &y])?;
    }
    Ok(())
}

fn dropout(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 28, 1 << 20);
    let (x, y) = (random(&bench.gpu, n, centred)?, bench.gpu.alloc::<f32>(n)?);
    bench.op::<f32>(&Dropout::new(0.1, n), n.to_string(), &[&x, &y])
}

/// Tokens of the vocabulary of GPT-2: greedy, all, the best 50, and the best nine tenths of them.
fn sample_logits(bench: &mut Bench) -> Result<()> {
    let (rows, n) = bench.scale((256, 50_257), (4, 5_025));
    let x = random(&bench.gpu, rows * n, |bits| 20.0 * centred(bits))?;
    let tokens = bench.gpu.alloc::<u32>(rows)?;
    let op = SampleLogits::new([rows, n]);
    for (name, op) in [
        ("greedy", op.clone().temperature(0.0)),
        ("all", op.clone()),
        ("top-k", op.clone().top_k(50)),
        ("top-p", op.clone().top_p(0.9)),
        ("top-k top-p", op.top_k(50).top_p(0.9)),
    ] {
        bench.op::<f32>(&op, format!("{name} {rows}x{n}"), &[&x, &tokens])?;
    }
    Ok(())
}

fn log_softmax(bench: &mut Bench) -> Result<()> {
    let (x, y) = buffers(bench, centred)?;
    for (rows, n) in shapes(bench) {
        bench.op::<f32>(&LogSoftmax::new(rows, n), format!("{rows}x{n}"), &[&x, &y])?;
    }
    Ok(())
}

/// Each row length with scale and shift.
fn layer_norm(bench: &mut Bench) -> Result<()> {
    let (x, y) = buffers(bench, centred)?;
    for (rows, n) in shapes(bench) {
        let (gamma, beta) = (random(&bench.gpu, n, centred)?, random(&bench.gpu, n, centred)?);
        let op = LayerNorm::new(rows, n).with_beta();
        bench.op::<f32>(&op, format!("{rows}x{n}"), &[&x, &gamma, &beta, &y])?;
    }
    Ok(())
}

/// Queries and keys of a large model.
fn rope(bench: &mut Bench) -> Result<()> {
    let [batch, heads, tokens, size] = bench.scale([4, 32, 4096, 128], [1, 4, 128, 64]);
    let angles = random(&bench.gpu, tokens * size / 2, centred)?;
    let x = random(&bench.gpu, batch * heads * tokens * size, half)?;
    let y = bench.gpu.alloc::<f16>(x.len())?;
    for interleaved in [false, true] {
        let op = Rope::new([batch, heads, tokens, size]).when(interleaved, |op| op.interleaved());
        let layout = if interleaved { " interleaved" } else { "" };
        let size = format!("{batch}x{heads}x{tokens}x{size}{layout}");
        bench.op::<f16>(&op, size, &[&x, &angles, &angles, &y])?;
    }
    Ok(())
}

/// Each row length with scale.
fn rms_norm(bench: &mut Bench) -> Result<()> {
    let (x, y) = buffers(bench, centred)?;
    for (rows, n) in shapes(bench) {
        let gamma = random(&bench.gpu, n, centred)?;
        bench.op::<f32>(&RmsNorm::new(rows, n), format!("{rows}x{n}"), &[&x, &gamma, &y])?;
    }
    Ok(())
}

/// Candidates for the policy of a card: threads per row.
fn rows_lanes(bench: &mut Bench) -> Result<()> {
    let (x, y) = buffers(bench, centred)?;
    for (rows, n) in shapes(bench) {
        for lanes in [1, 4, 8, 16, 32, 64, 128, 256, 512, 1024] {
            for v in Softmax::variants() {
                let op = Softmax::new(rows, n).variant(v.name).lanes(lanes);
                if v.name == "whole" || n > 8192 && lanes >= 128 {
                    let variant = format!("{} {lanes} lanes", v.name);
                    bench.op_as::<f32>(&op, (&variant, ""), format!("{rows}x{n}"), &[&x, &y])?;
                }
            }
        }
    }
    Ok(())
}

/// Every kind, `pairs` with several numbers of loads in flight, and other windows.
fn pool(bench: &mut Bench) -> Result<()> {
    let shape = bench.scale([32, 64, 224, 224], [1, 8, 112, 112]);
    let len = shape.iter().product();
    let (x, y) = (random(&bench.gpu, len, centred)?, bench.gpu.alloc::<f32>(len)?);
    let run = |bench: &mut Bench, op: &Pool2d, name: &str, size: &str| -> Result<()> {
        let [n, c, h, w] = shape;
        bench.op_as::<f32>(op, (name, ""), format!("{n}x{c}x{h}x{w} {size}"), &[&x, &y])
    };
    let weights = PoolKind::Weighted(vec![0.1, 0.2, 0.3, 0.4]);
    for kind in [PoolKind::Max, PoolKind::Average, PoolKind::L2, weights] {
        for v in Pool2d::variants() {
            let op = Pool2d::new(kind.clone(), shape, [2, 2]).variant(v.name);
            run(bench, &op, v.name, &format!("{} 2x2", kind.name()))?;
        }
    }
    for units in [1, 2, 4, 8] {
        let op = Pool2d::new(PoolKind::Max, shape, [2, 2]).variant("pairs").units(units);
        run(bench, &op, &format!("pairs {units} units"), "max 2x2")?;
    }
    let overlapping = Pool2d::new(PoolKind::Max, shape, [3, 3]).stride([2, 2]).pad([1, 1]);
    run(bench, &overlapping, "direct", "max 3x3 stride 2")?;
    let global = Pool2d::new(PoolKind::Average, shape, [shape[2], shape[3]]);
    run(bench, &global, "direct", "avg global")
}

fn pool_backward_weights(bench: &mut Bench) -> Result<()> {
    let shape = bench.scale([32, 64, 112, 112], [1, 8, 56, 56]);
    let [n, c, h, w] = shape;
    for (kernel, stride) in [([2, 2], [2, 2]), ([3, 3], [1, 1])] {
        let op = Pool2dBackwardWeights::new(shape, kernel).stride(stride);
        let windows = op.dy_shape()?.iter().product();
        let (x, dy) = (random(&bench.gpu, shape.iter().product(), centred)?, random(&bench.gpu, windows, centred)?);
        let dw = bench.gpu.alloc::<f32>(kernel.iter().product())?;
        let size = format!("{n}x{c}x{h}x{w} {}x{} stride {}", kernel[0], kernel[1], stride[0]);
        for v in Pool2dBackwardWeights::variants() {
            bench.op::<f32>(&op.clone().variant(v.name), &size, &[&x, &dy, &dw])?;
        }
    }
    Ok(())
}

fn pool_backward(bench: &mut Bench) -> Result<()> {
    let shape = bench.scale([32, 64, 112, 112], [1, 8, 56, 56]);
    let [n, c, h, w] = shape;
    let len = shape.iter().product();
    let (x, dx) = (random(&bench.gpu, len, centred)?, bench.gpu.alloc::<f32>(len)?);
    let dy = random(&bench.gpu, len / 4, centred)?;
    let weights = PoolKind::Weighted(vec![0.1, 0.2, 0.3, 0.4]);
    for kind in [PoolKind::Max, PoolKind::Average, PoolKind::L2, weights] {
        let size = format!("{n}x{c}x{h}x{w} {} 2x2", kind.name());
        bench.op::<f32>(&Pool2dBackward::new(kind, shape, [2, 2]), size, &[&x, &dy, &dx])?;
    }
    Ok(())
}

/// Measures an op on new buffers: random floats, and labels of 0.
fn any(bench: &mut Bench, op: &impl Op<f32>, size: String) -> Result<()> {
    let program = op.lower(bench.gpu.profile())?;
    let mut buffers: Vec<Box<dyn Operand>> = Vec::new();
    for operand in &program.operands {
        buffers.push(match operand.dtype {
            DType::U32 => Box::new(bench.gpu.alloc_zeroed::<u32>(operand.len)?),
            _ => Box::new(random(&bench.gpu, operand.len, centred)?),
        });
    }
    let operands: Vec<_> = buffers.iter().map(|buffer| &**buffer).collect();
    bench.op(op, size, &operands)
}

/// Rows and their lengths for gradients.
fn rows(bench: &Bench) -> Vec<(usize, usize)> {
    bench.scale(
        vec![(16384, 4096), (16384, 4095), (1 << 20, 64), (65536, 1000), (4096, 16384)],
        vec![(256, 1024), (256, 1023), (4096, 64)],
    )
}

fn softmax_backward(bench: &mut Bench) -> Result<()> {
    for (rows, n) in rows(bench) {
        any(bench, &SoftmaxBackward::new(rows, n), format!("{rows}x{n}"))?;
    }
    any(bench, &SoftmaxBackward::new(16, 4096).variant("passes"), "16x4096".into())
}

fn log_softmax_backward(bench: &mut Bench) -> Result<()> {
    let (rows, n) = rows(bench)[0];
    any(bench, &LogSoftmaxBackward::new(rows, n), format!("{rows}x{n}"))
}

fn layer_norm_backward(bench: &mut Bench) -> Result<()> {
    for (rows, n) in rows(bench) {
        any(bench, &LayerNormBackward::new(rows, n), format!("{rows}x{n}"))?;
    }
    Ok(())
}

fn rms_norm_backward(bench: &mut Bench) -> Result<()> {
    let (rows, n) = rows(bench)[0];
    any(bench, &RmsNormBackward::new(rows, n), format!("{rows}x{n}"))
}

fn bias_backward(bench: &mut Bench) -> Result<()> {
    for (n, channels, plane) in bench.scale(
        vec![(16384, 4096, 1), (1 << 20, 64, 1), (128, 10, 1), (64, 64, 3136)],
        vec![(512, 512, 1), (64, 16, 784)],
    ) {
        any(bench, &BiasBackward::new([n, channels, plane]), format!("{n}x{channels}x{plane}"))?;
    }
    Ok(())
}

fn activation_backward(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    for activation in Activation::ALL {
        any(bench, &ActivationBackward::new(activation, n), format!("{} {n}", activation.name()))?;
    }
    Ok(())
}

fn batch_norm(bench: &mut Bench) -> Result<()> {
    for shape in bench.scale([[64, 64, 112, 112], [64, 512, 7, 7]], [[2, 8, 56, 56], [2, 64, 7, 7]]) {
        let [n, c, h, w] = shape;
        let op = BatchNorm::new(shape).activation(Activation::Relu);
        any(bench, &op, format!("{n}x{c}x{h}x{w}"))?;
    }
    Ok(())
}

/// Training on the shapes of inference, and its gradients.
fn batch_norm_train(bench: &mut Bench) -> Result<()> {
    for shape in bench.scale([[64, 64, 112, 112], [64, 512, 7, 7]], [[2, 8, 56, 56], [2, 64, 7, 7]]) {
        let [n, c, h, w] = shape;
        let size = format!("{n}x{c}x{h}x{w}");
        for v in BatchNormTrain::variants() {
            any(bench, &BatchNormTrain::new(shape).variant(v.name), size.clone())?;
            any(bench, &BatchNormBackward::new(shape).variant(v.name), size.clone())?;
        }
    }
    Ok(())
}

fn cross_entropy(bench: &mut Bench) -> Result<()> {
    for (n, classes) in bench.scale([(128, 10), (65536, 1000)], [(128, 10), (256, 1000)]) {
        any(bench, &CrossEntropy::new(n, classes).with_gradient(), format!("{n}x{classes}"))?;
    }
    Ok(())
}

fn squared_error(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    any(bench, &SquaredError::new(n).with_gradient(), n.to_string())
}

fn binary_cross_entropy(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    any(bench, &BinaryCrossEntropy::new(n).with_gradient(), n.to_string())
}

fn sgd(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    any(bench, &Sgd::new(n, 1e-9), n.to_string())?;
    any(bench, &Sgd::new(n, 1e-9).with_momentum(0.9), format!("{n} with momentum"))
}

fn adam(bench: &mut Bench) -> Result<()> {
    let n = bench.scale(1 << 26, 1 << 18);
    any(bench, &Adam::new(n, 1e-9), n.to_string())
}

/// The network of the `cnn` example: a forward pass, and a step of training.
fn sequential(bench: &mut Bench) -> Result<()> {
    let net = Sequential::new([1, 28, 28])
        .conv(32, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .conv(64, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .linear(128)
        .activation(Activation::Relu)
        .linear(10);
    for batch in bench.scale([128, 1024], [4, 16]) {
        any(bench, &net.forward(batch), format!("batch of {batch}"))?;
        any(bench, &net.train(batch, Adam::for_network(1e-3)), format!("batch of {batch}"))?;
    }
    Ok(())
}

fn mean_pool(bench: &mut Bench) -> Result<()> {
    for (batch, tokens, width) in bench.scale([(2048, 128, 384), (64, 128, 384)], [(64, 32, 384), (1, 128, 384)]) {
        let x = random(&bench.gpu, batch * tokens * width, centred)?;
        let lengths = bench.gpu.upload(&vec![tokens as u32; batch])?;
        let output = bench.gpu.alloc::<f32>(batch * width)?;
        let op = MeanPool::new([batch, tokens, width]).normalized();
        bench.op::<f32>(&op, format!("{batch}x{tokens}x{width}"), &[&x, &lengths, &output])?;
    }
    Ok(())
}

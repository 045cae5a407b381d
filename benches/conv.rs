//! Filters and convolution layers.

mod support;

use half::f16;
use support::{Bench, centred, half, random};
use tilework::conv::ThreadOutputs;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("conv", conv),
        ("conv-transpose", conv_transpose),
        ("conv-f16", conv_f16),
        ("conv-f16-gradients", conv_f16_gradients),
        ("filter1d", filter1d),
        ("filter2d", filter2d),
        ("filter3d", filter3d),
        ("conv-outputs", outputs),
    ])
}

fn weights(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 7) as f32 / 16.0 - 0.125).collect()
}

fn filter1d(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let cases = bench.scale(
        vec![(1 << 16, 5), (1 << 20, 5), (1 << 28, 5), ((1 << 28) - 1, 5), (1 << 28, 31), (1 << 26, 255)],
        vec![(1 << 20, 5), (1 << 18, 31)],
    );
    let most = cases.iter().map(|c| c.0).max().unwrap_or(0);
    let (x, y) = (random(&gpu, most, centred)?, gpu.alloc::<f32>(most)?);
    let (halves, out) = (random(&gpu, most, half)?, gpu.alloc::<f16>(most)?);
    for (n, f) in cases {
        let (size, filter) = (format!("{n} {f}"), gpu.uniform(&weights(f))?);
        for v in Filter1d::variants() {
            let desc = Filter1d::new(n, &weights(f)).variant(v.name);
            bench.op::<f32>(&desc, &size, &[&x, &y])?;
            bench.op::<f16>(&desc, &size, &[&halves, &out])?;
            let desc = Filter1d::with_filter(n, f).variant(v.name);
            bench.op::<f32>(&desc, format!("{size} operand"), &[&x, &filter, &y])?;
        }
    }
    Ok(())
}

fn filter2d(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let cases = bench.scale(
        vec![([256, 256], [5, 5]), ([1024, 1024], [5, 5])]
            .into_iter()
            .chain([[3, 3], [5, 5], [7, 7], [11, 11], [31, 31]].map(|f| ([8192, 8192], f)))
            .chain([([8191, 8191], [5, 5])])
            .collect(),
        vec![([512, 512], [5, 5]), ([511, 511], [3, 3])],
    );
    let most = cases.iter().map(|c| c.0[0] * c.0[1]).max().unwrap_or(0);
    let (x, y) = (random(&gpu, most, centred)?, gpu.alloc::<f32>(most)?);
    let (bytes, out) = (random(&gpu, most, |b| b as u8)?, gpu.alloc::<u8>(most)?);
    let (halves, out_halves) = (random(&gpu, most, half)?, gpu.alloc::<f16>(most)?);
    for ([h, w], f) in cases {
        let size = format!("{h}x{w} {}x{}", f[0], f[1]);
        let filter = gpu.uniform(&weights(f[0] * f[1]))?;
        for v in Filter2d::variants() {
            let desc = Filter2d::new([h, w], f, &weights(f[0] * f[1])).variant(v.name);
            bench.op::<f32>(&desc, &size, &[&x, &y])?;
            if f == [5, 5] {
                bench.op::<u8>(&desc, &size, &[&bytes, &out])?;
            }
            bench.op::<f16>(&desc, &size, &[&halves, &out_halves])?;
            let desc = Filter2d::with_filter([h, w], f).variant(v.name);
            bench.op::<f32>(&desc, format!("{size} operand"), &[&x, &filter, &y])?;
        }
    }
    Ok(())
}

fn filter3d(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let cases = bench.scale(
        vec![(64, [3, 3, 3]), (128, [3, 3, 3]), (512, [3, 3, 3]), (511, [3, 3, 3]), (512, [5, 5, 5]), (256, [7, 7, 7])],
        vec![(64, [3, 3, 3]), (63, [3, 3, 3])],
    );
    let most = cases.iter().map(|c| c.0).max().unwrap_or(0usize).pow(3);
    let (x, y) = (random(&gpu, most, centred)?, gpu.alloc::<f32>(most)?);
    let (halves, out) = (random(&gpu, most, half)?, gpu.alloc::<f16>(most)?);
    for (n, f) in cases {
        let size = format!("{n}x{n}x{n} {}x{}x{}", f[0], f[1], f[2]);
        let filter = gpu.uniform(&weights(f.iter().product()))?;
        for v in Filter3d::variants() {
            let desc = Filter3d::new([n; 3], f, &weights(f.iter().product())).variant(v.name);
            bench.op::<f32>(&desc, &size, &[&x, &y])?;
            bench.op::<f16>(&desc, &size, &[&halves, &out])?;
            let desc = Filter3d::with_filter([n; 3], f).variant(v.name);
            bench.op::<f32>(&desc, format!("{size} operand"), &[&x, &filter, &y])?;
        }
    }
    Ok(())
}

/// Transposed layers: they double the image, as decoders do, or keep its size.
fn conv_transpose(bench: &mut Bench) -> Result<()> {
    let cases = bench.scale(
        vec![([16, 64, 64, 64], 64, 4, 2), ([16, 256, 16, 16], 128, 4, 2), ([16, 64, 56, 56], 64, 3, 1)],
        vec![([1, 8, 9, 9], 8, 4, 2), ([1, 8, 9, 9], 8, 3, 1)],
    );
    for (shape, filters, window, stride) in cases {
        let layer = ConvTranspose2d::new(shape, filters, [window; 2]).stride([stride; 2]).pad([1; 2]);
        let outputs = layer.output_shape()?.iter().product();
        let [n, c, h, w] = shape;
        let gpu = bench.gpu.clone();
        let x = random(&gpu, n * c * h * w, centred)?;
        let weights = random(&gpu, c * filters * window * window, centred)?;
        let y = gpu.alloc::<f32>(outputs)?;
        let size = format!("{n}x{c}x{h}x{w} {window}x{window} {filters} stride {stride}");
        for v in ConvTranspose2d::variants() {
            bench.op::<f32>(&layer.clone().variant(v.name), &size, &[&x, &weights, &y])?;
        }
    }
    Ok(())
}

/// Candidates for the policy of `register`: rows and planes of outputs per thread.
fn outputs(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let (side, edge) = bench.scale((8192, 512), (256, 32));
    let most = (side * side).max(edge * edge * edge);
    let (x, y) = (random(&gpu, most, centred)?, gpu.alloc::<f32>(most)?);
    for f in [[3, 3], [5, 5], [7, 7]] {
        for rows in bench.scale(vec![1, 2, 4, 8, 16], vec![2, 4]) {
            let name = format!("register {rows}");
            let desc = Filter2d::new([side, side], f, &weights(f[0] * f[1]))
                .variant("register")
                .outputs(ThreadOutputs { rows, planes: 1 });
            let size = format!("{side}x{side} {}x{}", f[0], f[1]);
            bench.op_as::<f32>(&desc, (&name, ""), size, &[&x, &y])?;
        }
    }
    let candidates = vec![[1, 1], [1, 2], [1, 4], [1, 8], [2, 1], [2, 2], [2, 4], [2, 8], [4, 1], [4, 2], [4, 4]];
    for [rows, planes] in bench.scale(candidates, vec![[1, 2]]) {
        let name = format!("register {rows}x{planes}");
        let desc =
            Filter3d::new([edge; 3], [3; 3], &weights(27)).variant("register").outputs(ThreadOutputs { rows, planes });
        bench.op_as::<f32>(&desc, (&name, ""), format!("{edge}x{edge}x{edge} 3x3x3"), &[&x, &y])?;
    }
    Ok(())
}

/// Layers with their gradients: the automatic choices first, then all other variants that fit.
fn conv(bench: &mut Bench) -> Result<()> {
    conv_layers(bench, true)?;
    conv_layers(bench, false)
}

fn conv_layers(bench: &mut Bench, chosen: bool) -> Result<()> {
    let same = |shape, filters, k: usize| Conv2d::new(shape, filters, [k; 2]).pad([k / 2; 2]);
    let cases = bench.scale(
        vec![
            ([64, 64, 56, 56], same([64, 64, 56, 56], 64, 3)),
            ([32, 256, 28, 28], same([32, 256, 28, 28], 256, 3)),
            ([128, 16, 80, 80], same([128, 16, 80, 80], 32, 7)),
            ([32, 512, 56, 56], same([32, 512, 56, 56], 512, 3).groups(512)),
        ],
        vec![
            ([2, 32, 28, 28], same([2, 32, 28, 28], 32, 3)),
            ([4, 32, 28, 28], same([4, 32, 28, 28], 32, 3).groups(32)),
        ],
    );
    for (shape, layer) in cases {
        let gpu = bench.gpu.clone();
        let [filters, _, r, s] = layer.weights_shape();
        let depthwise = filters == shape[1] && layer.weights_shape()[1] == 1;
        let (inputs, outputs) = (shape.iter().product(), layer.output_shape()?.iter().product());
        let weights = layer.weights_shape().iter().product();
        let (x, w) = (random(&gpu, inputs, centred)?, random(&gpu, weights, centred)?);
        let y = random(&gpu, outputs, centred)?;
        let (dx, dw) = (gpu.alloc::<f32>(inputs)?, gpu.alloc::<f32>(weights)?);
        let [n, c, h, wide] = shape;
        let size = format!("{n}x{c}x{h}x{wide} {r}x{s} {filters}");
        for v in Conv2d::variants() {
            let op = layer.clone().variant(v.name);
            layer_case(bench, &size, [&layer, &op], chosen, [&x, &w, &y])?;
        }
        let data = Conv2dBackwardData::new(&layer);
        for v in Conv2dBackwardData::variants() {
            let op = data.clone().variant(v.name);
            layer_case(bench, &size, [&data, &op], chosen, [&y, &w, &dx])?;
        }
        // `direct` reads all images for every weight, which takes minutes on large layers.
        let names = Conv2dBackwardWeights::variants().iter().map(|v| v.name);
        for name in names.filter(|name| depthwise || *name != "direct") {
            let auto = Conv2dBackwardWeights::new(&layer);
            let op = auto.clone().variant(name);
            layer_case(bench, &size, [&auto, &op], chosen, [&x, &y, &dw])?;
        }
    }
    Ok(())
}

/// Channels, side, filters, filter side and stride of the layers of ResNet-50.
const RESNET_50: &[[usize; 5]] = &[
    [3, 224, 64, 7, 2],
    [64, 56, 64, 1, 1],
    [64, 56, 64, 3, 1],
    [64, 56, 256, 1, 1],
    [256, 56, 64, 1, 1],
    [256, 56, 128, 1, 1],
    [128, 56, 128, 3, 2],
    [128, 28, 512, 1, 1],
    [256, 56, 512, 1, 2],
    [512, 28, 128, 1, 1],
    [128, 28, 128, 3, 1],
    [512, 28, 256, 1, 1],
    [256, 28, 256, 3, 2],
    [256, 14, 1024, 1, 1],
    [512, 28, 1024, 1, 2],
    [1024, 14, 256, 1, 1],
    [256, 14, 256, 3, 1],
    [1024, 14, 512, 1, 1],
    [512, 14, 512, 3, 2],
    [512, 7, 2048, 1, 1],
    [1024, 14, 2048, 1, 2],
    [2048, 7, 512, 1, 1],
    [512, 7, 512, 3, 1],
];

/// Calls `measure` with the layers of ResNet-50 at each batch, in both orders of channels, with their sizes as text.
fn resnet_50(
    bench: &mut Bench, batches: &[usize], mut measure: impl FnMut(&mut Bench, &Conv2d, [usize; 4], &str) -> Result<()>,
) -> Result<()> {
    let layers = bench.scale(RESNET_50, &RESNET_50[10..11]);
    for &batch in bench.scale(batches, &[1]) {
        for &[c, side, filters, k, stride] in layers {
            let shape = [batch, c, side, side];
            let layer = Conv2d::new(shape, filters, [k; 2]).pad([k / 2; 2]).stride([stride; 2]);
            let size = format!("{batch}x{c}x{side}x{side} {k}x{k} {filters} stride {stride}");
            measure(bench, &layer, shape, &size)?;
            measure(bench, &layer.channels_last(), shape, &format!("{size} nhwc"))?;
        }
    }
    Ok(())
}

fn conv_f16(bench: &mut Bench) -> Result<()> {
    resnet_50(bench, &[1, 32], |bench, layer, shape, size| {
        let gpu = bench.gpu.clone();
        let (x, w) = (random(&gpu, shape.iter().product(), half)?, random(&gpu, weights_of(layer), half)?);
        let y = gpu.alloc::<f16>(layer.output_shape()?.iter().product())?;
        bench.op::<f16>(layer, size, &[&x, &w, &y])
    })
}

fn conv_f16_gradients(bench: &mut Bench) -> Result<()> {
    resnet_50(bench, &[32], |bench, layer, shape, size| {
        let gpu = bench.gpu.clone();
        let (inputs, weights) = (shape.iter().product(), weights_of(layer));
        let (x, w) = (random(&gpu, inputs, half)?, random(&gpu, weights, half)?);
        let y = random(&gpu, layer.output_shape()?.iter().product(), half)?;
        let (dx, dw) = (gpu.alloc::<f16>(inputs)?, gpu.alloc::<f16>(weights)?);
        bench.op::<f16>(&Conv2dBackwardData::new(layer), size, &[&y, &w, &dx])?;
        bench.op::<f16>(&Conv2dBackwardWeights::new(layer), size, &[&x, &y, &dw])
    })
}

fn weights_of(layer: &Conv2d) -> usize {
    layer.weights_shape().iter().product()
}

/// Measures a variant of a layer if it is the automatic choice, or if it is not.
fn layer_case<D: Op<f32>>(
    bench: &mut Bench, size: &str, [auto, op]: [&D; 2], chosen: bool, [a, b, c]: [&Buffer<f32>; 3],
) -> Result<()> {
    let profile = bench.gpu.profile();
    let Ok(program) = op.lower(profile) else { return Ok(()) };
    if (auto.lower(profile)?.variant() == program.variant()) != chosen {
        return Ok(());
    }
    bench.op(op, size, &[a, b, c])
}

//! Convolution layers on CUDA against the reference.

use crate::support::cuda::cuda;
use crate::support::{Random, assert_close, numbers};
use half::{bf16, f16};
use tilework::conv::Conv2d;
use tilework::cuda::{CudaExecutable, CudaGpu};
use tilework::dense::{Activation, Precision};
use tilework::prelude::*;
use tilework::reference::{Number, conv, conv_bound};
use tilework::{Element, Plans};

/// The bound adds `more` times the sum of the absolute terms and `round` times each output.
fn check<T: Element + Number + Into<f64>>(op: &Conv2d, x: usize, biased: bool, more: f64, round: f64)
where
    CudaGpu: Plans<Conv2d, T, Executor = CudaExecutable>,
{
    let Some(cuda) = cuda() else { return };
    let output: usize = op.output_shape().unwrap().iter().product();
    let weights: usize = op.weights_shape().iter().product();
    let mut random = Random::new(weights as u64);
    let mut of = |n: usize| (0..n).map(|_| T::from_f64(random.unit())).collect::<Vec<_>>();
    let (x, w, bias) = (of(x), of(weights), of(op.weights_shape()[0]));
    let [to_x, to_w, to_bias] = [&x, &w, &bias].map(|x| cuda.upload(x).unwrap());
    let to = cuda.upload(&vec![T::from_f64(f64::NAN); output]).unwrap();
    let stream = cuda.stream().unwrap();
    if biased {
        op.clone().with_bias().plan::<T>(cuda).unwrap().with_bias(&to_bias).run(&stream, &to_x, &to_w, &to).unwrap();
    } else {
        op.plan::<T>(cuda).unwrap().run(&stream, &to_x, &to_w, &to).unwrap();
    }
    let single = |x: &[T]| x.iter().map(|x| (*x).into() as f32).collect::<Vec<_>>();
    let size = |x: &[T]| x.iter().map(|x| (*x).into().abs() as f32).collect::<Vec<_>>();
    // By the definition, without the error of Winograd's transforms.
    let direct = op.clone().variant("direct").precision(Precision::Strict);
    let bias = biased.then(|| single(&bias));
    let want = conv(&direct, &single(&x), &single(&w), bias.as_deref()).unwrap();
    let bound = conv_bound(&direct, &single(&x), &single(&w), bias.as_deref()).unwrap();
    let sizes = conv(&direct.activation(Activation::None), &size(&x), &size(&w), None).unwrap();
    let each = want.iter().zip(bound).zip(sizes);
    let bound: Vec<_> = each
        .map(|((want, bound), size)| {
            let error = 4.0 * bound + 1.13 * more * f64::from(size);
            error + round * (f64::from(want.abs()) + error) + 2f64.powi(-14) * round
        })
        .collect();
    assert_close(&format!("{op:?} {}", T::DTYPE), &numbers(&to.read().unwrap()), &numbers(&want), &bound);
}

#[test]
fn layers_match_reference() {
    // With the elements of x.
    let layers = [
        (2 * 64 * 14 * 14, Conv2d::new([2, 64, 14, 14], 70, [3, 3]).pad([1, 1]), Activation::Relu),
        (3 * 37 * 29, Conv2d::new([1, 3, 37, 29], 16, [7, 5]).pad([3, 2]).stride([2, 3]), Activation::None),
        (
            3 * 20 * 9 * 11,
            Conv2d::new([3, 20, 9, 11], 24, [3, 3]).groups(2).dilation([2, 1]).pad_each([2, 0, 1, 3]),
            Activation::Gelu,
        ),
        (2 * 130 * 8 * 8, Conv2d::new([2, 130, 8, 8], 33, [1, 1]), Activation::Tanh),
        (6 * 12 * 12, Conv2d::new([1, 6, 12, 12], 6, [3, 3]).groups(6).pad([1, 1]), Activation::Sigmoid),
    ];
    let run = |arch| cuda().is_some_and(|cuda| cuda.profile().runs(arch));
    let variants = Conv2d::cuda_variants().iter().filter(|v| run(v.arch));
    for (v, variant) in variants.enumerate() {
        for (i, (x, layer, activation)) in layers.iter().enumerate() {
            let op = layer.clone().activation(*activation).variant(variant.name);
            let biased = (i + v) % 2 == 0;
            match (i + v) % 4 {
                _ if variant.name == "fma" => check::<f32>(&op, *x, biased, 0.0, 0.0),
                0 => check::<f16>(&op, *x, biased, 0.0, 2f64.powi(-10)),
                1 => check::<bf16>(&op, *x, biased, 0.0, 2f64.powi(-7)),
                2 => check::<f32>(&op.precision(Precision::Tensor), *x, biased, 2.1 / 2048.0, 0.0),
                _ => check::<f32>(&op.precision(Precision::Split), *x, biased, 4.0 / (1 << 22) as f64, 0.0),
            }
        }
    }
}

//! One-line calls against the references, and their errors.

use crate::support::{Random, Sample, assert_close, gpu, numbers};
use half::f16;
use std::fmt::Debug;
use tilework::ErrorKind::{InvalidArgument, Shape};
use tilework::attention::{AttentionBackward, KvAppend};
use tilework::nn::{Adam, BatchNorm, BiasBackward, LayerNormBackward, MeanPool, RmsNormBackward, Rope, Sgd};
use tilework::prelude::*;
use tilework::primitives::Operator;
use tilework::quantize::{Dequantize, Quantize};
use tilework::reference::{self, AttentionInputs};
use tilework::{Attention, Error, ErrorKind};
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights, Pool2dBackward};

/// Random elements on the host and on the device.
fn random<T: Sample>(gpu: &Gpu, n: usize) -> (Vec<T>, Buffer<T>) {
    given(gpu, Random::new(n as u64).elements(n))
}

fn given<T: Sample>(gpu: &Gpu, x: Vec<T>) -> (Vec<T>, Buffer<T>) {
    let buffer = gpu.upload(&x).unwrap();
    (x, buffer)
}

#[track_caller]
fn close<T: Sample>(got: Result<Buffer<T>, Error>, want: &[T], bound: &[f64]) {
    let got = got.unwrap().read().unwrap();
    assert_close("one line", &numbers(&got), &numbers(want), bound);
}

/// Within 1e-4, for numbers of about 1.
#[track_caller]
fn near(got: &Buffer<f32>, want: &[f32]) {
    let bound: Vec<_> = want.iter().map(|x| 1e-4 * (1.0 + f64::from(x.abs()))).collect();
    assert_close("one line", &numbers(&got.read().unwrap()), &numbers(want), &bound);
}

/// The elements that the device counted.
fn counted<T: tilework::Element>(buffer: &Buffer<T>, count: &Buffer<u32>) -> Vec<T> {
    buffer.slice(..count.read().unwrap()[0] as usize).unwrap().read().unwrap()
}

#[track_caller]
fn refused<T: Debug>(result: Result<T, Error>, kind: ErrorKind, text: &str) {
    let e = result.expect_err(text);
    assert_eq!(e.kind(), kind, "{e}");
    assert!(e.to_string().contains(text), "`{text}` is not in: {e}");
    assert!(!e.to_string().contains("the plan wants"), "no plan was seen: {e}");
}

#[test]
fn selections_match_references() {
    let Some(gpu) = gpu() else { return };
    let n = 5000;
    let x: Vec<u32> = Random::new(1).elements::<u32>(n).iter().map(|x| x % 3).collect();
    let flags: Vec<u32> = Random::new(2).elements::<u32>(n).iter().map(|x| x % 2).collect();
    let ((x, dx), (flags, df)) = (given(gpu, x), given(gpu, flags));
    let (kept, count) = gpu.select(&dx, &df).unwrap();
    assert_eq!(counted(&kept, &count), reference::select(&x, &flags));
    let (kept, count) = gpu.select_if(&dx, Predicate::NonZero).unwrap();
    assert_eq!(counted(&kept, &count), reference::select(&x, &x));
    let (parted, count) = gpu.partition(&dx, &df).unwrap();
    let (want, first) = reference::partition(&x, &flags);
    assert_eq!((parted.read().unwrap(), count.read().unwrap()), (want, vec![first as u32]));
    let (parted, _) = gpu.partition_if(&dx, Predicate::NonZero).unwrap();
    assert_eq!(parted.read().unwrap(), reference::partition(&x, &x).0);
    let (kept, count) = gpu.unique(&dx).unwrap();
    assert_eq!(counted(&kept, &count), reference::unique(&x));
    let (values, counts, count) = gpu.run_length(&dx).unwrap();
    assert_eq!((counted(&values, &count), counted(&counts, &count)), reference::run_length(&x));
    for exclusive in [false, true] {
        let want = reference::segmented_scan(&Operator::Sum, exclusive, &x, &flags).unwrap();
        let got = match exclusive {
            false => gpu.inclusive_segmented_scan(&dx, &df, Sum),
            true => gpu.exclusive_segmented_scan(&dx, &df, Sum),
        };
        assert_eq!(numbers(&got.unwrap().read().unwrap()), want);
    }
}

#[test]
fn products_match_references() {
    let Some(gpu) = gpu() else { return };
    let (batch, m, n, k) = (3, 5, 7, 9);
    let ((a, da), (b, db)) = (random::<f32>(gpu, batch * m * k), random::<f32>(gpu, batch * k * n));
    let op = GemmBatched::new(batch, m, n, k);
    let want = reference::gemm_batched(&op, &a, &b, None, &vec![0.0f32; batch * m * n]).unwrap();
    let got = gpu.gemm_batched(&da, &db, batch, m, n, k).unwrap().read().unwrap();
    assert_close("gemm_batched", &numbers(&got), &want, &vec![1e-5; want.len()]);
    let ((a, da), (b, db)) = (random::<i8>(gpu, m * k), random::<i8>(gpu, k * n));
    let want = reference::gemm_int8(&GemmInt8::new(m, n, k), &a, &b);
    assert_eq!(gpu.gemm_int8(&da, &db, m, n, k).unwrap().read().unwrap(), want);
}

#[test]
fn convolutions_match_references() {
    let Some(gpu) = gpu() else { return };
    let conv = Conv2d::new([2, 3, 6, 5], 4, [3, 3]).stride([2, 1]).pad([1, 1]);
    let ((x, dx), (w, dw)) = (random::<f32>(gpu, 2 * 3 * 6 * 5), random::<f32>(gpu, 4 * 3 * 9));
    let want = reference::conv(&conv, &x, &w, None).unwrap();
    close(gpu.conv(&conv, &dx, &dw), &want, &reference::conv_bound(&conv, &x, &w, None).unwrap());
    let (dy, ddy) = random::<f32>(gpu, want.len());
    let back = Conv2dBackwardData::new(&conv);
    let want = reference::conv_backward_data(&back, &dy, &w).unwrap();
    let bound = reference::conv_backward_data_bound(&back, &dy, &w).unwrap();
    close(gpu.conv_backward_data(&conv, &ddy, &dw), &want, &bound);
    let back = Conv2dBackwardWeights::new(&conv);
    let want = reference::conv_backward_weights(&back, &x, &dy).unwrap();
    let bound = reference::conv_backward_weights_bound(&back, &x, &dy).unwrap();
    close(gpu.conv_backward_weights(&conv, &dx, &ddy), &want, &bound);
    let up = ConvTranspose2d::new([2, 3, 6, 5], 4, [3, 3]).stride([2, 2]);
    let want = reference::conv_transpose(&up, &x, &w, None).unwrap();
    let bound = reference::conv_transpose_bound(&up, &x, &w, None).unwrap();
    close(gpu.conv_transpose(&up, &dx, &dw), &want, &bound);
}

#[test]
fn layers_match_references() {
    let Some(gpu) = gpu() else { return };
    let (rows, width) = (4, 25);
    let (x, dx) = random::<f32>(gpu, rows * width);
    let ((gamma, dg), (beta, db)) = (random::<f32>(gpu, width), random::<f32>(gpu, width));
    let bound = reference::log_softmax_bound(width, &x);
    close(gpu.log_softmax(&dx, width), &reference::log_softmax(width, &x), &bound);
    let op = LayerNorm::new(rows, width).with_beta();
    let bound = reference::layer_norm_bound(&op, &x, &gamma, Some(&beta));
    let want = reference::layer_norm(&op, &x, &gamma, Some(&beta));
    close(gpu.layer_norm(&dx, &dg, &db, width), &want, &bound);
    let op = RmsNorm::new(rows, width);
    let bound = reference::rms_norm_bound(&op, &x, &gamma, None);
    close(gpu.rms_norm(&dx, &dg, width), &reference::rms_norm(&op, &x, &gamma, None), &bound);

    let op = BatchNorm::new([2, 2, 5, 5]);
    let [mean, variance, scale, shift] = [[0.1f32, 0.2], [0.5, 2.0], [1.5, -1.0], [0.0, 3.0]];
    let [dm, dv, ds, dt] = [mean, variance, scale, shift].map(|v| gpu.upload(&v).unwrap());
    let channels = [&mean[..], &variance, &scale, &shift];
    let bound = reference::batch_norm_bound(&op, &x, channels);
    let got = gpu.batch_norm(&op, &dx, &dm, &dv, &ds, &dt);
    close(got, &reference::batch_norm(&op, &x, channels), &bound);

    let op = Pool2d::new(PoolKind::Average, [2, 2, 5, 5], [3, 3]).stride([2, 2]).pad([1, 1]);
    let bound = reference::pool_bound(&op, &x, None).unwrap();
    close(gpu.pool(&op, &dx), &reference::pool(&op, &x, None).unwrap(), &bound);
    let (op, lengths) = (MeanPool::new([2, 5, 10]), [3u32, 5]);
    let bound = reference::mean_pool_bound(&op, &x, &lengths);
    let want = reference::mean_pool(&op, &x, &lengths);
    close(gpu.mean_pool(&op, &dx, &gpu.upload(&lengths).unwrap()), &want, &bound);

    let indices = [3u32, 0, 9, 3];
    let got = gpu.gather(&dx, &gpu.upload(&indices).unwrap(), width).unwrap();
    assert_eq!(got.read().unwrap(), reference::gather(width, &x, &indices));
    let (op, tables) = (Rope::new([1, 5, 2, 10]), (random::<f32>(gpu, 10), random::<f32>(gpu, 10)));
    let ((cos, dc), (sin, ds)) = tables;
    let bound = reference::rope_bound(&op, &x, [&cos, &sin], None);
    close(gpu.rope(&op, &dx, &dc, &ds), &reference::rope(&op, &x, [&cos, &sin], None), &bound);

    let labels = [0u32, 24, 7, 8];
    let (want, mean, _) = reference::cross_entropy(width, &x, &labels);
    let (losses, got) = gpu.cross_entropy(&dx, &gpu.upload(&labels).unwrap(), width).unwrap();
    near(&losses, &want);
    near(&got, &[mean]);
    let (target, dt) = given(gpu, Random::new(9).elements::<f32>(rows * width));
    near(&gpu.squared_error(&dx, &dt).unwrap(), &[reference::squared_error(&x, &target).0]);
    let shares: Vec<f32> = target.iter().map(|t| t.abs()).collect();
    let ds = gpu.upload(&shares).unwrap();
    near(&gpu.binary_cross_entropy(&dx, &ds).unwrap(), &[reference::binary_cross_entropy(&x, &shares).0]);
}

#[test]
fn gradients_and_steps_match_references() {
    let Some(gpu) = gpu() else { return };
    let (rows, width) = (4, 25);
    let (x, dx) = random::<f32>(gpu, rows * width);
    let (dy, ddy) = given(gpu, Random::new(3).elements::<f32>(rows * width));
    let (gamma, dg) = random::<f32>(gpu, width);
    let y = reference::softmax(width, &x);
    let got = gpu.softmax_backward(&gpu.upload(&y).unwrap(), &ddy, width).unwrap();
    near(&got, &reference::softmax_backward(width, &y, &dy));
    let y = reference::log_softmax(width, &x);
    let got = gpu.log_softmax_backward(&gpu.upload(&y).unwrap(), &ddy, width).unwrap();
    near(&got, &reference::log_softmax_backward(width, &y, &dy));
    let want = reference::layer_norm_backward(&LayerNormBackward::new(rows, width), &x, &gamma, &dy);
    let got = gpu.layer_norm_backward(&dx, &dg, &ddy, width).unwrap();
    for (got, want) in [got.0, got.1, got.2].iter().zip(&want) {
        near(got, want);
    }
    let want = reference::rms_norm_backward(&RmsNormBackward::new(rows, width), &x, &gamma, &dy);
    let got = gpu.rms_norm_backward(&dx, &dg, &ddy, width).unwrap();
    for (got, want) in [got.0, got.1].iter().zip(&want) {
        near(got, want);
    }
    let got = gpu.activation_backward(Activation::Relu, &dx, &ddy).unwrap();
    near(&got, &reference::activation_backward(Activation::Relu, &x, &dy));
    let got = gpu.bias_backward(&BiasBackward::new([2, 10, 5]), &ddy).unwrap();
    near(&got, &reference::bias_backward(10, 5, &dy));
    let op = Pool2dBackward::new(PoolKind::Max, [1, 4, 5, 5], [5, 5]);
    let (few, dfew) = random::<f32>(gpu, 4);
    let got = gpu.pool_backward(&op, &dx, &dfew).unwrap();
    near(&got, &reference::pool_backward(&op, &x, &few).unwrap());
    let op = tilework::nn::Pool2dBackwardWeights::new([1, 4, 5, 5], [5, 5]);
    let got = gpu.pool_backward_weights(&op, &dx, &dfew).unwrap();
    near(&got, &reference::pool_backward_weights(&op, &x, &few).unwrap());

    let n = x.len();
    let op = Sgd::new(n, 0.25);
    let parameters = gpu.upload(&x).unwrap();
    gpu.sgd(&op, &parameters, &ddy).unwrap();
    near(&parameters, &reference::sgd(&op, &x, &dy, &vec![0.0; n])[0]);
    let (op, zeros) = (Adam::new(n, 0.25), vec![0.0f32; n]);
    let parameters = gpu.upload(&x).unwrap();
    let [first, second, fullness] = [n, n, 2].map(|n| gpu.alloc_zeroed::<f32>(n).unwrap());
    gpu.adam(&op, &parameters, &ddy, &first, &second, &fullness).unwrap();
    near(&parameters, &reference::adam(&op, [&x, &dy, &zeros, &zeros, &[0.0, 0.0]])[0]);
}

#[test]
fn attention_matches_reference() {
    let Some(gpu) = gpu() else { return };
    let op = Attention::new([1, 4, 3, 8], [2, 5]);
    let (q, dq) = random::<f32>(gpu, 4 * 3 * 8);
    let ((k, dk), (v, dv)) = (random::<f32>(gpu, 2 * 5 * 8), random::<f32>(gpu, 2 * 5 * 8));
    let want = reference::attention(&op, &q, &k, &v, AttentionInputs::default());
    let bound = reference::attention_bound(&op, &q, &k, &v, AttentionInputs::default());
    close(gpu.attention(&op, &dq, &dk, &dv), &want, &bound);
    let op = AttentionBackward::new([1, 4, 3, 8], [2, 5]);
    let want = reference::attention_backward(&op, &q, &k, &v, &q);
    let got = gpu.attention_backward(&op, &dq, &dk, &dv, &dq).unwrap();
    for (got, want) in [got.0, got.1, got.2].iter().zip(&want) {
        near(got, want);
    }
    let (new, dn) = random::<f32>(gpu, 2 * 8);
    let (dk, dv) = (gpu.upload(&k).unwrap(), gpu.upload(&v).unwrap());
    let (op, lengths, mut cache) = (KvAppend::new([1, 2, 1, 8], 5), [2u32], k);
    let dl = gpu.upload(&lengths).unwrap();
    gpu.kv_append(&op, &dn, &gpu.upload(&new).unwrap(), &dl, &dk, &dv).unwrap();
    reference::kv_append(&op, &new, &lengths, None, &mut cache);
    assert_eq!(dk.read().unwrap(), cache);
}

#[test]
fn codes_match_references() {
    let Some(gpu) = gpu() else { return };
    let (rows, width) = (6, 20);
    let (x, dx) = random::<f32>(gpu, rows * width);
    let (want, scales) = reference::quantize(&Quantize::<u8>::new(rows, width), &x);
    let (codes, scale) = gpu.quantize::<f32, u8>(&dx, width).unwrap();
    near(&scale, &scales);
    let far = codes.read().unwrap().iter().zip(&want).filter(|(got, want)| got.abs_diff(**want) > 1).count();
    assert_eq!(far, 0);
    let (codes, scales) = (gpu.upload(&want).unwrap(), (gpu.upload(&scales).unwrap(), scales));
    let back = reference::dequantize(&Dequantize::<u8>::new(rows, width), &want, &scales.1);
    near(&gpu.dequantize(&codes, &scales.0, width).unwrap(), &back);
    let halves: Buffer<f16> = gpu.cast(&dx).unwrap();
    assert_eq!(halves.read().unwrap(), reference::cast::<f32, f16>(&x));
}

#[test]
fn partial_rows_are_rejected_with_op_and_length() {
    let Some(gpu) = gpu() else { return };
    let (_, x) = random::<f32>(gpu, 100);
    let (gamma, labels) = (gpu.upload(&[1.0f32; 7]).unwrap(), gpu.upload(&[0u32; 15]).unwrap());
    let text = |op| format!("{op}: 7 does not divide 100 elements");
    refused(gpu.softmax(&x, 7), Shape, &text("softmax"));
    refused(gpu.log_softmax(&x, 7), Shape, &text("log-softmax"));
    refused(gpu.layer_norm(&x, &gamma, &gamma, 7), Shape, &text("layer-norm"));
    refused(gpu.rms_norm(&x, &gamma, 7), Shape, &text("rms-norm"));
    refused(gpu.gather(&x, &labels, 7), Shape, &text("gather"));
    refused(gpu.cross_entropy(&x, &labels, 7), Shape, &text("cross-entropy"));
    refused(gpu.quantize::<f32, i8>(&x, 7), Shape, &text("quantize"));
    refused(gpu.softmax_backward(&x, &x, 7), Shape, &text("softmax-backward"));
    refused(gpu.softmax(&x, 0), Shape, "softmax: 0 does not divide 100 elements");
    // Fewer elements than a row: the error does not mention 0 rows.
    let few = x.slice(..3).unwrap();
    refused(gpu.cross_entropy(few, &labels, 7), Shape, "cross-entropy: 7 does not divide 3 elements");
    assert!(gpu.softmax(x.slice(..0).unwrap(), 7).unwrap().is_empty());
    assert!(gpu.softmax(x.slice(..0).unwrap(), 0).unwrap().is_empty());
}

#[test]
fn wrong_lengths_are_rejected_with_both_lengths() {
    let Some(gpu) = gpu() else { return };
    let ((_, x), (_, flags)) = (random::<f32>(gpu, 100), random::<u32>(gpu, 99));
    let text = |operand, has, wants| format!("{operand} has {has} elements; the other arguments ask for {wants}");
    refused(gpu.zip(&x, x.slice(..99).unwrap(), ZipFn::Add), Shape, &text("zip: y", 99, 100));
    refused(gpu.axpy(1.0, &x, x.slice(..99).unwrap()), Shape, &text("axpy: y", 99, 100));
    refused(gpu.select(&x, &flags), Shape, &text("select: flags", 99, 100));
    refused(gpu.partition(&x, &flags), Shape, &text("partition: flags", 99, 100));
    refused(gpu.inclusive_segmented_scan(&x, &flags, Sum), Shape, &text("scan: heads", 99, 100));
    refused(gpu.sort_pairs(&x, &flags), Shape, &text("values", 99, 100));
    refused(gpu.gemm(&x, &x, 10, 11, 10), Shape, &text("gemm: b", 100, 110));
    refused(gpu.gemm_batched(&x, &x, 2, 5, 9, 10), Shape, &text("gemm-batched: b", 100, 180));
    refused(gpu.rms_norm(&x, x.slice(..9).unwrap(), 10), Shape, &text("rms-norm: gamma", 9, 10));
    refused(gpu.transpose(&x, 9, 10), Shape, &text("transpose: input", 100, 90));
    refused(gpu.blur(&x, [9, 10], 1), Shape, &text("blur: input", 100, 90));
    let conv = Conv2d::new([1, 1, 10, 10], 2, [3, 3]);
    refused(gpu.conv(&conv, &x, &x), Shape, &text("conv: w", 100, 18));
    let attention = Attention::new([1, 1, 1, 8], [1, 2]);
    let (q, k) = (x.slice(..8).unwrap(), x.slice(..16).unwrap());
    refused(gpu.attention(&attention, q, k, &x), Shape, &text("attention: v", 100, 16));
    refused(gpu.reduce_rows(&x, Min, 3), Shape, "100 elements are not 3 equal rows");
    refused(gpu.reduce_rows(&x, Min, 101), Shape, "100 elements are not 101 equal rows");
}

#[test]
fn one_line_calls_reject_unsupported_options() {
    let Some(gpu) = gpu() else { return };
    let (_, x) = random::<f32>(gpu, 16);
    let q = x.slice(..8).unwrap();
    let conv = Conv2d::new([1, 1, 4, 4], 1, [1, 1]).with_bias();
    let w = x.slice(..1).unwrap();
    refused(gpu.conv(&conv, &x, w), InvalidArgument, "conv: the one-line call takes no bias");
    let masked = Attention::new([1, 1, 1, 8], [1, 2]).masked([1, 1]);
    refused(gpu.attention(&masked, q, &x, &x), InvalidArgument, "pass it with `with_mask`");
    let halves: Buffer<f16> = gpu.cast(&x).unwrap();
    refused(gpu.cast::<f32, f32>(&x), Shape, "cast: output is of f16, not of f32");
    refused(gpu.attention(&Attention::new([1, 1, 1, 8], [1, 2]), q, &halves, &halves), Shape, "k is of f16");
    let odd = Attention::new([1, 1, 1, 7], [1, 2]);
    refused(gpu.attention(&odd, q, &x, &x), Shape, "attention: q has 8 elements");
}

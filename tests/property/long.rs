//! Every op and variant over long extents, in the default run over a few: the right number, or an error.
//!
//! Mesa's software driver silently ends the loops of a thread after 65,535 iterations, so a longer extent in one thread
//! gives a result that is too small. All data is ones, so the result is known.

use super::guarded::{Case, wide};
use crate::support::coverage::{all, sample};
use crate::support::{Device, devices};
use std::iter::once;
use tilework::attention::{Attention, AttentionBackward, KvAppend};
use tilework::conv::{Boundary, Filter1d, Filter2d, Filter3d};
use tilework::nn::{
    BatchNorm, BiasBackward, CrossEntropy, GatherRows, LayerNormBackward, LogSoftmaxBackward, MeanPool,
    PoolKind, RmsNormBackward, Rope, SoftmaxBackward, SquaredError,
};
use tilework::prelude::*;
use tilework::program::Variant;
use tilework::quantize::{Dequantize, GemmInt8, Quantize, Scales};
use tilework::reference;
use tilework::sparse::{Csr, HostMatrix, List, SparseMatrix, Target};
use tilework::{Conv2dBackwardData, Conv2dBackwardWeights, Pool2dBackward};

/// Above the loop limit of a thread.
const EXTENT: usize = 70_000;

/// Far above it, for ops with few elements.
const FAR: usize = 1_000_003;

/// The main device, and for attention the portable floor, whose kernels use no subgroups.
fn runs_on(device: &Device, what: &str) -> bool {
    device.main || what.contains("Attention") && device.label.ends_with("WebGPU defaults)")
}

/// Ops that limit their windows, keys or inner extent on such a driver: `auto` may refuse longer ones.
const LIMITED: [&str; 4] = ["Filter", "Pool2dBackward", "Attention", "GemmInt8"];

/// `auto` and every variant.
fn names(variants: &'static [Variant]) -> impl Iterator<Item = &'static str> {
    once("auto").chain(variants.iter().map(|v| v.name))
}

/// Runs the cases of all variants on all devices and reports all failures together.
fn check(variants: &'static [Variant], case: impl Fn(&'static str) -> Case) {
    check_names(names(variants), case);
}

fn check_names(names: impl Iterator<Item = &'static str>, case: impl Fn(&'static str) -> Case) {
    let mut wrong = Vec::new();
    for name in names {
        let case = case(name);
        for device in devices().iter().filter(|d| runs_on(d, &case.what)) {
            let why = match case.run(&device.gpu, false) {
                Ok(None) if name == "auto" && !LIMITED.iter().any(|op| case.what.contains(op)) => {
                    "refused".to_owned()
                }
                Ok(_) => continue,
                Err(why) => why.chars().take(200).collect(),
            };
            wrong.push(format!("{}: {name}: {}: {why}", device.label, case.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn ones(n: usize) -> Vec<f32> {
    vec![1.0; n]
}

/// An exact result.
fn exact(case: Case, want: &[f32]) -> Case {
    case.near::<f32>(wide(want), vec![0.0; want.len()])
}

/// A result within five thousandths, which the rounding of `winograd` stays within; a loop that ends early misses more.
fn near(case: Case, want: &[f32]) -> Case {
    let bound = want.iter().map(|w| f64::from(w.abs()) * 5e-3 + 1e-6).collect();
    case.near::<f32>(wide(want), bound)
}

/// Shape, filters, window, groups of layers with one long extent: channels, window, batch, filters, groups, outputs.
const LAYERS: [([usize; 4], usize, [usize; 2], usize); 13] = [
    ([1, 60_000, 3, 3], 1, [3, 3], 1),
    ([1, 70_000, 1, 1], 1, [1, 1], 1),
    ([1, 1000, 8, 8], 1, [7, 7], 1),
    ([1, 200_000, 1, 4], 2, [1, 1], 1),
    ([1, 131_072, 1, 2], 2, [1, 1], 1),
    ([1, 1, 300, 300], 2, [300, 300], 1),
    ([1, 8000, 3, 3], 1, [3, 3], 1),
    ([70_000, 1, 1, 1], 1, [1, 1], 1),
    ([1, 1, 1, 1], 70_000, [1, 1], 1),
    ([1, 3, 260, 270], 2, [1, 1], 1),
    ([1, 2, 260, 270], 2, [3, 3], 1),
    ([1, 70_000, 1, 1], 70_000, [1, 1], 70_000),
    ([1, 2, 11, 6400], 2, [11, 6400], 2),
];

/// The layers, with the long extent on the side of x or of the output.
fn layers(from_output: bool) -> impl Iterator<Item = ([usize; 4], Conv2d)> {
    sample(&LAYERS, 2).iter().map(move |&([n, c, h, w], filters, kernel, groups)| {
        let (c, filters) = if from_output { (filters, c) } else { (c, filters) };
        ([n, c, h, w], Conv2d::new([n, c, h, w], filters, kernel).groups(groups))
    })
}

fn is_large([_, _, r, s]: [usize; 4]) -> bool {
    r * s > 1000
}

fn ones_of(shape: [usize; 4]) -> Vec<f32> {
    ones(shape.iter().product())
}

#[test]
fn long_extents_of_conv() {
    for (shape, layer) in layers(false) {
        let (x, w) = (ones_of(shape), ones_of(layer.weights_shape()));
        let terms = (w.len() / layer.weights_shape()[0]) as f32;
        let want = vec![terms; layer.output_shape().unwrap().iter().product()];
        check(Conv2d::variants(), |name| {
            near(Case::new::<f32>(layer.clone().variant(name)).given(&x).given(&w), &want)
        });
    }
}

#[test]
fn long_extents_of_conv_backward() {
    // Each cell of a large window sums few terms, but there are many cells.
    for (_, layer) in layers(true).filter(|(_, layer)| !is_large(layer.weights_shape())) {
        let (dy, w) = (ones_of(layer.output_shape().unwrap()), ones_of(layer.weights_shape()));
        let op = Conv2dBackwardData::new(&layer);
        let want = reference::conv_backward_data(&op, &dy, &w).unwrap();
        check(Conv2dBackwardData::variants(), |name| {
            near(Case::new::<f32>(op.clone().variant(name)).given(&dy).given(&w), &want)
        });
    }
    let wide = [([1, 1, 1, 70_000], Conv2d::new([1, 1, 1, 70_000], 1, [1, 1]))];
    for (shape, layer) in layers(false).chain(wide.into_iter().filter(|_| all())) {
        let (x, dy) = (ones_of(shape), ones_of(layer.output_shape().unwrap()));
        let [n, _, p, q] = layer.output_shape().unwrap();
        let op = Conv2dBackwardWeights::new(&layer);
        let want = vec![(n * p * q) as f32; layer.weights_shape().iter().product()];
        let of_bias = vec![(n * p * q) as f32; layer.weights_shape()[0]];
        check(Conv2dBackwardWeights::variants(), |name| {
            let case = Case::new::<f32>(op.clone().variant(name).with_bias()).given(&x).given(&dy);
            near(near(case, &want), &of_bias)
        });
    }
}

#[test]
fn long_extents_of_conv_transpose() {
    for &([n, c, h, w], filters, kernel, groups) in sample(&LAYERS, 2) {
        let op = ConvTranspose2d::new([n, c, h, w], filters, kernel).groups(groups);
        if is_large(op.weights_shape()) {
            continue;
        }
        let (x, weights) = (ones_of([n, c, h, w]), ones_of(op.weights_shape()));
        let want = reference::conv_transpose(&op, &x, &weights, None).unwrap();
        check(ConvTranspose2d::variants(), |name| {
            near(Case::new::<f32>(op.clone().variant(name)).given(&x).given(&weights), &want)
        });
    }
}

#[test]
fn long_filters() {
    // A filter as long as the signal; with zeros outside, each output sums some of the ones.
    let filtered = |n: usize| (0..n).map(|i| (n - i.abs_diff(n / 2)) as f32).collect::<Vec<_>>();
    for &n in sample(&[20_001, 70_001], 1) {
        let (x, want) = (ones(n), filtered(n));
        check(Filter1d::variants(), |name| {
            let op = Filter1d::new(n, &x).boundary(Boundary::Zero).variant(name);
            near(Case::new::<f32>(op).given(&x), &want)
        });
    }
    let n = 70_001;
    let (x, want) = (ones(n), filtered(n));
    for &[h, w] in sample(&[[1, n], [n, 1]], 1) {
        check(Filter2d::variants(), |name| {
            let op = Filter2d::new([h, w], [h, w], &x).boundary(Boundary::Zero).variant(name);
            near(Case::new::<f32>(op).given(&x), &want)
        });
    }
    check(Filter3d::variants(), |name| {
        let op = Filter3d::new([n, 1, 1], [n, 1, 1], &x).boundary(Boundary::Zero).variant(name);
        near(Case::new::<f32>(op).given(&x), &want)
    });
}

#[test]
fn long_extents_of_gemm() {
    let extents =
        [[3, 2, EXTENT], [5, 4, 200_000], [1, 1, FAR], [1, 1, 230_000], [EXTENT, 1, 2], [1, EXTENT, 2]];
    for &[m, n, k] in sample(&extents, 1) {
        let (a, b, c) = (ones(m * k), ones(k * n), ones(m * n));
        let twos = vec![2.0f32; k * n];
        for &trans in sample(&[false, true], 1) {
            check(Gemm::variants(), |name| {
                let op = Gemm::new(m, n, k)
                    .when(trans, |op| op.trans_a())
                    .when(trans, |op| op.trans_b())
                    .variant(name);
                Case::new::<f32>(op).given(&a).given(&b).updated(&c, vec![k as f64; m * n], vec![0.0; m * n])
            });
        }
        // `small` rejects large results as invalid arguments.
        let taken = |name: &&str| m.max(n) < 64 || *name != "small";
        check_names(names(GemmBatched::variants()).filter(taken), |name| {
            // One factor is twos in the second product.
            let op = GemmBatched::new(2, m, n, k).variant(name);
            let [a, b, c] =
                [[&a[..], &a[..]].concat(), [&b[..], &twos[..]].concat(), [&c[..], &c[..]].concat()];
            let want = [vec![k as f64; m * n], vec![2.0 * k as f64; m * n]].concat();
            Case::new::<f32>(op).given(&a).given(&b).updated(&c, want, vec![0.0; 2 * m * n])
        });
        check(GemmInt8::variants(), |name| {
            let (a, b) = (vec![1i8; m * k], vec![1i8; k * n]);
            Case::new::<i32>(GemmInt8::new(m, n, k).variant(name))
                .given(&a)
                .given(&b)
                .exactly(&vec![k as i32; m * n])
        });
    }
    let (a, b, c) = (ones(70_000 * 4), ones(70_000 * 4), ones(70_000 * 4));
    check(GemmBatched::variants(), |name| {
        let op = GemmBatched::new(70_000, 2, 2, 2).variant(name);
        Case::new::<f32>(op).given(&a).given(&b).updated(&c, vec![2.0; 70_000 * 4], vec![0.0; 70_000 * 4])
    });
}

#[test]
fn long_extents_of_gemv_and_transpose() {
    for &[m, k] in sample(&[[1, EXTENT], [3, FAR], [EXTENT, 1], [FAR, 3]], 1) {
        for trans in [false, true] {
            let (terms, outputs) = if trans { (m, k) } else { (k, m) };
            let (a, x, y) = (ones(m * k), ones(terms), ones(outputs));
            check(Gemv::variants(), |name| {
                let op = Gemv::new(m, k).when(trans, |op| op.trans()).variant(name);
                Case::new::<f32>(op).given(&a).given(&x).updated(
                    &y,
                    vec![terms as f64; outputs],
                    vec![0.0; outputs],
                )
            });
        }
        let x: Vec<u32> = (0..m * k).map(|i| i as u32).collect();
        let want = reference::transpose(1, m, k, &x);
        check(Transpose::variants(), |name| {
            Case::new::<u32>(Transpose::new(m, k).variant(name)).given(&x).exactly(&want)
        });
    }
}

/// A matrix of ones with one row of `n` entries and short rows, and a matrix with a column of `n` entries.
fn long_row(n: usize) -> [Csr; 2] {
    let mut row_ptrs = vec![0, n as u32];
    let mut col_idxs: Vec<u32> = (0..n as u32).collect();
    for i in 0..3 {
        col_idxs.push(i * 7);
        row_ptrs.push(col_idxs.len() as u32);
    }
    let values = ones(col_idxs.len());
    let row = Csr { rows: 4, cols: n, row_ptrs, col_idxs, values };
    // Column 0 has n entries.
    let row_ptrs = (0..=n as u32).collect();
    let column = Csr { rows: n, cols: 4, row_ptrs, col_idxs: vec![0; n], values: ones(n) };
    [row, column]
}

const TARGETS: [Target; 8] = [
    Target::Csr,
    Target::Coo,
    Target::Csc,
    Target::Ell,
    Target::Hybrid { width: Some(2) },
    Target::Jds,
    Target::Sell { slice: 4, window: 16 },
    Target::Sell { slice: 32, window: 1 },
];

fn with_lists(case: Case, matrix: &HostMatrix) -> Case {
    matrix.lists().into_iter().fold(case, |case, list| match list {
        List::Indices(list) => case.given(list),
        List::Values(list) => case.given(list),
    })
}

#[test]
fn long_rows_of_sparse_matrices() {
    for csr in long_row(EXTENT) {
        for &target in sample(&TARGETS, 4) {
            let host = reference::spconvert(&HostMatrix::Csr(csr.clone()), target).unwrap();
            let layout = host.layout().unwrap();
            let of_format = |v: &&str| *v == "auto" || v.split('-').next() == Some(layout.format.name());
            let (x, y) = (ones(csr.cols), ones(csr.rows));
            let want = reference::spmv(1.0, &csr, &x, 0.0, &y).unwrap();
            let statistics = csr.analyse();
            for &known in sample(&[false, true], 1) {
                check_names(names(Spmv::variants()).filter(of_format), |name| {
                    let op = Spmv::new(layout).variant(name);
                    let op = if known { op.statistics(&statistics) } else { op };
                    let case = with_lists(Case::new::<f32>(op), &host).given(&x);
                    case.updated(&y, want.clone(), vec![0.0; want.len()])
                });
            }
            for &n in sample(&[5, 1], 1) {
                let (b, c) = (ones(csr.cols * n), ones(csr.rows * n));
                let want = reference::spmm(1.0, &csr, &b, n, 0.0, &c).unwrap();
                check_names(names(Spmm::variants()).filter(of_format), |name| {
                    let op = Spmm::new(layout, n).variant(name);
                    let case = with_lists(Case::new::<f32>(op), &host).given(&b);
                    case.updated(&c, want.clone(), vec![0.0; want.len()])
                });
            }
            for &to in sample(&[Target::Csr, Target::Csc, Target::Ell, Target::Jds], 2) {
                let want = reference::spconvert(&host, to).unwrap();
                let mut op = Spconvert::new(layout, want.layout().unwrap());
                if let Target::Sell { window, .. } = to {
                    op = op.window(window);
                }
                check_names(once("auto"), |_| {
                    want.lists().into_iter().fold(
                        with_lists(Case::new::<f32>(op.clone()), &host),
                        |case, list| match list {
                            List::Indices(list) => case.exactly(list),
                            List::Values(list) => case.exactly(list),
                        },
                    )
                });
            }
        }
    }
}

/// Long rows, and many.
const ROWS: [[usize; 2]; 3] = [[2, EXTENT], [1, FAR], [70_001, 2]];

#[test]
fn long_rows_of_networks() {
    for &[rows, n] in sample(&ROWS, 1) {
        let (x, gamma) = (ones(rows * n), ones(n));
        let count = n as f32;
        let flat = |value: f32| vec![value; rows * n];
        check(Softmax::variants(), |name| {
            near(Case::new::<f32>(Softmax::new(rows, n).variant(name)).given(&x), &flat(1.0 / count))
        });
        check(LogSoftmax::variants(), |name| {
            near(Case::new::<f32>(LogSoftmax::new(rows, n).variant(name)).given(&x), &flat(-count.ln()))
        });
        // Half of them 0, half 2: mean 1, variance 1, mean square 2.
        let uneven: Vec<f32> = (0..rows * n).map(|i| if i % n % 2 == 1 { 2.0 } else { 0.0 }).collect();
        let layer = LayerNorm::new(rows, n);
        let want = reference::layer_norm(&layer, &uneven, &gamma, None);
        check(LayerNorm::variants(), |name| {
            near(Case::new::<f32>(layer.clone().variant(name)).given(&uneven).given(&gamma), &want)
        });
        let rms = RmsNorm::new(rows, n);
        let want = reference::rms_norm(&rms, &uneven, &gamma, None);
        check(RmsNorm::variants(), |name| {
            near(Case::new::<f32>(rms.clone().variant(name)).given(&uneven).given(&gamma), &want)
        });
        let y = flat(1.0 / count);
        let want = reference::softmax_backward(n, &y, &uneven);
        check(SoftmaxBackward::variants(), |name| {
            near(
                Case::new::<f32>(SoftmaxBackward::new(rows, n).variant(name)).given(&y).given(&uneven),
                &want,
            )
        });
        let y = flat(-count.ln());
        let want = reference::log_softmax_backward(n, &y, &uneven);
        check(LogSoftmaxBackward::variants(), |name| {
            near(
                Case::new::<f32>(LogSoftmaxBackward::new(rows, n).variant(name)).given(&y).given(&uneven),
                &want,
            )
        });
        let op = LayerNormBackward::new(rows, n);
        let want = reference::layer_norm_backward(&op, &uneven, &gamma, &x);
        check(LayerNormBackward::variants(), |name| {
            let case = Case::new::<f32>(op.clone().variant(name)).given(&uneven).given(&gamma).given(&x);
            want.iter().fold(case, |case, want| loose(case, want, n))
        });
        let op = RmsNormBackward::new(rows, n);
        let want = reference::rms_norm_backward(&op, &uneven, &gamma, &x);
        check(RmsNormBackward::variants(), |name| {
            let case = Case::new::<f32>(op.clone().variant(name)).given(&uneven).given(&gamma).given(&x);
            want.iter().fold(case, |case, want| loose(case, want, n))
        });
        let labels = vec![1u32; rows];
        let (losses, mean, gradient) = reference::cross_entropy(n, &x, &labels);
        check(CrossEntropy::variants(), |name| {
            let op = CrossEntropy::new(rows, n).variant(name).with_gradient();
            let case = Case::new::<f32>(op).given(&x).given(&labels);
            near(near(near(case, &losses), &[mean]), &gradient)
        });
        let scales = [Scales::Row, Scales::Tensor];
        for scales in scales {
            let op = Quantize::<i8>::new(rows, n).scales(scales);
            let (codes, factors) = reference::quantize(&op, &uneven);
            // `whole` rejects rows that it cannot hold as invalid arguments.
            check_names(names(Quantize::<i8>::variants()).filter(|name| *name != "whole"), |name| {
                let op = op.clone().variant(name);
                near(Case::new::<f32>(op).given(&uneven).exactly(&codes), &factors)
            });
            let op = Dequantize::<i8>::new(rows, n).scales(scales);
            let want = reference::dequantize::<i8, f32>(&op, &codes, &factors);
            check(Dequantize::<i8>::variants(), |name| {
                near(Case::new::<f32>(op.clone().variant(name)).given(&codes).given(&factors), &want)
            });
        }
    }
}

/// For sums that cancel: within 1e-6 times the number of terms.
fn loose(case: Case, want: &[f32], terms: usize) -> Case {
    let bound = want.iter().map(|w| f64::from(w.abs()) * 1e-3 + 1e-6 * terms as f64).collect();
    case.near::<f32>(wide(want), bound)
}

#[test]
fn long_extents_of_networks() {
    {
        let n = EXTENT;
        let x = ones(n);
        check(SquaredError::variants(), |name| {
            let op = SquaredError::new(n).variant(name);
            near(Case::new::<f32>(op).given(&x).given(&vec![0.0f32; n]), &[1.0])
        });
        for &[count, channels, plane] in sample(&[[n, 1, 1], [1, n, 1], [1, 1, FAR], [n, 4, 1]], 1) {
            let dy = ones(count * channels * plane);
            let want = vec![(count * plane) as f32; channels];
            check(BiasBackward::variants(), |name| {
                exact(
                    Case::new::<f32>(BiasBackward::new([count, channels, plane]).variant(name)).given(&dy),
                    &want,
                )
            });
        }
        for &shape in sample(&[[1, n, 1, 1], [n, 1, 1, 1], [1, 1, 1, n]], 1) {
            let lists = [0.0, 1.0, 2.0, 3.0].map(|value: f32| vec![value; shape[1]]);
            let op = BatchNorm::new(shape).eps(0.0);
            check(BatchNorm::variants(), |name| {
                let case = Case::new::<f32>(op.clone().variant(name)).given(&x);
                near(lists.iter().fold(case, |case, list| case.given(list)), &vec![5.0; n])
            });
        }
        for &[batch, tokens, width] in sample(&[[1, n, 4], [1, FAR, 1], [1, 1, n], [n, 1, 1]], 1) {
            let (x, lengths) = (ones(batch * tokens * width), vec![tokens as u32; batch]);
            check(MeanPool::variants(), |name| {
                let op = MeanPool::new([batch, tokens, width]).variant(name);
                near(Case::new::<f32>(op).given(&x).given(&lengths), &ones(batch * width))
            });
        }
        for &[rows, width, count] in sample(&[[2, n, 3], [n, 1, 3], [2, 3, n]], 1) {
            let (table, indices) = (ones(rows * width), vec![1u32; count]);
            check(GatherRows::variants(), |name| {
                let op = GatherRows::new([rows, width], count).variant(name);
                exact(Case::new::<f32>(op).given(&table).given(&indices), &ones(count * width))
            });
        }
        check(Rope::variants(), |name| {
            let op = Rope::new([1, 1, n, 2]).rotary(2).variant(name).tables(n);
            let case = Case::new::<f32>(op).given(&ones(2 * n)).given(&ones(n)).given(&vec![0.0f32; n]);
            exact(case, &ones(2 * n))
        });
        let mut cache = vec![0.0f32; 8 * n];
        cache[..8].fill(7.0);
        check(KvAppend::variants(), |name| {
            let op = KvAppend::new([1, 1, n - 1, 8], n).variant(name);
            let new = ones(8 * (n - 1));
            let after = [vec![7.0; 8], vec![1.0; 8 * (n - 1)]].concat();
            let case = Case::new::<f32>(op).given(&new).given(&new).given(&[1u32]);
            case.updated(&cache, after.clone(), vec![0.0; 8 * n]).updated(&cache, after, vec![0.0; 8 * n])
        });
    }
}

#[test]
fn long_windows_of_pools() {
    let kinds = [PoolKind::Max, PoolKind::Average, PoolKind::L2];
    let windows = [
        ([1, 2, 300, 300], [300, 300]),
        ([1, 1, 1, 70_000], [1, 70_000]),
        ([1, 1, 1000, 1001], [1000, 1001]),
        ([1, 70_000, 2, 2], [2, 2]),
        ([1, 1, 100, 100], [50, 50]),
    ];
    for &(shape, kernel) in sample(&windows, 1) {
        let weighted = PoolKind::Weighted(ones(kernel[0] * kernel[1]));
        for kind in kinds.clone().into_iter().chain([weighted]) {
            let stride = if kernel == [2, 2] { [2, 2] } else { [60, 60] };
            let op = Pool2d::new(kind.clone(), shape, kernel).stride(stride);
            let x = ones_of(shape);
            let want = reference::pool(&op, &x, None).unwrap();
            check(Pool2d::variants(), |name| {
                near(Case::new::<f32>(op.clone().variant(name)).given(&x), &want)
            });
            let op = Pool2dBackward::new(kind, shape, kernel).stride(stride);
            let dy = ones_of(op.dy_shape().unwrap());
            let want = reference::pool_backward(&op, &x, &dy).unwrap();
            check(Pool2dBackward::variants(), |name| {
                near(Case::new::<f32>(op.clone().variant(name)).given(&x).given(&dy), &want)
            });
        }
    }
}

#[test]
fn long_extents_of_attention() {
    // Equal scores give the mean of the visible values.
    let shapes =
        [[1, 16, 1, 1, EXTENT, 16], [1, 1, 1, 1, FAR, 8], [1, 1, 1, 20, EXTENT, 8], [EXTENT, 1, 1, 1, 2, 8]];
    for &[b, h, g, t, s, d] in sample(&shapes, 1) {
        let op = Attention::new([b, h, t, d], [g, s]);
        let (q, k, v) = (ones(b * h * t * d), ones(b * g * s * d), ones(b * g * s * d));
        let want = ones(b * h * t * d);
        check(Attention::variants(), |name| {
            near(Case::new::<f32>(op.clone().variant(name)).given(&q).given(&k).given(&v), &want)
        });
    }
    // Their gradient: each query gives each of n keys that it sees 1/n of dy.
    for &[h, t, s] in sample(&[[1, EXTENT, 1], [1, 1, EXTENT], [3, EXTENT / 2, 1]], 1) {
        let (q, k) = (ones(h * t * 8), ones(s * 8));
        check(AttentionBackward::variants(), |name| {
            let op = AttentionBackward::new([1, h, t, 8], [1, s]).variant(name);
            let case = Case::new::<f32>(op).given(&q).given(&k).given(&k).given(&q);
            let zero = |len: usize| (vec![0.0; len], vec![1e-3; len]);
            let ((dq, of_q), (dk, of_k)) = (zero(q.len()), zero(k.len()));
            let case = case.near::<f32>(dq, of_q).near::<f32>(dk, of_k);
            near(case, &vec![(h * t) as f32 / s as f32; k.len()])
        });
    }
}

#[test]
fn long_lists_of_primitives() {
    {
        let n = EXTENT;
        let x = vec![1u32; n];
        let count = n as u32;
        let counted: Vec<u32> = (1..=count).collect();
        for &[rows, n] in sample(&[[3, n], [1, FAR], [n, 1]], 1) {
            let x = vec![1u32; rows * n];
            check(Reduce::<Sum>::variants(), |name| {
                let op = Reduce::rows(Sum, rows, n).variant(name);
                Case::new::<u32>(op).given(&x).exactly(&vec![n as u32; rows])
            });
            let want: Vec<u32> = (0..rows * n).map(|i| (i % n) as u32 + 1).collect();
            check(Scan::<Sum>::variants(), |name| {
                Case::new::<u32>(Scan::rows(Sum, rows, n).variant(name)).given(&x).exactly(&want)
            });
        }
        let mut heads = vec![0u32; n];
        heads[0] = 1;
        check(SegmentedScan::<Sum>::variants(), |name| {
            Case::new::<u32>(SegmentedScan::new(Sum, n).variant(name))
                .given(&x)
                .given(&heads)
                .exactly(&counted)
        });
        check(SegmentedReduce::<Sum>::variants(), |name| {
            let case = Case::new::<u32>(SegmentedReduce::new(Sum, n).variant(name)).given(&x).given(&heads);
            case.front_of(n, &[count]).exactly(&[1u32])
        });
        check(RunLength::variants(), |name| {
            let case = Case::new::<u32>(RunLength::new(n).variant(name)).given(&x);
            case.front_of(n, &[1u32]).front_of(n, &[count]).exactly(&[1u32])
        });
        check(Unique::variants(), |name| {
            Case::new::<u32>(Unique::new(n).variant(name))
                .given(&counted)
                .front_of(n, &counted)
                .exactly(&[count])
        });
        check(Select::variants(), |name| {
            let case = Case::new::<u32>(Select::new(n).variant(name)).given(&counted).given(&x);
            case.front_of(n, &counted).exactly(&[count])
        });
        check(Partition::variants(), |name| {
            let case = Case::new::<u32>(Partition::new(n).variant(name)).given(&counted).given(&x);
            case.exactly(&counted).exactly(&[count])
        });
        let falling: Vec<u32> = counted.iter().rev().copied().collect();
        check(RadixSort::variants(), |name| {
            Case::new::<u32>(RadixSort::new(n).variant(name)).given(&falling).exactly(&counted)
        });
        for &k in sample(&[n / 2, 1, n], 1) {
            let places: Vec<u32> = (0..k as u32).collect();
            check(TopK::variants(), |name| {
                let case = Case::new::<u32>(TopK::new(n, k).variant(name)).given(&falling);
                case.exactly(&falling[..k]).exactly(&places)
            });
        }
        for &bins in sample(&[256, 1, 70_000], 1) {
            let op = Histogram::new(n, bins).range(0.0, bins as f64);
            let want = reference::histogram(&op, &vec![0u32; n]).unwrap();
            check(Histogram::variants(), |name| {
                Case::new::<u32>(op.clone().variant(name)).given(&vec![0u32; n]).exactly(&want)
            });
            let edges: Vec<f64> = (0..=bins).map(|i| i as f64).collect();
            let op = Histogram::with_edges(n, edges);
            check(Histogram::variants(), |name| {
                Case::new::<u32>(op.clone().variant(name)).given(&vec![0u32; n]).exactly(&want)
            });
        }
    }
}

#[test]
fn long_lines_of_images() {
    {
        let n = EXTENT;
        let images =
            [Image::grey([1, n]), Image::grey([n, 1]), Image::grey([8, n / 8]), Image::grey([n / 8, 8])];
        for &image in sample(&images, 1) {
            let x = ones(image.h * image.w);
            for &radius in sample(&[127, 1], 1) {
                check(Blur::variants(), |name| {
                    near(Case::new::<f32>(Blur::new(image, radius).variant(name)).given(&x), &x)
                });
            }
            check(Gaussian::variants(), |name| {
                near(Case::new::<f32>(Gaussian::new(image, 1.0).variant(name)).given(&x), &x)
            });
            check(Sobel::variants(), |name| {
                near(Case::new::<f32>(Sobel::new(image).variant(name)).given(&x), &vec![0.0; x.len()])
            });
            let steps: Vec<u8> = (0..x.len()).map(|i| (i % 2) as u8).collect();
            let op = Equalize::new(image);
            let want = reference::equalize(&op, &steps).unwrap();
            let bound = vec![0.0; want.len()];
            check(Equalize::variants(), |name| {
                Case::new::<u8>(Equalize::new(image).variant(name))
                    .given(&steps)
                    .near::<u8>(want.clone(), bound.clone())
            });
        }
    }
}

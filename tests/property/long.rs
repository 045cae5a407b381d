//! Every op and variant over long extents, in the default run `auto` over a few: the right number, or an error.
//!
//! Mesa's software driver silently ends the loops of a thread after 65,535 iterations, so a longer extent in one thread
//! gives a result that is too small. All data is ones, so the result is known.

use super::guarded::{Case, wide};
use crate::support::coverage::{all, in_turn, sample};
use crate::support::{Device, devices};
use std::iter::once;
use tilework::attention::{Attention, AttentionBackward, KvAppend};
use tilework::nn::{
    BatchNorm, BatchNormBackward, BatchNormTrain, BiasBackward, BinaryCrossEntropy, CrossEntropy, LayerNormBackward,
    LogSoftmaxBackward, MeanPool, RmsNormBackward, Rope, SoftmaxBackward, SquaredError,
};
use tilework::prelude::*;
use tilework::program::Variant;
use tilework::quantize::{Dequantize, GemmInt8, Quantize, Scales};
use tilework::reference;
use tilework::sparse::{Csr, HostMatrix, List, SparseMatrix, Target};

/// Above the loop limit of a thread.
const EXTENT: usize = 70_000;

/// Lengths of lists and lines: above that limit, and about three times as long.
pub(super) const LENGTHS: [usize; 2] = [EXTENT, 200_000];

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
pub(super) fn check(variants: &'static [Variant], case: impl Fn(&'static str) -> Case) {
    check_names(names(variants), case);
}

fn check_names(names: impl Iterator<Item = &'static str>, case: impl Fn(&'static str) -> Case) {
    let mut wrong = Vec::new();
    // `auto` comes first, and is what the default run meets.
    for name in names.take(if all() { usize::MAX } else { 1 }) {
        let case = case(name);
        for device in devices().iter().filter(|d| runs_on(d, &case.what)) {
            let why = match case.run(&device.gpu, false) {
                Ok(None) if name == "auto" && !LIMITED.iter().any(|op| case.what.contains(op)) => "refused".to_owned(),
                Ok(_) => continue,
                Err(why) => why.chars().take(200).collect(),
            };
            wrong.push(format!("{}: {name}: {}: {why}", device.label, case.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(super) fn ones(n: usize) -> Vec<f32> {
    vec![1.0; n]
}

/// An exact result.
fn exact(case: Case, want: &[f32]) -> Case {
    case.near::<f32>(wide(want), vec![0.0; want.len()])
}

/// A result within five thousandths, which the rounding of `winograd` stays within; a loop that ends early misses more.
pub(super) fn near(case: Case, want: &[f32]) -> Case {
    let bound = want.iter().map(|w| f64::from(w.abs()) * 5e-3 + 1e-6).collect();
    case.near::<f32>(wide(want), bound)
}

#[test]
fn long_extents_of_gemm() {
    let extents = [[3, 2, EXTENT], [5, 4, 200_000], [1, 1, FAR], [1, 1, 230_000], [EXTENT, 1, 2], [1, EXTENT, 2]];
    for (i, &[m, n, k]) in sample(&extents, 1).iter().enumerate() {
        let (a, b, c) = (ones(m * k), ones(k * n), ones(m * n));
        let twos = vec![2.0f32; k * n];
        for (_, &trans) in sample(&[false, true], 1).iter().enumerate().filter(|(t, _)| in_turn(i + t, 2)) {
            check(Gemm::variants(), |name| {
                let op = Gemm::new(m, n, k).when(trans, |op| op.trans_a()).when(trans, |op| op.trans_b()).variant(name);
                Case::new::<f32>(op).given(&a).given(&b).updated(&c, vec![k as f64; m * n], vec![0.0; m * n])
            });
        }
        // `small` rejects large results as invalid arguments.
        let taken = |name: &&str| m.max(n) < 64 || *name != "small";
        check_names(names(GemmBatched::variants()).filter(taken), |name| {
            // One factor is twos in the second product.
            let op = GemmBatched::new(2, m, n, k).variant(name);
            let [a, b, c] = [[&a[..], &a[..]].concat(), [&b[..], &twos[..]].concat(), [&c[..], &c[..]].concat()];
            let want = [vec![k as f64; m * n], vec![2.0 * k as f64; m * n]].concat();
            Case::new::<f32>(op).given(&a).given(&b).updated(&c, want, vec![0.0; 2 * m * n])
        });
        check(GemmInt8::variants(), |name| {
            let (a, b) = (vec![1i8; m * k], vec![1i8; k * n]);
            Case::new::<i32>(GemmInt8::new(m, n, k).variant(name)).given(&a).given(&b).exactly(&vec![k as i32; m * n])
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
                Case::new::<f32>(op).given(&a).given(&x).updated(&y, vec![terms as f64; outputs], vec![0.0; outputs])
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

/// As [`with_lists`], with the order by row that the variant takes.
fn with_order(case: Case, matrix: &HostMatrix, variant: &str) -> Case {
    let order = if variant.ends_with("-atomic") { Vec::new() } else { matrix.by_row().unwrap() };
    order.iter().fold(with_lists(case, matrix), |case, list| case.given(list))
}

#[test]
fn long_rows_of_sparse_matrices() {
    for csr in sample(&LENGTHS, 1).iter().flat_map(|&n| long_row(n)) {
        for (i, &target) in sample(&TARGETS, 4).iter().enumerate() {
            let host = reference::spconvert(&HostMatrix::Csr(csr.clone()), target).unwrap();
            let layout = host.layout().unwrap();
            let of_format = |v: &&str| *v == "auto" || v.split('-').next() == Some(layout.format.name());
            let (x, y) = (ones(csr.cols), ones(csr.rows));
            let want = reference::spmv(1.0, &csr, &x, 0.0, &y).unwrap();
            let statistics = csr.analyse();
            for (_, &known) in sample(&[false, true], 1).iter().enumerate().filter(|(k, _)| in_turn(i + k, 2)) {
                check_names(names(Spmv::variants()).filter(of_format), |name| {
                    let op = Spmv::new(layout).variant(name);
                    let op = if known { op.statistics(&statistics) } else { op };
                    let case = with_order(Case::new::<f32>(op), &host, name).given(&x);
                    case.updated(&y, want.clone(), vec![0.0; want.len()])
                });
            }
            for &n in sample(&[5, 1], 1) {
                let (b, c) = (ones(csr.cols * n), ones(csr.rows * n));
                let want = reference::spmm(1.0, &csr, &b, n, 0.0, &c).unwrap();
                check_names(names(Spmm::variants()).filter(of_format), |name| {
                    let op = Spmm::new(layout, n).variant(name);
                    let case = with_order(Case::new::<f32>(op), &host, name).given(&b);
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
                    want.lists().into_iter().fold(with_lists(Case::new::<f32>(op.clone()), &host), |case, list| {
                        match list {
                            List::Indices(list) => case.exactly(list),
                            List::Values(list) => case.exactly(list),
                        }
                    })
                });
            }
        }
    }
}

/// Long rows, and many.
const ROWS: [[usize; 2]; 4] = [[2, EXTENT], [1, FAR], [70_001, 2], [2, 200_000]];

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
            near(Case::new::<f32>(SoftmaxBackward::new(rows, n).variant(name)).given(&y).given(&uneven), &want)
        });
        let y = flat(-count.ln());
        let want = reference::log_softmax_backward(n, &y, &uneven);
        check(LogSoftmaxBackward::variants(), |name| {
            near(Case::new::<f32>(LogSoftmaxBackward::new(rows, n).variant(name)).given(&y).given(&uneven), &want)
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
    for &n in sample(&LENGTHS, 1) {
        let x = ones(n);
        check(SquaredError::variants(), |name| {
            let op = SquaredError::new(n).variant(name);
            near(Case::new::<f32>(op).given(&x).given(&vec![0.0f32; n]), &[1.0])
        });
        check(BinaryCrossEntropy::variants(), |name| {
            let op = BinaryCrossEntropy::new(n).variant(name);
            near(Case::new::<f32>(op).given(&vec![0.0f32; n]).given(&x), &[2f32.ln()])
        });
        for &[count, channels, plane] in sample(&[[n, 1, 1], [1, n, 1], [1, 1, FAR], [n, 4, 1]], 1) {
            let dy = ones(count * channels * plane);
            let want = vec![(count * plane) as f32; channels];
            check(BiasBackward::variants(), |name| {
                exact(Case::new::<f32>(BiasBackward::new([count, channels, plane]).variant(name)).given(&dy), &want)
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
        // Half of a channel are 0, half 2.
        for &shape in sample(&[[n, 1, 1, 1], [1, 2, 1, n], [2, n, 1, 1], [1, 1, n / 4, 4]], 1) {
            let plane = shape[2] * shape[3];
            let uneven: Vec<f32> = (0..shape.iter().product())
                .map(|i| if (i / (shape[1] * plane) + i % plane) % 2 == 1 { 2.0 } else { 0.0 })
                .collect();
            let lists = [2.0, 1.0, 0.0, 1.0].map(|value: f32| vec![value; shape[1]]);
            let op = BatchNormTrain::new(shape);
            let want = reference::batch_norm_train(&op, &uneven, lists.each_ref().map(|list| &list[..]));
            check(BatchNormTrain::variants(), |name| {
                let case = Case::new::<f32>(op.clone().variant(name)).given(&uneven);
                let case = lists.iter().fold(case, |case, list| case.given(list));
                want.iter().fold(case, |case, want| near(case, want))
            });
            let (op, dy) = (BatchNormBackward::new(shape), ones(uneven.len()));
            let want = reference::batch_norm_backward(&op, &uneven, &lists[0], &dy);
            check(BatchNormBackward::variants(), |name| {
                let case = Case::new::<f32>(op.clone().variant(name)).given(&uneven).given(&lists[0]).given(&dy);
                want.iter().fold(case, |case, want| loose(case, want, dy.len()))
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
            check(Gather::variants(), |name| {
                let op = Gather::new([rows, width], count).variant(name);
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
fn long_extents_of_attention() {
    // Equal scores give the mean of the visible values.
    let shapes = [
        [1, 16, 1, 1, EXTENT, 16],
        [1, 1, 1, 1, FAR, 8],
        [1, 1, 1, 20, EXTENT, 8],
        [1, 2, 1, 4, 200_000, 8],
        [EXTENT, 1, 1, 1, 2, 8],
    ];
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
    for &n in sample(&LENGTHS, 1) {
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
            Case::new::<u32>(SegmentedScan::new(Sum, n).variant(name)).given(&x).given(&heads).exactly(&counted)
        });
        check(ScanByKey::<Sum>::variants(), |name| {
            Case::new::<u32>(ScanByKey::new(Sum, n).variant(name)).given(&x).given(&x).exactly(&counted)
        });
        check(SegmentedReduce::<Sum>::variants(), |name| {
            let case = Case::new::<u32>(SegmentedReduce::new(Sum, n).variant(name)).given(&x).given(&heads);
            case.front_of(n, &[count]).exactly(&[1u32])
        });
        check(ReduceByKey::<Sum>::variants(), |name| {
            let case = Case::new::<u32>(ReduceByKey::new(Sum, n).variant(name)).given(&x).given(&x);
            case.front_of(n, &[1u32]).front_of(n, &[count]).exactly(&[1u32])
        });
        check(RunLength::variants(), |name| {
            let case = Case::new::<u32>(RunLength::new(n).variant(name)).given(&x);
            case.front_of(n, &[1u32]).front_of(n, &[count]).exactly(&[1u32])
        });
        check(Unique::variants(), |name| {
            Case::new::<u32>(Unique::new(n).variant(name)).given(&counted).front_of(n, &counted).exactly(&[count])
        });
        let half = &counted[..n / 2];
        check(Merge::variants(), |name| {
            let want: Vec<u32> = (1..=count).flat_map(|x| vec![x; 1 + usize::from(x <= n as u32 / 2)]).collect();
            Case::new::<u32>(Merge::new(n, n / 2).variant(name)).given(&counted).given(half).exactly(&want)
        });
        check(SetUnion::variants(), |name| {
            let case = Case::new::<u32>(SetUnion::new(n, n / 2).variant(name)).given(&counted).given(half);
            case.front_of(n + n / 2, &counted).exactly(&[count])
        });
        check(SetIntersection::variants(), |name| {
            let case = Case::new::<u32>(SetIntersection::new(n, n / 2).variant(name)).given(&counted).given(half);
            case.front_of(n, half).exactly(&[n as u32 / 2])
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
        for &bins in sample(&[256, 1, 70_000, 200_000], 1) {
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

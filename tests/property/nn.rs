//! Cases of the ops of networks.

use super::draw::{Contents, Draw, typed};
use super::guarded::Case;
use crate::support::Sample;
use half::f16;
use tilework::Pool2dBackward;
use tilework::nn::{
    ActivationBackward, Adam, BatchNorm, BiasBackward, CrossEntropy, GatherRows, LayerNormBackward,
    LogSoftmaxBackward, MeanPool, RmsNormBackward, Rope, Sgd, SoftmaxBackward, SquaredError,
};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference;

/// Many short rows or few long ones.
fn rows(draw: &mut Draw) -> (usize, usize) {
    let (rows, n) = (draw.length(0, 60), draw.length(0, 200));
    if draw.pick(&[true, true, true, false]) { (rows, n) } else { (rows.min(3), 13 * n) }
}

/// Declares the cases of softmax and of its logarithm.
macro_rules! softmax_cases {
    ($name:ident, $Op:ident, $reference:ident, $bound:ident) => {
        pub(super) fn $name(draw: &mut Draw) -> Case {
            fn of<T: Sample>(draw: &mut Draw) -> Case
            where
                $Op: Op<T>,
            {
                let variant = draw.variant($Op::variants());
                let (rows, n) = rows(draw);
                let x = draw.special::<T>(rows * n);
                let (want, bound) = (reference::$reference(n, &x), reference::$bound(n, &x));
                Case::new::<T>($Op::new(rows, n).variant(variant)).given(&x).close(&want, bound)
            }
            typed!(draw, of, [f32, f16])
        }
    };
}
softmax_cases!(softmax, Softmax, softmax, softmax_bound);
softmax_cases!(log_softmax, LogSoftmax, log_softmax, log_softmax_bound);

/// Declares the cases of a norm.
macro_rules! norm_cases {
    ($name:ident, $Op:ident, $reference:ident, $bound:ident) => {
        pub(super) fn $name(draw: &mut Draw) -> Case {
            fn of<T: Sample>(draw: &mut Draw) -> Case
            where
                $Op: Op<T>,
            {
                let variant = draw.variant($Op::variants());
                let (rows, n) = rows(draw);
                let x = draw.special::<T>(rows * n);
                let op = $Op::new(rows, n).eps(draw.pick(&[1e-5, 0.5])).variant(variant);
                let gamma = draw.special::<T>(n);
                let beta = draw.option(&[false, true]).then(|| draw.special::<T>(n));
                let want = reference::$reference(&op, &x, &gamma, beta.as_deref());
                let bound = reference::$bound(&op, &x, &gamma, beta.as_deref());
                match beta {
                    Some(beta) => {
                        let case = Case::new::<T>(op.with_beta()).given(&x).given(&gamma);
                        case.given(&beta).close(&want, bound)
                    }
                    None => Case::new::<T>(op).given(&x).given(&gamma).close(&want, bound),
                }
            }
            typed!(draw, of, [f32, f16])
        }
    };
}
norm_cases!(layer_norm, LayerNorm, layer_norm, layer_norm_bound);
norm_cases!(rms_norm, RmsNorm, rms_norm, rms_norm_bound);

/// Declares the cases of the gradient of softmax and of its logarithm.
macro_rules! softmax_backward_cases {
    ($name:ident, $Op:ident, $reference:ident, $bound:ident, $forward:ident) => {
        pub(super) fn $name(draw: &mut Draw) -> Case {
            let variant = draw.variant($Op::variants());
            let (rows, n) = rows(draw);
            let y = reference::$forward(n, &draw.numbers::<f32>(rows * n));
            let dy = draw.special::<f32>(rows * n);
            let (want, bound) = (reference::$reference(n, &y, &dy), reference::$bound(n, &y, &dy));
            Case::new::<f32>($Op::new(rows, n).variant(variant)).given(&y).given(&dy).close(&want, bound)
        }
    };
}
softmax_backward_cases!(softmax_backward, SoftmaxBackward, softmax_backward, softmax_backward_bound, softmax);
softmax_backward_cases!(
    log_softmax_backward,
    LogSoftmaxBackward,
    log_softmax_backward,
    log_softmax_backward_bound,
    log_softmax
);

pub(super) fn layer_norm_backward(draw: &mut Draw) -> Case {
    let variant = draw.variant(LayerNormBackward::variants());
    let (rows, n) = rows(draw);
    let op = LayerNormBackward::new(rows, n).variant(variant);
    let [x, dy] = [0, 1].map(|_| draw.special::<f32>(rows * n));
    let gamma = draw.special::<f32>(n);
    let want = reference::layer_norm_backward(&op, &x, &gamma, &dy);
    let bound = reference::layer_norm_backward_bound(&op, &x, &gamma, &dy);
    let case = Case::new::<f32>(op).given(&x).given(&gamma).given(&dy);
    want.iter().zip(bound).fold(case, |case, (want, bound)| case.close(want, bound))
}

pub(super) fn rms_norm_backward(draw: &mut Draw) -> Case {
    let variant = draw.variant(RmsNormBackward::variants());
    let (rows, n) = rows(draw);
    let op = RmsNormBackward::new(rows, n).variant(variant);
    let [x, dy] = [0, 1].map(|_| draw.special::<f32>(rows * n));
    let gamma = draw.special::<f32>(n);
    let want = reference::rms_norm_backward(&op, &x, &gamma, &dy);
    let bound = reference::rms_norm_backward_bound(&op, &x, &gamma, &dy);
    let case = Case::new::<f32>(op).given(&x).given(&gamma).given(&dy);
    want.iter().zip(bound).fold(case, |case, (want, bound)| case.close(want, bound))
}

/// The kind, extents, strides and padding of a window, for which kernels are compiled.
fn windows(draw: &mut Draw) -> (PoolKind, [usize; 2], [usize; 2], [usize; 2]) {
    let (kernel, stride, pad) = draw.option(&[
        ([2, 2], [2, 2], [0, 0]),
        ([3, 3], [2, 2], [1, 1]),
        ([2, 3], [1, 2], [1, 0]),
        ([1, 1], [1, 1], [0, 0]),
    ]);
    let weights = (0..kernel[0] * kernel[1]).map(|i| 0.25 - 0.1 * i as f32).collect();
    let kind = draw.option(&[PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(weights)]);
    (kind, kernel, stride, pad)
}

/// An input that the windows fit in.
fn images(draw: &mut Draw, kernel: [usize; 2]) -> [usize; 4] {
    [draw.length(1, 3), draw.length(1, 5), draw.length(kernel[0], 20), draw.length(kernel[1], 20)]
}

pub(super) fn pool(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Pool2d: Op<T>,
    {
        let variant = draw.variant(Pool2d::variants());
        let (kind, kernel, stride, pad) = windows(draw);
        let shape = images(draw, kernel);
        let counts = draw.option(&[false, true]);
        let op = Pool2d::new(kind, shape, kernel)
            .stride(stride)
            .pad(pad)
            .when(counts, |op| op.count_include_pad());
        let op = op.activation(draw.option(&Activation::ALL)).variant(variant);
        let x = draw.special::<T>(shape.iter().product());
        let bias = draw.option(&[false, true]).then(|| draw.special::<T>(shape[1]));
        let want = reference::pool(&op, &x, bias.as_deref()).unwrap();
        let bound = reference::pool_bound(&op, &x, bias.as_deref()).unwrap();
        match bias {
            Some(bias) => Case::new::<T>(op.with_bias()).given(&x).given(&bias).close(&want, bound),
            None => Case::new::<T>(op).given(&x).close(&want, bound),
        }
    }
    typed!(draw, of, [f32, f16])
}

pub(super) fn pool_backward(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Pool2dBackward: Op<T>,
    {
        let variant = draw.variant(Pool2dBackward::variants());
        let (kind, kernel, stride, pad) = windows(draw);
        let shape = images(draw, kernel);
        let counts = draw.option(&[false, true]);
        let op = Pool2dBackward::new(kind, shape, kernel)
            .stride(stride)
            .pad(pad)
            .when(counts, |op| op.count_include_pad());
        let op = op.variant(variant);
        let x = draw.special::<T>(shape.iter().product());
        let dy = draw.special::<T>(op.dy_shape().unwrap().iter().product());
        let want = reference::pool_backward(&op, &x, &dy).unwrap();
        let bound = reference::pool_backward_bound(&op, &x, &dy).unwrap();
        Case::new::<T>(op).given(&x).given(&dy).close(&want, bound)
    }
    typed!(draw, of, [f32, f16])
}

pub(super) fn batch_norm(draw: &mut Draw) -> Case {
    let variant = draw.variant(BatchNorm::variants());
    let shape = [draw.length(1, 4), draw.length(1, 7), draw.length(1, 12), draw.length(1, 12)];
    let op = BatchNorm::new(shape).eps(1e-3).activation(draw.option(&Activation::ALL)).variant(variant);
    let x = draw.special::<f32>(shape.iter().product());
    let [mean, gamma, beta] = [0, 1, 2].map(|_| draw.special::<f32>(shape[1]));
    let variance: Vec<f32> = draw.special::<f32>(shape[1]).iter().map(|v| v.abs()).collect();
    let channels: [&[f32]; 4] = [&mean, &variance, &gamma, &beta];
    let (want, bound) =
        (reference::batch_norm(&op, &x, channels), reference::batch_norm_bound(&op, &x, channels));
    let case = Case::new::<f32>(op).given(&x);
    channels.into_iter().fold(case, |case, list| case.given(list)).close(&want, bound)
}

pub(super) fn activation_backward(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        ActivationBackward: Op<T>,
    {
        let (n, variant) = (draw.length(0, 5000), draw.variant(ActivationBackward::variants()));
        let activation = draw.option(&Activation::ALL);
        // A slope of 0 times a non-finite gradient is undefined.
        let (value, dy) = (draw.special::<T>(n), draw.numbers::<T>(n));
        let want = reference::activation_backward(activation, &value, &dy);
        let bound = reference::activation_backward_bound(activation, &value, &dy);
        let op = ActivationBackward::new(activation, n).variant(variant);
        Case::new::<T>(op).given(&value).given(&dy).close(&want, bound)
    }
    typed!(draw, of, [f32, f16])
}

pub(super) fn bias_backward(draw: &mut Draw) -> Case {
    let variant = draw.variant(BiasBackward::variants());
    let (n, channels) = (draw.length(0, 200), draw.length(0, 40));
    let plane = if draw.option(&[false, true]) { draw.length(0, 70) } else { 1 };
    let dy = draw.special::<f32>(n * channels * plane);
    let want = reference::bias_backward(channels, plane, &dy);
    let bound = reference::bias_backward_bound(channels, plane, &dy);
    Case::new::<f32>(BiasBackward::new([n, channels, plane]).variant(variant)).given(&dy).close(&want, bound)
}

pub(super) fn cross_entropy(draw: &mut Draw) -> Case {
    let variant = draw.variant(CrossEntropy::variants());
    let (rows, classes) = (draw.length(1, 80), draw.length(1, 300));
    let logits = draw.special::<f32>(rows * classes);
    let labels = draw.indices(rows, classes);
    let (losses, mean, gradient) = reference::cross_entropy(classes, &logits, &labels);
    let (of_losses, of_mean, of_gradient) = reference::cross_entropy_bound(classes, &logits, &labels);
    let op = CrossEntropy::new(rows, classes).variant(variant);
    if draw.option(&[false, true]) {
        let case = Case::new::<f32>(op.with_gradient()).given(&logits).given(&labels);
        return case.close(&losses, of_losses).close(&[mean], vec![of_mean]).close(&gradient, of_gradient);
    }
    let case = Case::new::<f32>(op).given(&logits).given(&labels);
    case.close(&losses, of_losses).close(&[mean], vec![of_mean])
}

pub(super) fn squared_error(draw: &mut Draw) -> Case {
    let (n, variant) = (draw.length(1, 5000), draw.variant(SquaredError::variants()));
    let (x, target) = (draw.special::<f32>(n), draw.special::<f32>(n));
    let (mean, gradient) = reference::squared_error(&x, &target);
    let (of_mean, of_gradient) = reference::squared_error_bound(&x, &target);
    let op = SquaredError::new(n).variant(variant);
    if draw.option(&[false, true]) {
        let case = Case::new::<f32>(op.with_gradient()).given(&x).given(&target);
        return case.close(&[mean], vec![of_mean]).close(&gradient, of_gradient);
    }
    Case::new::<f32>(op).given(&x).given(&target).close(&[mean], vec![of_mean])
}

/// An operand that is overwritten with these elements, within bounds.
fn updated(case: Case, before: &[f32], want: &[f32], bound: Vec<f64>) -> Case {
    case.updated(before, want.iter().map(|x| f64::from(*x)).collect(), bound)
}

pub(super) fn sgd(draw: &mut Draw) -> Case {
    let (n, variant) = (draw.length(0, 5000), draw.variant(Sgd::variants()));
    let [p, g, v] = [0, 1, 2].map(|_| draw.special::<f32>(n));
    let op = Sgd::new(n, 0.1).decay(draw.pick(&[0.0, 0.01])).variant(variant);
    if draw.option(&[false, true]) {
        let op = op.when(draw.option(&[false, true]), |op| op.nesterov()).with_momentum(0.9);
        let [want_p, want_v] = reference::sgd(&op, &p, &g, &v);
        let [bound_p, bound_v] = reference::sgd_bound(&op, &p, &g, &v);
        let case = updated(Case::new::<f32>(op), &p, &want_p, bound_p).given(&g);
        return updated(case, &v, &want_v, bound_v);
    }
    let still = vec![0.0; n];
    let ([want, _], [bound, _]) =
        (reference::sgd(&op, &p, &g, &still), reference::sgd_bound(&op, &p, &g, &still));
    updated(Case::new::<f32>(op), &p, &want, bound).given(&g)
}

pub(super) fn adam(draw: &mut Draw) -> Case {
    let (n, variant) = (draw.length(0, 5000), draw.variant(Adam::variants()));
    let [p, g, m] = [0, 1, 2].map(|_| draw.elements::<f32>(n, Contents::Special));
    let v: Vec<f32> = draw.special::<f32>(n).iter().map(|v| v * v).collect();
    let full = draw.pick(&[[0.0, 0.0], [0.3, 0.01]]);
    let decay = draw.pick(&[0.0, 0.1]);
    let op = Adam::new(n, 0.01)
        .decay(decay)
        .when(draw.option(&[false, true]), |op| op.decoupled())
        .variant(variant);
    let (m, v) = if full[0] == 0.0 { (vec![0.0; n], vec![0.0; n]) } else { (m, v) };
    let given: [&[f32]; 5] = [&p, &g, &m, &v, &full];
    let ([to_p, to_m, to_v, to_full], bounds) =
        (reference::adam(&op, given), reference::adam_bound(&op, given));
    let [of_p, of_m, of_v, of_full] = bounds;
    let case = updated(Case::new::<f32>(op), &p, &to_p, of_p).given(&g);
    let case = updated(updated(case, &m, &to_m, of_m), &v, &to_v, of_v);
    updated(case, &full, &to_full, of_full)
}

pub(super) fn gather_rows(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        GatherRows: Op<T>,
    {
        let variant = draw.variant(GatherRows::variants());
        let (rows, n, count) = (draw.length(0, 60), draw.length(0, 100), draw.length(0, 100));
        let (table, indices) = (draw.any::<T>(rows * n), draw.indices(count, rows));
        let want = reference::gather_rows(n, &table, &indices);
        let op = GatherRows::new([rows, n], count).variant(variant);
        Case::new::<T>(op).given(&table).given(&indices).exactly(&want)
    }
    typed!(draw, of, [f32, f16, u8, i32, u32, i8])
}

pub(super) fn mean_pool(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        MeanPool: Op<T>,
    {
        let variant = draw.variant(MeanPool::variants());
        let (batch, tokens, width) = (draw.length(0, 8), draw.length(0, 50), draw.length(0, 200));
        let op = MeanPool::new([batch, tokens, width]).variant(variant);
        let op = if draw.option(&[false, true]) { op.normalized() } else { op };
        let (x, lengths) = (draw.special::<T>(batch * tokens * width), draw.indices(batch, tokens));
        let want = reference::mean_pool(&op, &x, &lengths);
        let bound = reference::mean_pool_bound(&op, &x, &lengths);
        Case::new::<T>(op).given(&x).given(&lengths).close(&want, bound)
    }
    typed!(draw, of, [f32, f16])
}

pub(super) fn rope(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        Rope: Op<T>,
    {
        let variant = draw.variant(Rope::variants());
        let (batch, heads, tokens) = (draw.length(1, 3), draw.length(1, 4), draw.length(1, 20));
        let (size, rotary) = draw.option(&[(16, 16), (16, 8), (7, 6), (6, 6), (4, 0)]);
        let op = Rope::new([batch, heads, tokens, size])
            .rotary(rotary)
            .when(draw.option(&[false, true]), |op| op.interleaved());
        let op = op.when(draw.option(&[false, true]), |op| op.tokens_first()).variant(variant);
        let x = draw.special::<T>(batch * heads * tokens * size);
        let rows = draw.pick(&[tokens, batch * tokens, 9]);
        let [cos, sin] = [0, 1].map(|_| draw.special::<f32>(rows * rotary / 2));
        if rows == 9 {
            let positions = draw.indices(batch * tokens, 9);
            let at = op.with_positions(rows);
            let want = reference::rope(&at, &x, (&cos, &sin), Some(&positions));
            let bound = reference::rope_bound(&at, &x, (&cos, &sin), Some(&positions));
            let case = Case::new::<T>(at).given(&x).given(&cos).given(&sin).given(&positions);
            return case.close(&want, bound);
        }
        let op = op.tables(rows);
        let want = reference::rope(&op, &x, (&cos, &sin), None);
        let bound = reference::rope_bound(&op, &x, (&cos, &sin), None);
        Case::new::<T>(op).given(&x).given(&cos).given(&sin).close(&want, bound)
    }
    typed!(draw, of, [f32, f16])
}

//! Ops to tune, with typical shapes.

use half::f16;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::tune::{TuningOptions, TuningReport, tune};
use tilework::{Attention, Element, Result};

type Tune = dyn Fn(&Gpu, &TuningOptions) -> Result<TuningReport>;

/// An op and a shape, whose class gets a winner.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) shape: String,
    tune: Box<Tune>,
}

impl Case {
    fn new<T: Element, D: Op<T> + 'static>(op: &'static str, shape: impl Into<String>, descriptor: D) -> Self {
        let shape = format!("{} {}", shape.into(), T::DTYPE);
        Self { op, shape, tune: Box::new(move |gpu, options| tune::<T, D>(gpu, &descriptor, options)) }
    }

    pub(crate) fn tune(&self, gpu: &Gpu, options: &TuningOptions) -> Result<TuningReport> {
        (self.tune)(gpu, options)
    }
}

/// Lists all cases, with shapes for cards or for processors.
pub(crate) fn cases(large: bool) -> Vec<Case> {
    let of = |small: usize, big: usize| if large { big } else { small };
    let n = of(1 << 18, 1 << 25);
    let side = of(512, 8192);
    let mut all = vec![
        Case::new::<f32, _>("map", format!("gelu {n}"), Map::new(MapFn::Gelu, n)),
        Case::new::<f32, _>("zip", format!("add {n}"), Zip::new(ZipFn::Add, n)),
        Case::new::<f32, _>("reduce", format!("sum {n}"), Reduce::new(Sum, n)),
        Case::new::<f32, _>("reduce", format!("{side} rows of {side}"), Reduce::rows(Sum, side, side)),
        Case::new::<f32, _>("scan", format!("sum {n}"), Scan::new(Sum, n)),
        Case::new::<u8, _>("histogram", format!("{n} in 256 bins"), Histogram::new(n, 256)),
        Case::new::<u32, _>("histogram", format!("{n} in 4096 bins"), Histogram::new(n, 4096)),
        Case::new::<u32, _>("sort", format!("{n}"), RadixSort::new(n)),
        Case::new::<f32, _>("transpose", format!("{side} x {side}"), Transpose::new(side, side)),
        Case::new::<f32, _>("gemv", format!("{side} x {side}"), Gemv::new(side, side)),
    ];
    let products: &[[usize; 3]] = if large {
        &[
            [256, 256, 256],
            [512, 512, 512],
            [1024, 1024, 1024],
            [2048, 2048, 2048],
            [4096, 4096, 4096],
            [128, 4096, 4096],
            [512, 512, 32768],
        ]
    } else {
        &[[64, 64, 64], [128, 128, 128], [32, 512, 512]]
    };
    for &[m, n, k] in products {
        all.push(Case::new::<f32, _>("gemm", format!("{m} x {n} x {k}"), Gemm::new(m, n, k)));
    }
    let (batch, m) = (of(16, 1024), 64);
    let batched = GemmBatched::new(batch, m, m, m);
    all.push(Case::new::<f32, _>("gemm-batched", format!("{batch} of {m} x {m} x {m}"), batched));

    let filter = |n: usize| (0..n).map(|i| 1.0 / (1.0 + i as f32)).collect::<Vec<_>>();
    let (image, volume) = (of(128, 4096), of(24, 256));
    all.push(Case::new::<f32, _>("filter1d", format!("{n}, 15"), Filter1d::new(n, &filter(15))));
    for taps in [3, 7] {
        let conv = Filter2d::new([image, image], [taps, taps], &filter(taps * taps));
        all.push(Case::new::<f32, _>("filter2d", format!("{image} x {image}, {taps} x {taps}"), conv));
    }
    let conv = Filter3d::new([volume; 3], [3; 3], &filter(27));
    all.push(Case::new::<f32, _>("filter3d", format!("{volume} cubed, 3 cubed"), conv));
    let layers: &[[usize; 4]] = if large {
        &[[32, 64, 56, 56], [32, 256, 28, 28], [32, 16, 112, 112]]
    } else {
        &[[1, 8, 16, 16], [1, 16, 8, 8]]
    };
    for &[b, c, h, w] in layers {
        let conv = Conv2d::new([b, c, h, w], c, [3, 3]).pad([1, 1]);
        all.push(Case::new::<f32, _>("conv", format!("{b} of {c} channels of {h} x {w}, 3 x 3"), conv));
    }

    let (rows, width) = (of(64, 8192), of(512, 4096));
    let of_rows = format!("{rows} rows of {width}");
    all.push(Case::new::<f32, _>("softmax", of_rows.clone(), Softmax::new(rows, width)));
    all.push(Case::new::<f32, _>("layer-norm", of_rows.clone(), LayerNorm::new(rows, width)));
    all.push(Case::new::<f32, _>("rms-norm", of_rows, RmsNorm::new(rows, width)));
    let (heads, tokens) = (of(2, 16), of(64, 2048));
    for queries in [tokens, 1] {
        let shape = format!("{heads} heads of 64, {queries} queries, {tokens} keys");
        let attention = || Attention::new([1, heads, queries, 64], [heads, tokens]);
        all.push(Case::new::<f32, _>("attention", shape.clone(), attention()));
        if large {
            all.push(Case::new::<f16, _>("attention", shape, attention()));
        }
    }
    let blur = Blur::new(Image::new([image, image], 3), 5);
    all.push(Case::new::<u8, _>("blur", format!("{image} x {image} x 3, radius 5"), blur));
    all.sort_by_key(|case| case.op);
    all
}

//! Ops with shapes and options drawn from the bytes of an input.

use super::draw::{Draw, Lowered};
use half::f16;
use tilework::attention::{CoopTile, FlashTile, KvAppend, KvType};
use tilework::nn::{
    ActivationBackward, Adam, BatchNorm, BiasBackward, CrossEntropy, GatherRows, LayerNormBackward,
    LogSoftmaxBackward, MeanPool, Optimizer, RmsNormBackward, Rope, Sequential, Sgd, SoftmaxBackward,
    SquaredError,
};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::quantize::{Cast, Dequantize, Quantize, Scales};
use tilework::sparse::{Format, Stored, Target};
use tilework::{Attention, DType, Element, SegmentedReduce, operations};

/// `$body` with the alias `$t` for one of the types.
macro_rules! of_type {
    ($draw:expr, [$($type:ty),*], $t:ident => $body:expr) => {{
        let bodies: &[fn(&mut Draw<'_>, &DeviceProfile) -> Lowered] = &[$(|draw, profile| {
            type $t = $type;
            let made: (_, _) = (draw, profile);
            let body: fn(&mut Draw<'_>, &DeviceProfile) -> Lowered = $body;
            body(made.0, made.1)
        }),*];
        let which = $draw.below(bodies.len());
        bodies[which]
    }};
}

fn lower<T: Element>(op: &impl Op<T>, profile: &DeviceProfile) -> Lowered {
    op.lower(profile)
}

/// Lowers one of the ops, or one of the samples that the registry has.
pub(crate) fn lowered(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let all: &[fn(&mut Draw<'_>, &DeviceProfile) -> Lowered] = &[
        elementwise,
        reductions,
        scans,
        sorts,
        compactions,
        keyed,
        gemm,
        gemm_batched,
        gemv,
        transpose,
        sparse_products,
        spconvert,
        stencils,
        convolutions,
        quantized,
        gemm_int8,
        images,
        rows,
        pools,
        losses,
        optimizers,
        lookups,
        network,
        attention,
        sample,
    ];
    let which = draw.below(all.len());
    all[which](draw, profile)
}

/// A program of the registry, for any variant of any op.
fn sample(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let op = draw.below(operations().count());
    let Some(op) = operations().nth(op) else { return Softmax::new(1, 1).lower_f32(profile) };
    let variant = draw.pick((op.variants)()).name;
    let mut programs = (op.samples)(profile, variant)?;
    let which = draw.below(programs.len());
    if programs.is_empty() { Softmax::new(1, 1).lower_f32(profile) } else { Ok(programs.swap_remove(which)) }
}

/// Of f32, where another type could be meant.
trait LowerF32: Op<f32> + Sized {
    fn lower_f32(&self, profile: &DeviceProfile) -> Lowered {
        Op::<f32>::lower(self, profile)
    }
}
impl<O: Op<f32>> LowerF32 for O {}

fn elementwise(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16, i32, u32, u8, i8], T => |draw, profile| {
        let n = draw.u64() as usize;
        match draw.below(4) {
            0 => lower::<T>(&Axpy::new(n, draw.float()).variant(draw.variant("axpy")), profile),
            1 => {
                let own = MapFn::custom("fn map(x: T) -> T { return x + x; }");
                let function = if draw.rarely(5) { own } else { draw.pick(&MapFn::BUILT_IN) };
                let map = Map::new(function, n).variant(draw.variant("map"));
                if draw.flag() { lower::<T>(&map, profile) } else { lower::<T>(&map.in_place(), profile) }
            }
            2 => {
                let own = ZipFn::custom("fn zip(a: T, b: T) -> T { return a * b; }");
                let functions = [ZipFn::Add, ZipFn::Sub, ZipFn::Mul, ZipFn::Div, ZipFn::Min, ZipFn::Max, own];
                lower::<T>(&Zip::new(draw.pick(&functions), n).variant(draw.variant("zip")), profile)
            }
            _ => {
                let bins = draw.u64() as usize;
                let histogram = if draw.rarely(4) {
                    let edges = draw.below(40);
                    Histogram::with_edges(n, draw.floats(edges).into_iter().map(f64::from).collect::<Vec<_>>())
                } else {
                    Histogram::new(n, bins).range(draw.float(), draw.float())
                };
                let histogram = if draw.rarely(6) {
                    histogram.packing(draw.tuned(), u64::from(draw.each()), draw.each(), draw.each())
                } else {
                    histogram
                };
                lower::<T>(&histogram.variant(draw.variant("histogram")), profile)
            }
        }
    });
    body(draw, profile)
}

/// Evaluates `$body` with `$op` bound to an operator.
macro_rules! with_operator {
    ($draw:expr, [$($operator:ident),*], $op:ident => $body:expr) => {{
        let mut which = $draw.below([$(stringify!($operator)),*].len());
        let mut result = None;
        $(
            if which == 0 && result.is_none() {
                let $op = $operator;
                result = Some($body);
            }
            which = which.wrapping_sub(1);
        )*
        let _ = which;
        match result {
            Some(result) => result,
            None => unreachable!(),
        }
    }};
}

const OWN: &str = "fn op_identity() -> T { return T(0); }\nfn op_combine(a: T, b: T) -> T { return a + b; }";

fn reductions(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16, i32, u32, u8, i8], T => |draw, profile| {
        let (rows, n) = (draw.size(), draw.u64() as usize);
        with_operator!(draw, [Sum, Prod, Min, Max, ArgMin, ArgMax], op => {
            let reduce = if draw.flag() { Reduce::new(op, n) } else { Reduce::rows(op, rows, n) };
            let reduce = if draw.flag() { reduce.deterministic() } else { reduce };
            lower::<T>(&reduce.variant(draw.variant("reduce")), profile)
        })
    });
    if draw.rarely(6) {
        let reduce = Reduce::rows(CustomOp::new(OWN), draw.size(), draw.size());
        return lower::<i32>(&reduce.variant(draw.variant("reduce")), profile);
    }
    body(draw, profile)
}

fn scans(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16, i32, u32], T => |draw, profile| {
        let (rows, n) = (draw.size(), draw.u64() as usize);
        with_operator!(draw, [Sum, Prod, Min, Max], op => {
            if draw.rarely(3) {
                let scan = SegmentedScan::new(op, n).exclusive(draw.flag());
                let scan = if draw.flag() { scan.deterministic() } else { scan };
                return lower::<T>(&scan.variant(draw.variant("segmented-scan")), profile);
            }
            let scan = if draw.flag() { Scan::new(op, n) } else { Scan::rows(op, rows, n) };
            let scan = scan.exclusive(draw.flag()).reverse(draw.flag());
            let scan = if draw.flag() { scan.deterministic() } else { scan };
            lower::<T>(&scan.variant(draw.variant("scan")), profile)
        })
    });
    if draw.rarely(6) {
        let scan = Scan::rows(CustomOp::new(OWN).commutative(), draw.size(), draw.size());
        return lower::<f32>(&scan.exclusive(draw.flag()).variant(draw.variant("scan")), profile);
    }
    body(draw, profile)
}

fn sorts(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16, i32, u32, u64, u8], T => |draw, profile| {
        let n = draw.u64() as usize;
        if draw.rarely(3) {
            let top = TopK::new(n, draw.u64() as usize).smallest(draw.flag());
            let top = if draw.rarely(5) { top.chunk(draw.tuned() * 4) } else { top };
            return lower::<T>(&top.variant(draw.variant("top-k")), profile);
        }
        let mut sort = RadixSort::new(n).descending(draw.flag()).variant(draw.variant("sort"));
        if draw.rarely(4) {
            sort = sort.bits(draw.side()..draw.side());
        }
        if draw.rarely(5) {
            sort = sort.tile(256, 4 * draw.each());
        }
        match draw.below(6) {
            0 => lower::<T>(&sort.in_place(), profile),
            1 => lower::<T>(&sort.with_values(), profile),
            2 => lower::<T>(&sort.with_values().in_place(), profile),
            3 => lower::<T>(&sort.counted(), profile),
            _ => lower::<T>(&sort, profile),
        }
    });
    body(draw, profile)
}

fn compactions(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16, i32, u32], T => |draw, profile| {
        let n = draw.u64() as usize;
        let own = Predicate::custom("fn keep(x: T) -> bool { return x > T(1); }");
        let predicate = if draw.flag() { Predicate::NonZero } else { own };
        match draw.below(7) {
            0 => lower::<T>(&Select::new(n).variant(draw.variant("select")), profile),
            1 => lower::<T>(&Select::by(n, predicate).variant(draw.variant("select")), profile),
            2 => lower::<T>(&Select::new(n).variant(draw.variant("select")).counted(), profile),
            3 => lower::<T>(&Partition::new(n).variant(draw.variant("partition")), profile),
            4 => lower::<T>(&Partition::by(n, predicate).variant(draw.variant("partition")), profile),
            5 => lower::<T>(&Unique::new(n).variant(draw.variant("unique")), profile),
            _ => lower::<T>(&RunLength::new(n).variant(draw.variant("run-length")), profile),
        }
    });
    body(draw, profile)
}

fn keyed(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, i32, u32, f16], T => |draw, profile| {
        let n = draw.u64() as usize;
        with_operator!(draw, [Sum, Prod, Min, Max], op => {
            if draw.flag() {
                let reduce = SegmentedReduce::new(op, n).variant(draw.variant("segmented-reduce"));
                let reduce = if draw.rarely(5) { reduce.tile(draw.tuned(), draw.each()) } else { reduce };
                return lower::<T>(&reduce, profile);
            }
            let reduce = ReduceByKey::new(op, n).variant(draw.variant("reduce-by-key"));
            let reduce = if draw.rarely(5) { reduce.tile(draw.tuned(), draw.each()) } else { reduce };
            match draw.below(3) {
                0 => lower::<T>(&reduce.with_keys::<i32>(), profile),
                1 => lower::<T>(&reduce.with_keys::<f32>(), profile),
                _ => lower::<T>(&reduce, profile),
            }
        })
    });
    body(draw, profile)
}

fn activation(draw: &mut Draw<'_>) -> Activation {
    draw.pick(&Activation::ALL)
}

fn gemm(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let [m, n, k] = draw.sizes();
    let mut op = Gemm::new(m, n, k)
        .alpha(draw.float() as f32)
        .trans_a(draw.flag())
        .trans_b(draw.flag())
        .activation(activation(draw))
        .variant(draw.variant("gemm"));
    if draw.flag() {
        op = op.beta(draw.float() as f32);
    }
    if draw.rarely(3) {
        op = op.lda(draw.size()).ldb(draw.size()).ldc(draw.size());
    }
    if draw.rarely(4) {
        op = op.tile(draw.side(), draw.side(), draw.side());
    }
    if draw.rarely(4) {
        op = op.thread_tile(draw.side(), draw.side());
    }
    if draw.rarely(4) {
        op = op.slices(draw.u32());
    }
    if draw.rarely(4) {
        op = op.unrolled(draw.flag()).workgroup_vectors(draw.flag()).fresh_sums(draw.flag());
    }
    op = op.precision(draw.pick(&[Precision::Strict, Precision::Tensor, Precision::Split]));
    match draw.below(7) {
        0 => lower::<f16>(&op, profile),
        1 => lower::<f16>(&op.mixed_precision(), profile),
        2 => lower::<f32>(&op.with_bias(), profile),
        3 => lower::<f16>(&op.with_row_bias(), profile),
        4 => lower::<f16>(&op.with_bias().mixed_precision(), profile),
        _ => lower::<f32>(&op, profile),
    }
}

fn gemm_batched(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let [batch, m, n, k] = draw.sizes();
    let mut op = GemmBatched::new(batch, m, n, k)
        .trans_a(draw.flag())
        .trans_b(draw.flag())
        .activation(activation(draw))
        .variant(draw.variant("gemm-batched"));
    if draw.flag() {
        op = op.alpha(draw.float() as f32).beta(draw.float() as f32);
    }
    if draw.rarely(3) {
        op = op.lda(draw.size()).ldb(draw.size()).ldc(draw.size());
    }
    if draw.rarely(3) {
        op = op.strides(draw.u64() as usize, draw.u64() as usize, draw.u64() as usize);
    }
    if draw.rarely(4) {
        op = op.products(draw.side());
    }
    if draw.rarely(4) {
        op = op.thread_tile(draw.side(), draw.side());
    }
    match draw.below(6) {
        0 => lower::<f16>(&op, profile),
        1 => lower::<f16>(&op.mixed_precision(), profile),
        2 => lower::<f32>(&op.with_bias(), profile),
        3 => lower::<f16>(&op.with_row_bias().mixed_precision(), profile),
        _ => lower::<f32>(&op, profile),
    }
}

fn gemv(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let [m, k] = draw.sizes();
    let mut op = Gemv::new(m, k).trans(draw.flag()).variant(draw.variant("gemv"));
    if draw.flag() {
        op = op.alpha(draw.float() as f32).beta(draw.float() as f32);
    }
    if draw.rarely(3) {
        op = op.lda(draw.size());
    }
    if draw.flag() { lower::<f32>(&op, profile) } else { lower::<f16>(&op, profile) }
}

fn transpose(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16, u32, u8, u64], T => |draw, profile| {
        let [batch, m, n] = draw.sizes();
        let op = if draw.flag() { Transpose::new(m, n) } else { Transpose::batched(batch, m, n) };
        lower::<T>(&op.variant(draw.variant("transpose")), profile)
    });
    body(draw, profile)
}

fn stored(draw: &mut Draw<'_>) -> Stored {
    let format = match draw.below(7) {
        0 => Format::Coo { sorted: draw.flag() },
        1 => Format::Csr,
        2 => Format::Csc,
        3 => Format::Ell { width: draw.size() },
        4 => Format::Hybrid { width: draw.size(), list: draw.size(), sorted: draw.flag() },
        5 => Format::Jds,
        _ => Format::Sell { slice: draw.size(), places: draw.size() },
    };
    Stored {
        rows: draw.size(),
        cols: draw.size(),
        entries: draw.size(),
        longest: draw.size(),
        format,
        values: draw.pick(&[DType::F32, DType::F16, DType::U8]),
    }
}

fn sparse_products(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let matrix = stored(draw);
    if draw.flag() {
        let mut op = Spmv::new(matrix);
        if draw.flag() {
            op = op.deterministic();
        }
        op = op.variant(draw.variant("spmv"));
        if draw.flag() {
            op = op.alpha(draw.float() as f32).beta(draw.float() as f32);
        }
        if draw.rarely(4) {
            op = op.tile(draw.tuned(), draw.each());
        }
        return lower::<f32>(&op, profile);
    }
    let mut op = Spmm::new(matrix, draw.size()).variant(draw.variant("spmm"));
    if draw.flag() {
        op = op.alpha(draw.float() as f32).beta(draw.float() as f32);
    }
    if draw.rarely(3) {
        op = op.ldb(draw.size()).ldc(draw.size());
    }
    if draw.rarely(4) {
        op = op.tile(draw.tuned(), draw.each(), 8 * draw.each());
    }
    lower::<f32>(&op, profile)
}

fn spconvert(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let from = stored(draw);
    let mut to = stored(draw);
    if !draw.rarely(4) {
        to = Stored { format: to.format, values: to.values, ..from };
    }
    let mut op = Spconvert::new(from, to).variant(draw.variant("spconvert"));
    if draw.flag() {
        op = op.window(draw.size());
    }
    let _ = Target::named("sell");
    lower::<f32>(&op, profile)
}

fn boundary(draw: &mut Draw<'_>) -> Boundary {
    draw.pick(&Boundary::ALL)
}

fn stencils(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, u8, f16], T => |draw, profile| {
        let extents: [usize; 3] = draw.sizes();
        let shape: [usize; 3] = if draw.rarely(5) { draw.sizes() } else { std::array::from_fn(|_| 1 + draw.below(9)) };
        let axes = 1 + draw.below(3);
        let taps = shape[..axes].iter().fold(1usize, |n, s| n.saturating_mul(*s));
        let filter = if draw.rarely(4) { vec![1.0; draw.below(30)] } else { vec![0.5; taps.min(1 << 12)] };
        let name = ["conv1d", "conv2d", "conv3d"][axes - 1];
        let (boundary, variant) = (boundary(draw), draw.variant(name));
        let outputs = draw.rarely(5).then(|| (draw.size(), draw.size()));
        macro_rules! stencil {
            ($op:expr) => {{
                let op = $op.boundary(boundary).variant(variant);
                let op = match outputs {
                    Some((rows, planes)) => op.outputs(rows, planes),
                    None => op,
                };
                lower::<T>(&op, profile)
            }};
        }
        match axes {
            1 => stencil!(Conv1d::new(extents[0], &filter)),
            2 => stencil!(Conv2d::new(extents[0], extents[1], [shape[0], shape[1]], &filter)),
            _ => stencil!(Conv3d::new(extents, shape, &filter)),
        }
    });
    body(draw, profile)
}

/// Mostly 1, 2 or 3.
fn small(draw: &mut Draw<'_>) -> [usize; 2] {
    if draw.rarely(6) { draw.sizes() } else { [draw.below(4), draw.below(4)] }
}

fn convolutions(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let mut shape: [usize; 4] = draw.sizes();
    let mut filters = draw.size();
    let groups = if draw.rarely(3) { draw.size() } else { 1 };
    if !draw.rarely(4) {
        // Channels and filters that groups divide.
        shape[1] = shape[1].saturating_mul(groups);
        filters = filters.saturating_mul(groups);
    }
    let (kernel, stride, pad, dilation) = (small(draw), small(draw), small(draw), small(draw));
    let kernel = kernel.map(|k| k.max(usize::from(!draw.rarely(8))));
    macro_rules! layer {
        ($op:expr) => {{
            let mut op = $op.groups(groups);
            if draw.flag() {
                op = op.stride(stride).dilation(dilation);
            }
            op = if draw.rarely(5) { op.pad_each(draw.sizes()) } else { op.pad(pad) };
            op
        }};
    }
    if draw.rarely(4) {
        let op = layer!(ConvTranspose::new(shape, filters, kernel))
            .output_padding(small(draw))
            .activation(activation(draw))
            .variant(draw.variant("conv-transpose"));
        let _ = (op.output_shape(), op.weights_shape());
        return if draw.flag() { lower::<f32>(&op, profile) } else { lower::<f32>(&op.with_bias(), profile) };
    }
    let op = layer!(Conv::new(shape, filters, kernel)).activation(activation(draw)).precision(draw.pick(&[
        Precision::Strict,
        Precision::Tensor,
        Precision::Split,
    ]));
    let _ = (op.output_shape(), op.weights_shape());
    match draw.below(5) {
        0 => lower::<f32>(&ConvBackwardData::new(&op).variant(draw.variant("conv-backward-data")), profile),
        1 => {
            let back = ConvBackwardWeights::new(&op).variant(draw.variant("conv-backward-weights"));
            if draw.flag() { lower::<f32>(&back, profile) } else { lower::<f32>(&back.with_bias(), profile) }
        }
        2 => lower::<f32>(&op.variant(draw.variant("conv")).with_bias(), profile),
        _ => lower::<f32>(&op.variant(draw.variant("conv")), profile),
    }
}

fn quantized(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let [n, rows] = draw.sizes();
    let scales = match draw.below(3) {
        0 => Scales::Row,
        1 => Scales::Tensor,
        _ => Scales::Group(if draw.rarely(3) { draw.size() } else { 32 }),
    };
    let n = if draw.flag() { n.saturating_mul(32) } else { n };
    let variant = draw.variant("quantize");
    match draw.below(7) {
        0 => lower::<f32>(&Cast::new(draw.u64() as usize).variant(draw.variant("cast")), profile),
        1 => lower::<f16>(&Cast::new(draw.u64() as usize).variant(draw.variant("cast")), profile),
        2 => lower::<f32>(&Quantize::<i8>::new(rows, n).scales(scales).variant(variant), profile),
        3 => lower::<f16>(&Quantize::<u8>::new(rows, n).scales(scales).variant(variant), profile),
        4 => {
            lower::<f32>(&Quantize::<u8>::new(rows, n).scales(scales).variant(variant).with_scale(), profile)
        }
        5 => lower::<f16>(&Dequantize::<i8>::new(rows, n).scales(scales), profile),
        _ => {
            let op = Dequantize::<u8>::new(rows, n).scales(scales).variant(draw.variant("dequantize"));
            let _ = op.span();
            lower::<f32>(&op, profile)
        }
    }
}

fn gemm_int8(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let [m, n, k] = draw.sizes();
    let mut op = GemmInt8::new(m, n, k).trans_b(draw.flag()).variant(draw.variant("gemm-int8"));
    if draw.rarely(4) {
        op = op.tile(draw.side(), draw.side(), draw.side());
    }
    if draw.rarely(4) {
        op = op.thread_tile(draw.side(), draw.side());
    }
    match draw.below(4) {
        0 => lower::<f32>(&op.scaled().activation(activation(draw)), profile),
        1 => lower::<f16>(&op.scaled().activation(activation(draw)).with_bias(), profile),
        _ => lower::<i32>(&op, profile),
    }
}

fn images(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [u8, f32, f16], T => |draw, profile| {
        let [h, w] = draw.sizes();
        let channels = if draw.rarely(5) { draw.size() } else { 1 + draw.below(5) };
        let image = Image::new(h, w, channels);
        let image = if draw.flag() { image.planar() } else { image };
        match draw.below(5) {
            0 => {
                let weights = draw.pick(&[GreyWeights::Luma, GreyWeights::Source]);
                lower::<T>(&Grey::new(image).weights(weights).variant(draw.variant("grey")), profile)
            }
            1 => {
                let blur = Blur::new(image, draw.size()).divide(draw.pick(&Divide::ALL));
                lower::<T>(&blur.variant(draw.variant("blur")), profile)
            }
            2 => {
                let op = Gaussian::new(image, draw.float()).boundary(boundary(draw));
                let op = if draw.flag() { op.radius(draw.size()) } else { op };
                lower::<T>(&op.variant(draw.variant("gaussian")), profile)
            }
            3 => {
                let op = Sobel::new(image).gradient(draw.pick(&Gradient::ALL));
                lower::<T>(&op.variant(draw.variant("sobel")), profile)
            }
            _ => {
                let op = Equalize::new(image).range(draw.float(), draw.float());
                lower::<T>(&op.variant(draw.variant("equalize")), profile)
            }
        }
    });
    body(draw, profile)
}

fn rows(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16], T => |draw, profile| {
        let [rows, n] = draw.sizes();
        let lanes = draw.rarely(4).then(|| draw.side());
        macro_rules! row {
            ($op:expr) => {{
                let op = $op;
                match lanes {
                    Some(lanes) => op.lanes(lanes),
                    None => op,
                }
            }};
        }
        let eps = draw.float() as f32;
        match draw.below(6) {
            0 => lower::<T>(&row!(Softmax::new(rows, n).variant(draw.variant("softmax"))), profile),
            1 => lower::<T>(&row!(LogSoftmax::new(rows, n).variant(draw.variant("log-softmax"))), profile),
            2 => lower::<T>(&row!(LayerNorm::new(rows, n).eps(eps).variant(draw.variant("layer-norm"))), profile),
            3 => lower::<T>(&row!(LayerNorm::new(rows, n).eps(eps)).with_beta(), profile),
            4 => lower::<T>(&row!(RmsNorm::new(rows, n).eps(eps).variant(draw.variant("rms-norm"))), profile),
            _ => lower::<T>(&row!(RmsNorm::new(rows, n).eps(eps)).with_beta(), profile),
        }
    });
    if draw.rarely(3) {
        let [rows, n] = draw.sizes();
        let eps = draw.float() as f32;
        return match draw.below(4) {
            0 => lower::<f32>(
                &SoftmaxBackward::new(rows, n).variant(draw.variant("softmax-backward")),
                profile,
            ),
            1 => lower::<f32>(&LogSoftmaxBackward::new(rows, n), profile),
            2 => lower::<f32>(&LayerNormBackward::new(rows, n).eps(eps), profile),
            _ => lower::<f32>(&RmsNormBackward::new(rows, n).eps(eps), profile),
        };
    }
    body(draw, profile)
}

fn pools(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16], T => |draw, profile| {
        let shape: [usize; 4] = draw.sizes();
        let kernel = small(draw);
        let weights = if draw.rarely(4) { draw.below(20) } else { kernel[0].saturating_mul(kernel[1]).min(1 << 12) };
        let weights = draw.floats(weights);
        let kind = draw.pick(&[PoolKind::Max, PoolKind::Average, PoolKind::L2, PoolKind::Weighted(weights)]);
        let (stride, pad, dilation, counts) = (small(draw), small(draw), small(draw), draw.flag());
        if draw.rarely(3) {
            let op = Pool2dBackward::new(kind, shape, kernel).stride(stride).pad(pad).dilation(dilation);
            let op = op.count_include_pad(counts).variant(draw.variant("pool-backward"));
            let _ = op.dy_shape();
            return lower::<T>(&op, profile);
        }
        let op = Pool2d::new(kind, shape, kernel).stride(stride).dilation(dilation);
        let op = if draw.rarely(4) { op.pad_each(draw.sizes()) } else { op.pad(pad) };
        let op = op.count_include_pad(counts).activation(activation(draw)).variant(draw.variant("pool"));
        let op = if draw.rarely(5) { op.units(draw.side()) } else { op };
        let _ = op.output_shape();
        if draw.flag() { lower::<T>(&op, profile) } else { lower::<T>(&op.with_bias(), profile) }
    });
    body(draw, profile)
}

fn losses(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let [rows, n, plane] = draw.sizes();
    match draw.below(7) {
        0 => lower::<f32>(&CrossEntropy::new(rows, n).variant(draw.variant("cross-entropy")), profile),
        1 => lower::<f32>(&CrossEntropy::new(rows, n).with_gradient(), profile),
        2 => lower::<f32>(&SquaredError::new(draw.u64() as usize), profile),
        3 => lower::<f32>(&SquaredError::new(draw.u64() as usize).with_gradient(), profile),
        4 => lower::<f16>(&ActivationBackward::new(activation(draw), draw.u64() as usize), profile),
        5 => lower::<f32>(&BiasBackward::new(rows, n, plane), profile),
        _ => {
            let op = BatchNorm::new(draw.sizes()).eps(draw.float() as f32).activation(activation(draw));
            lower::<f32>(&op.variant(draw.variant("batch-norm")), profile)
        }
    }
}

fn sgd(draw: &mut Draw<'_>, n: usize) -> Sgd {
    Sgd::new(n, draw.float() as f32).decay(draw.float() as f32).nesterov(draw.flag())
}

fn adam(draw: &mut Draw<'_>, n: usize) -> Adam {
    let op = Adam::new(n, draw.float() as f32).betas(draw.float(), draw.float());
    op.eps(draw.float() as f32).decay(draw.float() as f32).decoupled(draw.flag())
}

fn optimizers(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let n = draw.u64() as usize;
    match draw.below(3) {
        0 => lower::<f32>(&sgd(draw, n), profile),
        1 => lower::<f32>(&sgd(draw, n).with_momentum(draw.float() as f32), profile),
        _ => lower::<f32>(&adam(draw, n).variant(draw.variant("adam")), profile),
    }
}

fn lookups(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16], T => |draw, profile| {
        let [a, b, c, d] = draw.sizes();
        match draw.below(4) {
            0 => lower::<T>(&GatherRows::new(a, b, c).variant(draw.variant("gather-rows")), profile),
            1 => lower::<T>(&MeanPool::new(a, b, c).variant(draw.variant("mean-pool")).normalized(), profile),
            _ => {
                let d = if draw.flag() { d.wrapping_mul(2) } else { d };
                let mut op = Rope::new(a, b, c, d).interleaved(draw.flag()).tokens_first(draw.flag());
                if draw.rarely(4) {
                    op = op.rotary(draw.size());
                }
                if draw.rarely(4) {
                    op = op.tables(draw.size());
                }
                op = op.variant(draw.variant("rope"));
                if draw.flag() { lower::<T>(&op, profile) } else { lower::<T>(&op.with_positions(draw.size()), profile) }
            }
        }
    });
    body(draw, profile)
}

fn network(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let mut net = Sequential::new(draw.sizes());
    for _ in 0..draw.below(6) {
        net = match draw.below(6) {
            0 => net.conv(draw.size(), small(draw), small(draw), small(draw)),
            1 => {
                let kernel = small(draw);
                let weights = draw.floats(kernel[0].saturating_mul(kernel[1]).min(64));
                let kind = draw.pick(&[PoolKind::Max, PoolKind::Average, PoolKind::Weighted(weights)]);
                net.pool(kind, kernel, small(draw))
            }
            2 => net.linear(draw.size()),
            3 => net.activation(activation(draw)),
            4 => net.flatten(),
            _ => net.softmax(),
        };
    }
    let batch = draw.size();
    let _ = (net.input_len(), net.output_shape(), net.parameters(), net.parameter_len());
    match draw.below(3) {
        0 => lower::<f32>(&net.forward(batch), profile),
        1 => lower::<f32>(&net.gradient(batch), profile),
        _ => {
            let n = draw.size();
            let optimizer: Optimizer = match draw.below(3) {
                0 => sgd(draw, n).into(),
                1 => sgd(draw, n).with_momentum(0.5).into(),
                _ => adam(draw, n).into(),
            };
            let _ = net.state_len(&optimizer);
            lower::<f32>(&net.train(batch, optimizer), profile)
        }
    }
}

fn attention(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let body = of_type!(draw, [f32, f16], T => |draw, profile| {
        let [batch, kv_heads, queries, keys, size] = draw.sizes();
        let kv = draw.rarely(3).then(|| draw.pick(&KvType::ALL));
        let pages = draw.rarely(4).then(|| (draw.size(), draw.size()));
        if draw.rarely(4) {
            let mut op = KvAppend::new(batch, kv_heads, queries, keys, size);
            op = kv.into_iter().fold(op, KvAppend::kv);
            op = pages.into_iter().fold(op, |op, (tokens, pages)| op.paged(tokens, pages));
            return lower::<T>(&op.variant(draw.variant("kv-append")), profile);
        }
        let heads = if draw.rarely(4) { draw.size() } else { kv_heads.saturating_mul(1 + draw.below(4)) };
        let mut op = Attention::new(batch, heads, kv_heads, queries, keys, size);
        op = kv.into_iter().fold(op, Attention::kv);
        op = pages.into_iter().fold(op, |op, (tokens, pages)| op.paged(tokens, pages));
        if draw.flag() {
            op = op.causal();
        }
        if draw.rarely(3) {
            op = op.window(draw.size());
        }
        if draw.rarely(3) {
            op = op.scale(draw.float() as f32);
        }
        if draw.rarely(3) {
            op = if draw.flag() { op.masked(batch, heads) } else { op.masked(draw.size(), draw.size()) };
        }
        if draw.rarely(3) {
            op = op.lengths();
        }
        if draw.rarely(4) {
            let [rows, keys, lanes, thread_rows, dims, weights, values] = std::array::from_fn(|_| draw.side());
            let tile = FlashTile { rows, keys, lanes, thread_rows, dims, weights, values, ahead: draw.flag() };
            op = op.tile(tile);
        }
        if draw.rarely(4) {
            op = op.coop_tile(CoopTile { teams: draw.side(), rows: draw.side(), keys: draw.side() });
        }
        lower::<T>(&op.variant(draw.variant("attention")), profile)
    });
    body(draw, profile)
}

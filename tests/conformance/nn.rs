//! Softmax, norms and pooling. Normalised axes are moved last, where they form a row; 1-D images become
//! images of one line.

use super::array::{Array, from_front};
use super::elementwise::{apply, elements, numbers, power, root, run};
use super::{Call, Stop};
use crate::support::onnx::{Attribute, TensorData};
use half::f16;
use tilework::DType;
use tilework::nn::{BatchNorm, BatchNormTrain, CrossEntropy, Rope};
use tilework::prelude::*;
use tilework::primitives::Operator;
use tilework::program::Op;
use tilework::reference::{
    Number, batch_norm_bound, batch_norm_train_bound, cross_entropy_bound, layer_norm_bound, log_softmax_bound,
    pool as reference_pool, pool_bound, reduce_bound, rms_norm_bound, rope_bound, softmax_bound,
};

/// From operator set 13 on, along one axis; before, over that axis and all after it.
fn rows_of(call: &Call, x: &Array) -> (Array, usize, Vec<usize>) {
    let rank = x.dims.len();
    if call.opset < 13 {
        let axis = from_front(call.int("axis", 1), rank);
        return (x.clone(), x.dims[axis..].iter().product(), (0..rank).collect());
    }
    let axis = from_front(call.int("axis", -1), rank);
    let (rows, back) = x.axis_last(axis);
    (rows, x.dims[axis], back)
}

fn softmax_as<T: Number>(call: &Call, x: &Array, log: bool) -> Result<Array, Stop>
where
    Softmax: Op<T>,
    LogSoftmax: Op<T>,
{
    let (rows, n, back) = rows_of(call, x);
    let input = elements::<T>(&rows);
    let count = input.len().checked_div(n).unwrap_or(0);
    let (got, bound): (Vec<T>, _) = if log {
        (run(call.gpu, &LogSoftmax::new(count, n), &input, input.len())?, log_softmax_bound(n, &input))
    } else {
        (run(call.gpu, &Softmax::new(count, n), &input, input.len())?, softmax_bound(n, &input))
    };
    Ok(Array { dims: rows.dims.clone(), values: numbers(&got), bound }.permuted(&back))
}

pub(super) fn softmax(call: &Call, log: bool) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    by_type!(dtype, [f32, f16], "softmax does not take", T => softmax_as::<T>(call, &x, log))
}

fn norm_as<T: Number>(call: &Call, arrays: &[Array], rms: bool) -> Result<Array, Stop>
where
    LayerNorm: Op<T>,
    RmsNorm: Op<T>,
{
    let x = &arrays[0];
    let axis = from_front(call.int("axis", -1), x.dims.len());
    let n = x.dims[axis..].iter().product::<usize>();
    let columns = |array: &Array| {
        let fits = array.dims.len() <= x.dims.len() - axis;
        let columns = if fits { Some(elements::<T>(&array.broadcast(&x.dims[axis..]))) } else { None };
        columns.ok_or_else(|| Stop::out_of_scope("a scale by row", format!("{:?}", array.dims)))
    };
    let (input, gamma) = (elements::<T>(x), columns(&arrays[1])?);
    let beta = arrays.get(2).map(columns).transpose()?;
    let (gpu, rows) = (call.gpu, input.len().checked_div(n).unwrap_or(0));
    let eps = call.float("epsilon", 1e-5);
    let (dx, dg, dy) = (gpu.upload(&input)?, gpu.upload(&gamma)?, gpu.alloc::<T>(input.len())?);
    let mut rec = gpu.recorder();
    let bound = if rms {
        let norm = RmsNorm::new(rows, n).eps(eps);
        norm.plan::<T>(gpu)?.record(&mut rec, &dx, &dg, &dy)?;
        rms_norm_bound(&norm, &input, &gamma, None)
    } else {
        let norm = LayerNorm::new(rows, n).eps(eps);
        if let Some(beta) = &beta {
            let db = gpu.upload(beta)?;
            norm.clone().with_beta().plan::<T>(gpu)?.with_beta(&db).record(&mut rec, &dx, &dg, &dy)?;
        } else {
            norm.plan::<T>(gpu)?.record(&mut rec, &dx, &dg, &dy)?;
        }
        layer_norm_bound(&norm, &input, &gamma, beta.as_deref())
    };
    rec.submit()?;
    Ok(Array { dims: x.dims.clone(), values: numbers(&dy.read()?), bound })
}

pub(super) fn norm(call: &Call, rms: bool) -> Result<Array, Stop> {
    let (dtype, arrays) = call.operands()?;
    by_type!(dtype, [f32, f16], "norms do not take", T => norm_as::<T>(call, &arrays, rms))
}

fn pool_as<T: Number>(call: &Call, op: &Pool2d, x: &Array, dims: Vec<usize>) -> Result<Array, Stop>
where
    Pool2d: Op<T>,
{
    let input = elements::<T>(x);
    let got: Vec<T> = run(call.gpu, op, &input, dims.iter().product())?;
    Ok(Array { values: numbers(&got), bound: pool_bound(op, &input, None)?, dims })
}

fn pool_typed(call: &Call, dtype: DType, op: &Pool2d, x: &Array, dims: Vec<usize>) -> Result<Array, Stop> {
    by_type!(dtype, [f32, f16], "pool does not take", T => pool_as::<T>(call, op, x, dims))
}

/// A list of two numbers, of which 1-D images have the second; the default if it is not given.
pub(super) fn two(call: &Call, name: &str, axes: usize, default: usize) -> [usize; 2] {
    match call.node.attribute(name) {
        Some(Attribute::Ints(values)) if axes == 1 => [1, values[0] as usize],
        Some(Attribute::Ints(values)) => [values[0] as usize, values[1] as usize],
        _ => [if axes == 1 { 1 } else { default }, default],
    }
}

/// Padding before and after along an axis of `size`, with the extra padding of the last window if sizes round up.
pub(super) fn pads(call: &Call, axis: usize, axes: usize, size: usize, [span, stride]: [usize; 2]) -> [usize; 2] {
    let place = (axis + axes).wrapping_sub(2);
    let same = |lower: bool| {
        let windows = size.div_ceil(stride);
        let total = ((windows - 1) * stride + span).saturating_sub(size);
        let (less, more) = (total / 2, total - total / 2);
        if lower { [more, less] } else { [less, more] }
    };
    if place >= axes {
        return [0, 0];
    }
    let [before, mut after] = match call.node.attribute("auto_pad") {
        Some(Attribute::Str(name)) if name == "SAME_UPPER" => return same(false),
        Some(Attribute::Str(name)) if name == "SAME_LOWER" => return same(true),
        _ => match call.node.attribute("pads") {
            Some(Attribute::Ints(values)) => [values[place] as usize, values[place + axes] as usize],
            _ => [0, 0],
        },
    };
    if call.int("ceil_mode", 0) != 0 {
        let room = size + before + after - span;
        let mut windows = room.div_ceil(stride) + 1;
        // A window that would begin in the trailing padding does not count.
        if (windows - 1) * stride >= size + before {
            windows -= 1;
        }
        after += ((windows - 1) * stride).saturating_sub(room);
    }
    [before, after]
}

pub(super) fn pool(call: &Call, kind: PoolKind) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    let [n, c, ref spatial @ ..] = x.dims[..] else { return Err(Stop::Failed("no image".into())) };
    let axes = spatial.len();
    if axes > 2 {
        return Err(Stop::out_of_scope("pool has two axes", format!("{axes} axes")));
    }
    if call.node.outputs.len() > 1 {
        return Err(Stop::out_of_scope("pool gives no positions", "positions of maxima"));
    }
    // Another norm is a sum of powers, and a root of it.
    let power = match call.int("p", 2) {
        2 => None,
        3 => Some([power::<3>(), root::<3>()]),
        4 => Some([power::<4>(), root::<4>()]),
        p => return Err(Stop::out_of_scope("norms of 2 to 4", format!("p = {p}"))),
    };
    let size = if let [w] = *spatial { [1, w] } else { [spatial[0], spatial[1]] };
    let (kernel, dilation) = (two(call, "kernel_shape", axes, 1), two(call, "dilations", axes, 1));
    let stride = two(call, "strides", axes, 1);
    let along = |axis: usize| {
        let span = (kernel[axis] - 1) * dilation[axis] + 1;
        pads(call, axis, axes, size[axis], [span, stride[axis]])
    };
    let counts = call.int("count_include_pad", 0) != 0;
    if counts && call.int("ceil_mode", 0) != 0 {
        return Err(Stop::out_of_scope("padding that counts and windows beyond it", "ceil_mode"));
    }
    let ([top, bottom], [left, right]) = (along(0), along(1));
    let kind = if power.is_some() { PoolKind::Weighted(vec![1.0; kernel[0] * kernel[1]]) } else { kind };
    let op = Pool2d::new(kind, [n, c, size[0], size[1]], kernel)
        .stride(stride)
        .dilation(dilation)
        .pad_each([top, left, bottom, right])
        .when(counts, |op| op.count_include_pad());
    let [.., p, q] = op.output_shape()?;
    let dims = if axes == 1 { vec![n, c, q] } else { vec![n, c, p, q] };
    let Some([power, root]) = power else { return pool_typed(call, dtype, &op, &x, dims) };
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("powers are taken in f32, not in", dtype));
    }
    let powers = apply::<f32>(call.gpu, &power, &x)?;
    let errors: Vec<f32> = powers.bound.iter().map(|error| 1.001 * *error as f32).collect();
    let mut sums = pool_as::<f32>(call, &op, &powers, dims)?;
    for (bound, error) in sums.bound.iter_mut().zip(reference_pool(&op, &errors, None)?) {
        *bound += f64::from(error);
    }
    apply::<f32>(call.gpu, &root, &sums)
}

/// Over all elements of a channel.
pub(super) fn global_pool(call: &Call, kind: PoolKind) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    let [n, c, ref spatial @ ..] = x.dims[..] else { return Err(Stop::Failed("no image".into())) };
    let cells = spatial.iter().product();
    let op = Pool2d::new(kind, [n, c, 1, cells], [1, cells]);
    let dims = [vec![n, c], vec![1; spatial.len()]].concat();
    pool_typed(call, dtype, &op, &x, dims)
}

/// Normalises channels by given statistics, or in training by those of the batch, whose running averages follow; images
/// of any number of axes become planes of one line.
pub(super) fn batch_norm(call: &Call) -> Result<Vec<Array>, Stop> {
    let (dtype, arrays) = call.operands()?;
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("batch norm does not take", dtype));
    }
    let training = call.int("training_mode", 0) != 0;
    if !training && call.node.outputs.len() > 1 {
        return Err(Stop::out_of_scope("batch norm of inference has one result", call.node.outputs.len()));
    }
    let [x, gamma, beta, mean, variance] = &arrays[..] else {
        return Err(Stop::Failed(format!("{} operands", arrays.len())));
    };
    let [n, c, ref spatial @ ..] = x.dims[..] else { return Err(Stop::Failed("no channels".into())) };
    let shape = [n, c, 1, spatial.iter().product()];
    let eps = call.float("epsilon", 1e-5);
    let gpu = call.gpu;
    let input = elements::<f32>(x);
    let channels = [mean, variance, gamma, beta].map(elements::<f32>);
    let [m, v, g, b] = &channels;
    let (dx, dy) = (gpu.upload(&input)?, gpu.alloc::<f32>(input.len())?);
    let [dm, dv, dg, db] = [gpu.upload(m)?, gpu.upload(v)?, gpu.upload(g)?, gpu.upload(b)?];
    let mut rec = gpu.recorder();
    if !training {
        let op = BatchNorm::new(shape).eps(eps);
        op.plan::<f32>(gpu)?.record(&mut rec, &dx, &dm, &dv, &dg, &db, &dy)?;
        rec.submit()?;
        let bound = batch_norm_bound(&op, &input, [m, v, g, b]);
        return Ok(vec![Array { dims: x.dims.clone(), values: numbers(&dy.read()?), bound }]);
    }
    // ONNX's momentum is the share of the old statistics.
    let op = BatchNormTrain::new(shape).eps(eps).momentum(1.0 - call.float("momentum", 0.9)).population();
    let (new_mean, new_variance) = (gpu.alloc::<f32>(c)?, gpu.alloc::<f32>(c)?);
    op.plan::<f32>(gpu)?.record(&mut rec, &dx, &dg, &db, &dm, &dv, &dy, &new_mean, &new_variance)?;
    rec.submit()?;
    let bounds = batch_norm_train_bound(&op, &input, [g, b, m, v]);
    let results = [(x.dims.clone(), dy), (vec![c], new_mean), (vec![c], new_variance)];
    let array = |((dims, list), bound): ((Vec<usize>, tilework::Buffer<f32>), Vec<f64>)| {
        Ok(Array { dims, values: numbers(&list.read()?), bound })
    };
    results.into_iter().zip(bounds).map(array).collect()
}

/// The losses with the weights of their labels, their sum, or that over the sum of weights. A label that is no class
/// has the weight 0, which hides its loss.
fn weighted_loss(gpu: &Gpu, losses: &Array, labels: &[u32], table: &[f64], reduction: &str) -> Result<Array, Stop> {
    let n = labels.len();
    let table: Vec<f32> = table.iter().map(|weight| *weight as f32).collect();
    let (of_classes, dl) = (gpu.upload(&table)?, gpu.upload(labels)?);
    let (weights, dx) = (gpu.alloc::<f32>(n)?, gpu.upload(&elements::<f32>(losses))?);
    let dy = gpu.alloc::<f32>(n)?;
    let hides = ZipFn::custom("fn zip(x: T, y: T) -> T { return select(x * y, 0.0, y == 0.0); }");
    let mut rec = gpu.recorder();
    Gather::new([table.len(), 1], n).plan::<f32>(gpu)?.record(&mut rec, &of_classes, &dl, &weights)?;
    Zip::new(hides, n).plan::<f32>(gpu)?.record(&mut rec, &dx, &weights, &dy)?;
    rec.submit()?;
    let (shares, values) = (weights.read()?, dy.read()?);
    let error = |i: usize| if shares[i] == 0.0 { 0.0 } else { f64::from(shares[i]) * losses.bound[i] };
    let least = f64::from(f32::MIN_POSITIVE);
    let bound: Vec<_> =
        (0..n).map(|i| error(i) + f64::from(f32::EPSILON) * f64::from(values[i].abs()) + least).collect();
    if reduction == "none" {
        return Ok(Array { dims: losses.dims.clone(), values: numbers(&values), bound });
    }
    let total = gpu.reduce(&dy, Sum)?.read()?;
    let sum_error = reduce_bound(&Operator::Sum, 1, n, &values)[0] + bound.iter().sum::<f64>();
    if reduction == "sum" {
        return Ok(Array { dims: Vec::new(), values: numbers(&total), bound: vec![sum_error] });
    }
    let all = gpu.reduce(&weights, Sum)?;
    let (dx, dy) = (gpu.upload(&total)?, gpu.alloc::<f32>(1)?);
    let mut rec = gpu.recorder();
    Zip::new(ZipFn::Div, 1).plan::<f32>(gpu)?.record(&mut rec, &dx, &all, &dy)?;
    rec.submit()?;
    let (values, weight) = (numbers(&dy.read()?), f64::from(all.read()?[0]));
    let of_weights = reduce_bound(&Operator::Sum, 1, n, &shares)[0];
    let rounding = 3.0 * f64::from(f32::EPSILON) * values[0].abs();
    let bound = vec![(sum_error + values[0].abs() * of_weights) / weight + rounding];
    Ok(Array { dims: Vec::new(), values, bound })
}

/// The loss, and the log-probabilities if requested. Classes are the second axis.
pub(super) fn cross_entropy(call: &Call) -> Result<Vec<Array>, Stop> {
    let (dtype, x) = call.operand(0)?;
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("cross-entropy does not take", dtype));
    }
    let reduction = match call.node.attribute("reduction") {
        Some(Attribute::Str(name)) => name.as_str(),
        _ => "mean",
    };
    let labels: Vec<u32> = match call.input(1).map(|tensor| &tensor.data) {
        Some(TensorData::I64(labels)) => labels.iter().map(|&label| label as u32).collect(),
        Some(TensorData::I32(labels)) => labels.iter().map(|&label| label as u32).collect(),
        _ => return Err(Stop::Failed("no labels".into())),
    };
    let ((rows, back), classes, gpu) = (x.axis_last(1), x.dims[1], call.gpu);
    let logits = elements::<f32>(&rows);
    let (dx, dl) = (gpu.upload(&logits)?, gpu.upload(&labels)?);
    let (losses, mean) = (gpu.alloc::<f32>(labels.len())?, gpu.alloc::<f32>(1)?);
    let mut rec = gpu.recorder();
    let op = CrossEntropy::new(labels.len(), classes);
    op.plan::<f32>(gpu)?.record(&mut rec, &dx, &dl, &losses, &mean)?;
    rec.submit()?;
    let (of_losses, of_mean, _) = cross_entropy_bound(classes, &logits, &labels);
    let dims = rows.dims[..rows.dims.len() - 1].to_vec();
    let each = Array { dims, values: numbers(&losses.read()?), bound: of_losses };
    let ignored = match call.node.attribute("ignore_index") {
        Some(Attribute::Int(label)) => Some(*label),
        _ => None,
    };
    let weights = call.input(2).map(|tensor| super::numbers(&tensor.data));
    let loss = if reduction == "mean" && weights.is_none() && ignored.is_none() {
        Array { dims: Vec::new(), values: numbers(&mean.read()?), bound: vec![of_mean] }
    } else {
        let mut table = weights.unwrap_or_else(|| vec![1.0; classes]);
        if let Some(weight) = ignored.and_then(|label| table.get_mut(usize::try_from(label).ok()?)) {
            *weight = 0.0;
        }
        weighted_loss(gpu, &each, &labels, &table, reduction)?
    };
    let mut results = vec![loss];
    if call.node.outputs.len() > 1 {
        let got: Vec<f32> = run(call.gpu, &LogSoftmax::new(labels.len(), classes), &logits, logits.len())?;
        let bound = log_softmax_bound(classes, &logits);
        results.push(Array { dims: rows.dims, values: numbers(&got), bound }.permuted(&back));
    }
    Ok(results)
}

/// Rows of a table, with the gathered axis moved first; negative indices count from the end.
pub(super) fn gather(call: &Call) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("elements are read as", dtype));
    }
    let Some(TensorData::I64(numbers_of)) = call.input(1).map(|tensor| &tensor.data) else {
        return Err(Stop::Failed("no indices".into()));
    };
    let dims = call.input(1).map_or(Vec::new(), |tensor| tensor.dims.clone());
    let rank = x.dims.len();
    let axis = from_front(call.int("axis", 0), rank);
    let order: Vec<usize> = [axis].into_iter().chain((0..rank).filter(|a| *a != axis)).collect();
    let table = x.permuted(&order);
    let (rows, n) = (x.dims[axis], table.dims[1..].iter().product::<usize>());
    let indices: Vec<u32> = numbers_of.iter().map(|&i| i.rem_euclid(rows as i64) as u32).collect();
    let gpu = call.gpu;
    let (dx, di) = (gpu.upload(&elements::<f32>(&table))?, gpu.upload(&indices)?);
    let dy = gpu.alloc::<f32>(indices.len() * n)?;
    let mut rec = gpu.recorder();
    Gather::new([rows, n], indices.len()).plan::<f32>(gpu)?.record(&mut rec, &dx, &di, &dy)?;
    rec.submit()?;
    let got = Array::exact([&dims, &table.dims[1..]].concat(), numbers(&dy.read()?));
    // The axes of the indices go where the axis was.
    let (of_indices, before) = (0..dims.len(), dims.len()..dims.len() + axis);
    let order: Vec<usize> = before.chain(of_indices).chain(dims.len() + axis..got.dims.len()).collect();
    Ok(got.permuted(&order))
}

/// With four axes, heads precede tokens; with three, heads share the last axis with the elements.
pub(super) fn rotary_embedding(call: &Call) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    let [(cos_dtype, cos), (_, sin)] = [call.operand(1)?, call.operand(2)?];
    if [dtype, cos_dtype] != [DType::F32; 2] {
        return Err(Stop::out_of_scope("the case is not of f32, but", dtype));
    }
    let (batch, heads, tokens, size) = match x.dims[..] {
        [batch, heads, tokens, size] => (batch, heads, tokens, size),
        [batch, tokens, all] => {
            let heads = call.int("num_heads", 1).max(1) as usize;
            (batch, heads, tokens, all / heads)
        }
        _ => return Err(Stop::Failed(format!("{:?} has neither three nor four axes", x.dims))),
    };
    let turned = call.int("rotary_embedding_dim", 0) as usize;
    let op = Rope::new([batch, heads, tokens, size])
        .rotary(if turned == 0 { size } else { turned })
        .when(call.int("interleaved", 0) != 0, |op| op.interleaved())
        .when(x.dims.len() == 3, |op| op.tokens_first());
    let positions = call.input(3).map(|tensor| match &tensor.data {
        TensorData::I64(values) => Ok(values.iter().map(|p| *p as u32).collect::<Vec<_>>()),
        other => Err(Stop::out_of_scope("positions are of", other.type_name())),
    });
    let (input, cos, sin) = (elements::<f32>(&x), elements::<f32>(&cos), elements::<f32>(&sin));
    let pairs = (if turned == 0 { size } else { turned }) / 2;
    let (gpu, rows) = (call.gpu, cos.len().checked_div(pairs).unwrap_or(0));
    let (dx, dc, ds) = (gpu.upload(&input)?, gpu.upload(&cos)?, gpu.upload(&sin)?);
    let dy = gpu.alloc::<f32>(input.len())?;
    let mut rec = gpu.recorder();
    let (op, positions) = match positions.transpose()? {
        Some(positions) => {
            let op = op.with_positions(rows);
            let dp = gpu.upload(&positions)?;
            op.plan::<f32>(gpu)?.with_positions(&dp).record(&mut rec, &dx, &dc, &ds, &dy)?;
            (op.clone(), Some(positions))
        }
        None => {
            let op = op.tables(rows);
            op.plan::<f32>(gpu)?.record(&mut rec, &dx, &dc, &ds, &dy)?;
            (op, None)
        }
    };
    rec.submit()?;
    let bound = rope_bound(&op, &input, [&cos, &sin], positions.as_deref());
    Ok(Array { dims: x.dims.clone(), values: numbers(&dy.read()?), bound })
}

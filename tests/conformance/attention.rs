//! Attention. Past keys and values are prepended; masks become numeric, and include the causal mask if the last query
//! does not align with the last key.

use super::array::{Array, broadcast_dims};
use super::elementwise::{elements, numbers};
use super::{Call, Stop};
use crate::support::onnx::TensorData;
use half::f16;
use tilework::attention::{Attention, ScoreStage};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{AttentionInputs, Number, attention_bound, attention_scores_bound};

/// With heads as an axis: (batch, heads, tokens, size).
fn with_heads(call: &Call, x: Array, heads: &str) -> Result<Array, Stop> {
    if x.dims.len() == 4 {
        return Ok(x);
    }
    let count = call.int(heads, 0) as usize;
    let [b, t, all] = x.dims[..] else { return Err(Stop::out_of_scope("operands of rank", x.dims.len())) };
    Ok(x.reshaped(vec![b, t, count, all / count.max(1)]).permuted(&[0, 2, 1, 3]))
}

/// The past, then `x`, concatenated along the tokens.
fn behind(past: Option<Array>, x: Array) -> Array {
    let Some(past) = past else { return x };
    let [b, h, t, d] = x.dims[..] else { return x };
    let before = past.dims[2];
    let one = |pair: usize| {
        let past = &past.values[pair * before * d..][..before * d];
        [past, &x.values[pair * t * d..][..t * d]].concat()
    };
    Array::exact(vec![b, h, before + t, d], (0..b * h).flat_map(one).collect())
}

/// The mask as numbers of shape (batch, heads, queries, keys); keys that it does not name are hidden.
fn mask_of(call: &Call, dims: [usize; 4]) -> Result<Option<Array>, Stop> {
    let Some(tensor) = call.input(3) else { return Ok(None) };
    let hidden = |keep: &bool| if *keep { 0.0 } else { f64::NEG_INFINITY };
    let mask = match &tensor.data {
        TensorData::Bool(keep) => Array::exact(tensor.dims.clone(), keep.iter().map(hidden).collect()),
        _ => super::array(tensor)?.1,
    };
    let last = *mask.dims.last().unwrap_or(&1);
    let short = dims[3] - last.min(dims[3]);
    let fill = |row: &[f64]| [row, &vec![f64::NEG_INFINITY; short]].concat();
    let full = [&mask.dims[..mask.dims.len() - 1], &[last + short]].concat();
    let mask = Array::exact(full, mask.values.chunks(last.max(1)).flat_map(fill).collect());
    match broadcast_dims(&mask.dims, &dims) {
        Some(all) if all == dims => Ok(Some(mask.broadcast(&dims))),
        _ => Err(Stop::Failed(format!("a mask of {:?} for scores of {dims:?}", mask.dims))),
    }
}

fn attend<T: Number>(call: &Call) -> Result<Vec<Array>, Stop>
where
    Attention: Op<T>,
{
    let past = |i: usize| call.input(i).map(|tensor| super::array(tensor).map(|(_, x)| x)).transpose();
    let q_operand = call.operand(0)?.1;
    let flat = q_operand.dims.len() == 3;
    let q = with_heads(call, q_operand, "q_num_heads")?;
    let k = with_heads(call, call.operand(1)?.1, "kv_num_heads")?;
    let v = with_heads(call, call.operand(2)?.1, "kv_num_heads")?;
    let (k, v) = (behind(past(4)?, k), behind(past(5)?, v));
    let ([b, h, t, d], [_, g, s, _]) = (extents(&q)?, extents(&k)?);
    let e = v.dims[3];
    let scale = call.float("scale", 1.0 / (d as f32).sqrt());
    let mut op = Attention::new([b, h, t, d], [g, s]).value_size(e).scale(scale);
    let cap = call.float("softcap", 0.0);
    if cap != 0.0 {
        op = op.softcap(cap);
    }
    let scores = call.node.outputs.get(3).is_some_and(|name| !name.is_empty());
    if scores {
        op = op.scores(match call.int("qk_matmul_output_mode", 0) {
            0 => ScoreStage::Products,
            1 => ScoreStage::Capped,
            2 => ScoreStage::Masked,
            _ => ScoreStage::Weights,
        });
    }
    let mut mask = mask_of(call, [b, h, t, s])?;
    let lengths = call.input(6).map(|x| super::numbers(&x.data).iter().map(|&n| n as u32).collect::<Vec<_>>());
    if call.int("is_causal", 0) == 1 {
        // Queries follow the past; without a past they align with the first keys.
        let before = call.input(4).map_or(0, |past| past.dims[2]);
        if before + t == s && lengths.is_none() {
            op = op.causal();
        } else {
            let mut of = mask.unwrap_or_else(|| Array::exact(vec![b, h, t, s], vec![0.0; b * h * t * s]));
            for (i, x) in of.values.iter_mut().enumerate() {
                if i % s > i / s % t + before {
                    *x = f64::NEG_INFINITY;
                }
            }
            mask = Some(of);
        }
    }
    let (gpu, mask) = (call.gpu, mask.map(|mask| elements::<f32>(&mask)));
    let on_device =
        (mask.as_ref().map(|x| gpu.upload(x)).transpose()?, lengths.as_ref().map(|x| gpu.upload(x)).transpose()?);
    if on_device.0.is_some() {
        op = op.masked([b, h]);
    }
    if on_device.1.is_some() {
        op = op.lengths();
    }
    let plan = op.plan::<T>(gpu)?;
    let mut with = plan.with();
    if let Some(mask) = &on_device.0 {
        with = with.with_mask(mask);
    }
    if let Some(lengths) = &on_device.1 {
        with = with.with_lengths(lengths);
    }
    let [q, keys, values] = [&q, &k, &v].map(|x| elements::<T>(x));
    let (dq, dk, dv) = (gpu.upload(&q)?, gpu.upload(&keys)?, gpu.upload(&values)?);
    let (output, on_scores) = (gpu.alloc::<T>(b * h * t * e)?, gpu.alloc::<f32>(b * h * t * s)?);
    if scores {
        with = with.with_scores(&on_scores);
    }
    let mut rec = gpu.recorder();
    with.record(&mut rec, &dq, &dk, &dv, &output)?;
    rec.submit()?;
    let inputs = AttentionInputs { table: None, lengths: lengths.as_deref(), mask: mask.as_deref() };
    let bound = attention_bound(&op, &q, &keys, &values, inputs);
    let mut y = Array { dims: vec![b, h, t, e], values: numbers(&output.read()?), bound };
    if flat {
        y = y.permuted(&[0, 2, 1, 3]).reshaped(vec![b, t, h * e]);
    }
    let mut results = vec![y, k, v];
    if scores {
        let bound = attention_scores_bound(&op, &q, &keys, inputs);
        results.push(Array { dims: vec![b, h, t, s], values: numbers(&on_scores.read()?), bound });
    }
    let named = results.into_iter().zip(&call.node.outputs).filter(|(_, name)| !name.is_empty());
    Ok(named.map(|(x, _)| x).collect())
}

fn extents(x: &Array) -> Result<[usize; 4], Stop> {
    x.dims[..].try_into().map_err(|_| Stop::out_of_scope("operands of rank", x.dims.len()))
}

pub(super) fn attention(call: &Call) -> Result<Vec<Array>, Stop> {
    by_type!(call.operand(0)?.0, [f32, f16], "attention does not take", T => attend::<T>(call))
}

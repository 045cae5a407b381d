//! Casts, quantisation, and products of bytes.

use super::array::Array;
use super::elementwise::{elements, numbers, run};
use super::{Call, Stop};
use crate::support::onnx::{Tensor, TensorData};
use half::f16;
use tilework::DType;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::quantize::{Cast, Code, Dequantize, Quantize, Scales};
use tilework::reference::{Number, dequantize_bound};

/// ONNX's type numbers.
const FLOAT: i64 = 1;
const FLOAT16: i64 = 10;
const FLOAT8E4M3FN: i64 = 17;

fn tensor<'a>(call: &Call<'a>, i: usize) -> Result<&'a Tensor, Stop> {
    call.input(i).ok_or_else(|| Stop::Failed(format!("operand {i} is missing")))
}

pub(super) fn cast(call: &Call) -> Result<Array, Stop> {
    let x = tensor(call, 0)?;
    let to = call.int("to", 0);
    let n = x.data.len().unwrap_or(0);
    if to == FLOAT8E4M3FN && call.int("saturate", 1) == 0 {
        return Err(Stop::out_of_scope("codes are saturated", "casts"));
    }
    let values = match (&x.data, to) {
        (TensorData::F32(x), FLOAT16) => numbers(&run::<_, f16>(call.gpu, &Cast::new(n), x, n)?),
        (TensorData::F16(x), FLOAT) => numbers(&run::<_, f32>(call.gpu, &Cast::new(n), x, n)?),
        (TensorData::F32(x), FLOAT8E4M3FN) => codes(call, x, &[1.0])?,
        (TensorData::F16(x), FLOAT8E4M3FN) => codes(call, x, &[1.0])?,
        (TensorData::F8(x), FLOAT) => numbers(&by_scale::<u8, f32>(call, x, 1.0)?.0),
        (TensorData::F8(x), FLOAT16) => numbers(&by_scale::<u8, f16>(call, x, 1.0)?.0),
        (other, to) => {
            let what = format!("{} to type {to}", other.type_name());
            return Err(Stop::out_of_scope("casts are between f32, f16 and fp8 E4M3", what));
        }
    };
    Ok(Array::exact(x.dims.clone(), values))
}

/// The decoded numbers.
fn codes<T: Number>(call: &Call, x: &[T], scale: &[f32]) -> Result<Vec<f64>, Stop>
where
    Quantize<u8>: Op<T>,
{
    let got = quantize_by::<u8, T>(call, x, scale)?;
    Ok(got.into_iter().map(|code| tilework::reference::code_value(code).into()).collect())
}

fn quantize_by<Q: Code, T: Number>(call: &Call, x: &[T], scale: &[f32]) -> Result<Vec<Q>, Stop>
where
    Quantize<Q>: Op<T>,
{
    let (dx, ds, dy) = (call.gpu.upload(x)?, call.gpu.upload(scale)?, call.gpu.alloc::<Q>(x.len())?);
    let op = Quantize::<Q>::new(1, x.len()).scales(Scales::Tensor).with_scale();
    let mut rec = call.gpu.recorder();
    op.plan::<T>(call.gpu)?.record(&mut rec, &dx, &dy, &ds)?;
    rec.submit()?;
    Ok(dy.read()?)
}

/// Bytes decoded by one scale, with their bounds.
fn by_scale<Q: Code + Number, T: Number>(call: &Call, x: &[Q], scale: f32) -> Result<(Vec<T>, Vec<f64>), Stop>
where
    Dequantize<Q>: Op<T>,
{
    let (dx, ds, dy) = (call.gpu.upload(x)?, call.gpu.upload(&[scale])?, call.gpu.alloc::<T>(x.len())?);
    let op = Dequantize::<Q>::new(1, x.len()).scales(Scales::Tensor);
    let mut rec = call.gpu.recorder();
    op.plan::<T>(call.gpu)?.record(&mut rec, &dx, &ds, &dy)?;
    rec.submit()?;
    Ok((dy.read()?, dequantize_bound::<Q, T>(&op, x, &[scale])))
}

/// The one scale, if codes are symmetric.
fn scale(call: &Call) -> Result<f32, Stop> {
    if let Some(zero) = call.input(2) {
        if !matches!(zero.data, TensorData::I8(_) | TensorData::F8(_)) {
            return Err(Stop::out_of_scope("codes are int8 or fp8 E4M3", zero.data.type_name()));
        }
        if super::numbers(&zero.data).iter().any(|x| *x != 0.0) {
            return Err(Stop::out_of_scope("codes are symmetric about 0", "zero points"));
        }
    }
    let (_, scales) = call.operand(1)?;
    match scales.values[..] {
        [scale] => Ok(scale as f32),
        _ => Err(Stop::out_of_scope("scales are of rows, groups or all", format!("{:?}", scales.dims))),
    }
}

pub(super) fn quantize(call: &Call) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    let kind = call.input(2).map_or(call.int("output_dtype", 2), |zero| match zero.data {
        TensorData::F8(_) => FLOAT8E4M3FN,
        TensorData::I8(_) => 3,
        _ => 0,
    });
    if call.input(2).is_none() && ![3, FLOAT8E4M3FN].contains(&kind) {
        return Err(Stop::out_of_scope("codes are int8 or fp8 E4M3", format!("type {kind}")));
    }
    let scale = scale(call)?;
    if dtype != DType::F32 {
        return Err(Stop::out_of_scope("the case is not of f32, but", dtype));
    }
    let input = elements::<f32>(&x);
    let values = if kind == FLOAT8E4M3FN {
        codes(call, &input, &[scale])?
    } else {
        numbers(&quantize_by::<i8, f32>(call, &input, &[scale])?)
    };
    Ok(Array::exact(x.dims, values))
}

pub(super) fn dequantize(call: &Call) -> Result<Array, Stop> {
    let x = tensor(call, 0)?;
    if !matches!(x.data, TensorData::I8(_) | TensorData::F8(_)) {
        return Err(Stop::out_of_scope("codes are int8 or fp8 E4M3", x.data.type_name()));
    }
    let scale = scale(call)?;
    let half = call.operand(1)?.0 == DType::F16;
    fn array<T: Number>(dims: &[usize], (values, bound): (Vec<T>, Vec<f64>)) -> Array {
        Array { dims: dims.to_vec(), values: numbers(&values), bound }
    }
    Ok(match (&x.data, half) {
        (TensorData::F8(codes), false) => array(&x.dims, by_scale::<u8, f32>(call, codes, scale)?),
        (TensorData::F8(codes), true) => array(&x.dims, by_scale::<u8, f16>(call, codes, scale)?),
        (TensorData::I8(codes), false) => array(&x.dims, by_scale::<i8, f32>(call, codes, scale)?),
        (TensorData::I8(codes), true) => array(&x.dims, by_scale::<i8, f16>(call, codes, scale)?),
        (other, _) => return Err(Stop::out_of_scope("codes are int8 or fp8 E4M3", other.type_name())),
    })
}

/// The host makes operands symmetric: it subtracts their zero points, if the results are signed bytes.
pub(super) fn matmul_integer(call: &Call) -> Result<Array, Stop> {
    let factor = |i: usize| {
        let (_, x) = call.operand(i)?;
        let zero = match call.input(i + 2).map(|zero| super::numbers(&zero.data)).as_deref() {
            None => 0.0,
            Some([zero]) => *zero,
            Some(_) => return Err(Stop::out_of_scope("a zero point for each row or column", "products")),
        };
        let shifted: Vec<f64> = x.values.iter().map(|x| x - zero).collect();
        if shifted.iter().any(|x| !(-128.0..=127.0).contains(x)) {
            return Err(Stop::out_of_scope("factors less their zero points are no signed bytes", "products"));
        }
        Ok(Array::exact(x.dims, shifted))
    };
    let (a, b) = (factor(0)?, factor(1)?);
    let ([m, k], [k_of_b, n]) = (&a.dims[..], &b.dims[..]) else {
        return Err(Stop::out_of_scope("stacks of matrices", "products"));
    };
    if k != k_of_b {
        return Err(Stop::Failed(format!("{:?} and {:?} do not fit", a.dims, b.dims)));
    }
    let (da, db) = (call.gpu.upload(&elements::<i8>(&a))?, call.gpu.upload(&elements::<i8>(&b))?);
    let dc = call.gpu.alloc::<i32>(m * n)?;
    let mut rec = call.gpu.recorder();
    GemmInt8::new(*m, *n, *k).plan::<i32>(call.gpu)?.record(&mut rec, &da, &db, &dc)?;
    rec.submit()?;
    Ok(Array::exact(vec![*m, *n], numbers(&dc.read()?)))
}

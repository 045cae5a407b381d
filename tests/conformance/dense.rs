//! Matrix products.

use super::array::{Array, broadcast_dims};
use super::elementwise::numbers;
use super::{Call, Stop};
use half::f16;
use tilework::DType;
use tilework::prelude::*;
use tilework::program::{In, InOut, Op};
use tilework::reference::{Number, gemm_bound};

/// What is added to a product.
enum Addend {
    /// What the result's memory holds before; without effect where beta is 0.
    Matrix(Vec<f64>),
    /// One number for each column.
    Row(Vec<f64>),
}

/// The m x n result of `op`.
fn product(
    call: &Call,
    dtype: DType,
    op: &Gemm,
    dims: [usize; 2],
    factors: [&[f64]; 2],
    addend: &Addend,
) -> Result<Array, Stop> {
    match dtype {
        DType::F32 => product_as::<f32>(call.gpu, op, dims, factors, addend),
        DType::F16 if !call.gpu.profile().features.f16 => {
            Err(Stop::out_of_scope("this device has no", dtype))
        }
        DType::F16 => product_as::<f16>(call.gpu, op, dims, factors, addend),
        _ => Err(Stop::out_of_scope("gemm does not take", dtype)),
    }
}

fn product_as<T: Number + Into<f64>>(
    gpu: &Gpu,
    op: &Gemm,
    dims: [usize; 2],
    factors: [&[f64]; 2],
    addend: &Addend,
) -> Result<Array, Stop>
where
    Gemm: Op<T, Operands = (In<T>, In<T>, InOut<T>)>,
    GemmBias: Op<T, Operands = (In<T>, In<T>, In<T>, InOut<T>)>,
{
    let host = |x: &[f64]| x.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>();
    let [a, b] = factors.map(host);
    let (bias, c) = match addend {
        Addend::Matrix(c) => (None, host(c)),
        Addend::Row(bias) => (Some(host(bias)), vec![T::default(); dims[0] * dims[1]]),
    };
    let (on_a, on_b, on_c) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.upload(&c)?);
    let mut rec = gpu.recorder();
    match &bias {
        None => op.plan::<T>(gpu)?.record(&mut rec, &on_a, &on_b, &on_c)?,
        Some(bias) => {
            let on_bias = gpu.upload(bias)?;
            op.clone().with_bias().plan::<T>(gpu)?.record(&mut rec, &on_a, &on_b, &on_bias, &on_c)?;
        }
    }
    rec.submit()?;
    let values = numbers(&on_c.read()?);
    let bound = gemm_bound(op, &a, &b, bias.as_deref(), &c)?;
    Ok(Array { dims: dims.to_vec(), values, bound })
}

fn no_fit(a: &Array, b: &Array) -> Stop {
    Stop::Failed(format!("{:?} and {:?} do not fit", a.dims, b.dims))
}

/// Rows and columns of a matrix.
fn extents(x: &Array, trans: bool) -> Result<[usize; 2], Stop> {
    match x.dims[..] {
        [rows, cols] if trans => Ok([cols, rows]),
        [rows, cols] => Ok([rows, cols]),
        _ => Err(Stop::Failed(format!("{:?} is no matrix", x.dims))),
    }
}

/// C as a row is the op's bias, but where beta scales it; any other C is replicated to the result's shape.
pub(super) fn gemm(call: &Call) -> Result<Array, Stop> {
    let (dtype, operands) = call.operands()?;
    let [a, b, rest @ ..] = operands.as_slice() else {
        return Err(Stop::Failed("a factor is missing".into()));
    };
    let (trans_a, trans_b) = (call.int("transA", 0) != 0, call.int("transB", 0) != 0);
    let ([m, k], [k_of_b, n]) = (extents(a, trans_a)?, extents(b, trans_b)?);
    if k != k_of_b {
        return Err(no_fit(a, b));
    }
    let mut op = Gemm::new(m, n, k).alpha(call.float("alpha", 1.0)).trans_a(trans_a).trans_b(trans_b);
    let beta = call.float("beta", 1.0);
    let addend = match rest.first() {
        None => Addend::Matrix(vec![0.0; m * n]),
        Some(c) if beta == 1.0 && matches!(c.dims[..], [len] | [1, len] if len == n) => {
            Addend::Row(c.values.clone())
        }
        Some(c) if broadcast_dims(&c.dims, &[m, n]).is_some_and(|dims| dims == [m, n]) => {
            op = op.beta(beta);
            Addend::Matrix(c.broadcast(&[m, n]).values)
        }
        Some(c) => return Err(no_fit(a, c)),
    };
    product(call, dtype, &op, [m, n], [&a.values, &b.values], &addend)
}

/// By NumPy's rule: a vector is a row before and a column behind, further axes are a stack of matrices.
/// One product for each matrix of the stack.
pub(super) fn matmul(call: &Call) -> Result<Array, Stop> {
    let (dtype, operands) = call.operands()?;
    let [a, b] = operands.as_slice() else {
        return Err(Stop::Failed(format!("{} factors instead of two", operands.len())));
    };
    let dims_a = if let [k] = a.dims[..] { vec![1, k] } else { a.dims.clone() };
    let dims_b = if let [k] = b.dims[..] { vec![k, 1] } else { b.dims.clone() };
    let (&[ref stack_a @ .., m, k], &[ref stack_b @ .., k_of_b, n]) = (&dims_a[..], &dims_b[..]) else {
        return Err(no_fit(a, b));
    };
    let stack = broadcast_dims(stack_a, stack_b).filter(|_| k == k_of_b).ok_or_else(|| no_fit(a, b))?;
    let stacked = |x: &Array, own: &[usize], rows: usize, cols: usize| {
        x.clone().reshaped(own.to_vec()).broadcast(&[&stack[..], &[rows, cols]].concat())
    };
    let (left, right) = (stacked(a, &dims_a, m, k), stacked(b, &dims_b, k, n));

    let op = Gemm::new(m, n, k);
    let nothing = Addend::Matrix(vec![0.0; m * n]);
    let mut dims = stack.clone();
    dims.extend((a.dims.len() > 1).then_some(m));
    dims.extend((b.dims.len() > 1).then_some(n));
    let mut result = Array { dims, values: Vec::new(), bound: Vec::new() };
    for i in 0..stack.iter().product() {
        let factors = [&left.values[i * m * k..][..m * k], &right.values[i * k * n..][..k * n]];
        let matrix = product(call, dtype, &op, [m, n], factors, &nothing)?;
        result.values.extend(matrix.values);
        result.bound.extend(matrix.bound);
    }
    Ok(result)
}

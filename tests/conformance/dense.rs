//! Matrix products and permutations of axes.

use super::array::{Array, broadcast_dims};
use super::elementwise::{elements, numbers};
use super::{Call, Stop};
use crate::support::onnx::{Attribute, TensorData};
use half::f16;
use tilework::DType;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::reference::{Number, gemm_batched_bound, gemm_bound};

/// The addend of a product.
enum Addend {
    /// The previous contents of the result; no effect if beta is 0.
    Matrix(Vec<f64>),
    /// One number for each column.
    Row(Vec<f64>),
}

/// Fails for f16 on a device without it.
fn supported(call: &Call, dtype: DType) -> Result<(), Stop> {
    if dtype == DType::F16 && !call.gpu.profile().features.f16 {
        return Err(Stop::out_of_scope("this device has no", dtype));
    }
    Ok(())
}

/// The m x n result of `op`.
fn product(
    call: &Call, dtype: DType, op: &Gemm, dims: [usize; 2], factors: [&[f64]; 2], addend: &Addend,
) -> Result<Array, Stop> {
    supported(call, dtype)?;
    by_type!(dtype, [f32, f16], "gemm does not take", T => product_as::<T>(call.gpu, op, dims, factors, addend))
}

fn product_as<T: Number + Into<f64>>(
    gpu: &Gpu, op: &Gemm, dims: [usize; 2], factors: [&[f64]; 2], addend: &Addend,
) -> Result<Array, Stop>
where
    Gemm: Op<T>,
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
            op.clone().with_bias().plan::<T>(gpu)?.with_bias(&on_bias).record(&mut rec, &on_a, &on_b, &on_c)?;
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

/// A C of one row is the op's bias unless beta scales it; any other C is replicated to the result's shape.
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
    let mut op = Gemm::new(m, n, k)
        .alpha(call.float("alpha", 1.0))
        .when(trans_a, |op| op.trans_a())
        .when(trans_b, |op| op.trans_b());
    let beta = call.float("beta", 1.0);
    let addend = match rest.first() {
        None => Addend::Matrix(vec![0.0; m * n]),
        Some(c) if beta == 1.0 && matches!(c.dims[..], [len] | [1, len] if len == n) => Addend::Row(c.values.clone()),
        Some(c) if broadcast_dims(&c.dims, &[m, n]).is_some_and(|dims| dims == [m, n]) => {
            op = op.beta(beta);
            Addend::Matrix(c.broadcast(&[m, n]).values)
        }
        Some(c) => return Err(no_fit(a, c)),
    };
    product(call, dtype, &op, [m, n], [&a.values, &b.values], &addend)
}

/// By NumPy's rule: a vector is a row on the left and a column on the right; further axes are a stack of matrices.
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
    // An operand with one matrix serves the whole stack; any other is replicated to it.
    let stacked = |x: &Array, own: &[usize], rows: usize, cols: usize| match x.values.len() == rows * cols {
        true => x.values.clone(),
        false => x.clone().reshaped(own.to_vec()).broadcast(&[&stack[..], &[rows, cols]].concat()).values,
    };
    let (left, right) = (stacked(a, &dims_a, m, k), stacked(b, &dims_b, k, n));
    let mut dims = stack.clone();
    dims.extend((a.dims.len() > 1).then_some(m));
    dims.extend((b.dims.len() > 1).then_some(n));
    let result = products(call, dtype, stack.iter().product(), [m, n, k], [&left, &right])?;
    Ok(result.reshaped(dims))
}

/// Products of a stack of m x k matrices, or of one, with k x n matrices.
fn products(
    call: &Call, dtype: DType, batch: usize, [m, n, k]: [usize; 3], factors: [&[f64]; 2],
) -> Result<Array, Stop> {
    if batch == 1 {
        let nothing = Addend::Matrix(vec![0.0; m * n]);
        return product(call, dtype, &Gemm::new(m, n, k), [m, n], factors, &nothing);
    }
    supported(call, dtype)?;
    by_type!(dtype, [f32, f16], "gemm-batched does not take", T => {
        products_as::<T>(call.gpu, batch, [m, n, k], factors)
    })
}

fn products_as<T: Number + Into<f64>>(
    gpu: &Gpu, batch: usize, [m, n, k]: [usize; 3], factors: [&[f64]; 2],
) -> Result<Array, Stop>
where
    GemmBatched: Op<T>,
{
    let [a, b] = factors.map(|x| x.iter().map(|&x| T::from_f64(x)).collect::<Vec<_>>());
    let stride = |len: usize, size: usize| if len == size { 0 } else { size };
    let op = GemmBatched::new(batch, m, n, k).strides(stride(a.len(), m * k), stride(b.len(), k * n), m * n);
    let (on_a, on_b) = (gpu.upload(&a)?, gpu.upload(&b)?);
    let c = vec![T::default(); batch * m * n];
    let on_c = gpu.upload(&c)?;
    let mut rec = gpu.recorder();
    op.plan::<T>(gpu)?.record(&mut rec, &on_a, &on_b, &on_c)?;
    rec.submit()?;
    let bound = gemm_batched_bound(&op, &a, &b, None, &c)?;
    Ok(Array { dims: vec![batch, m, n], values: numbers(&on_c.read()?), bound })
}

/// Axes in another order; by default the reverse.
pub(super) fn transpose(call: &Call) -> Result<Array, Stop> {
    let (dtype, x) = call.operand(0)?;
    let order = match call.node.attribute("perm") {
        Some(Attribute::Ints(perm)) => perm.iter().map(|&axis| axis as usize).collect(),
        _ => (0..x.dims.len()).rev().collect::<Vec<_>>(),
    };
    permuted(call, dtype, &x, &order)
}

fn permuted(call: &Call, dtype: DType, x: &Array, order: &[usize]) -> Result<Array, Stop> {
    let why = "transposition is tested with shorter types than";
    by_type!(dtype, [f32, f16, i32, u32, u8, i8], why, T => permuted_as::<T>(call.gpu, x, order))
}

/// Moves one axis after the other to its place by a rotation of all axes that are not yet in place: a transposition
/// of a batch of matrices.
fn permuted_as<T: Number>(gpu: &Gpu, x: &Array, order: &[usize]) -> Result<Array, Stop> {
    let size = |axes: &[usize]| axes.iter().map(|&axis| x.dims[axis]).product::<usize>();
    let mut axes: Vec<usize> = (0..order.len()).collect();
    let mut on = gpu.upload(&elements::<T>(x))?;
    for i in 0..axes.len() {
        let at = axes[i..].iter().position(|axis| *axis == order[i]);
        let at = i + at.ok_or_else(|| Stop::Failed(format!("{order:?} does not order {} axes", axes.len())))?;
        let plan = Transpose::batched(size(&axes[..i]), size(&axes[i..at]), size(&axes[at..]));
        let to = gpu.alloc::<T>(x.values.len())?;
        let mut rec = gpu.recorder();
        plan.plan::<T>(gpu)?.record(&mut rec, &on, &to)?;
        rec.submit()?;
        on = to;
        axes[i..].rotate_left(at - i);
    }
    Ok(Array { values: numbers(&on.read()?), ..x.permuted(order) })
}

/// Two operands whose product is a matrix product, and permutations of the axes of one operand.
pub(super) fn einsum(call: &Call) -> Result<Array, Stop> {
    let Some(Attribute::Str(equation)) = call.node.attribute("equation") else {
        return Err(Stop::Failed("there is no equation".into()));
    };
    let out_of_scope = || Stop::out_of_scope("neither a product of two nor an order of axes", equation);
    let text: String = equation.split_whitespace().collect();
    let (left, right) = text.split_once("->").unwrap_or((&text, ""));
    let terms: Vec<Vec<char>> = left.split(',').map(|term| term.chars().collect()).collect();
    let once = |term: &[char]| term.iter().all(|x| x.is_alphabetic() && term.iter().filter(|y| *y == x).count() == 1);
    if !terms.iter().all(|term| once(term)) {
        return Err(out_of_scope());
    }
    let mut result: Vec<char> = right.chars().collect();
    if !text.contains("->") {
        // Labels that occur once, in alphabetical order.
        result = left.chars().filter(|x| x.is_alphabetic() && left.matches(*x).count() == 1).collect();
        result.sort_unstable();
    }
    let operands = (0..terms.len()).map(|i| single(call, i)).collect::<Result<Vec<_>, _>>()?;
    let order = |of: &[char], to: &[char]| -> Option<Vec<usize>> {
        (of.len() == to.len()).then(|| to.iter().map(|x| of.iter().position(|y| x == y)).collect())?
    };
    match (terms.as_slice(), operands.as_slice()) {
        ([of], [x]) if !of.is_empty() => permuted(call, DType::F32, x, &order(of, &result).ok_or_else(out_of_scope)?),
        ([of_a, of_b], [a, b]) => {
            let pick = |in_a: bool, in_b: bool, in_result: bool| -> Vec<char> {
                let all = of_a.iter().chain(of_b.iter().filter(|x| !of_a.contains(x)));
                let fits =
                    |x: &&char| of_a.contains(x) == in_a && of_b.contains(x) == in_b && result.contains(x) == in_result;
                all.filter(fits).copied().collect()
            };
            let (stack, inner) = (pick(true, true, true), pick(true, true, false));
            let (rows, cols) = (pick(true, false, true), pick(false, true, true));
            let (to_a, to_b) = ([&stack[..], &rows, &inner].concat(), [&stack[..], &inner, &cols].concat());
            let a = a.permuted(&order(of_a, &to_a).ok_or_else(out_of_scope)?);
            let b = b.permuted(&order(of_b, &to_b).ok_or_else(out_of_scope)?);
            let cut = |dims: &[usize], at: usize| (dims[..at].to_vec(), dims[at..].iter().product::<usize>());
            let (of_stack, _) = cut(&a.dims, stack.len());
            let (kept, k) = cut(&a.dims, stack.len() + rows.len());
            let (shared, n) = cut(&b.dims, stack.len() + inner.len());
            if shared != [&of_stack[..], &a.dims[kept.len()..]].concat() {
                return Err(no_fit(&a, &b));
            }
            let (batch, m) = (of_stack.iter().product(), kept[stack.len()..].iter().product());
            let product = products(call, DType::F32, batch, [m, n, k], [&a.values, &b.values])?;
            let dims = [&kept[..], &b.dims[shared.len()..]].concat();
            let all = [&stack[..], &rows, &cols].concat();
            let back = order(&all, &result).ok_or_else(out_of_scope)?;
            Ok(product.reshaped(dims).permuted(&back))
        }
        _ => Err(out_of_scope()),
    }
}

/// An operand in f32. The cases are in f64: rounding changes an element by up to u relative, and a product of two by
/// 2 u, which is less than the bound of a sum of products.
fn single(call: &Call, i: usize) -> Result<Array, Stop> {
    let tensor = call.input(i).ok_or_else(|| Stop::Failed(format!("operand {i} is missing")))?;
    if !matches!(tensor.data, TensorData::F64(_) | TensorData::F32(_)) {
        return Err(Stop::out_of_scope("tested with f64, not with", tensor.data.type_name()));
    }
    let exact = super::numbers(&tensor.data);
    let values: Vec<f64> = exact.iter().map(|&x| f64::from(x as f32)).collect();
    let bound = values.iter().zip(&exact).map(|(x, exact)| (x - exact).abs()).collect();
    Ok(Array { dims: tensor.dims.clone(), values, bound })
}

use super::prelude::*;
use crate::elementwise::{Broadcast, Transform, TransformFn};
use std::f64::consts::PI;

judges! { transform => judge_transform }

fn judge_transform(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Transform>(call)?;
    let (function, [rows, columns], params) = op.parts();
    let shape = [there(call, rows)?, columns];
    let data: Vec<_> = call.inputs().map(|array| array.data().to_f64()).collect();
    let inputs = data.iter().zip(op.inputs());
    let inputs: Vec<_> = inputs.map(|(data, (dtype, broadcast))| (&data[..], *dtype, *broadcast)).collect();
    let to = call.dtype();
    let want = transform(function, shape, &inputs, params, to)?;
    let bound = transform_bound(function, shape, &inputs, params, to)?;
    Ok(vec![Wanted::rounded(to, &output_shape(call, 0), &want, &bound)?])
}

/// An operand: its elements, their type, and how they repeat.
type TransformGiven<'a> = (&'a [f64], DType, Broadcast);

fn arguments([rows, columns]: [usize; 2], inputs: &[TransformGiven<'_>]) -> impl Iterator<Item = Vec<f64>> {
    (0..rows * columns).map(move |i| {
        let of = |(x, _, broadcast): &TransformGiven<'_>| match broadcast {
            Broadcast::Each => x[i],
            Broadcast::Row => x[i % columns],
            Broadcast::Column => x[i / columns],
            Broadcast::Scalar => x[0],
        };
        inputs.iter().map(of).collect()
    })
}

fn sigmoid(a: f64) -> f64 {
    1.0 / (1.0 + (-a).exp())
}

fn silu(a: f64) -> f64 {
    if a == f64::NEG_INFINITY { 0.0 } else { a * sigmoid(a) }
}

/// The size of the exponent in a function of `a`, twice the argument of tanh for GELU.
fn exponent(function: &TransformFn, a: f64) -> f64 {
    match function {
        TransformFn::GeluTanh | TransformFn::GeluTanhBackward => 2.0 * (2.0 / PI).sqrt() * (a + 0.044_715 * a * a * a),
        _ => a,
    }
}

/// The slope of an activation, as two terms.
fn slope(function: &TransformFn, a: f64) -> [f64; 2] {
    let a = a.clamp(-1e4, 1e4);
    let z = exponent(function, a);
    let steep = match function {
        TransformFn::GeluTanhBackward => 2.0 * (2.0 / PI).sqrt() * (a + 3.0 * 0.044_715 * a * a * a),
        _ => a,
    };
    [sigmoid(z), steep * sigmoid(z) * sigmoid(-z)]
}

/// The integer of type `to` with the low bits of `a`.
fn wrap(a: i128, to: DType) -> f64 {
    match to {
        DType::I32 => f64::from(a as i32),
        DType::U32 => f64::from(a as u32),
        DType::U8 => f64::from(a as u8),
        DType::I8 => f64::from(a as i8),
        _ => a as f64,
    }
}

/// A number as type `to`: floats are cut to the type, integers keep their low bits.
fn cast(a: f64, from: DType, to: DType) -> f64 {
    if !from.is_float() {
        return wrap(a as i128, to);
    }
    match to {
        DType::I32 => f64::from(a as i32),
        DType::U32 => f64::from(a as u32),
        DType::U8 => f64::from(a as u8),
        DType::I8 => f64::from(a as i8),
        _ => a,
    }
}

/// Sums, products and the like of floats, or of integers in the type that kernels compute in.
fn arithmetic(function: &TransformFn, a: f64, b: f64, to: DType) -> f64 {
    if to.is_float() {
        return match function {
            TransformFn::Add => a + b,
            TransformFn::Sub => a - b,
            TransformFn::Mul => a * b,
            _ => a / b,
        };
    }
    let (a, b) = (a as i128, b as i128);
    let exact = match function {
        TransformFn::Add => a + b,
        TransformFn::Sub => a - b,
        TransformFn::Mul => a * b,
        _ => a.checked_div(b).unwrap_or(a),
    };
    wrap(exact, to)
}

/// Returns the elements of the output, of type `to`, not rounded. Each input has its elements, their type, and how they
/// repeat.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) for a custom function, whose text only a device can run.
pub fn transform(
    function: &TransformFn, shape: [usize; 2], inputs: &[TransformGiven<'_>], params: &[f32], to: DType,
) -> Result<Vec<f64>> {
    use TransformFn as F;
    let flag = |on: bool| if on { 1.0 } else { 0.0 };
    let param = |k: usize| params.get(k).copied().map_or(0.0, f64::from);
    let from = inputs.first().map_or(to, |(_, dtype, _)| *dtype);
    let apply = |x: Vec<f64>| {
        Ok(match function {
            F::Convert => cast(x[0], from, to),
            F::Where => {
                if x[0] != 0.0 {
                    x[1]
                } else {
                    x[2]
                }
            }
            F::Less => flag(x[0] < x[1]),
            F::LessEqual => flag(x[0] <= x[1]),
            F::Equal => flag(x[0] == x[1]),
            F::NotEqual => flag(x[0] != x[1]),
            F::Greater => flag(x[0] > x[1]),
            F::GreaterEqual => flag(x[0] >= x[1]),
            F::Add | F::Sub | F::Mul | F::Div => arithmetic(function, x[0], x[1], to),
            F::Min | F::Max if x[0].is_nan() || x[1].is_nan() => f64::NAN,
            F::Min if to.is_float() => x[0].min(x[1]),
            F::Max if to.is_float() => x[0].max(x[1]),
            F::Min => wrap(x[0].min(x[1]) as i128, to),
            F::Max => wrap(x[0].max(x[1]) as i128, to),
            F::Affine => param(0) * x[0] + param(1),
            F::Silu => silu(x[0]),
            F::GeluTanh if x[0] == f64::NEG_INFINITY => 0.0,
            F::GeluTanh => x[0] * sigmoid(exponent(function, x[0])),
            F::SiluBackward | F::GeluTanhBackward => x[1] * slope(function, x[0]).iter().sum::<f64>(),
            F::SwiGlu => silu(x[0]) * x[1],
            F::SwiGluBackward => x[2] * x[1] * slope(function, x[0]).iter().sum::<f64>(),
            F::Custom(_) => {
                return Err(err!(Unsupported, "reference transform: there is none for a function in WGSL"));
            }
        })
    };
    arguments(shape, inputs).map(apply).collect()
}

/// Bounds the error of each element computed in f32, before it is rounded to f16 for one. With u = 2^-23:
///
/// | function | error at most |
/// |---|---|
/// | comparisons, `where`, `min`, `max`, all of integers | 0 |
/// | `convert` of integers above 2^24 to floats | u y |
/// | `add`, `sub`, `mul` | u y |
/// | `div` | 3 u y |
/// | `affine` | 2 u (abs(alpha a) + abs(y)) |
/// | activations, z their exponent | (16 + 8 abs(z)) u y |
/// | gradients, t their terms | (16 + 8 abs(z)) u (abs(t1) + abs(t2)) |
///
/// Numbers below the normal ones may count as 0 in arithmetic.
pub fn transform_bound(
    function: &TransformFn, shape: [usize; 2], inputs: &[TransformGiven<'_>], params: &[f32], to: DType,
) -> Result<Vec<f64>> {
    use TransformFn as F;
    let want = transform(function, shape, inputs, params, to)?;
    let u = 2f64.powi(-23);
    let alpha = params.first().copied().map_or(0.0, f64::from);
    let integers_in = inputs.first().is_some_and(|(_, dtype, _)| !dtype.is_float());
    let of = |(want, x): (f64, Vec<f64>)| {
        let far = |a: f64| (16.0 + 8.0 * exponent(function, a).abs().min(128.0)) * u;
        let factors: f64 = x.iter().skip(1).map(|b| 1.0 + b.abs()).product();
        let small = 4.0 * LEAST_NORMAL * factors;
        let bound = match function {
            F::Convert if integers_in && to.is_float() => u * want.abs(),
            F::Add | F::Sub if to.is_float() => u * want.abs() + 4.0 * LEAST_NORMAL,
            // A small operand may count as 0, whatever it is multiplied by.
            F::Mul if to.is_float() => {
                let sizes = x.iter().map(|x| 1.0 + x.abs().min(f64::from(f32::MAX)));
                u * want.abs() + 4.0 * LEAST_NORMAL * sizes.product::<f64>()
            }
            // A small number that counts as 0 makes the quotient 0, infinite or no number.
            F::Div if to.is_float() && x.iter().any(|x| x.abs() < LEAST_NORMAL && *x != 0.0) => f64::INFINITY,
            F::Div if to.is_float() => 3.0 * u * want.abs() + LEAST_NORMAL,
            F::Affine => 2.0 * u * ((alpha * x[0]).abs() + want.abs()) + 4.0 * LEAST_NORMAL * (1.0 + alpha.abs()),
            F::Silu | F::GeluTanh | F::SwiGlu => far(x[0]) * want.abs() + small * (1.0 + x[0].abs().min(128.0)),
            F::SiluBackward | F::GeluTanhBackward | F::SwiGluBackward => {
                let given: f64 = x.iter().skip(1).product();
                let terms: f64 = slope(function, x[0]).iter().map(|term| term.abs()).sum();
                far(x[0]) * (given * terms).abs() + small * (1.0 + x[0].abs().min(128.0).powi(3))
            }
            _ => 0.0,
        };
        // Of infinities, results are exact or no numbers, unless a small operand counts as 0.
        let tiny = x.iter().any(|x| x.abs() < LEAST_NORMAL && *x != 0.0);
        if bound.is_nan() || want.is_infinite() && !tiny { 0.0 } else { bound }
    };
    Ok(want.into_iter().zip(arguments(shape, inputs)).map(of).collect())
}

#[cfg(test)]
#[path = "tests/transform.rs"]
mod tests;

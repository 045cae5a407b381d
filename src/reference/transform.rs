//! A function of several operands, element by element, in f64, which holds every element.

use super::judge::{Wanted, descriptor, output_shape};
use super::number::LEAST_NORMAL;
use crate::element::DType;
use crate::elementwise::{Broadcast, Transform, TransformFn};
use crate::error::{Result, err};
use crate::program::OpCall;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let (function, shape) = descriptor::<Transform>(call)?.parts();
    let arrays: Vec<_> = call.inputs().map(|array| (array.data().to_f64(), array)).collect();
    let inputs = arrays.iter().enumerate().map(|(i, (data, array))| {
        let broadcast = if i == 0 { Some(Broadcast::Each) } else { Broadcast::of(array.shape(), shape) };
        let broadcast = broadcast.ok_or_else(|| err!(Shape, "reference transform: {array} does not fit"))?;
        Ok((&data[..], broadcast))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let to = call.dtype();
    let want = transform(function, shape, &inputs, to)?;
    let bound = transform_bound(function, shape, &inputs, to)?;
    Ok(vec![Wanted::rounded(to, &output_shape(call, 0), &want, &bound)?])
}

/// The operands of each element.
fn arguments([rows, columns]: [usize; 2], inputs: &[(&[f64], Broadcast)]) -> impl Iterator<Item = Vec<f64>> {
    (0..rows * columns).map(move |i| {
        let of = |(x, broadcast): &(&[f64], Broadcast)| match broadcast {
            Broadcast::Each => x[i],
            Broadcast::Row => x[i % columns],
            Broadcast::Column => x[i / columns],
            Broadcast::Scalar => x[0],
        };
        inputs.iter().map(of).collect()
    })
}

fn silu(a: f64) -> f64 {
    a / (1.0 + (-a).exp())
}

/// The number of an integer type with the same low bits, or of floats cut to the type.
fn cast(a: f64, to: DType) -> f64 {
    let saturated = !a.is_finite() || a.fract() != 0.0;
    match to {
        DType::I32 if saturated => f64::from(a as i32),
        DType::U32 if saturated => f64::from(a as u32),
        DType::U8 if saturated => f64::from(a as u8),
        DType::I8 if saturated => f64::from(a as i8),
        DType::I32 => f64::from(a as i64 as i32),
        DType::U32 => f64::from(a as i64 as u32),
        DType::U8 => f64::from(a as i64 as u8),
        DType::I8 => f64::from(a as i64 as i8),
        _ => a,
    }
}

/// Returns the elements of the output, of type `to`, not rounded; whole floats outside of an integer type are taken for
/// integers, so pass none.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a custom function, whose text only a device can run.
pub fn transform(
    function: &TransformFn,
    shape: [usize; 2],
    inputs: &[(&[f64], Broadcast)],
    to: DType,
) -> Result<Vec<f64>> {
    let flag = |on: bool| if on { 1.0 } else { 0.0 };
    let apply = |x: Vec<f64>| {
        Ok(match function {
            TransformFn::Convert => cast(x[0], to),
            TransformFn::Where => {
                if x[0] != 0.0 {
                    x[1]
                } else {
                    x[2]
                }
            }
            TransformFn::Less => flag(x[0] < x[1]),
            TransformFn::Equal => flag(x[0] == x[1]),
            TransformFn::Silu => silu(x[0]),
            TransformFn::SwiGlu => silu(x[0]) * x[1],
            TransformFn::Custom(_) => {
                return Err(err!(Unsupported, "reference transform: there is none for a function in WGSL"));
            }
        })
    };
    arguments(shape, inputs).map(apply).collect()
}

/// Bounds the error of each element computed in f32, and rounded to f16 for one.
///
/// # Errors
/// As [`transform`].
pub fn transform_bound(
    function: &TransformFn,
    shape: [usize; 2],
    inputs: &[(&[f64], Broadcast)],
    to: DType,
) -> Result<Vec<f64>> {
    let want = transform(function, shape, inputs, to)?;
    let of = |(want, x): (f64, Vec<f64>)| match function {
        // The largest integers lie between floats.
        TransformFn::Convert if to.is_float() && want.abs() > f64::from(1 << 24) => {
            2f64.powi(-23) * want.abs()
        }
        TransformFn::Silu | TransformFn::SwiGlu => {
            let half_step = if to == DType::F16 { 2f64.powi(-11) } else { 0.0 };
            let factor = x.get(1).map_or(1.0, |b| 1.0 + b.abs());
            let far = (8.0 + 2.0 * x[0].abs().min(128.0)) * 2f64.powi(-23) + half_step;
            far * want.abs() + 4.0 * LEAST_NORMAL * (1.0 + x[0].abs()) * factor
        }
        _ => 0.0,
    };
    Ok(want.into_iter().zip(arguments(shape, inputs)).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_by_hand() {
        let each = |x: &'static [f64]| (x, Broadcast::Each);
        let of = |function, inputs: &[_], to| transform(&function, [2, 2], inputs, to).unwrap();
        let x = each(&[-1.5, 300.25, f64::NAN, 7.0]);
        assert_eq!(of(TransformFn::Convert, &[x], DType::U8), [0.0, 255.0, 0.0, 7.0]);
        assert_eq!(
            of(TransformFn::Convert, &[each(&[-1.0, 257.0, 255.0, 128.0])], DType::I8),
            [-1.0, 1.0, -1.0, -128.0]
        );
        let row = (&[5.0, 6.0][..], Broadcast::Row);
        let (column, one) = ((&[8.0, 9.0][..], Broadcast::Column), (&[2.0][..], Broadcast::Scalar));
        assert_eq!(
            of(TransformFn::Where, &[each(&[0.0, 1.0, f64::NAN, 0.0]), row, column], DType::F32),
            [8.0, 6.0, 5.0, 9.0]
        );
        assert_eq!(of(TransformFn::Less, &[x, one], DType::U32), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(of(TransformFn::Silu, &[each(&[0.0; 4])], DType::F32), [0.0; 4]);
        let custom = TransformFn::custom("");
        assert!(transform(&custom, [1, 1], &[], DType::F32).is_err());
    }
}

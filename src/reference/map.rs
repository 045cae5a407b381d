//! `y[i] = f(x[i])`.

use super::Number;
use crate::elementwise::MapFn;
use crate::error::{Result, err};

/// Applies `function` to every element of `x`.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for a function that is not defined on `T`, and for
/// [`Custom`](MapFn::Custom), whose text only a device can run.
pub fn map<T: Number>(function: &MapFn, x: &[T]) -> Result<Vec<T>> {
    if !function.supports(T::DTYPE) || matches!(function, MapFn::Custom(_)) {
        return Err(err!(Unsupported, "reference map: no `{function}` on {}", T::DTYPE));
    }
    Ok(x.iter().map(|&x| apply(function, x)).collect())
}

fn apply<T: Number>(function: &MapFn, x: T) -> T {
    let zero = T::Wide::default();
    let wide = x.widen();
    match function {
        MapFn::Neg => T::narrow(-wide),
        MapFn::Abs if wide < zero => T::narrow(-wide),
        MapFn::Relu if wide < zero => T::narrow(zero),
        MapFn::Exp => T::from_f64(x.to_f64().exp()),
        MapFn::Sqrt => T::from_f64(x.to_f64().sqrt()),
        MapFn::Sigmoid => T::from_f64(1.0 / (1.0 + (-x.to_f64()).exp())),
        MapFn::Tanh => T::from_f64(x.to_f64().tanh()),
        MapFn::Abs | MapFn::Relu | MapFn::Custom(_) => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    #[test]
    fn simple_functions_match_values_known_by_heart() {
        let x = [-2.0f32, -0.5, 0.0, 3.0, f32::NEG_INFINITY, f32::INFINITY];
        let inf = f32::INFINITY;
        assert_eq!(map(&MapFn::Neg, &x).unwrap(), [2.0, 0.5, 0.0, -3.0, inf, -inf]);
        assert_eq!(map(&MapFn::Abs, &x).unwrap(), [2.0, 0.5, 0.0, 3.0, inf, inf]);
        assert_eq!(map(&MapFn::Relu, &x).unwrap(), [0.0, 0.0, 0.0, 3.0, 0.0, inf]);
        assert_eq!(map(&MapFn::Sqrt, &[4.0f32, 2.25, 0.0]).unwrap(), [2.0, 1.5, 0.0]);
        assert_eq!(
            map(&MapFn::Exp, &[0.0f32, 1.0, -inf, 100.0]).unwrap(),
            [1.0, std::f32::consts::E, 0.0, inf]
        );
        assert_eq!(map(&MapFn::Sigmoid, &[0.0f32, -inf, inf]).unwrap(), [0.5, 0.0, 1.0]);
        assert_eq!(map(&MapFn::Tanh, &[0.0f32, -inf, 20.0]).unwrap(), [0.0, -1.0, 1.0]);
    }

    #[test]
    fn nan_gives_nan_in_every_function() {
        for function in MapFn::BUILT_IN {
            assert!(map(&function, &[f32::NAN]).unwrap()[0].is_nan(), "{function}");
            assert!(map(&function, &[f16::NAN]).unwrap()[0].is_nan(), "{function}");
        }
        assert!(map(&MapFn::Sqrt, &[-1.0f32]).unwrap()[0].is_nan());
    }

    #[test]
    fn halves_are_rounded_to_the_nearest() {
        let e = map(&MapFn::Exp, &[f16::ONE, f16::from_f32(12.0)]).unwrap();
        assert_eq!(e, [f16::from_f32(2.71875), f16::INFINITY]);
    }

    #[test]
    fn integers_wrap() {
        let x = [5, -5, 0, i32::MIN];
        assert_eq!(map(&MapFn::Neg, &x).unwrap(), [-5, 5, 0, i32::MIN]);
        assert_eq!(map(&MapFn::Abs, &x).unwrap(), [5, 5, 0, i32::MIN]);
        assert_eq!(map(&MapFn::Relu, &x).unwrap(), [5, 0, 0, 0]);
    }

    #[test]
    fn undefined_functions_are_refused() {
        let custom = MapFn::custom("fn map(x: T) -> T { return x; }");
        assert_eq!(map(&custom, &[1.0f32]).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(map(&MapFn::Exp, &[1]).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(map(&MapFn::Neg, &[1u32]).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

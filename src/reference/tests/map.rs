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
    for f in [MapFn::Abs, MapFn::Relu] {
        assert!(map(&f, &[-0.0f32]).unwrap()[0].is_sign_positive());
    }
    assert_eq!(map(&MapFn::Sqrt, &[4.0f32, 2.25, 0.0]).unwrap(), [2.0, 1.5, 0.0]);
    assert_eq!(map(&MapFn::Exp, &[0.0f32, 1.0, -inf, 100.0]).unwrap(), [1.0, std::f32::consts::E, 0.0, inf]);
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

#[test]
fn bounds_are_those_of_wgsl() {
    let u = 2f64.powi(-23);
    assert_eq!(map_bound(&MapFn::Neg, &[1.5f32, -3e38, 0.0]).unwrap(), [0.0; 3]);
    assert_eq!(map_bound(&MapFn::Neg, &[3, i32::MIN]).unwrap(), [0.0; 2]);
    assert_eq!(map_bound(&MapFn::Exp, &[0.0f32]).unwrap(), [3.0 * u]);
    let [far] = map_bound(&MapFn::Exp, &[50.0f32]).unwrap()[..] else { panic!() };
    assert!((far / 50f64.exp() - 103.0 * u).abs() <= u);
    // What may be taken for 0.
    assert_eq!(map_bound(&MapFn::Abs, &[-1e-40f32]).unwrap(), [f64::from(1e-40f32)]);
    let [root] = map_bound(&MapFn::Sqrt, &[1e-40f32]).unwrap()[..] else { panic!() };
    assert!((root - 1e-20).abs() < 1e-25);
    // Halves are far apart: all but a few results are certain.
    assert_eq!(map_bound(&MapFn::Tanh, &[f16::from_f32(0.3)]).unwrap(), [0.0]);
    // What both allow at the ends: all of a result below the normal numbers, and one step at 1.
    assert_eq!(map_bound(&MapFn::Sigmoid, &[-100.0f32]).unwrap(), [f64::from((-100f32).exp())]);
    assert!(map_bound(&MapFn::Tanh, &[10.0f32]).unwrap()[0] <= u);
    assert_eq!(map_bound(&MapFn::Sigmoid, &[f32::INFINITY, f32::NEG_INFINITY]).unwrap(), [0.0; 2]);
}

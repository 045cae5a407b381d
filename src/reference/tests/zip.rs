use super::*;
use crate::ErrorKind;
use half::f16;

fn all<T: Number>(x: &[T], y: &[T]) -> [Vec<T>; 6] {
    ZipFn::BUILT_IN.map(|f| zip(&f, x, y).unwrap())
}

#[test]
fn floats_match_values_known_by_heart() {
    let [add, sub, mul, div, min, max] = all(&[6.0f32, -1.0, 0.0], &[2.0, 0.5, 0.0]);
    assert_eq!(add, [8.0, -0.5, 0.0]);
    assert_eq!(sub, [4.0, -1.5, 0.0]);
    assert_eq!(mul, [12.0, -0.5, 0.0]);
    assert_eq!(div[..2], [3.0, -2.0]);
    assert!(div[2].is_nan());
    assert_eq!(min, [2.0, -1.0, 0.0]);
    assert_eq!(max, [6.0, 0.5, 0.0]);
}

#[test]
fn min_and_max_keep_nan_from_either_side() {
    for f in [ZipFn::Min, ZipFn::Max] {
        let z = zip(&f, &[f32::NAN, 1.0, f32::NAN], &[1.0, f32::NAN, f32::NAN]).unwrap();
        assert!(z.iter().all(|z| z.is_nan()), "{f}: {z:?}");
    }
}

#[test]
fn halves_are_rounded_once() {
    let h = f16::from_f32;
    let [add, _, mul, div, ..] = all(&[h(2048.0), h(60000.0)], &[h(1.0), h(60000.0)]);
    assert_eq!(add, [h(2048.0), f16::INFINITY]);
    assert_eq!(mul, [h(2048.0), f16::INFINITY]);
    assert_eq!(div, [h(2048.0), f16::ONE]);
}

#[test]
fn integers_wrap_and_divide_by_wgsls_rule() {
    let [add, sub, mul, div, min, max] = all(&[7, -7, i32::MIN, i32::MAX], &[0, 2, -1, i32::MAX]);
    assert_eq!(add, [7, -5, i32::MAX, -2]);
    assert_eq!(sub, [7, -9, i32::MIN + 1, 0]);
    assert_eq!(mul, [0, -14, i32::MIN, 1]);
    assert_eq!(div, [7, -3, i32::MIN, 1]);
    assert_eq!(min, [0, -7, i32::MIN, i32::MAX]);
    assert_eq!(max, [7, 2, -1, i32::MAX]);
    let [add, sub, mul, div, ..] = all(&[9, u32::MAX], &[0, u32::MAX]);
    assert_eq!(add, [9, u32::MAX - 1]);
    assert_eq!(sub, [9, 0]);
    assert_eq!(mul, [0, 1]);
    assert_eq!(div, [9, 1]);
}

#[test]
fn lengths_that_differ_and_custom_functions_are_refused() {
    let kind = |f, y: &[f32]| zip(&f, &[1.0], y).unwrap_err().kind();
    assert_eq!(kind(ZipFn::Add, &[]), ErrorKind::Shape);
    let custom = ZipFn::custom("fn zip(x: T, y: T) -> T { return x; }");
    assert_eq!(kind(custom, &[1.0]), ErrorKind::Unsupported);
}

#[test]
fn bounds_are_those_of_wgsl() {
    let u = 2f64.powi(-23);
    let of = |f, x: f32, y: f32| zip_bound(&f, &[x], &[y]).unwrap()[0];
    assert_eq!(of(ZipFn::Add, 0.5, 0.25), 0.0);
    assert_eq!(of(ZipFn::Add, 1.0, 1e-10), u);
    assert_eq!(of(ZipFn::Mul, 1e-30, 1e-10), f64::from(1e-30f32 * 1e-10));
    assert_eq!(of(ZipFn::Div, 4.0, 4.0), 2.5 * u);
    assert_eq!(of(ZipFn::Div, 1.0, 1e-40), f64::INFINITY);
    assert_eq!(of(ZipFn::Min, 3.0, 1.0), 0.0);
    assert_eq!(of(ZipFn::Max, 1e-40, 2e-40), f64::from(2e-40f32));
    assert_eq!(zip_bound(&ZipFn::Div, &[7], &[0]).unwrap(), [0.0]);
    let [x, y] = [1.5, 1.125].map(f16::from_f32);
    assert_eq!(zip_bound(&ZipFn::Mul, &[x], &[y]).unwrap(), [0.0]);
}

use super::*;

#[test]
fn forms_by_hand() {
    let x = [3.0f32, -1.0, 2.0, 2.0, 5.0, 5.0];
    let of = |op, exclusive, reverse| scan(&op, 2, 3, exclusive, reverse, &x).unwrap();
    assert_eq!(of(Operator::Sum, false, false), [3.0, 2.0, 4.0, 2.0, 7.0, 12.0]);
    assert_eq!(of(Operator::Sum, true, false), [0.0, 3.0, 2.0, 0.0, 2.0, 7.0]);
    assert_eq!(of(Operator::Sum, false, true), [4.0, 1.0, 2.0, 12.0, 10.0, 5.0]);
    assert_eq!(of(Operator::Prod, true, true), [-2.0, 2.0, 1.0, 25.0, 5.0, 1.0]);
    assert_eq!(of(Operator::Min, false, false), [3.0, -1.0, -1.0, 2.0, 2.0, 2.0]);
    assert_eq!(of(Operator::Max, true, false), [f64::NEG_INFINITY, 3.0, 3.0, f64::NEG_INFINITY, 2.0, 5.0]);
}

#[test]
fn integers_wrap_and_have_identities() {
    let of = |op| scan(&op, 1, 2, false, false, &[u32::MAX, 2]).unwrap();
    assert_eq!(of(Operator::Sum), [4_294_967_295.0, 1.0]);
    assert_eq!(of(Operator::Prod), [4_294_967_295.0, 4_294_967_294.0]);
    let first = |op| scan(&op, 1, 1, true, false, &[7i32]).unwrap()[0];
    assert_eq!(first(Operator::Min), f64::from(i32::MAX));
    assert_eq!(first(Operator::Max), f64::from(i32::MIN));
}

#[test]
fn nan_stays() {
    let x = [1.0f32, f32::NAN, 0.0];
    let least = scan(&Operator::Min, 1, 3, false, false, &x).unwrap();
    assert!(least[0] == 1.0 && least[1].is_nan() && least[2].is_nan());
}

#[test]
fn own_operators_keep_the_order_of_the_scan() {
    let digits = |reverse| scan_with(1, 3, false, reverse, &[1u32, 2, 3], 0, |a, b| a * 10 + b);
    assert_eq!(digits(false), [1, 12, 123]);
    assert_eq!(digits(true), [321, 32, 3]);
}

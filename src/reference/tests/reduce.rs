use super::*;

#[test]
fn rows_by_hand() {
    let x = [3.0f32, -1.0, 2.0, 2.0, 5.0, 5.0];
    let of = |op| reduce(&op, 2, 3, &x).unwrap();
    assert_eq!(of(Operator::Sum), [4.0, 12.0]);
    assert_eq!(of(Operator::Prod), [-6.0, 50.0]);
    assert_eq!(of(Operator::Min), [-1.0, 2.0]);
    assert_eq!(of(Operator::Max), [3.0, 5.0]);
    assert_eq!(of(Operator::ArgMin), [1.0, 0.0]);
    assert_eq!(of(Operator::ArgMax), [0.0, 1.0]);
}

#[test]
fn integers_wrap_and_bytes_widen() {
    assert_eq!(reduce(&Operator::Sum, 1, 2, &[u32::MAX, 2]).unwrap(), [1.0]);
    assert_eq!(reduce(&Operator::Sum, 1, 2, &[i32::MAX, 1]).unwrap(), [f64::from(i32::MIN)]);
    assert_eq!(reduce(&Operator::Prod, 1, 2, &[65_536u32, 65_536]).unwrap(), [0.0]);
    assert_eq!(reduce(&Operator::Sum, 1, 2, &[200u8, 100]).unwrap(), [300.0]);
    assert_eq!(reduce(&Operator::Prod, 1, 2, &[-100i8, 100]).unwrap(), [-10_000.0]);
}

#[test]
fn nan_wins_and_zeros_are_equal() {
    let x = [1.0f32, f32::NAN, -5.0, f32::NAN];
    assert!(reduce(&Operator::Min, 1, 4, &x).unwrap()[0].is_nan());
    assert_eq!(reduce(&Operator::ArgMin, 1, 4, &x).unwrap(), [1.0]);
    assert_eq!(reduce(&Operator::ArgMin, 1, 2, &[0.0f32, -0.0]).unwrap(), [0.0]);
}

#[test]
fn an_empty_input_reduces_to_the_identity() {
    assert_eq!(reduce::<f32>(&Operator::Sum, 2, 0, &[]).unwrap(), [0.0, 0.0]);
    assert_eq!(reduce::<i32>(&Operator::Prod, 1, 0, &[]).unwrap(), [1.0]);
}

#[test]
fn own_operators_keep_their_order() {
    // Composition of x -> 2x + digit: does not commute.
    assert_eq!(reduce_with(1, 3, &[1u32, 2, 3], 0, |a, b| a * 10 + b), [123]);
}

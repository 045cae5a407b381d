use super::*;

#[test]
fn rows_are_combined_in_order() {
    let (x, into) = ([1.0, 2.0, -3.0, 4.0, 5.0, -0.0], [0.0f32, 0.0, 7.0, 8.0]);
    let by = |op, indices: &[u32]| scatter(op, 2, &x, indices, &into);
    assert_eq!(by(ScatterOp::Set, &[1, 1, 2]), [0.0, 0.0, -3.0, 4.0]);
    assert_eq!(by(ScatterOp::Add, &[1, 1, u32::MAX]), [0.0, 0.0, 5.0, 14.0]);
    assert_eq!(by(ScatterOp::Min, &[1, 1, 0]), [0.0, -0.0, -3.0, 2.0]);
    assert!(by(ScatterOp::Min, &[1, 1, 0])[1].is_sign_negative());
    assert_eq!(by(ScatterOp::Max, &[0, 0, 0]), [5.0, 4.0, 7.0, 8.0]);
    assert!(scatter(ScatterOp::Max, 1, &[f32::NAN], &[0], &[1.0])[0].is_nan());
    assert_eq!(scatter(ScatterOp::Add, 1, &[200u8], &[0], &[100]), [44]);
}

use super::*;

#[test]
fn segments_by_hand() {
    let of = |op, offsets: &[u32]| reduce_offsets(&op, &[1u32, 2, 3, 4], offsets).unwrap();
    assert_eq!(of(Operator::Sum, &[0, 2, 2, 4]), [3.0, 0.0, 7.0]);
    assert_eq!(of(Operator::Prod, &[1, 1, 9]), [1.0, 24.0]);
    assert_eq!(of(Operator::Sum, &[3, 1, 2, 0, 3]), [0.0, 2.0, 0.0, 6.0]);
    assert_eq!(of(Operator::ArgMin, &[1, 3, 3, 4]), [1.0, f64::from(u32::MAX), 3.0]);
    assert_eq!(of(Operator::ArgMax, &[0, 9]), [3.0]);
    assert_eq!(of(Operator::Max, &[4, 4]), [0.0]);
    assert!(of(Operator::Sum, &[2]).is_empty());
    assert_eq!(reduce_offsets_bound(&Operator::Sum, &[1u32, 2], &[0, 1, 1]), [0.0; 2]);
}

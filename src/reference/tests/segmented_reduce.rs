use super::*;

#[test]
fn segments_by_hand() {
    let of = |op, heads: &[u32]| segmented_reduce(&op, &[1u32, 2, 3, 4, 5], heads).unwrap();
    assert_eq!(of(Operator::Sum, &[0, 0, 1, 0, 9]), [3.0, 7.0, 5.0]);
    assert_eq!(of(Operator::Prod, &[1, 0, 0, 0, 0]), [120.0]);
    assert!(segmented_reduce::<f32>(&Operator::Sum, &[], &[]).unwrap().is_empty());
    assert_eq!(segmented_reduce_bound(&Operator::Sum, &[1u32, 2, 3], &[0, 1, 0]), [0.0; 2]);
}

use super::*;

#[test]
fn runs_by_hand() {
    let of = |op, keys: &[u32]| reduce_by_key(&op, keys, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(of(Operator::Sum, &[7, 7, 3, 3, 3, 7]), (vec![7, 3, 7], vec![3.0, 12.0, 6.0]));
    assert_eq!(of(Operator::Max, &[5; 6]), (vec![5], vec![6.0]));
    assert_eq!(reduce_by_key::<u32, u32>(&Operator::Sum, &[], &[]), Some((vec![], vec![])));
    let nan = reduce_by_key(&Operator::Sum, &[f32::NAN, f32::NAN], &[1u32, 2]).unwrap();
    assert_eq!(nan.1, [1.0, 2.0]);
    assert_eq!(reduce_by_key_bound(&Operator::Sum, &[1u32, 1, 2], &[1u32, 2, 3]), [0.0; 2]);
}

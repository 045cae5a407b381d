use super::*;

#[test]
fn runs_by_hand() {
    let of = |exclusive, keys: &[u32]| scan_by_key(&Operator::Sum, exclusive, keys, &[1u32, 2, 3, 4]).unwrap();
    assert_eq!(of(false, &[7, 7, 3, 7]), [1.0, 3.0, 3.0, 4.0]);
    assert_eq!(of(true, &[7, 7, 7, 3]), [0.0, 1.0, 3.0, 0.0]);
    let nan = scan_by_key(&Operator::Sum, false, &[f32::NAN, f32::NAN, -0.0, 0.0], &[1u32, 2, 3, 4]).unwrap();
    assert_eq!(nan, [1.0, 2.0, 3.0, 7.0]);
    assert!(scan_by_key::<u32, f32>(&Operator::Max, false, &[], &[]).unwrap().is_empty());
    assert_eq!(scan_by_key_bound(&Operator::Sum, false, &[1u32, 1], &[1u32, 2]), [0.0; 2]);
}

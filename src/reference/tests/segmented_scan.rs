use super::*;

#[test]
fn segments_by_hand() {
    let x = [1u32, 2, 3, 4, 5];
    let of = |exclusive, heads: &[u32]| segmented_scan(&Operator::Sum, exclusive, &x, heads).unwrap();
    assert_eq!(of(false, &[0, 0, 1, 7, 0]), [1.0, 3.0, 3.0, 4.0, 9.0]);
    assert_eq!(of(true, &[1, 0, 1, 0, 0]), [0.0, 1.0, 0.0, 3.0, 7.0]);
    assert!(segmented_scan::<f32>(&Operator::Sum, false, &[], &[]).unwrap().is_empty());
    assert_eq!(segmented_scan_bound(&Operator::Sum, false, &x, &[0; 5]), [0.0; 5]);
}

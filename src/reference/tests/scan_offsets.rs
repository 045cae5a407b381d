use super::*;

#[test]
fn segments_by_hand() {
    let of = |exclusive, offsets: &[u32]| scan_offsets(&Operator::Sum, exclusive, &[1u32, 2, 3, 4], offsets).unwrap();
    assert_eq!(of(false, &[0, 2, 2, 4]), [1.0, 3.0, 3.0, 7.0]);
    assert_eq!(of(true, &[3, 9, 1]), [0.0, 0.0, 2.0, 0.0]);
    assert_eq!(scan_offsets_bound(&Operator::Sum, false, &[1u32, 2], &[1]), [0.0; 2]);
}

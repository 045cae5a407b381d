use super::*;

#[test]
fn places_count_to_the_left() {
    assert_eq!(rotate(1, &[1, 2, 3]), [2, 3, 1]);
    assert_eq!(rotate(-1, &[1, 2, 3]), [3, 1, 2]);
    assert_eq!(rotate(i64::MIN, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    assert!(rotate::<u8>(5, &[]).is_empty());
}

use super::*;

#[test]
fn differences_by_hand() {
    assert_eq!(adjacent_difference(&[1.0f32, 4.0, 2.5]), [1.0, 3.0, -1.5]);
    assert_eq!(adjacent_difference(&[3u32, 2]), [3, u32::MAX]);
    assert!(adjacent_difference::<i32>(&[]).is_empty());
}

use super::*;

#[test]
fn positions_by_hand() {
    assert_eq!(merge_sort_positions(&[3, -1, 2, -3], |a: i32, b| a.abs() < b.abs()), [1, 2, 0, 3]);
    assert_eq!(merge_sort_positions::<u32>(&[], |a, b| a < b), [0; 0]);
}

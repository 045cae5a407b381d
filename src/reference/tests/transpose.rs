use super::*;

#[test]
fn rows_become_columns() {
    assert_eq!(transpose(1, 2, 3, &[1, 2, 3, 4, 5, 6]), [1, 4, 2, 5, 3, 6]);
    assert_eq!(transpose(2, 1, 2, &[1, 2, 3, 4]), [1, 2, 3, 4]);
    assert_eq!(transpose(2, 2, 2, &[1u8, 2, 3, 4, 5, 6, 7, 8]), [1, 3, 2, 4, 5, 7, 6, 8]);
    assert_eq!(transpose(3, 0, 5, &[0f32; 0]), [0f32; 0]);
}

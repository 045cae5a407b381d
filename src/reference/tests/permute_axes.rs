use super::*;

#[test]
fn axes_by_hand() {
    assert_eq!(permute_axes(&[2, 3], &[1, 0], &[1, 2, 3, 4, 5, 6]), [1, 4, 2, 5, 3, 6]);
    assert_eq!(permute_axes(&[2, 1, 3], &[1, 0, 2], &[1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
    assert!(permute_axes::<u8>(&[2, 0], &[1, 0], &[]).is_empty());
}

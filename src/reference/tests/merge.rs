use super::*;

#[test]
fn merges_by_hand() {
    let nan = f32::NAN;
    assert_eq!(merge_positions(&[1u32, 4, 4], &[0, 4, 9], false), [3, 0, 1, 2, 4, 5]);
    assert_eq!(merge_positions(&[3, 1, -5], &[3, 2], true), [0, 3, 4, 1, 2]);
    assert_eq!(merge_positions(&[0.0, nan], &[-0.0, 0.0, nan], false), [2, 0, 3, 1, 4]);
    assert_eq!(merge_positions(&[0.0, nan], &[-0.0, nan], true), [0, 2, 1, 3]);
    assert_eq!(merge_positions::<u32>(&[], &[], false), [0; 0]);
}

use super::*;

#[test]
fn segments_by_hand() {
    let of = |offsets: &[u32]| segmented_sort_positions(&[3u32, 1, 2, 1, 0], offsets, false);
    assert_eq!(of(&[0, 3, 3, 5]), [1, 2, 0, 4, 3]);
    assert_eq!(of(&[0]), [4, 1, 3, 2, 0]);
    assert_eq!(of(&[1, 2, 9]), [0, 1, 4, 3, 2]);
    assert_eq!(of(&[3, 0, 9, 3]), [1, 2, 0, 4, 3]);
    assert_eq!(segmented_sort_positions(&[1.0f32, f32::NAN, 2.0], &[0, 3], true), [2, 0, 1]);
}

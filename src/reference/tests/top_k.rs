use super::*;

#[test]
fn the_best_by_hand() {
    assert_eq!(top_k(&[3u32, 1, 4, 1, 5, 9, 2, 6], 3, false), [5, 7, 4]);
    assert_eq!(top_k(&[3u32, 1, 4, 1, 5, 9, 2, 6], 3, true), [1, 3, 6]);
    assert_eq!(top_k(&[7, -7, 7, 0], 2, false), [0, 2]);
    let floats = [f32::NAN, 0.0, -0.0, f32::INFINITY, -1.0, f32::NAN];
    assert_eq!(top_k(&floats, 6, false), [3, 1, 2, 4, 0, 5]);
    assert_eq!(top_k(&floats, 5, true), [4, 2, 1, 3, 0]);
}

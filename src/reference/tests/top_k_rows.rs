use super::*;

#[test]
fn the_best_of_rows_by_hand() {
    let x = [3u32, 9, 1, 7, 7, 5];
    assert_eq!(top_k_rows(&x, 3, 2, false), (vec![9, 3, 7, 7], vec![1, 0, 0, 1]));
    assert_eq!(top_k_rows(&x, 3, 1, true), (vec![1, 5], vec![2, 2]));
    let segments = top_k_segments(&x, &[1, 2, 2, 9], 2, false);
    assert_eq!(segments, (vec![9, 0, 0, 0, 7, 7], vec![1, u32::MAX, u32::MAX, u32::MAX, 3, 4]));
}

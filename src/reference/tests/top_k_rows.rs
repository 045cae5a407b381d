use super::*;

#[test]
fn the_best_of_rows_by_hand() {
    let x = [3u32, 9, 1, 7, 7, 5];
    assert_eq!(top_k_rows(&x, 3, 2, false), (vec![9, 3, 7, 7], vec![1, 0, 0, 1]));
    assert_eq!(top_k_rows(&x, 3, 1, true), (vec![1, 5], vec![2, 2]));
}

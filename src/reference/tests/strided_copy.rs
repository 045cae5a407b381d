use super::*;

#[test]
fn elements_by_hand() {
    let x: Vec<u8> = (0..12).collect();
    assert_eq!(strided_copy(&[2, 3], &[4, 1], 1, &x), [1, 2, 3, 5, 6, 7]);
    assert_eq!(strided_copy(&[3, 2], &[-4, 0], 9, &x), [9, 9, 5, 5, 1, 1]);
    assert!(strided_copy(&[0, 2], &[1, 1], 0, &x).is_empty());
}

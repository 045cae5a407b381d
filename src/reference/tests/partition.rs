use super::*;

#[test]
fn both_sides_keep_their_order() {
    assert_eq!(partition(&[1, 2, 3, 4, 5], &[0, 1, 0, 7, 0]), (vec![2, 4, 1, 3, 5], 2));
    assert_eq!(partition::<f32>(&[], &[]), (vec![], 0));
}

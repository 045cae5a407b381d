use super::*;

#[test]
fn parts_keep_their_order() {
    let (moved, counts) = split_parts(&['a', 'b', 'c', 'd', 'e'], &[2, 0, 1, 0, 9], 3);
    assert_eq!((moved, counts), (vec!['b', 'd', 'c', 'a', 'e'], vec![2, 1, 2]));
}

use super::*;

#[test]
fn finds_by_hand() {
    assert_eq!(find(&[false, true, false, true]), [1, 2]);
    assert_eq!((find(&[false; 3]), find(&[])), ([3, 0], [0, 0]));
}

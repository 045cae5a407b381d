use super::*;

#[test]
fn arrays_by_hand() {
    let (a, b) = ([1, 2, 3, 4], [8, 9]);
    assert_eq!(concatenate(&Concatenate::new(&[&[2, 2], &[2, 1]], 1), &[&a, &b]), [1, 2, 8, 3, 4, 9]);
    assert_eq!(concatenate(&Concatenate::new(&[&[2, 2], &[1, 2]], 0), &[&a, &b]), [1, 2, 3, 4, 8, 9]);
    assert!(concatenate::<u8>(&Concatenate::new(&[&[0, 2], &[0, 1]], 1), &[&[], &[]]).is_empty());
}

use super::*;

#[test]
fn products_by_hand() {
    let x = [1.0, 2.0, 0.0, 3.0];
    assert_eq!(cdot(false, &x, &x), [-12.0, 4.0]);
    assert_eq!(cdot(true, &x, &x), [14.0, 0.0]);
    assert_eq!((cdot(true, &[], &[]), cdot_bound(&[], &[])), ([0.0; 2], 0.0));
}

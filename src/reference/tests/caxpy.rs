use super::*;

#[test]
fn sums_by_hand() {
    assert_eq!(caxpy([0.0, 1.0], &[1.0, 2.0], &[10.0, 0.0]), [8.0, 1.0]);
    assert_eq!(caxpy([2.0, 0.0], &[], &[]), [0.0; 0]);
}

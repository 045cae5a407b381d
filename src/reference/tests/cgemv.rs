use super::*;

#[test]
fn products_by_hand() {
    let (a, x) = ([1.0, 0.0, 0.0, 1.0], [2.0, 0.0, 3.0, 0.0]);
    assert_eq!(cgemv(&Cgemv::new(1, 2), &a, &x, &[]), [2.0, 3.0]);
    assert_eq!(cgemv(&Cgemv::new(1, 2).trans().conjugated(), &a, &x[..2], &[]), [2.0, 0.0, 0.0, -2.0]);
}

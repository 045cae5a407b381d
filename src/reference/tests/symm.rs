use super::*;

#[test]
fn products_by_hand() {
    // (2 1; 1 4) (1; 3) and (1 3) (2 1; 1 4).
    let (a, b) = ([2.0, f32::NAN, 1.0, 4.0], [1.0, 3.0]);
    assert_eq!(symm(&Symm::new(2, 1), &a, &b, &[0.0; 2]).unwrap(), [5.0, 13.0]);
    assert_eq!(symm(&Symm::new(1, 2).right().beta(1.0), &a, &b, &[1.0; 2]).unwrap(), [6.0, 14.0]);
    let upper = [2.0, 1.0, f32::NAN, 4.0];
    assert_eq!(symm(&Symm::new(2, 1).upper(), &upper, &b, &[0.0; 2]).unwrap(), [5.0, 13.0]);
}

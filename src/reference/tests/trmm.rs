use super::*;

#[test]
fn products_by_hand() {
    // (2 0; 1 4) (1; 3), its transpose, and (1 3) (2 0; 1 4).
    let (a, b) = ([2.0, f32::NAN, 1.0, 4.0], [1.0, 3.0]);
    assert_eq!(trmm(&Trmm::new(2, 1), &a, &b), [2.0, 13.0]);
    assert_eq!(trmm(&Trmm::new(2, 1).trans().alpha(2.0), &a, &b), [10.0, 24.0]);
    assert_eq!(trmm(&Trmm::new(1, 2).right(), &a, &b), [5.0, 12.0]);
    assert_eq!(trmm(&Trmm::new(2, 1).unit(), &a, &b), [1.0, 4.0]);
    assert_eq!(trmm(&Trmm::new(2, 1).upper(), &[2.0, 1.0, f32::NAN, 4.0], &b), [5.0, 12.0]);
}

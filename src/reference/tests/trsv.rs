use super::*;

#[test]
fn systems_by_hand() {
    assert_eq!(trsv(&Trsv::new(2), &[2.0, f32::NAN, 1.0, 4.0], &[4.0, 10.0]), [2.0, 2.0]);
    assert_eq!(trsv(&Trsv::new(2).packed().trans(), &[2.0, 1.0, 4.0], &[4.0, 8.0]), [1.0, 2.0]);
    assert_eq!(trsv(&Trsv::new(2).banded(1).unit(), &[0.0, 0.0, 1.0, 0.0], &[4.0, 10.0]), [4.0, 6.0]);
}

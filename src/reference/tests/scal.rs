use super::*;

#[test]
fn products_by_hand() {
    assert_eq!(scal(0.5, &[1.0f32, -2.0]), [0.5, -1.0]);
    assert_eq!(scal(3.0, &[u32::MAX, 2]), [u32::MAX - 2, 6]);
    assert!(scal(0.0, &[f32::NAN])[0].is_nan());
}

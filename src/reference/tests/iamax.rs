use super::*;

#[test]
fn positions_by_hand() {
    assert_eq!(iamax(&[1.0f32, -3.0, 3.0]), 1);
    assert_eq!(iamax(&[1.0f32, f32::NAN, f32::INFINITY, f32::NAN]), 1);
}

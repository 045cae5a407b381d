use super::*;

#[test]
fn positions_by_hand() {
    assert_eq!(iamin(&[3.0f32, -1.0, 1.0]), 1);
    assert_eq!(iamin(&[1.0f32, f32::NAN, f32::INFINITY, f32::NAN]), 1);
}

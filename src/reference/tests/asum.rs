use super::*;

#[test]
fn magnitudes_by_hand() {
    assert_eq!(asum(&[1.0f32, -2.0, 0.0]), 3.0);
}

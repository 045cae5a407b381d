use super::*;

#[test]
fn products_by_hand() {
    assert_eq!(dot(&[1.0f32, -2.0], &[3.0, 4.0]), -5.0);
    assert_eq!(dot(&[1i32 << 20, -3], &[1 << 12, 5]), -15.0);
    assert_eq!(dot(&[u32::MAX, 2], &[u32::MAX, 3]), 7.0);
    assert_eq!((dot::<f32>(&[], &[]), dot_bound::<f32>(&[], &[])), (0.0, 0.0));
}

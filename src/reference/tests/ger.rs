use super::*;

#[test]
fn matrices_by_hand() {
    assert_eq!(ger(2.0, &[1.0f32, -1.0], &[3.0, 4.0], None), [6.0, 8.0, -6.0, -8.0]);
    assert_eq!(ger(1.0, &[1.0f32], &[3.0, 4.0], Some(&[1.0, 1.0])), [4.0, 5.0]);
}

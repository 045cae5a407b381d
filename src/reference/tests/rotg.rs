use super::*;

#[test]
fn rotations_by_hand() {
    assert_eq!(rotg(3.0, 0.0), [3.0, 0.0, 1.0, 0.0]);
    assert_eq!(rotg(0.0, -2.0), [-2.0, 1.0, 0.0, 1.0]);
    assert_eq!(rotg(3.0, 4.0), [5.0, 5.0 / 3.0, 0.6, 0.8]);
    assert_eq!(rotg(-4.0, 3.0), [-5.0, -0.6, 0.8, -0.6]);
}

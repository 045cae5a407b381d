use super::*;

#[test]
fn quarter_turns_by_hand() {
    let [x, y] = rot([0.0, 1.0, -1.0, 0.0], &[1.0f32, 2.0], &[10.0, 20.0]);
    assert_eq!((x, y), (vec![10.0, 20.0], vec![-1.0, -2.0]));
}

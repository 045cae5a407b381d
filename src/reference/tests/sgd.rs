use super::*;

#[test]
fn steps_match_values_by_hand() {
    let of = |op: &Sgd| sgd(op, &[1.0f32], &[2.0], &[4.0]);
    // Without momentum the given velocity is ignored.
    assert_eq!(sgd(&Sgd::new(1, 0.5), &[1.0f32], &[2.0], &[0.0])[0], [0.0]);
    assert_eq!(sgd(&Sgd::new(1, 0.5).decay(1.0), &[1.0f32], &[2.0], &[0.0])[0], [-0.5]);
    let momentum = Sgd::new(1, 0.5).with_momentum(0.5);
    assert_eq!(of(&momentum), [vec![-1.0], vec![4.0]]);
    let ahead = Sgd::new(1, 0.5).nesterov().with_momentum(0.5);
    assert_eq!(of(&ahead), [vec![-1.0], vec![4.0]]);
    assert!(sgd_bound(&Sgd::new(1, 0.1), &[1.0f32], &[2.0], &[0.0])[0][0] < 1e-5);
}

use super::*;

#[test]
fn the_first_step_is_as_long_as_the_rate() {
    let op = Adam::new(2, 0.1).eps(0.0);
    let [p, m, v, full] = adam(&op, [&[1.0f32, 1.0], &[3.0, -0.01], &[0.0; 2], &[0.0; 2], &[0.0; 2]]);
    assert_eq!(p, [0.9, 1.1]);
    assert!((m[0] - 0.3).abs() < 1e-7 && (v[0] - 0.009).abs() < 1e-8);
    assert_eq!(full, [0.1, 0.001]);
    // The second: 1 - beta^2.
    let [.., full] = adam(&op, [&[1.0f32], &[3.0], &m[..1], &v[..1], &full]);
    assert!((full[0] - 0.19).abs() < 1e-7 && (full[1] - 0.001_999).abs() < 1e-8);
}

#[test]
fn decay_acts_on_gradients_or_on_parameters() {
    let zeros: &[f32] = &[0.0, 0.0];
    let step = |op: Adam| adam(&op.decay(0.5).eps(1.0), [&[2.0f32], &zeros[..1], &zeros[..1], &zeros[..1], zeros]);
    // AdamW: 2 - 0.1 0.5 2. Otherwise a gradient of 1, over its size plus eps.
    assert_eq!(step(Adam::new(1, 0.1).decoupled())[0], [1.9]);
    assert!((step(Adam::new(1, 0.1))[0][0] - 1.95).abs() < 1e-6);
}

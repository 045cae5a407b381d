use super::*;

mod sgd {
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
}

mod adam {
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
}

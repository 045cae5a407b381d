use super::*;

mod activation_backward {
    use super::*;
    use crate::reference::maps::activate;

    #[test]
    fn slopes_match_finite_differences() {
        for activation in Activation::ALL {
            for i in -40..40 {
                let x = f64::from(i) * 0.1 + 0.05;
                let y = activate(activation, x);
                let value = if activation == Activation::Gelu { x } else { y };
                let wanted = (activate(activation, x + 1e-6) - activate(activation, x - 1e-6)) / 2e-6;
                assert!((slope(activation, value) - wanted).abs() < 1e-8, "{activation:?} at {x}");
            }
        }
        assert_eq!(activation_backward(Activation::Relu, &[0.0f32, -0.0, 2.0], &[3.0; 3]), [0.0, 0.0, 3.0]);
    }

    #[test]
    fn bound_is_small() {
        let bound = activation_backward_bound(Activation::Gelu, &[0.5f32, -3.0], &[1.0, -1.0]);
        assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-6), "{bound:?}");
    }
}

mod bias_backward {
    use super::*;

    #[test]
    fn channels_are_summed_over_images_and_planes() {
        let dy = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        assert_eq!(bias_backward(2, 2, &dy), [1.0 + 2.0 + 5.0 + 6.0, 3.0 + 4.0 + 7.0 + 8.0]);
        assert_eq!(bias_backward(4, 1, &dy), [6.0, 8.0, 10.0, 12.0]);
        assert_eq!(bias_backward::<f32>(3, 1, &[]), [0.0; 3]);
        assert!(bias_backward_bound(4, 1, &dy).iter().all(|b| *b > 0.0 && *b < 1e-5));
    }
}

mod dropout {
    use super::*;

    #[test]
    fn masks_follow_the_words() {
        let op = Dropout::new(0.5, 8).seed(3).offset(4);
        let y = dropout(&op, &[1.5f32; 8]);
        let block = |i| philox([i, 0, 0, 0], 3);
        let words = [block(1), block(2)].concat();
        let want: Vec<f64> = words.iter().map(|w| if *w >= 1 << 31 { 3.0 } else { 0.0 }).collect();
        assert_eq!(y, want);
        assert_eq!(dropout(&Dropout::new(0.0, 3), &[1.0f32, -2.0, 3.0]), [1.0, -2.0, 3.0]);
    }
}

mod rope {
    use super::*;

    #[test]
    fn a_right_angle_swaps_pairs() {
        let x = [1.0f32, 2.0, 3.0, 4.0, 5.0];
        let tables = [&[0.0, 1.0][..], &[1.0, 0.0]];
        // The first pair by a right angle, the second by 0; the last element has no pair.
        let op = Rope::new([1, 1, 1, 5]).rotary(4);
        assert_eq!(rope(&op, &x, tables, None), [-3.0, 2.0, 1.0, 4.0, 5.0]);
        assert_eq!(rope(&op.interleaved(), &x, tables, None), [-2.0, 1.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn tokens_use_their_rows_of_the_tables() {
        // Two heads, two tokens, size two. The second position is beyond the tables and uses the last row.
        let x = [1.0f32, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let tables = [&[1.0, 0.0][..], &[0.0, 1.0]];
        let op = Rope::new([1, 2, 2, 2]);
        let want = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        assert_eq!(rope(&op, &x, tables, None), want);
        assert_eq!(rope(&op.clone().with_positions(2), &x, tables, Some(&[0, 7])), want);
        let want = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        assert_eq!(rope(&op.tokens_first(), &x, tables, None), want);
    }
}

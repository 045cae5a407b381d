use super::*;

mod conv {
    use super::*;

    const X: [f32; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

    #[test]
    fn sums_of_windows_are_known() {
        let op = Conv2d::new([1, 1, 3, 3], 1, [2, 2]);
        assert_eq!(conv(&op, &X, &[1.0, 0.0, 0.0, 10.0], None).unwrap(), [51.0, 62.0, 84.0, 95.0]);
        let same = Conv2d::new([1, 1, 3, 3], 1, [3, 3]).pad([1, 1]);
        let right = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(conv(&same, &X, &right, None).unwrap(), [2.0, 3.0, 0.0, 5.0, 6.0, 0.0, 8.0, 9.0, 0.0]);
        let corners = Conv2d::new([1, 1, 3, 3], 1, [2, 2]).dilation([2, 2]);
        assert_eq!(conv(&corners, &X, &[1.0, 1.0, 1.0, 1.0], Some(&[0.5])).unwrap(), [20.5]);
        let strided = Conv2d::new([1, 1, 3, 3], 1, [1, 1]).stride([2, 2]).pad_each([0, 0, 0, 1]);
        assert_eq!(conv(&strided, &X, &[1.0], None).unwrap(), [1.0, 3.0, 7.0, 9.0]);
    }

    #[test]
    fn channels_may_come_last_and_f16_is_rounded_once() {
        // Two channels of 1 x 2, two filters.
        let op = Conv2d::new([1, 2, 1, 2], 2, [1, 2]).channels_last();
        let w = [1.0, 10.0, 100.0, 1000.0, 0.0, 0.0, 0.0, 0.5f32];
        assert_eq!(conv(&op, &[1.0, 2.0, 3.0, 4.0], &w, None).unwrap(), [4321.0, 2.0]);
        let half = |x: &[f32]| x.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
        let got = conv(&op, &half(&[1.0, 2.0, 3.0, 4.0]), &half(&w), Some(&half(&[1.0, 2.0]))).unwrap();
        assert_eq!(got, half(&[4322.0, 4.0]));
    }

    #[test]
    fn groups_see_their_channels() {
        let op = Conv2d::new([1, 2, 1, 2], 4, [1, 1]).groups(2).activation(Activation::Relu);
        let y = conv(&op, &[1.0f32, -2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, -1.0], None).unwrap();
        assert_eq!(y, [1.0, 0.0, 2.0, 0.0, 9.0, 12.0, 0.0, 0.0]);
        let op = Conv2d::new([1, 2, 1, 2], 1, [1, 1]);
        assert_eq!(conv(&op, &[1.0f32, 2.0, 3.0, 4.0], &[10.0, 1.0], None).unwrap(), [13.0, 24.0]);
        assert!(conv(&op, &X, &[10.0, 1.0], None).is_err());
    }
}

mod conv_transpose {
    use super::*;

    #[test]
    fn every_element_adds_its_window() {
        let op = ConvTranspose2d::new([1, 1, 1, 2], 1, [1, 3]).stride([1, 2]);
        let w = [1.0f32, 2.0, 3.0];
        assert_eq!(conv_transpose(&op, &[1.0, 10.0], &w, None).unwrap(), [1.0, 2.0, 13.0, 20.0, 30.0]);
        let more = op.clone().output_padding([0, 1]);
        let y = conv_transpose(&more, &[1.0, 10.0], &w, Some(&[0.5])).unwrap();
        assert_eq!(y, [1.5, 2.5, 13.5, 20.5, 30.5, 0.5]);
        let less = op.pad([0, 1]);
        assert_eq!(conv_transpose(&less, &[1.0, 10.0], &w, None).unwrap(), [2.0, 13.0, 20.0]);
    }
}

mod conv_backward_data {
    use super::*;
    use crate::conv::Conv2d;
    use crate::reference::conv;

    #[test]
    fn every_output_gives_its_window_back() {
        let layer = Conv2d::new([1, 1, 1, 4], 1, [1, 2]).stride([1, 2]);
        let dx = conv_backward_data(&Conv2dBackwardData::new(&layer), &[1.0f32, 10.0], &[2.0, 3.0]).unwrap();
        assert_eq!(dx, [2.0, 3.0, 20.0, 30.0]);
    }

    #[test]
    fn matches_finite_differences() {
        let layer = Conv2d::new([2, 4, 5, 6], 6, [3, 2]).stride([2, 1]).pad([1, 1]).dilation([1, 2]).groups(2);
        let [len_x, len_w, len_y] = layer.parts().0.lengths().unwrap();
        let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let x: Vec<f32> = (0..len_x).map(value).collect();
        let w: Vec<f32> = (0..len_w).map(|i| value(i + 5)).collect();
        let dy: Vec<f32> = (0..len_y).map(|i| value(3 * i)).collect();
        let loss = |x: &[f32]| {
            let y = conv(&layer, x, &w, None).unwrap();
            y.iter().zip(&dy).map(|(y, dy)| f64::from(*y) * f64::from(*dy)).sum::<f64>()
        };
        let dx = conv_backward_data(&Conv2dBackwardData::new(&layer), &dy, &w).unwrap();
        for i in 0..len_x {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[i] += 0.5;
            down[i] -= 0.5;
            // The layer is linear: any step will do.
            let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
            assert!((slope - f64::from(dx[i])).abs() < 1e-4, "{i}: {slope} {}", dx[i]);
        }
    }
}

mod conv_backward_weights {
    use super::*;
    use crate::conv::Conv2d;
    use crate::reference::conv;

    #[test]
    fn every_weight_sees_its_cells() {
        let layer = Conv2d::new([2, 1, 1, 3], 1, [1, 2]);
        let op = Conv2dBackwardWeights::new(&layer);
        let (x, dy) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(conv_backward_weights(&op, &x, &dy).unwrap(), [5421.0, 6532.0]);
        assert_eq!(conv_backward_bias(&op, &dy).unwrap(), [1111.0]);
    }

    #[test]
    fn matches_finite_differences() {
        let layer = Conv2d::new([2, 4, 5, 6], 6, [3, 2]).stride([2, 1]).pad([1, 1]).dilation([1, 2]).groups(2);
        let op = Conv2dBackwardWeights::new(&layer);
        let [len_x, len_w, len_y] = op.parts().0.lengths().unwrap();
        let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let x: Vec<f32> = (0..len_x).map(value).collect();
        let w: Vec<f32> = (0..len_w).map(|i| value(i + 5)).collect();
        let dy: Vec<f32> = (0..len_y).map(|i| value(3 * i)).collect();
        let loss = |w: &[f32], bias: &[f32]| {
            let y = conv(&layer, &x, w, Some(bias)).unwrap();
            y.iter().zip(&dy).map(|(y, dy)| f64::from(*y) * f64::from(*dy)).sum::<f64>()
        };
        let zeros = [0.0; 6];
        let dw = conv_backward_weights(&op, &x, &dy).unwrap();
        for i in 0..len_w {
            let (mut up, mut down) = (w.clone(), w.clone());
            up[i] += 0.5;
            down[i] -= 0.5;
            // The layer is linear: any step will do.
            let slope = (loss(&up, &zeros) - loss(&down, &zeros)) / f64::from(up[i] - down[i]);
            assert!((slope - f64::from(dw[i])).abs() < 1e-4, "{i}: {slope} {}", dw[i]);
        }
        let db = conv_backward_bias(&op, &dy).unwrap();
        for i in 0..6 {
            let mut up = zeros;
            up[i] = 1.0;
            let slope = loss(&w, &up) - loss(&w, &zeros);
            assert!((slope - f64::from(db[i])).abs() < 1e-4, "{i}: {slope} {}", db[i]);
        }
    }
}

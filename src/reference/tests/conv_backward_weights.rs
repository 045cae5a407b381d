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

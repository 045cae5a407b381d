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

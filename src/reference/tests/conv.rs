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

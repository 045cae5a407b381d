use super::*;
use crate::quantize::Scales;

#[test]
fn matches_rows_and_scales_by_hand() {
    let x = [1.0f32, -127.0, 2.5, 3.5, 0.0, -0.0, 0.0, 0.0];
    let op = Quantize::<i8>::new(2, 4);
    assert_eq!(quantize(&op, &x), (vec![1, -127, 2, 4, 0, 0, 0, 0], vec![1.0, 0.0]));
    let op = Quantize::<u8>::new(2, 4).scales(Scales::Tensor);
    let (codes, scale) =
        quantize(&op, &[448.0f32, 1.0, -2.0, 0.0, 464.0, f32::NAN, 1.0, 1.0].map(|x| x / 464.0 * 448.0));
    assert!((scale[0] - 1.0).abs() < 1e-6);
    assert_eq!((codes[4], codes[5], codes[3]), (0x7e, 0x7f, 0));
    let (codes, scale) = quantize(&Quantize::<i8>::new(1, 4), &[f32::INFINITY, f32::NAN, -f32::INFINITY, 12.7]);
    assert_eq!((codes, scale[0]), (vec![127, 0, -127, 127], 12.7 / 127.0));
    assert_eq!(quantize(&Quantize::<i8>::new(1, 2), &[1e-38f32, -1e-38]), (vec![0, 0], vec![0.0]));
}

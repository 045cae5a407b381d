use super::*;

#[test]
fn numbers_are_codes_times_scales() {
    let op = Dequantize::<i8>::new(2, 2);
    assert_eq!(dequantize::<i8, f32>(&op, &[1, -128, 0, 127], &[0.5, 2.0]), [0.5, -64.0, 0.0, 254.0]);
    let op = Dequantize::<u8>::new(1, 3);
    let got = dequantize::<u8, f32>(&op, &[0x38, 0xfe, 0xff], &[2.0]);
    assert!(got[..2] == [2.0, -896.0] && got[2].is_nan(), "{got:?}");
    assert!(dequantize_bound::<u8, f32>(&op, &[0x38, 0xfe, 0], &[0.1])[0] < 1e-7);
}

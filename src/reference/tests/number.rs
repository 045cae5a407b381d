use super::*;

#[test]
fn floats_round_once_and_integers_wrap() {
    assert_eq!(f32::narrow(1.0 + 2f64.powi(-25)), 1.0);
    assert_eq!(f16::narrow(65520.0), f16::INFINITY);
    assert_eq!(f16::narrow(1.0 + 2f64.powi(-11)), f16::ONE);
    let next = f16::from_bits(f16::ONE.to_bits() + 1);
    assert_eq!(f16::narrow(1.0 + 2f64.powi(-11) + 2f64.powi(-50)), next);
    assert_eq!(f16::narrow(-1.0 - 3.0 * 2f64.powi(-11) + 2f64.powi(-50)), -next);
    assert_eq!(f16::narrow(65520.0 - 1e-9), f16::MAX);
    assert_eq!(f16::narrow(1e300), f16::INFINITY);
    assert_eq!(f16::narrow(f64::NEG_INFINITY), f16::NEG_INFINITY);
    assert!(f16::narrow(f64::NAN).is_nan());
    assert_eq!(f16::narrow(-0.0).to_bits(), 0x8000);
    assert_eq!(f16::narrow(2f64.powi(-25)).to_bits(), 0);
    assert_eq!(f16::narrow(2f64.powi(-25) + 2f64.powi(-70)).to_bits(), 1);
    assert_eq!(bf16::narrow(1.0 + 2f64.powi(-8)), bf16::ONE);
    assert_eq!(bf16::narrow(1.0 + 2f64.powi(-8) + 2f64.powi(-50)).to_bits(), bf16::ONE.to_bits() + 1);
    assert_eq!(bf16::narrow(1e300), bf16::INFINITY);
    assert_eq!(i32::narrow(1 << 31), i32::MIN);
    assert_eq!(u32::narrow(-1), u32::MAX);
    assert_eq!(f32::scalar(0.1), f64::from(0.1f32));
    assert_eq!(i32::scalar(-3.0), -3);
}

#[test]
fn squares_below_the_least_normal_number_leave_nothing() {
    assert!(of_flushed_squares(1e-5) < 1e-30 && of_flushed_squares(f64::INFINITY) == 0.0);
    assert!([0.0, 1e-39, f64::NAN].iter().all(|square| of_flushed_squares(*square) == f64::INFINITY));
}

#[test]
fn ulp_is_the_distance_of_neighbours() {
    for x in [1.0f32, 1.5, -2.0, 3e38, 1e-38, f32::MIN_POSITIVE] {
        let next = f32::from_bits(x.to_bits() + 1);
        assert_eq!(ulp(f64::from(x)), f64::from((next - x).abs()), "{x}");
    }
    assert_eq!(ulp(0.0), 2f64.powi(-149));
    assert_eq!(rounding(0.75), 0.0);
    assert_eq!(rounding(0.1), 2f64.powi(-27));
}

#[test]
fn spread_includes_rounding() {
    assert_eq!(spread(1.0f32, 1.0, 0.0), 0.0);
    assert_eq!(spread(1.0f32, 1.0, 2f64.powi(-23)), 2f64.powi(-23));
    // Away from the middle of two f16 numbers both round alike; at the middle they do not.
    assert_eq!(spread(f16::ONE, 1.0001, 2f64.powi(-23)), 0.0);
    assert_eq!(spread(f16::ONE, 1.0 + 2f64.powi(-11), 2f64.powi(-23)), 2f64.powi(-10));
    // A subnormal f32 may be 0, and a number near the largest may become infinite.
    assert_eq!(spread(1e-40f32, f64::from(1e-40f32), 0.0), f64::from(1e-40f32));
    assert_eq!(spread(f32::MAX, f64::from(f32::MAX), ulp(3e38)), f64::INFINITY);
    assert_eq!(spread(f32::INFINITY, 1e60, 1e40), 0.0);
    // A flushed subnormal times infinity is NaN.
    assert_eq!(spread(f32::INFINITY, f64::NAN, 0.0), f64::INFINITY);
    assert_eq!(spread(f32::NAN, 0.0, 0.0), f64::INFINITY);
    assert_eq!(spread(f32::NAN, f64::NAN, 0.0), 0.0);
}

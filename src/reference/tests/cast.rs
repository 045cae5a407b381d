use super::*;
use half::f16;

#[test]
fn halves_are_the_nearest() {
    let half = |x: f32| cast::<f32, f16>(&[x])[0];
    assert_eq!((half(1.0).to_bits(), half(65504.0), half(65520.0)), (0x3c00, f16::MAX, f16::INFINITY));
    // The middle between 1 and the next number, which is odd.
    assert_eq!((half(1.000_488_3), half(2f32.powi(-25)).to_bits()), (f16::ONE, 0));
    assert!(half(f32::NAN).is_nan());
    assert_eq!(cast::<f16, f32>(&[f16::from_bits(1)]), [2f32.powi(-24)]);
}

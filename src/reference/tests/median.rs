use super::*;
use crate::conv::Boundary;
use crate::image::Image;

#[test]
fn known_medians() {
    let x = [9u8, 2, 3, 4, 5, 6, 7, 8, 1];
    let op = Median::new([3, 3], 3);
    assert_eq!(median(&op, &x), [5, 4, 3, 7, 5, 3, 7, 6, 5]);
    assert_eq!(median(&op.clone().boundary(Boundary::Zero), &x), [0, 3, 0, 4, 5, 2, 0, 4, 0]);
    assert_eq!(median(&op.boundary(Boundary::Wrap), &x), [5; 9]);
    assert_eq!(median(&Median::new([3, 3], 1), &x), x);
    // A window that is larger than the image: the pixels at its ends count most.
    assert_eq!(median(&Median::new([1, 3], 9), &[3u8, 7, 5]), [3, 5, 5]);
    // Channels do not mix, in both layouts.
    assert_eq!(median(&Median::new(Image::new([1, 3], 2), 3), &[1u8, 30, 2, 10, 3, 20]), [1, 30, 2, 20, 3, 20]);
    let planes = Median::new(Image::new([1, 3], 2).planar(), 3);
    assert_eq!(median(&planes, &[1u8, 2, 3, 30, 10, 20]), [1, 2, 3, 30, 20, 20]);
}

#[test]
fn negative_zero_lies_below_zero_and_nan_above_infinity() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let middle = |row: [f32; 3]| median(&Median::new([1, 3], 3), &row)[1];
    assert_eq!(middle([0.0, -0.0, -0.0]).to_bits(), (-0.0f32).to_bits());
    assert_eq!(middle([0.0, -0.0, 1.0]).to_bits(), 0);
    assert_eq!(middle([-nan, inf, 1.0]), inf);
    assert_eq!(middle([nan, -inf, 1.0]), 1.0);
    assert!(middle([nan, -nan, 1.0]).is_nan());
}

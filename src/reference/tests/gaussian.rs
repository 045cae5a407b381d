use super::*;
use crate::conv::Boundary;
use crate::image::Image;

#[test]
fn known_curves() {
    // exp(-1/2) twice and 1: 0.2741, 0.4519, 0.2741.
    let side = (-0.5f64).exp() / (1.0 + 2.0 * (-0.5f64).exp());
    let middle = 1.0 - 2.0 * side;
    let op = Gaussian::new([1, 3], 1.0).radius(1);
    let near = |got: &[f64], want: &[f64]| got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-12);
    assert!(near(&gaussian(&op, &[0u8, 1, 0]), &[side, middle, side]));
    // The rows above and below are the same row.
    assert!(near(&gaussian(&op, &[1u8, 0, 0]), &[side + middle, side, 0.0]));
    let zero = op.clone().boundary(Boundary::Zero);
    assert!(near(&gaussian(&zero, &[1u8, 0, 0]), &[middle * middle, middle * side, 0.0]));
    let wrap = Gaussian::new([3, 3], 1.0).radius(1).boundary(Boundary::Wrap);
    let corner = gaussian(&wrap, &[0u8, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert!(near(&corner[..2], &[side * side, side * side]) && near(&corner[8..], &[middle * middle]));
    // Channels do not mix, in both layouts.
    let pair = Gaussian::new(Image::new([1, 2], 2), 1.0).radius(1);
    assert!(near(&gaussian(&pair, &[0u8, 8, 0, 8]), &[0.0, 8.0, 0.0, 8.0]));
    let planes = Gaussian::new(Image::new([1, 2], 2).planar(), 1.0).radius(1);
    assert!(near(&gaussian(&planes, &[0u8, 0, 8, 8]), &[0.0, 0.0, 8.0, 8.0]));
    assert_eq!((op.reach(), Gaussian::new([1, 1], 1.5).reach()), (1, 6));
}

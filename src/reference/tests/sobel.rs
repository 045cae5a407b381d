use super::*;
use crate::image::Image;

#[test]
fn known_gradients() {
    // A step to the right, and one downwards on the left.
    let x = [0u8, 0, 10, 0, 0, 10, 3, 0, 10];
    let of = |gradient| sobel(&Sobel::new([3, 3]).gradient(gradient), &x);
    assert_eq!(of(Gradient::X), [0.0, 40.0, 40.0, -3.0, 37.0, 40.0, -9.0, 31.0, 40.0]);
    assert_eq!(of(Gradient::Y)[3..6], [9.0, 3.0, 0.0]);
    assert_eq!(of(Gradient::Magnitude)[3], 90f64.sqrt());
    // Two channels, side by side and in planes.
    let pair = Sobel::new(Image::new([1, 2], 2)).gradient(Gradient::X);
    assert_eq!(sobel(&pair, &[0u8, 5, 1, 7]), [4.0, 8.0, 4.0, 8.0]);
    let planes = Sobel::new(Image::new([1, 2], 2).planar()).gradient(Gradient::X);
    assert_eq!(sobel(&planes, &[0u8, 1, 5, 7]), [4.0, 4.0, 8.0, 8.0]);
}

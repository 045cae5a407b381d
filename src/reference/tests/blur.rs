use super::*;
use crate::image::Image;

#[test]
fn known_means() {
    let x = [0u8, 10, 20, 30, 40, 50, 60, 70, 81];
    // The corner is a mean of four; 361 / 9 is 40.1; half goes up: 50.25, 12.5 has no place here.
    let inside = Blur::new([3, 3], 1);
    assert_eq!(blur(&inside, &x), [20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0]);
    let window = inside.divide(Divide::Window);
    assert_eq!(blur(&window, &x), [8.0, 16.0, 13.0, 23.0, 40.0, 30.0, 22.0, 36.0, 26.0]);
    assert_eq!(blur(&Blur::new([1, 2], 9), &[0u8, 1]), [1.0, 1.0]);
    assert_eq!(blur(&Blur::new([1, 2], 9), &[0f32, 1.0]), [0.5, 0.5]);
    assert_eq!(blur(&Blur::new([1, 2], 0), &[3u8, 4]), [3.0, 4.0]);
    // Two channels, side by side and in planes.
    assert_eq!(blur(&Blur::new([1, 2, 2], 1), &[0u8, 8, 4, 6]), [2.0, 7.0, 2.0, 7.0]);
    assert_eq!(blur(&Blur::new(Image::new([1, 2], 2).planar(), 1), &[0u8, 4, 8, 6]), [2.0, 2.0, 7.0, 7.0]);
}

use super::*;
use crate::image::Image;

#[test]
fn known_pixels() {
    let rgb = [255, 255, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9u8];
    assert_eq!(grey(&Grey::new([1, 6, 3]), &rgb), [255.0, 0.0, 76.0, 150.0, 29.0, 9.0]);
    // 76 + 153 + 25, and 2 + 5 + 0.
    let source = Grey::new([1, 6, 3]).weights(GreyWeights::Source);
    assert_eq!(grey(&source, &rgb), [254.0, 0.0, 76.0, 153.0, 25.0, 7.0]);
    // Two pixels with opacity, side by side and in planes; of floats nothing is rounded.
    assert_eq!(grey(&Grey::new([1, 2, 4]), &[1.0f32, 0.0, 0.0, 9.0, 0.0, 1.0, 0.0, 9.0]), [0.299, 0.587]);
    let planes = Grey::new(Image::rgba([1, 2]).planar());
    assert_eq!(grey(&planes, &[1.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 9.0, 9.0]), [0.299, 0.587]);
}

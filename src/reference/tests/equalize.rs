use super::*;

#[test]
fn known_images() {
    // 2 of the least; then 3, 5 and 6 of 6: 1/4, 3/4 and 4/4 of 255.
    let op = Equalize::new([2, 3]);
    assert_eq!(equalize(&op, &[7u8, 7, 9, 20, 20, 200]).unwrap(), [0.0, 0.0, 64.0, 191.0, 191.0, 255.0]);
    assert_eq!(equalize(&op, &[7u8; 6]).unwrap(), [7.0; 6]);
    // Opacity stays.
    let pair = Equalize::new([1, 2, 2]);
    assert_eq!(equalize(&pair, &[3u8, 9, 5, 8]).unwrap(), [0.0, 9.0, 255.0, 8.0]);
    // The first half of the bins holds 3 of 4 elements; 0.25 is the middle of no bin.
    let floats = Equalize::new([2, 2]);
    let got = equalize(&floats, &[0.0f32, 0.1, 0.25, 1.0]).unwrap();
    assert_eq!((got[0], got[3]), (0.25, 1.0));
    assert!((got[2] - 0.625).abs() < 1e-12, "{got:?}");
    assert!(equalize(&floats, &[f32::NAN; 4]).unwrap()[0].is_nan());
}

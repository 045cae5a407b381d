use super::*;

#[test]
fn every_element_adds_its_window() {
    let op = ConvTranspose2d::new([1, 1, 1, 2], 1, [1, 3]).stride([1, 2]);
    let w = [1.0f32, 2.0, 3.0];
    assert_eq!(conv_transpose(&op, &[1.0, 10.0], &w, None).unwrap(), [1.0, 2.0, 13.0, 20.0, 30.0]);
    let more = op.clone().output_padding([0, 1]);
    let y = conv_transpose(&more, &[1.0, 10.0], &w, Some(&[0.5])).unwrap();
    assert_eq!(y, [1.5, 2.5, 13.5, 20.5, 30.5, 0.5]);
    let less = op.pad([0, 1]);
    assert_eq!(conv_transpose(&less, &[1.0, 10.0], &w, None).unwrap(), [2.0, 13.0, 20.0]);
}

use super::*;

#[test]
fn channels_are_summed_over_images_and_planes() {
    let dy = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    assert_eq!(bias_backward(2, 2, &dy), [1.0 + 2.0 + 5.0 + 6.0, 3.0 + 4.0 + 7.0 + 8.0]);
    assert_eq!(bias_backward(4, 1, &dy), [6.0, 8.0, 10.0, 12.0]);
    assert_eq!(bias_backward::<f32>(3, 1, &[]), [0.0; 3]);
    assert!(bias_backward_bound(4, 1, &dy).iter().all(|b| *b > 0.0 && *b < 1e-5));
}

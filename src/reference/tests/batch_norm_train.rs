use super::*;

#[test]
fn two_channels_of_two_images_by_hand() {
    let op = BatchNormTrain::new([2, 2, 1, 1]).eps(0.0).momentum(0.25);
    let x = [1.0f32, 10.0, 3.0, 30.0];
    let channels: [&[f32]; 4] = [&[1.0, 2.0], &[0.5, 0.0], &[4.0, 0.0], &[0.0, 8.0]];
    let [y, mean, variance] = batch_norm_train(&op, &x, channels);
    assert_eq!(y, [-0.5, -2.0, 1.5, 2.0]);
    // Means 2 and 20, variances 1 and 100, unbiased 2 and 200.
    assert_eq!((mean, variance), (vec![3.5, 5.0], vec![0.5, 56.0]));
    let [_, _, variance] = batch_norm_train(&op.clone().population(), &x, channels);
    assert_eq!(variance, [0.25, 31.0]);
    let bounds = batch_norm_train_bound(&op, &x, channels);
    assert!(bounds.iter().flatten().all(|bound| *bound > 0.0 && *bound < 1e-2), "{bounds:?}");
}

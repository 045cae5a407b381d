use super::*;
use crate::dense::Activation;

#[test]
fn channels_have_their_own_statistics() {
    let op = BatchNorm::new([1, 2, 1, 2]).eps(0.0);
    let x = [1.0f32, 3.0, 10.0, 30.0];
    let channels: [&[f32]; 4] = [&[2.0, 20.0], &[1.0, 100.0], &[1.0, 2.0], &[0.5, 0.0]];
    assert_eq!(batch_norm(&op, &x, channels), [-0.5, 1.5, -2.0, 2.0]);
    assert_eq!(batch_norm(&op.activation(Activation::Relu), &x, channels), [0.0, 1.5, 0.0, 2.0]);
    let bound = batch_norm_bound(&BatchNorm::new([1, 2, 1, 2]), &x, channels);
    assert!(bound.iter().all(|b| *b > 0.0 && *b < 1e-5));
}

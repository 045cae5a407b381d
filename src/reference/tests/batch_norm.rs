use super::*;

mod batch_norm {
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
}

mod batch_norm_train {
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
}

mod batch_norm_backward {
    use super::*;
    use crate::nn::BatchNormTrain;
    use crate::reference::{assert_slopes, batch_norm_train};

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let shape = [2, 2, 1, 2];
        let (forward, backward) = (BatchNormTrain::new(shape), BatchNormBackward::new(shape));
        let x = [0.3f32, -1.0, 0.5, 2.0, 1.0, -0.5, 0.7, -2.0];
        let dy = [1.0f32, -2.0, 0.5, 3.0, -1.0, 0.25, 2.0, 0.5];
        let (gamma, beta, zeros) = ([0.5f32, -2.0], [0.1f32, 0.2], [0.0f32; 2]);
        let [dx, dgamma, dbeta] = batch_norm_backward(&backward, &x, &gamma, &dy);
        let loss = |x: &[f32], gamma: &[f32], beta: &[f32]| -> f64 {
            let [y, ..] = batch_norm_train(&forward, x, [gamma, beta, &zeros, &zeros]);
            y.iter().zip(&dy).map(|(y, g)| f64::from(*y) * f64::from(*g)).sum()
        };
        assert_slopes(&x, &dx, |x| loss(x, &gamma, &beta));
        assert_slopes(&gamma, &dgamma, |gamma| loss(&x, gamma, &beta));
        assert_slopes(&beta, &dbeta, |beta| loss(&x, &gamma, beta));
    }
}

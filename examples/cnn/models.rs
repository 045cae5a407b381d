//! The networks that the program trains.

use tilework::nn::{Adam, Loss, Optimizer, PoolKind, Sequential, Sgd};
use tilework::{Activation, Result};

/// Classes of the data sets.
pub(crate) const CLASSES: usize = 10;

/// A network by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// Two 3 x 3 convolutions with pooling, and two fully connected layers.
    Cnn,
    /// LeNet's layout, two 5 x 5 convolutions with pooling and two fully connected layers, with batch norms and ReLU.
    Lenet,
    /// Two hidden layers of 512 and 256.
    Mlp,
    /// A line for each class, with the sign as its answer.
    Perceptron,
}

impl Model {
    pub(crate) const ALL: [Self; 4] = [Self::Cnn, Self::Lenet, Self::Mlp, Self::Perceptron];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cnn => "cnn",
            Self::Lenet => "lenet",
            Self::Mlp => "mlp",
            Self::Perceptron => "perceptron",
        }
    }

    /// Returns the network that is trained on images of this size.
    pub(crate) fn network(self, h: usize, w: usize) -> Sequential {
        let net = self.scores(h, w);
        if self == Self::Perceptron { net.sign().loss(Loss::SquaredError) } else { net }
    }

    /// Returns the network with a score for each class, which has the same parameters.
    pub(crate) fn scores(self, h: usize, w: usize) -> Sequential {
        let (net, relu) = (Sequential::new([1, h, w]), Activation::Relu);
        match self {
            Self::Cnn => net
                .conv(32, [3, 3], [1, 1], [1, 1])
                .activation(relu)
                .pool(PoolKind::Max, [2, 2], [2, 2])
                .conv(64, [3, 3], [1, 1], [1, 1])
                .activation(relu)
                .pool(PoolKind::Max, [2, 2], [2, 2])
                .flatten()
                .linear(128)
                .activation(relu)
                .linear(CLASSES),
            Self::Lenet => net
                .conv(20, [5, 5], [1, 1], [2, 2])
                .batch_norm()
                .activation(relu)
                .pool(PoolKind::Max, [2, 2], [2, 2])
                .conv(50, [5, 5], [1, 1], [2, 2])
                .batch_norm()
                .activation(relu)
                .pool(PoolKind::Max, [2, 2], [2, 2])
                .flatten()
                .linear(500)
                .activation(relu)
                .linear(CLASSES),
            Self::Mlp => net.linear(512).activation(relu).linear(256).activation(relu).linear(CLASSES),
            Self::Perceptron => net.linear(CLASSES),
        }
    }

    /// Returns the optimizer, whose rate is an operand.
    pub(crate) fn optimizer(self) -> Optimizer {
        match self {
            Self::Perceptron => Sgd::for_network(0.0).with_rate().into(),
            _ => Adam::for_network(0.0).with_rate().into(),
        }
    }

    /// Returns the learning rate that suits the optimizer.
    pub(crate) fn rate(self) -> f32 {
        if self == Self::Perceptron { 0.1 } else { 1e-3 }
    }

    /// Returns the words of a sample's target: the class, or for the perceptron -1 for each class and 1 for its own.
    pub(crate) fn target(self, class: u8) -> Vec<u32> {
        if self != Self::Perceptron {
            return vec![class.into()];
        }
        (0..CLASSES).map(|i| if i == usize::from(class) { 1f32 } else { -1.0 }).map(f32::to_bits).collect()
    }
}

/// What training depends on at the end of an epoch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    pub(crate) epochs: usize,
    pub(crate) parameters: Vec<f32>,
    /// The state of the optimizer.
    pub(crate) state: Vec<f32>,
}

impl Progress {
    /// Begins with random weights.
    pub(crate) fn start(net: &Sequential, optimizer: &Optimizer, seed: u64) -> Result<Self> {
        Ok(Self { epochs: 0, parameters: net.initial(seed)?, state: vec![0.0; net.state_len(optimizer)?] })
    }
}

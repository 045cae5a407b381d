mod builder;
mod parameters;
mod passes;
mod training;

pub use parameters::Parameter;
pub use passes::{Forward, Gradient, Train};

use super::{Adam, BatchNormTrain, Pool2d, PoolKind, Sgd, Softmax};
use crate::conv::Conv2d;
use crate::dense::Activation;
use crate::program::prelude::*;

/// A network of layers in sequence; a forward pass, the gradients, or a training step is one plan.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::{Adam, Sequential};
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let net = Sequential::new([2, 1, 1]).linear(8).activation(Activation::Relu).linear(2);
/// let optimizer = Adam::for_network(0.01).into();
/// let (x, labels) = (gpu.upload(&[1.0f32, 0.0, 0.0, 1.0])?, gpu.upload(&[0u32, 1])?); // 2 samples
/// let parameters = gpu.upload(&net.initial(1)?)?;
/// let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer)?)?;
/// let loss = gpu.alloc::<f32>(1)?;
/// let step = net.train(2, optimizer).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// for _ in 0..100 {
///     step.record(&mut rec, &x, &labels, &parameters, &state, &loss)?;
/// }
/// rec.submit()?;
/// assert!(loss.read()?[0] < 0.5);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Layers
/// A sample is C x H x W. [`conv`](Self::conv), [`pool`](Self::pool), [`batch_norm`](Self::batch_norm),
/// [`activation`](Self::activation) and [`sign`](Self::sign) keep that form; [`linear`](Self::linear) (fully connected)
/// returns `outputs` x 1 x 1; [`flatten`](Self::flatten) returns one row. An activation after a layer with a sum is
/// fused into it. [`conv_with`](Self::conv_with), [`pool_with`](Self::pool_with) and
/// [`batch_norm_with`](Self::batch_norm_with) take every option of the op: groups, dilation, biases, weights.
///
/// # Losses
/// | [`loss`](Self::loss) | `target` | end the network with |
/// |---|---|---|
/// | [`CrossEntropy`](Loss::CrossEntropy), the default | u32, a class for each sample | one logit for each class |
/// | [`BinaryCrossEntropy`](Loss::BinaryCrossEntropy) | f32, from 0 to 1, one for each output | logits |
/// | [`SquaredError`](Loss::SquaredError) | f32, one for each output | any layer |
///
/// The loss is the mean over the batch, or over all outputs. A final [`softmax`](Self::softmax) with cross-entropy, and
/// a final sigmoid with binary cross-entropy, return probabilities in the forward pass and are part of the loss in
/// training. A class that does not exist, or a probability outside 0 to 1, makes the loss and the gradients NaN.
///
/// # Parameters
/// All parameters are in one f32 buffer of [`parameter_len`](Self::parameter_len) elements;
/// [`parameters`](Self::parameters) lists the offset of each tensor. Names and shapes are PyTorch's: `0.weight` and
/// `0.bias`, where the number counts all layers; weights of `linear` are `outputs` x `inputs`, those of `conv` M x C /
/// groups x R x S, those of a pool R x S. `running_mean` and `running_var` of batch norms follow all others: steps
/// update them, optimizers do not. Gaps between tensors hold 0.
///
/// # Passes
/// | want | plan | operands |
/// |---|---|---|
/// | results | [`forward`](Self::forward) | `x`, `parameters`, `output` |
/// | loss and gradients | [`gradient`](Self::gradient) | `x`, `target`, `parameters`, `loss`, `gradients` |
/// | a training step | [`train`](Self::train) | `x`, `target`, `parameters`, `state`, `rate` if it is an operand, `loss` |
///
/// Batch norms take the running statistics in the forward pass, and those of the batch in the others.
///
/// # Training goes on
/// Parameters and the optimizer's state are all that a step depends on. A program that saves both buffers and uploads
/// them again continues with the same bits. [`state`](Self::state) names the tensors of the state.
///
/// An optimizer with [`with_rate`](Adam::with_rate) adds the operand `rate`, one element that plans take by
/// `with_rate`: a schedule of learning rates needs no new plan.
///
/// # Precision and determinism
/// Those of the layers' ops. The same device and inputs give the same bits, so the same batches give the same losses.
///
/// # Cost
/// The sum of the ops. A forward pass uses two scratch areas in turn. Training keeps the result of each layer for the
/// gradients, which use two areas in turn. The ops share their scratch.
///
/// # Errors
/// Planning returns the errors of the layers' ops, prefixed with the layer;
/// [`Shape`](ErrorKind::Shape) for a network without layers, a softmax that is not the last layer, or training
/// without parameters; [`InvalidArgument`](ErrorKind::InvalidArgument) for a softmax with binary cross-entropy,
/// or a convolution or pool with an activation of its own.
///
/// # Algorithm
/// Back-propagation, D. E. Rumelhart, G. E. Hinton and R. J. Williams, 1986.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequential {
    input: [usize; 3],
    layers: Vec<SequentialLayer>,
    loss: Loss,
}

/// A layer of a [`Sequential`]. Ops have no shape yet.
#[derive(Debug, Clone, PartialEq)]
enum SequentialLayer {
    Conv(Conv2d),
    Pool(Pool2d),
    Linear { outputs: usize },
    BatchNorm(BatchNormTrain),
    Activation(Activation),
    Sign,
    Flatten,
    Softmax,
}

/// What [`Sequential::train`] minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Loss {
    /// [`CrossEntropy`](super::CrossEntropy) of the outputs of a sample, as logits, with a class.
    #[default]
    CrossEntropy,
    /// [`BinaryCrossEntropy`](super::BinaryCrossEntropy) of each output, a logit, with a probability.
    BinaryCrossEntropy,
    /// [`SquaredError`](super::SquaredError) of each output.
    SquaredError,
}

/// The optimizer of [`Sequential::train`]. The number of parameters given to its constructor is ignored:
/// [`Sgd::for_network`] and [`Adam::for_network`] take none.
#[derive(Debug, Clone, PartialEq)]
pub enum Optimizer {
    /// Gradient descent with momentum; the state is the velocity.
    Sgd(Sgd),
    /// Adam; the state is both moments and the fullness.
    Adam(Adam),
}

impl From<Sgd> for Optimizer {
    fn from(sgd: Sgd) -> Self {
        Self::Sgd(sgd)
    }
}

impl From<Adam> for Optimizer {
    fn from(adam: Adam) -> Self {
        Self::Adam(adam)
    }
}

fn images(batch: usize, [c, h, w]: [usize; 3]) -> [usize; 4] {
    [batch, c, h, w]
}

impl Sequential {
    /// Starts a network for samples of shape (C, H, W).
    pub fn new(input: [usize; 3]) -> Self {
        Self { input, layers: Vec::new(), loss: Loss::default() }
    }

    fn with(mut self, layer: SequentialLayer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds a [convolution](Conv2d) to `filters` channels, with a bias and `pad` zeros on each side.
    #[must_use]
    pub fn conv(self, filters: usize, kernel: [usize; 2], stride: [usize; 2], pad: [usize; 2]) -> Self {
        self.conv_with(filters, kernel, |conv| conv.stride(stride).pad(pad))
    }

    /// Adds a [convolution](Conv2d) to `filters` channels, with a bias and the options that `options` sets.
    ///
    /// ```
    /// use tilework::nn::Sequential;
    ///
    /// // Each of 8 channels by itself, with gaps of one cell.
    /// let net = Sequential::new([8, 9, 9]).conv_with(8, [3, 3], |conv| conv.groups(8).dilation([2, 2]));
    /// assert_eq!(net.output_shape()?, [8, 5, 5]);
    /// assert_eq!(net.parameters()?[0].shape, [8, 1, 3, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn conv_with(self, filters: usize, kernel: [usize; 2], options: impl FnOnce(Conv2d) -> Conv2d) -> Self {
        self.with(SequentialLayer::Conv(options(Conv2d::new([0; 4], filters, kernel))))
    }

    /// Adds [pooling](Pool2d).
    #[must_use]
    pub fn pool(self, kind: PoolKind, kernel: [usize; 2], stride: [usize; 2]) -> Self {
        self.pool_with(kind, kernel, |pool| pool.stride(stride))
    }

    /// Adds [pooling](Pool2d) with the options that `options` sets. A bias, and weights
    /// [as an operand](Pool2d::with_weights), become parameters; the weights begin with those of the kind.
    ///
    /// ```
    /// use tilework::nn::{PoolKind, Sequential};
    ///
    /// let mean = PoolKind::Weighted(vec![0.25; 4]);
    /// let net = Sequential::new([6, 8, 8]).pool_with(mean, [2, 2], |pool| pool.with_weights().with_bias());
    /// let names: Vec<_> = net.parameters()?.into_iter().map(|p| (p.name, p.shape)).collect();
    /// assert_eq!(names, [("0.weight".to_owned(), vec![2, 2]), ("0.bias".to_owned(), vec![6])]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn pool_with(self, kind: PoolKind, kernel: [usize; 2], options: impl FnOnce(Pool2d) -> Pool2d) -> Self {
        self.with(SequentialLayer::Pool(options(Pool2d::new(kind, [0; 4], kernel))))
    }

    /// Adds a fully connected layer with a bias, a [`Gemm`](crate::dense::Gemm).
    #[must_use]
    pub fn linear(self, outputs: usize) -> Self {
        self.with(SequentialLayer::Linear { outputs })
    }

    /// Adds [batch norm](BatchNormTrain) of each channel, with scale and shift as parameters.
    #[must_use]
    pub fn batch_norm(self) -> Self {
        self.batch_norm_with(|norm| norm)
    }

    /// Adds [batch norm](BatchNormTrain) with the options that `options` sets.
    #[must_use]
    pub fn batch_norm_with(self, options: impl FnOnce(BatchNormTrain) -> BatchNormTrain) -> Self {
        self.with(SequentialLayer::BatchNorm(options(BatchNormTrain::new([0; 4]))))
    }

    /// Adds an activation.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        self.with(SequentialLayer::Activation(activation))
    }

    /// Adds the sign, -1, 0 or 1, of each element: a perceptron's answer. Its gradient passes as if it were the
    /// identity, so that [`linear`](Self::linear), `sign` and [`Loss::SquaredError`] learn by the perceptron's rule
    /// (F. Rosenblatt, 1958).
    #[must_use]
    pub fn sign(self) -> Self {
        self.with(SequentialLayer::Sign)
    }

    /// Flattens each sample to one row.
    #[must_use]
    pub fn flatten(self) -> Self {
        self.with(SequentialLayer::Flatten)
    }

    /// Ends the network with a [softmax](super::Softmax) over the elements of a sample.
    #[must_use]
    pub fn softmax(self) -> Self {
        self.with(SequentialLayer::Softmax)
    }

    /// Sets the loss of training. The default is cross-entropy.
    #[must_use]
    pub fn loss(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// Returns the number of elements of a sample, `usize::MAX` if it overflows.
    pub fn input_len(&self) -> usize {
        self.input.iter().fold(1, |n, extent| n.saturating_mul(*extent))
    }

    /// Returns the shape of the result for one sample.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn output_shape(&self) -> Result<[usize; 3]> {
        Ok(self.shapes()?.last().copied().unwrap_or(self.input))
    }

    fn shapes(&self) -> Result<Vec<[usize; 3]>> {
        let mut shapes = Vec::new();
        let mut shape = self.input;
        for (index, layer) in self.layers.iter().enumerate() {
            let len = elements("sequential", "a sample", &shape)?;
            let of_op = |output: Result<[usize; 4]>, activation| {
                if activation != Activation::None {
                    let text = "has an activation of its own; add it to the network by `activation`";
                    return Err(self.at(index, err!(InvalidArgument, "{text}")));
                }
                output.map(|[_, c, h, w]| [c, h, w]).map_err(|e| self.at(index, e))
            };
            shape = match layer {
                SequentialLayer::Conv(conv) if conv.parts().0.last => {
                    let text = "has its channels last; samples of a network are C, H, W";
                    return Err(self.at(index, err!(InvalidArgument, "{text}")));
                }
                SequentialLayer::Conv(conv) => {
                    of_op(conv.with_bias_at(images(1, shape)).output_shape(), conv.parts().1)?
                }
                SequentialLayer::Pool(pool) => of_op(pool_at(pool, 1, shape).output_shape(), pool.parts().2)?,
                SequentialLayer::Linear { outputs } => [*outputs, 1, 1],
                SequentialLayer::Flatten => [len, 1, 1],
                SequentialLayer::Activation(_) | SequentialLayer::Sign | SequentialLayer::BatchNorm(_) => shape,
                SequentialLayer::Softmax if index + 1 == self.layers.len() => shape,
                SequentialLayer::Softmax => {
                    return Err(err!(
                        Shape,
                        "sequential: layer {index} is a softmax and {} layers follow; it must be the last",
                        self.layers.len() - index - 1
                    ));
                }
            };
            shapes.push(shape);
        }
        if shapes.is_empty() {
            return Err(err!(Shape, "sequential: the network has no layers; add at least one"));
        }
        Ok(shapes)
    }

    /// Prefixes an error of a layer's op with the layer.
    fn at(&self, index: usize, error: crate::error::Error) -> crate::error::Error {
        let kind = match self.layers.get(index) {
            Some(SequentialLayer::Conv(_)) => Conv2d::NAME,
            Some(SequentialLayer::Pool(_)) => Pool2d::NAME,
            Some(SequentialLayer::Linear { .. }) => "linear",
            Some(SequentialLayer::BatchNorm(_)) => "batch norm",
            Some(SequentialLayer::Activation(_)) => "activation",
            Some(SequentialLayer::Sign) => "sign",
            Some(SequentialLayer::Flatten) => "flatten",
            Some(SequentialLayer::Softmax) => Softmax::NAME,
            None => "loss",
        };
        error.context(&format!("sequential: layer {index} ({kind})"))
    }

    /// Returns the forward pass of `batch` samples: operands `x`, `parameters`, `output`.
    pub fn forward(&self, batch: usize) -> Forward {
        Forward { net: self.clone(), batch }
    }

    /// Returns loss and gradients of `batch` samples: operands `x`, `target`, `parameters`, `loss` (1 element),
    /// `gradients` ([`trained_len`](Self::trained_len) elements, laid out like the parameters).
    pub fn gradient(&self, batch: usize) -> Gradient {
        Gradient { net: self.clone(), batch }
    }

    /// Returns a training step on `batch` samples: operands `x`, `target`, `parameters` (updated), `state` (updated;
    /// [`state_len`](Self::state_len) elements, zeros before the first step), `loss` (before the step, 1 element).
    pub fn train(&self, batch: usize, optimizer: impl Into<Optimizer>) -> Train {
        Train { net: self.clone(), batch, optimizer: optimizer.into() }
    }
}

fn pool_at(pool: &Pool2d, batch: usize, shape: [usize; 3]) -> Pool2d {
    let mut pool = pool.clone();
    pool.windows.shape = images(batch, shape);
    pool
}

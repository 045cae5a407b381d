//! A list of layers, planned as a whole.

mod builder;
mod passes;

pub use passes::{Forward, Gradient, Train};

use super::{Adam, Pool2d, PoolKind, Sgd, Softmax};
use crate::conv::Conv2d;
use crate::dense::Activation;
use crate::error::{Result, err, filled};
use crate::shape::{elements, index_u32};

/// A network of layers, one after another, planned as a whole: all dispatches of a forward pass, of the gradients, or of
/// a step of training are one [`Program`](crate::program::Program), recorded as one. Plain: there is no graph, and shapes are fixed by the batch.
///
/// # Layers
/// Samples are C x H x W. [`conv`](Self::conv), [`pool`](Self::pool) and [`activation`](Self::activation) keep that form; [`linear`](Self::linear) (fully
/// connected) takes all elements of a sample and makes it `outputs` x 1 x 1; [`flatten`](Self::flatten) makes
/// it one row. An activation behind a layer with a sum is fused into it.
/// The loss of training is [cross-entropy](super::CrossEntropy) of what the last layer gives; a [`softmax`](Self::softmax) at the
/// end makes probabilities of it in the forward pass, and is part of the loss in training.
///
/// # Parameters
/// All parameters are one buffer of f32, [`parameter_len`](Self::parameter_len) elements;
/// [`parameters`](Self::parameters) says where each tensor begins. Weights of `linear` are `outputs` x `inputs`, as in PyTorch,
/// and named as there: `0.weight`, `0.bias`, with the position of the layer in the list, all kinds counted. What lies between
/// tensors is 0. Weights of `conv` are M x C x R x S.
///
/// # Passes
/// | want | plan | operands |
/// |---|---|---|
/// | results | [`forward`](Self::forward) | `x`, `parameters`, `output` |
/// | loss and gradients | [`gradient`](Self::gradient) | `x`, `labels`, `parameters`, `loss`, `gradients` |
/// | a step of training | [`train`](Self::train) | `x`, `labels`, `parameters`, `state`, `loss` |
///
/// # Precision and determinism
/// Each layer as its op says. Same device, same bits: the same batches give the same losses.
///
/// # Cost
/// The sum of its ops. In a forward pass layers write to two areas of scratch in turn; in training what they give is kept
/// for the gradients, which move through two areas. Scratch of the ops is shared.
///
/// # Errors
/// From `lower`: those of the layers' ops, with the layer in front; [`Shape`](crate::ErrorKind::Shape) for a network without
/// layers, a softmax that is not the last, and training without parameters.
///
/// # Algorithm
/// Back-propagation (D. E. Rumelhart, G. E. Hinton and R. J. Williams, 1986), layer by layer.
///
/// # Example
/// ```
/// use tilework::Activation;
/// use tilework::nn::{Adam, PoolKind, Sequential};
/// use tilework::program::{DeviceProfile, Op};
///
/// let net = Sequential::new([1, 28, 28])
///     .conv(8, [3, 3], [1, 1], [1, 1])
///     .activation(Activation::Relu)
///     .pool(PoolKind::Max, [2, 2], [2, 2])
///     .linear(10);
/// assert_eq!(net.output_shape()?, [10, 1, 1]);
/// let names: Vec<_> = net.parameters()?.into_iter().map(|p| p.name).collect();
/// assert_eq!(names, ["0.weight", "0.bias", "3.weight", "3.bias"]);
///
/// let step = net.train(128, Adam::new(0, 1e-3)).lower(&DeviceProfile::h100())?;
/// assert_eq!(step.operands[2].len, net.parameter_len()?);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sequential {
    input: [usize; 3],
    layers: Vec<SequentialLayer>,
}

/// A layer of a [`Sequential`].
#[derive(Debug, Clone, PartialEq)]
enum SequentialLayer {
    Conv { filters: usize, kernel: [usize; 2], stride: [usize; 2], pad: [usize; 2] },
    Pool { kind: PoolKind, kernel: [usize; 2], stride: [usize; 2] },
    Linear { outputs: usize },
    Activation(Activation),
    Flatten,
    Softmax,
}

/// A tensor among the parameters of a [`Sequential`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// SequentialLayer and part: `0.weight`.
    pub name: String,
    /// Its extents.
    pub shape: Vec<usize>,
    /// Where it begins in the buffer of all parameters, in elements.
    pub offset: usize,
    /// Products of each sum it takes part in.
    fan_in: usize,
}

impl Parameter {
    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What moves the parameters in [`Sequential::train`]. The numbers of parameters that its parts were made for do not count.
#[derive(Debug, Clone, PartialEq)]
pub enum Optimizer {
    /// With momentum; its state is the velocity.
    Sgd(Sgd),
    /// Its state is both moments and the count of steps.
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

/// Bindings begin at multiples of 256 bytes, and so do tensors.
const STEP: usize = 64;

impl Sequential {
    /// A network without layers yet, of samples of this shape (C, H, W).
    pub fn new(input: [usize; 3]) -> Self {
        Self { input, layers: Vec::new() }
    }

    fn with(mut self, layer: SequentialLayer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds a convolution to `filters` channels with a bias, in windows of `kernel`, `stride` apart, with `pad` zeros on each
    /// side: [`Conv2d`].
    #[must_use]
    pub fn conv(self, filters: usize, kernel: [usize; 2], stride: [usize; 2], pad: [usize; 2]) -> Self {
        self.with(SequentialLayer::Conv { filters, kernel, stride, pad })
    }

    /// Adds pooling in windows of `kernel`, `stride` apart: [`Pool2d`].
    #[must_use]
    pub fn pool(self, kind: PoolKind, kernel: [usize; 2], stride: [usize; 2]) -> Self {
        self.with(SequentialLayer::Pool { kind, kernel, stride })
    }

    /// Adds a fully connected layer with a bias: [`Gemm`](crate::dense::Gemm).
    #[must_use]
    pub fn linear(self, outputs: usize) -> Self {
        self.with(SequentialLayer::Linear { outputs })
    }

    /// Adds an activation.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        self.with(SequentialLayer::Activation(activation))
    }

    /// Makes each sample one row.
    #[must_use]
    pub fn flatten(self) -> Self {
        self.with(SequentialLayer::Flatten)
    }

    /// Makes probabilities of a sample's elements, at the end: [`Softmax`](super::Softmax).
    #[must_use]
    pub fn softmax(self) -> Self {
        self.with(SequentialLayer::Softmax)
    }

    /// Elements of a sample; the most there are, if they cannot be counted.
    pub fn input_len(&self) -> usize {
        self.input.iter().fold(1, |n, extent| n.saturating_mul(*extent))
    }

    /// The shape of what a sample becomes.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn output_shape(&self) -> Result<[usize; 3]> {
        Ok(self.shapes()?.last().copied().unwrap_or(self.input))
    }

    /// The shape behind each layer.
    fn shapes(&self) -> Result<Vec<[usize; 3]>> {
        let mut shapes = Vec::new();
        let mut shape = self.input;
        for (index, layer) in self.layers.iter().enumerate() {
            let len = elements("sequential", "a sample", &shape)?;
            let of_op = |output: Result<[usize; 4]>| {
                output.map(|[_, c, h, w]| [c, h, w]).map_err(|e| self.at(index, e))
            };
            shape = match layer {
                SequentialLayer::Conv { filters, kernel, stride, pad } => {
                    of_op(conv(1, shape, *filters, [*kernel, *stride, *pad]).output_shape())?
                }
                SequentialLayer::Pool { kind, kernel, stride } => {
                    of_op(pool(1, shape, kind, [*kernel, *stride]).output_shape())?
                }
                SequentialLayer::Linear { outputs } => [*outputs, 1, 1],
                SequentialLayer::Flatten => [len, 1, 1],
                SequentialLayer::Activation(_) => shape,
                SequentialLayer::Softmax if index + 1 == self.layers.len() => shape,
                SequentialLayer::Softmax => {
                    return Err(err!(
                        Shape,
                        "sequential: layer {index} is a softmax and {} follow; it must be the last",
                        self.layers.len() - index - 1
                    ));
                }
            };
            shapes.push(shape);
        }
        if shapes.is_empty() {
            return Err(err!(Shape, "sequential: the network has no layers; add some"));
        }
        Ok(shapes)
    }

    /// The error of a layer's op, with the layer in front.
    fn at(&self, index: usize, error: crate::error::Error) -> crate::error::Error {
        let kind = match self.layers.get(index) {
            Some(SequentialLayer::Conv { .. }) => Conv2d::NAME,
            Some(SequentialLayer::Pool { .. }) => Pool2d::NAME,
            Some(SequentialLayer::Linear { .. }) => "linear",
            Some(SequentialLayer::Activation(_)) => "activation",
            Some(SequentialLayer::Flatten) => "flatten",
            Some(SequentialLayer::Softmax) => Softmax::NAME,
            None => "loss",
        };
        error.context(&format!("sequential: layer {index} ({kind})"))
    }

    /// The tensors, in the order of the layers.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn parameters(&self) -> Result<Vec<Parameter>> {
        let shapes = self.shapes()?;
        let mut parameters: Vec<Parameter> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let from = if index == 0 { self.input } else { shapes[index - 1] };
            let weights = match layer {
                SequentialLayer::Conv { filters, kernel: [r, s], .. } => vec![*filters, from[0], *r, *s],
                SequentialLayer::Linear { outputs } => vec![*outputs, from.iter().product()],
                SequentialLayer::Pool { .. }
                | SequentialLayer::Activation(_)
                | SequentialLayer::Flatten
                | SequentialLayer::Softmax => continue,
            };
            let fan_in = elements("sequential", "weights", &weights[1..])?;
            let bias = vec![weights[0]];
            for (part, shape) in [("weight", weights), ("bias", bias)] {
                let offset =
                    parameters.last().map_or(0, |last| (last.offset + last.len()).next_multiple_of(STEP));
                let end = offset.saturating_add(elements("sequential", part, &shape)?);
                index_u32("sequential", "the number of parameters", end)?;
                parameters.push(Parameter { name: format!("{index}.{part}"), shape, offset, fan_in });
            }
        }
        Ok(parameters)
    }

    /// Elements of the buffer of all parameters.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn parameter_len(&self) -> Result<usize> {
        Ok(self.parameters()?.last().map_or(0, |last| last.offset + last.len()))
    }

    /// Parameters to begin with: uniform within 1 over the root of the products of a sum (as PyTorch has it); the same for
    /// the same seed.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn initial(&self, seed: u64) -> Result<Vec<f32>> {
        let mut values = filled("sequential", self.parameter_len()?, 0.0)?;
        // splitmix64 (Steele, Lea and Flood, 2014).
        let mut state = seed;
        for parameter in self.parameters()? {
            let bound = 1.0 / (parameter.fan_in.max(1) as f64).sqrt();
            for value in &mut values[parameter.offset..parameter.offset + parameter.len()] {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                let unit = ((z ^ (z >> 31)) >> 11) as f64 * 2f64.powi(-52) - 1.0;
                *value = (bound * unit) as f32;
            }
        }
        Ok(values)
    }

    /// The forward pass of `batch` samples: operands `x`, `parameters`, `output`.
    pub fn forward(&self, batch: usize) -> Forward {
        Forward { net: self.clone(), batch }
    }

    /// Loss and gradients of `batch` samples: operands `x`, `labels` (u32), `parameters`, `loss` (the mean, 1 element),
    /// `gradients` (as the parameters).
    pub fn gradient(&self, batch: usize) -> Gradient {
        Gradient { net: self.clone(), batch }
    }

    /// A step of training by `batch` samples: operands `x`, `labels` (u32), `parameters` (in and out), `state` (in and out,
    /// [`state_len`](Self::state_len) elements, zeros before the first step), `loss` (the mean before the step, 1 element).
    pub fn train(&self, batch: usize, optimizer: impl Into<Optimizer>) -> Train {
        Train { net: self.clone(), batch, optimizer: optimizer.into() }
    }

    /// Elements of what an optimizer keeps from step to step.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn state_len(&self, optimizer: &Optimizer) -> Result<usize> {
        let n = self.parameter_len()?;
        Ok(match optimizer {
            Optimizer::Sgd(_) => n,
            Optimizer::Adam(_) => 2 * n.next_multiple_of(STEP) + 2,
        })
    }
}

/// The convolution of a layer: of kernel, stride and padding.
fn conv(
    batch: usize,
    [c, h, w]: [usize; 3],
    filters: usize,
    [kernel, stride, pad]: [[usize; 2]; 3],
) -> Conv2d {
    Conv2d::new([batch, c, h, w], filters, kernel).stride(stride).pad(pad)
}

/// The pooling of a layer: of kernel and stride.
fn pool(batch: usize, [c, h, w]: [usize; 3], kind: &PoolKind, [kernel, stride]: [[usize; 2]; 2]) -> Pool2d {
    Pool2d::new(kind.clone(), [batch, c, h, w], kernel).stride(stride)
}

//! A network of layers in sequence.
mod builder;
mod passes;

pub use passes::{Forward, Gradient, Train};

use super::{Adam, Pool2d, PoolKind, Sgd, Softmax};
use crate::conv::Conv2d;
use crate::dense::Activation;
use crate::error::{Result, err, filled};
use crate::shape::{elements, index_u32};

/// A network of layers in sequence; a forward pass, the gradients, or a training step is one plan.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::nn::{Adam, Sequential};
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let net = Sequential::new([2, 1, 1]).linear(8).activation(Activation::Relu).linear(2);
/// let optimizer = Adam::new(0, 0.01).into();
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
/// A sample is C x H x W. [`conv`](Self::conv), [`pool`](Self::pool) and [`activation`](Self::activation) keep that
/// form; [`linear`](Self::linear) (fully connected) returns `outputs` x 1 x 1; [`flatten`](Self::flatten) returns one
/// row. An activation after a layer with a sum is fused into it. The loss of training is the mean
/// [cross-entropy](super::CrossEntropy) of the last layer's result. A final [`softmax`](Self::softmax) returns
/// probabilities in the forward pass and is part of the loss in training.
///
/// # Parameters
/// All parameters are in one f32 buffer of [`parameter_len`](Self::parameter_len) elements;
/// [`parameters`](Self::parameters) lists the offset of each tensor. Names and shapes are PyTorch's: `0.weight` and
/// `0.bias`, where the number counts all layers; weights of `linear` are `outputs` x `inputs`, those of `conv` M x C
/// x R x S. Gaps between tensors hold 0.
///
/// # Passes
/// | want | plan | operands |
/// |---|---|---|
/// | results | [`forward`](Self::forward) | `x`, `parameters`, `output` |
/// | loss and gradients | [`gradient`](Self::gradient) | `x`, `labels`, `parameters`, `loss`, `gradients` |
/// | a training step | [`train`](Self::train) | `x`, `labels`, `parameters`, `state`, `loss` |
///
/// # Precision and determinism
/// Those of the layers' ops. The same device and inputs give the same bits, so the same batches give the same losses.
///
/// # Cost
/// The sum of the ops. A forward pass uses two scratch areas in turn. Training keeps the result of each layer for the
/// gradients, which use two areas in turn. The ops share their scratch.
///
/// # Errors
/// Planning returns the errors of the layers' ops, prefixed with the layer, and [`Shape`](crate::ErrorKind::Shape)
/// for a network without layers, a softmax that is not the last layer, or training without parameters.
///
/// # Algorithm
/// Back-propagation, D. E. Rumelhart, G. E. Hinton and R. J. Williams, 1986.
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
    /// The layer and the part: `0.weight`.
    pub name: String,
    /// The extents.
    pub shape: Vec<usize>,
    /// The offset in the buffer of all parameters, in elements.
    pub offset: usize,
    /// The number of products in each sum.
    fan_in: usize,
}

impl Parameter {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Tells whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The optimizer of [`Sequential::train`]. The number of parameters given to its constructor is ignored.
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

/// Alignment of tensors in elements: bindings begin at multiples of 256 bytes.
const STEP: usize = 64;

impl Sequential {
    /// Starts a network for samples of shape (C, H, W).
    pub fn new(input: [usize; 3]) -> Self {
        Self { input, layers: Vec::new() }
    }

    fn with(mut self, layer: SequentialLayer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds a [convolution](Conv2d) to `filters` channels, with a bias and `pad` zeros on each side.
    #[must_use]
    pub fn conv(self, filters: usize, kernel: [usize; 2], stride: [usize; 2], pad: [usize; 2]) -> Self {
        self.with(SequentialLayer::Conv { filters, kernel, stride, pad })
    }

    /// Adds [pooling](Pool2d).
    #[must_use]
    pub fn pool(self, kind: PoolKind, kernel: [usize; 2], stride: [usize; 2]) -> Self {
        self.with(SequentialLayer::Pool { kind, kernel, stride })
    }

    /// Adds a fully connected layer with a bias, a [`Gemm`](crate::dense::Gemm).
    #[must_use]
    pub fn linear(self, outputs: usize) -> Self {
        self.with(SequentialLayer::Linear { outputs })
    }

    /// Adds an activation.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        self.with(SequentialLayer::Activation(activation))
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

    /// Returns the shape after each layer.
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

    /// Lists the tensors in the order of the layers.
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

    /// Returns the number of elements of the buffer of all parameters.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn parameter_len(&self) -> Result<usize> {
        Ok(self.parameters()?.last().map_or(0, |last| last.offset + last.len()))
    }

    /// Returns random initial parameters, uniform within `1 / sqrt(fan in)` as in PyTorch. A seed always gives the
    /// same.
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

    /// Returns the forward pass of `batch` samples: operands `x`, `parameters`, `output`.
    pub fn forward(&self, batch: usize) -> Forward {
        Forward { net: self.clone(), batch }
    }

    /// Returns loss and gradients of `batch` samples: operands `x`, `labels` (u32), `parameters`, `loss` (the mean, 1
    /// element), `gradients` (laid out like the parameters).
    pub fn gradient(&self, batch: usize) -> Gradient {
        Gradient { net: self.clone(), batch }
    }

    /// Returns a training step on `batch` samples: operands `x`, `labels` (u32), `parameters` (updated), `state`
    /// (updated; [`state_len`](Self::state_len) elements, zeros before the first step), `loss` (the mean before the
    /// step, 1 element).
    pub fn train(&self, batch: usize, optimizer: impl Into<Optimizer>) -> Train {
        Train { net: self.clone(), batch, optimizer: optimizer.into() }
    }

    /// Returns the number of elements of an optimizer's state.
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

/// Returns the convolution of a layer, from kernel, stride and padding.
fn conv(
    batch: usize,
    [c, h, w]: [usize; 3],
    filters: usize,
    [kernel, stride, pad]: [[usize; 2]; 3],
) -> Conv2d {
    Conv2d::new([batch, c, h, w], filters, kernel).stride(stride).pad(pad)
}

/// Returns the pooling of a layer, from kernel and stride.
fn pool(batch: usize, [c, h, w]: [usize; 3], kind: &PoolKind, [kernel, stride]: [[usize; 2]; 2]) -> Pool2d {
    Pool2d::new(kind.clone(), [batch, c, h, w], kernel).stride(stride)
}

//! A list of layers, planned as a whole.

use super::{
    ActivationBackward, Adam, BiasBackward, CrossEntropy, Pool2d, Pool2dBackward, PoolKind, Sgd, Softmax,
};
use crate::conv::{Conv, ConvBackwardData, ConvBackwardWeights};
use crate::dense::{Activation, Gemm};
use crate::element::DType;
use crate::elementwise::{Map, MapFn};
use crate::error::{Result, err, filled};
use crate::program::{Access, Cost, Decision, DeviceProfile, Op, Operand, Program, Resource, operands};
use crate::shape::{elements, index_u32};

/// A network of layers, one after another, planned as a whole: all dispatches of a forward pass, of the gradients, or of
/// a step of training are one [`Program`], recorded as one. Plain: there is no graph, and shapes are fixed by the batch.
///
/// # Layers
/// Samples are C x H x W. [`conv`](Self::conv), [`pool`](Self::pool) and [`activation`](Self::activation) keep that form; [`linear`](Self::linear) (fully
/// connected) takes all elements of a sample and makes it `outputs` x 1 x 1; [`flatten`](Self::flatten) makes
/// it one row. An activation behind a layer with a sum is fused into it.
/// The loss of training is [cross-entropy](CrossEntropy) of what the last layer gives; a [`softmax`](Self::softmax) at the
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
    layers: Vec<Layer>,
}

/// A layer of a [`Sequential`].
#[derive(Debug, Clone, PartialEq)]
enum Layer {
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
    /// Layer and part: `0.weight`.
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

/// Where an array lies: a resource, and its first byte.
type Place = (Resource, u64);

/// A layer with a fused activation, between arrays.
#[derive(Debug, Clone)]
struct Stage {
    /// Position in the list.
    index: usize,
    layer: Layer,
    activation: Activation,
    from: [usize; 3],
    to: [usize; 3],
}

impl Stage {
    fn has_parameters(&self) -> bool {
        matches!(self.layer, Layer::Conv { .. } | Layer::Linear { .. })
    }
}

impl Sequential {
    /// A network without layers yet, of samples of this shape (C, H, W).
    pub fn new(input: [usize; 3]) -> Self {
        Self { input, layers: Vec::new() }
    }

    fn with(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Adds a convolution to `filters` channels with a bias, in windows of `kernel`, `stride` apart, with `pad` zeros on each
    /// side: [`Conv`].
    #[must_use]
    pub fn conv(self, filters: usize, kernel: [usize; 2], stride: [usize; 2], pad: [usize; 2]) -> Self {
        self.with(Layer::Conv { filters, kernel, stride, pad })
    }

    /// Adds pooling in windows of `kernel`, `stride` apart: [`Pool2d`].
    #[must_use]
    pub fn pool(self, kind: PoolKind, kernel: [usize; 2], stride: [usize; 2]) -> Self {
        self.with(Layer::Pool { kind, kernel, stride })
    }

    /// Adds a fully connected layer with a bias: [`Gemm`].
    #[must_use]
    pub fn linear(self, outputs: usize) -> Self {
        self.with(Layer::Linear { outputs })
    }

    /// Adds an activation.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        self.with(Layer::Activation(activation))
    }

    /// Makes each sample one row.
    #[must_use]
    pub fn flatten(self) -> Self {
        self.with(Layer::Flatten)
    }

    /// Makes probabilities of a sample's elements, at the end: [`Softmax`].
    #[must_use]
    pub fn softmax(self) -> Self {
        self.with(Layer::Softmax)
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
                Layer::Conv { filters, kernel, stride, pad } => {
                    of_op(conv(1, shape, *filters, [*kernel, *stride, *pad]).output_shape())?
                }
                Layer::Pool { kind, kernel, stride } => {
                    of_op(pool(1, shape, kind, [*kernel, *stride]).output_shape())?
                }
                Layer::Linear { outputs } => [*outputs, 1, 1],
                Layer::Flatten => [len, 1, 1],
                Layer::Activation(_) => shape,
                Layer::Softmax if index + 1 == self.layers.len() => shape,
                Layer::Softmax => {
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
            Some(Layer::Conv { .. }) => "conv",
            Some(Layer::Pool { .. }) => "pool",
            Some(Layer::Linear { .. }) => "linear",
            Some(Layer::Activation(_)) => "activation",
            Some(Layer::Flatten) => "flatten",
            Some(Layer::Softmax) => "softmax",
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
                Layer::Conv { filters, kernel: [r, s], .. } => vec![*filters, from[0], *r, *s],
                Layer::Linear { outputs } => vec![*outputs, from.iter().product()],
                Layer::Pool { .. } | Layer::Activation(_) | Layer::Flatten | Layer::Softmax => continue,
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

    /// The layers that compute, with the activations behind them that may be fused: in training those whose slope the
    /// result tells.
    fn stages(&self, training: bool) -> Result<Vec<Stage>> {
        let shapes = self.shapes()?;
        let mut stages: Vec<Stage> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let (from, to) = (if index == 0 { self.input } else { shapes[index - 1] }, shapes[index]);
            match (layer, stages.last_mut()) {
                (Layer::Flatten, Some(last)) => last.to = to,
                (Layer::Flatten, None) | (Layer::Activation(Activation::None), _) => {}
                (Layer::Softmax, _) if training => {}
                (Layer::Activation(activation), Some(last))
                    if last.activation == Activation::None
                        && !matches!(last.layer, Layer::Activation(_))
                        && !(training && *activation == Activation::Gelu) =>
                {
                    last.activation = *activation;
                }
                (layer, _) => {
                    let activation = if let Layer::Activation(own) = layer { *own } else { Activation::None };
                    stages.push(Stage { index, layer: layer.clone(), activation, from, to });
                }
            }
        }
        Ok(stages)
    }
}

/// The convolution of a layer: of kernel, stride and padding.
fn conv(batch: usize, [c, h, w]: [usize; 3], filters: usize, [kernel, stride, pad]: [[usize; 2]; 3]) -> Conv {
    Conv::new([batch, c, h, w], filters, kernel).stride(stride).pad(pad)
}

/// The pooling of a layer: of kernel and stride.
fn pool(batch: usize, [c, h, w]: [usize; 3], kind: &PoolKind, [kernel, stride]: [[usize; 2]; 2]) -> Pool2d {
    Pool2d::new(kind.clone(), [batch, c, h, w], kernel).stride(stride)
}

/// The function of an activation that stands alone.
fn function(activation: Activation) -> MapFn {
    match activation {
        Activation::Relu => MapFn::Relu,
        Activation::Sigmoid => MapFn::Sigmoid,
        Activation::Tanh => MapFn::Tanh,
        Activation::Gelu => MapFn::Gelu,
        Activation::None => MapFn::custom("fn map(x: T) -> T { return x; }"),
    }
}

/// [`Sequential::forward`]: operands `x`, `parameters`, `output`.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    net: Sequential,
    batch: usize,
}

/// [`Sequential::gradient`]: operands `x`, `labels`, `parameters`, `loss`, `gradients`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    net: Sequential,
    batch: usize,
}

/// [`Sequential::train`]: operands `x`, `labels`, `parameters`, `state`, `loss`.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    net: Sequential,
    batch: usize,
    optimizer: Optimizer,
}

/// A program in the making.
struct Builder<'a> {
    net: &'a Sequential,
    parameters: Vec<Parameter>,
    batch: usize,
    profile: &'a DeviceProfile,
    program: Program,
    /// Scratch that the ops have in common.
    shared: Vec<usize>,
    /// Where all parameters lie.
    values: Resource,
}

impl<'a> Builder<'a> {
    fn new(
        net: &'a Sequential,
        batch: usize,
        values: Resource,
        profile: &'a DeviceProfile,
        op: &'static str,
    ) -> Result<Self> {
        if batch == 0 {
            return Err(err!(Shape, "{op}: a batch of 0 samples; a batch has at least 1"));
        }
        let why = format!("{} layers for a batch of {batch}, planned as one", net.layers.len());
        let program = Program::new(op, Decision::policy("fused", why));
        Ok(Self { net, parameters: net.parameters()?, batch, profile, program, shared: Vec::new(), values })
    }

    fn operand(&mut self, name: &'static str, dtype: DType, len: usize, access: Access) {
        self.program.operands.push(Operand { name, dtype, len, access });
    }

    fn samples(&self, shape: [usize; 3]) -> Result<usize> {
        let [c, h, w] = shape;
        elements("sequential", "a batch", &[self.batch, c, h, w])
    }

    fn area(&mut self, elements: usize) -> Place {
        (self.program.scratch(4 * elements.max(1) as u64).resource, 0)
    }

    /// Appends an op of a layer.
    fn add(&mut self, index: usize, op: &impl Op<f32>, operands: &[Place]) -> Result<()> {
        let lowered = op.lower(self.profile).map_err(|e| self.net.at(index, e))?;
        self.program.cost = Cost {
            flop: self.program.cost.flop + lowered.cost.flop,
            bytes: self.program.cost.bytes + lowered.cost.bytes,
        };
        self.program.check_dispatches(lowered.dispatches.len() as u64).map_err(|e| self.net.at(index, e))?;
        self.program.append_at(lowered, operands, &mut self.shared);
        Ok(())
    }

    /// Where weights and bias of a layer lie in an array like that of all parameters.
    fn tensors(&self, index: usize, all: Resource) -> [Place; 2] {
        ["weight", "bias"].map(|part| {
            let name = format!("{index}.{part}");
            let at = self.parameters.iter().find(|p| p.name == name).map_or(0, |p| p.offset);
            (all, 4 * at as u64)
        })
    }

    /// A layer from one array to another.
    fn forward(&mut self, stage: &Stage, from: Place, to: Place) -> Result<()> {
        let Stage { index, activation, from: shape, .. } = *stage;
        let [weights, bias] = self.tensors(index, self.values);
        match &stage.layer {
            Layer::Conv { filters, kernel, stride, pad } => {
                let op = conv(self.batch, shape, *filters, [*kernel, *stride, *pad]).activation(activation);
                self.add(index, &op.with_bias(), &[from, weights, bias, to])
            }
            Layer::Pool { kind, kernel, stride } => {
                let op = pool(self.batch, shape, kind, [*kernel, *stride]).activation(activation);
                self.add(index, &op, &[from, to])
            }
            Layer::Linear { outputs } => {
                let gemm = Gemm::new(self.batch, *outputs, shape.iter().product()).trans_b(true);
                self.add(index, &gemm.activation(activation).with_bias(), &[from, weights, bias, to])
            }
            Layer::Softmax => self.add(index, &Softmax::new(self.batch, shape.iter().product()), &[from, to]),
            Layer::Activation(_) | Layer::Flatten => {
                let n = self.samples(shape)?;
                self.add(index, &Map::new(function(activation), n), &[from, to])
            }
        }
    }

    /// Loss and gradients from `x` and `labels`, operands 0 and 1; the loss goes to `loss`.
    fn gradients(&mut self, loss: Resource, gradients: Resource) -> Result<()> {
        let stages = self.net.stages(true)?;
        let Some(first) = stages.iter().position(Stage::has_parameters) else {
            return Err(err!(
                Shape,
                "sequential: no layer of the network has parameters; there is nothing to train"
            ));
        };
        let gap = |pair: &[Parameter]| pair[0].offset + pair[0].len() < pair[1].offset;
        if self.parameters.windows(2).any(gap) {
            // The sums of no rows are zeros, which nothing else writes between the tensors.
            let n = self.net.parameter_len()?;
            let nothing = (gradients, 0);
            self.add(self.net.layers.len(), &BiasBackward::new(0, n, 1), &[nothing, (gradients, 0)])?;
        }
        let mut places = vec![(Resource::Operand(0), 0)];
        for stage in &stages {
            let to = self.samples(stage.to)?;
            let to = self.area(to);
            let from = places[places.len() - 1];
            self.forward(stage, from, to)?;
            places.push(to);
        }
        let classes = self.net.output_shape()?.iter().product();
        let widest = stages.iter().map(|s| self.samples(s.from).and_then(|n| Ok(n.max(self.samples(s.to)?))));
        let widest = widest.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0);
        let (mut dy, mut other) = (self.area(widest), self.area(widest));
        let losses = self.area(self.batch);
        let logits = places[stages.len()];
        let operands = [logits, (Resource::Operand(1), 0), losses, (loss, 0), dy];
        let entropy = CrossEntropy::new(self.batch, classes).with_gradient();
        self.add(self.net.layers.len(), &entropy, &operands)?;
        for (i, stage) in stages.iter().enumerate().skip(first).rev() {
            let (x, y) = (places[i], places[i + 1]);
            if stage.activation != Activation::None {
                let value = if stage.activation == Activation::Gelu { x } else { y };
                let op = ActivationBackward::new(stage.activation, self.samples(stage.to)?);
                self.add(stage.index, &op, &[value, dy, other])?;
                (dy, other) = (other, dy);
            }
            if self.backward(stage, x, dy, gradients, (i > first).then_some(other))? {
                (dy, other) = (other, dy);
            }
        }
        Ok(())
    }

    /// The gradients of a layer by its parameters and, where there is a place for it, by its input; whether there is one.
    fn backward(
        &mut self,
        stage: &Stage,
        x: Place,
        dy: Place,
        gradients: Resource,
        dx: Option<Place>,
    ) -> Result<bool> {
        let Stage { index, from: shape, .. } = *stage;
        let [weights, _] = self.tensors(index, self.values);
        let [of_weights, of_bias] = self.tensors(index, gradients);
        match (&stage.layer, dx) {
            (Layer::Conv { filters, kernel, stride, pad }, dx) => {
                let layer = conv(self.batch, shape, *filters, [*kernel, *stride, *pad]);
                let op = ConvBackwardWeights::new(&layer).with_bias();
                self.add(index, &op, &[x, dy, of_weights, of_bias])?;
                if let Some(dx) = dx {
                    self.add(index, &ConvBackwardData::new(&layer), &[dy, weights, dx])?;
                }
                Ok(dx.is_some())
            }
            (Layer::Linear { outputs }, dx) => {
                let (batch, inputs) = (self.batch, shape.iter().product());
                self.add(index, &Gemm::new(*outputs, inputs, batch).trans_a(true), &[dy, x, of_weights])?;
                self.add(index, &BiasBackward::new(batch, *outputs, 1), &[dy, of_bias])?;
                if let Some(dx) = dx {
                    self.add(index, &Gemm::new(batch, inputs, *outputs), &[dy, weights, dx])?;
                }
                Ok(dx.is_some())
            }
            (Layer::Pool { kind, kernel, stride }, Some(dx)) => {
                let [c, h, w] = shape;
                let of = [self.batch, c, h, w];
                let op = Pool2dBackward::new(kind.clone(), of, *kernel).stride(*stride);
                self.add(index, &op, &[x, dy, dx])?;
                Ok(true)
            }
            // What an activation alone needs is done.
            _ => Ok(false),
        }
    }
}

operands! {
    impl[] Forward, f32 {
        fn record(x: f32, parameters: f32, output: f32);
    }
    impl[] Gradient, f32 {
        fn record(x: f32, labels: u32, parameters: f32, loss: f32, gradients: f32);
    }
    impl[] Train, f32 {
        fn record(x: f32, labels: u32, parameters: f32, state: f32, loss: f32);
    }
}

impl Op<f32> for Forward {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { net, batch } = self;
        let mut b = Builder::new(net, *batch, Resource::Operand(1), profile, "sequential-forward")?;
        let (inputs, outputs) = (b.samples(net.input)?, b.samples(net.output_shape()?)?);
        b.operand("x", DType::F32, inputs, Access::Read);
        b.operand("parameters", DType::F32, net.parameter_len()?, Access::Read);
        b.operand("output", DType::F32, outputs, Access::Write);
        let mut stages = net.stages(false)?;
        if stages.is_empty() {
            // Nothing but flattening: a copy.
            let (layer, activation) = (Layer::Activation(Activation::None), Activation::None);
            stages.push(Stage { index: 0, layer, activation, from: net.input, to: net.output_shape()? });
        }
        let between =
            stages[..stages.len() - 1].iter().map(|s| b.samples(s.to)).collect::<Result<Vec<_>>>()?;
        // Layers write to two areas in turn, each as large as the largest that it gets.
        let widest = |parity: usize| between.iter().skip(parity).step_by(2).max().copied();
        let areas: Vec<Place> = [widest(0), widest(1)].into_iter().flatten().map(|n| b.area(n)).collect();
        let mut from = (Resource::Operand(0), 0);
        for (i, stage) in stages.iter().enumerate() {
            let to = if i + 1 == stages.len() { (Resource::Operand(2), 0) } else { areas[i % 2] };
            b.forward(stage, from, to)?;
            from = to;
        }
        Ok(b.program)
    }
}

impl Op<f32> for Gradient {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { net, batch } = self;
        let mut b = Builder::new(net, *batch, Resource::Operand(2), profile, "sequential-gradient")?;
        let (inputs, n) = (b.samples(net.input)?, net.parameter_len()?);
        b.operand("x", DType::F32, inputs, Access::Read);
        b.operand("labels", DType::U32, *batch, Access::Read);
        b.operand("parameters", DType::F32, n, Access::Read);
        b.operand("loss", DType::F32, 1, Access::Write);
        b.operand("gradients", DType::F32, n, Access::Write);
        b.gradients(Resource::Operand(3), Resource::Operand(4))?;
        Ok(b.program)
    }
}

impl Op<f32> for Train {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { net, batch, optimizer } = self;
        let mut b = Builder::new(net, *batch, Resource::Operand(2), profile, "sequential-train")?;
        let (inputs, n) = (b.samples(net.input)?, net.parameter_len()?);
        b.operand("x", DType::F32, inputs, Access::Read);
        b.operand("labels", DType::U32, *batch, Access::Read);
        b.operand("parameters", DType::F32, n, Access::ReadWrite);
        b.operand("state", DType::F32, net.state_len(optimizer)?, Access::ReadWrite);
        b.operand("loss", DType::F32, 1, Access::Write);
        let gradients = b.area(n);
        b.gradients(Resource::Operand(4), gradients.0)?;
        let state = |elements: usize| (Resource::Operand(3), 4 * elements as u64);
        let values = (Resource::Operand(2), 0);
        let end = net.layers.len();
        match optimizer {
            Optimizer::Sgd(sgd) => b.add(end, &sgd.of(n), &[values, gradients, state(0)])?,
            Optimizer::Adam(adam) => {
                let second = n.next_multiple_of(STEP);
                let parts = [state(0), state(second), state(2 * second)];
                b.add(end, &adam.of(n), &[values, gradients, parts[0], parts[1], parts[2]])?;
            }
        }
        Ok(b.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn layers_of_many_dispatches_are_refused_together() {
        // 2^49 operations a layer, each a correlation of images with windows of their size.
        let of = |layers: usize| {
            let net = (0..layers)
                .fold(Sequential::new([1, 512, 512]), |net, _| net.conv(1, [511; 2], [1; 2], [255; 2]));
            Op::<f32>::lower(&net.forward(1 << 10), &DeviceProfile::h100())
        };
        let one = of(1).unwrap().dispatches.len();
        let most = (1 << 16) / one;
        assert_eq!(of(most).unwrap().dispatches.len(), most * one);
        let e = of(most + 1).unwrap_err();
        let text = format!(
            "sequential: layer {most} (conv): sequential-forward: `fused` takes {} dispatches",
            (most + 1) * one
        );
        assert!(e.kind() == ErrorKind::TooLarge && e.to_string().starts_with(&text), "{e}");
    }
}

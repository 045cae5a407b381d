use super::{Loss, Parameter, Sequential, SequentialLayer, images, pool_at};
use crate::dense::{Activation, Gemm};
use crate::elementwise::{Map, MapFn};
use crate::nn::batch_norm_train::RunningStatistics;
use crate::nn::{BatchNorm, Softmax};
use crate::program::prelude::*;

/// The place of an array: a resource and a byte offset.
pub(super) type ArrayPlace = (Resource, u64);

/// A layer with a fused activation, between arrays.
#[derive(Debug, Clone)]
pub(super) struct FusedLayer {
    pub(super) index: usize,
    pub(super) layer: SequentialLayer,
    pub(super) activation: Activation,
    pub(super) from: [usize; 3],
    pub(super) to: [usize; 3],
}

impl SequentialLayer {
    /// Tells whether the layer's op can apply an activation.
    fn fuses(&self) -> bool {
        matches!(self, Self::Conv(_) | Self::Pool(_) | Self::Linear { .. } | Self::BatchNorm(_))
    }
}

impl Sequential {
    /// Tells whether training takes this layer, the last but for flattening, as part of the loss.
    fn is_of_loss(&self, index: usize) -> Result<bool> {
        let last = self.layers.iter().rposition(|layer| *layer != SequentialLayer::Flatten) == Some(index);
        match (&self.layers[index], self.loss) {
            (SequentialLayer::Softmax, Loss::BinaryCrossEntropy) => Err(err!(
                InvalidArgument,
                "sequential: layer {index} is a softmax, and the loss is binary cross-entropy, which takes logits; end \
                 with a sigmoid, or take Loss::CrossEntropy"
            )),
            (SequentialLayer::Softmax, Loss::CrossEntropy) => Ok(last),
            (SequentialLayer::Activation(Activation::Sigmoid), Loss::BinaryCrossEntropy) => Ok(last),
            _ => Ok(false),
        }
    }

    /// Returns the layers that compute, with fused activations; in training only those whose slope follows from the
    /// result.
    pub(super) fn stages(&self, training: bool) -> Result<Vec<FusedLayer>> {
        let shapes = self.shapes()?;
        let mut stages: Vec<FusedLayer> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let (from, to) = (if index == 0 { self.input } else { shapes[index - 1] }, shapes[index]);
            if training && self.is_of_loss(index)? {
                continue;
            }
            match (layer, stages.last_mut()) {
                (SequentialLayer::Flatten, Some(last)) => last.to = to,
                (SequentialLayer::Flatten, None) | (SequentialLayer::Activation(Activation::None), _) => {}
                (SequentialLayer::Activation(activation), Some(last))
                    if last.activation == Activation::None
                        && last.layer.fuses()
                        && !(training && *activation == Activation::Gelu) =>
                {
                    last.activation = *activation;
                }
                (layer, _) => {
                    let activation = if let SequentialLayer::Activation(own) = layer { *own } else { Activation::None };
                    stages.push(FusedLayer { index, layer: layer.clone(), activation, from, to });
                }
            }
        }
        Ok(stages)
    }
}

fn function(activation: Activation) -> MapFn {
    match activation {
        Activation::Relu => MapFn::Relu,
        Activation::Sigmoid => MapFn::Sigmoid,
        Activation::Tanh => MapFn::Tanh,
        Activation::Gelu => MapFn::Gelu,
        Activation::None => MapFn::custom("fn map(x: T) -> T { return x; }"),
    }
}

/// A program under construction.
pub(super) struct SequentialBuilder<'a> {
    pub(super) net: &'a Sequential,
    parameters: Vec<Parameter>,
    pub(super) batch: usize,
    profile: &'a DeviceProfile,
    pub(super) program: Program,
    /// The scratch areas that the ops share.
    shared: Vec<usize>,
    pub(super) values: Resource,
    /// Whether batch norms take statistics of the batch, and what becomes of the running ones.
    pub(super) statistics: Option<RunningStatistics>,
}

impl<'a> SequentialBuilder<'a> {
    pub(super) fn new(
        net: &'a Sequential, batch: usize, values: Resource, profile: &'a DeviceProfile, op: &'static str,
    ) -> Result<Self> {
        if batch == 0 {
            return Err(err!(Shape, "{op}: the batch is 0; it must be at least 1"));
        }
        let why = format!("{} layers for a batch of {batch}, in one plan", net.layers.len());
        let program = Program::new(op, Decision::policy("fused", why));
        let (parameters, shared) = (net.parameters()?, Vec::new());
        Ok(Self { net, parameters, batch, profile, program, shared, values, statistics: None })
    }

    pub(super) fn operand(&mut self, name: &'static str, dtype: DType, len: usize, access: Access) {
        self.program.operands.push(Operand { name, dtype, len, access });
    }

    pub(super) fn samples(&self, [c, h, w]: [usize; 3]) -> Result<usize> {
        elements("sequential", "a batch", &[self.batch, c, h, w])
    }

    pub(super) fn area(&mut self, elements: usize) -> ArrayPlace {
        (self.program.scratch(4 * elements.max(1) as u64).resource, 0)
    }

    pub(super) fn add(&mut self, index: usize, op: &impl Op<f32>, operands: &[ArrayPlace]) -> Result<()> {
        let lowered = op.lower(self.profile).map_err(|e| self.net.at(index, e))?;
        self.program.cost = Cost {
            flop: self.program.cost.flop + lowered.cost.flop,
            bytes: self.program.cost.bytes + lowered.cost.bytes,
        };
        self.program.check_dispatches(lowered.dispatches.len() as u64).map_err(|e| self.net.at(index, e))?;
        self.program.append_at(lowered, operands, &mut self.shared);
        Ok(())
    }

    /// Returns the places of parts of a layer in an array laid out like the parameters, those that exist.
    pub(super) fn tensors(&self, index: usize, parts: &[&str], all: Resource) -> Vec<ArrayPlace> {
        let place = |part: &&str| {
            let name = format!("{index}.{part}");
            let parameter = self.parameters.iter().find(|p| p.name == name)?;
            Some((all, 4 * parameter.offset as u64))
        };
        parts.iter().filter_map(place).collect()
    }

    pub(super) fn forward(&mut self, stage: &FusedLayer, from: ArrayPlace, to: ArrayPlace) -> Result<()> {
        let FusedLayer { index, activation, from: shape, .. } = *stage;
        let (batch, len) = (self.batch, shape.iter().product());
        let values = |parts: &[&str]| self.tensors(index, parts, self.values);
        let between = |middle: Vec<ArrayPlace>| [&[from], &middle[..], &[to]].concat();
        match &stage.layer {
            SequentialLayer::Conv(conv) => {
                let operands = between(values(&["weight", "bias"]));
                self.add(index, &conv.with_bias_at(images(batch, shape)).activation(activation), &operands)
            }
            SequentialLayer::Pool(pool) => {
                let operands = between(values(&["bias", "weight"]));
                self.add(index, &pool_at(pool, batch, shape).activation(activation), &operands)
            }
            SequentialLayer::Linear { outputs } => {
                let gemm = Gemm::new(batch, *outputs, len).trans_b().activation(activation);
                let operands = between(values(&["weight", "bias"]));
                self.add(index, &gemm.with_bias(), &operands)
            }
            SequentialLayer::BatchNorm(norm) => match self.statistics {
                Some(running) => {
                    let mut operands = between(values(&["weight", "bias", "running_mean", "running_var"]));
                    if running == RunningStatistics::Absent {
                        operands.drain(3..5);
                    }
                    // Training has the same bits in every run, and parameters and running statistics are one buffer.
                    let op = norm.within(images(batch, shape), running, activation).deterministic();
                    self.add(index, &op, &operands)
                }
                None => {
                    let op = BatchNorm::new(images(batch, shape)).eps(norm.eps).activation(activation);
                    let operands = between(values(&["running_mean", "running_var", "weight", "bias"]));
                    self.add(index, &op, &operands)
                }
            },
            SequentialLayer::Softmax => self.add(index, &Softmax::new(batch, len), &[from, to]),
            SequentialLayer::Sign => {
                let n = self.samples(shape)?;
                self.add(index, &Map::new(MapFn::Sign, n), &[from, to])
            }
            SequentialLayer::Activation(_) | SequentialLayer::Flatten => {
                let n = self.samples(shape)?;
                self.add(index, &Map::new(function(activation), n), &[from, to])
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Builds one program of all layers: the ops in order, and the gradients in reverse.

use super::{Parameter, Sequential, SequentialLayer, conv, pool};
use crate::conv::{Conv2dBackwardData, Conv2dBackwardWeights};
use crate::dense::{Activation, Gemm};
use crate::element::DType;
use crate::elementwise::{Map, MapFn};
use crate::error::{Result, err};
use crate::nn::{ActivationBackward, BiasBackward, CrossEntropy, Pool2dBackward, Softmax};
use crate::program::{Access, Cost, Decision, DeviceProfile, Op, Operand, Program, Resource};
use crate::shape::elements;

/// The place of an array: a resource and a byte offset.
pub(super) type ArrayPlace = (Resource, u64);

/// A layer with a fused activation, between arrays.
#[derive(Debug, Clone)]
pub(super) struct FusedLayer {
    /// The index in the list of layers.
    pub(super) index: usize,
    pub(super) layer: SequentialLayer,
    pub(super) activation: Activation,
    pub(super) from: [usize; 3],
    pub(super) to: [usize; 3],
}

impl FusedLayer {
    fn has_parameters(&self) -> bool {
        matches!(self.layer, SequentialLayer::Conv { .. } | SequentialLayer::Linear { .. })
    }
}

impl Sequential {
    /// Returns the layers that compute, with fused activations; in training only those whose slope follows from the
    /// result.
    pub(super) fn stages(&self, training: bool) -> Result<Vec<FusedLayer>> {
        let shapes = self.shapes()?;
        let mut stages: Vec<FusedLayer> = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let (from, to) = (if index == 0 { self.input } else { shapes[index - 1] }, shapes[index]);
            match (layer, stages.last_mut()) {
                (SequentialLayer::Flatten, Some(last)) => last.to = to,
                (SequentialLayer::Flatten, None) | (SequentialLayer::Activation(Activation::None), _) => {}
                (SequentialLayer::Softmax, _) if training => {}
                (SequentialLayer::Activation(activation), Some(last))
                    if last.activation == Activation::None
                        && !matches!(last.layer, SequentialLayer::Activation(_))
                        && !(training && *activation == Activation::Gelu) =>
                {
                    last.activation = *activation;
                }
                (layer, _) => {
                    let activation =
                        if let SequentialLayer::Activation(own) = layer { *own } else { Activation::None };
                    stages.push(FusedLayer { index, layer: layer.clone(), activation, from, to });
                }
            }
        }
        Ok(stages)
    }
}

/// Returns the function of an activation that is not fused.
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
    net: &'a Sequential,
    parameters: Vec<Parameter>,
    batch: usize,
    profile: &'a DeviceProfile,
    pub(super) program: Program,
    /// The scratch areas that the ops share.
    shared: Vec<usize>,
    /// The buffer of all parameters.
    values: Resource,
}

impl<'a> SequentialBuilder<'a> {
    pub(super) fn new(
        net: &'a Sequential,
        batch: usize,
        values: Resource,
        profile: &'a DeviceProfile,
        op: &'static str,
    ) -> Result<Self> {
        if batch == 0 {
            return Err(err!(Shape, "{op}: the batch is 0; it must be at least 1"));
        }
        let why = format!("{} layers for a batch of {batch}, in one plan", net.layers.len());
        let program = Program::new(op, Decision::policy("fused", why));
        Ok(Self { net, parameters: net.parameters()?, batch, profile, program, shared: Vec::new(), values })
    }

    pub(super) fn operand(&mut self, name: &'static str, dtype: DType, len: usize, access: Access) {
        self.program.operands.push(Operand { name, dtype, len, access });
    }

    pub(super) fn samples(&self, shape: [usize; 3]) -> Result<usize> {
        let [c, h, w] = shape;
        elements("sequential", "a batch", &[self.batch, c, h, w])
    }

    pub(super) fn area(&mut self, elements: usize) -> ArrayPlace {
        (self.program.scratch(4 * elements.max(1) as u64).resource, 0)
    }

    /// Appends the op of a layer.
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

    /// Returns the places of weights and bias of a layer in an array laid out like the parameters.
    fn tensors(&self, index: usize, all: Resource) -> [ArrayPlace; 2] {
        ["weight", "bias"].map(|part| {
            let name = format!("{index}.{part}");
            let at = self.parameters.iter().find(|p| p.name == name).map_or(0, |p| p.offset);
            (all, 4 * at as u64)
        })
    }

    /// Appends the forward op of a layer.
    pub(super) fn forward(&mut self, stage: &FusedLayer, from: ArrayPlace, to: ArrayPlace) -> Result<()> {
        let FusedLayer { index, activation, from: shape, .. } = *stage;
        let [weights, bias] = self.tensors(index, self.values);
        match &stage.layer {
            SequentialLayer::Conv { filters, kernel, stride, pad } => {
                let op = conv(self.batch, shape, *filters, [*kernel, *stride, *pad]).activation(activation);
                self.add(index, &op.with_bias(), &[from, weights, bias, to])
            }
            SequentialLayer::Pool { kind, kernel, stride } => {
                let op = pool(self.batch, shape, kind, [*kernel, *stride]).activation(activation);
                self.add(index, &op, &[from, to])
            }
            SequentialLayer::Linear { outputs } => {
                let gemm = Gemm::new(self.batch, *outputs, shape.iter().product()).trans_b();
                self.add(index, &gemm.activation(activation).with_bias(), &[from, weights, bias, to])
            }
            SequentialLayer::Softmax => {
                self.add(index, &Softmax::new(self.batch, shape.iter().product()), &[from, to])
            }
            SequentialLayer::Activation(_) | SequentialLayer::Flatten => {
                let n = self.samples(shape)?;
                self.add(index, &Map::new(function(activation), n), &[from, to])
            }
        }
    }

    /// Appends the loss and the gradients; `x` and `labels` are operands 0 and 1.
    pub(super) fn gradients(&mut self, loss: Resource, gradients: Resource) -> Result<()> {
        let stages = self.net.stages(true)?;
        let Some(first) = stages.iter().position(FusedLayer::has_parameters) else {
            return Err(err!(
                Shape,
                "sequential: no layer of the network has parameters; there is nothing to train"
            ));
        };
        let gap = |pair: &[Parameter]| pair[0].offset + pair[0].len() < pair[1].offset;
        if self.parameters.windows(2).any(gap) {
            // Zeros the gaps between tensors, which no other op writes: sums of no rows are 0.
            let n = self.net.parameter_len()?;
            let nothing = (gradients, 0);
            self.add(self.net.layers.len(), &BiasBackward::new([0, n, 1]), &[nothing, (gradients, 0)])?;
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

    /// Appends the gradients of a layer with respect to its parameters and, if `dx` is given, its input. Returns
    /// whether it wrote `dx`.
    fn backward(
        &mut self,
        stage: &FusedLayer,
        x: ArrayPlace,
        dy: ArrayPlace,
        gradients: Resource,
        dx: Option<ArrayPlace>,
    ) -> Result<bool> {
        let FusedLayer { index, from: shape, .. } = *stage;
        let [weights, _] = self.tensors(index, self.values);
        let [of_weights, of_bias] = self.tensors(index, gradients);
        match (&stage.layer, dx) {
            (SequentialLayer::Conv { filters, kernel, stride, pad }, dx) => {
                let layer = conv(self.batch, shape, *filters, [*kernel, *stride, *pad]);
                let op = Conv2dBackwardWeights::new(&layer).with_bias();
                self.add(index, &op, &[x, dy, of_weights, of_bias])?;
                if let Some(dx) = dx {
                    self.add(index, &Conv2dBackwardData::new(&layer), &[dy, weights, dx])?;
                }
                Ok(dx.is_some())
            }
            (SequentialLayer::Linear { outputs }, dx) => {
                let (batch, inputs) = (self.batch, shape.iter().product());
                self.add(index, &Gemm::new(*outputs, inputs, batch).trans_a(), &[dy, x, of_weights])?;
                self.add(index, &BiasBackward::new([batch, *outputs, 1]), &[dy, of_bias])?;
                if let Some(dx) = dx {
                    self.add(index, &Gemm::new(batch, inputs, *outputs), &[dy, weights, dx])?;
                }
                Ok(dx.is_some())
            }
            (SequentialLayer::Pool { kind, kernel, stride }, Some(dx)) => {
                let [c, h, w] = shape;
                let of = [self.batch, c, h, w];
                let op = Pool2dBackward::new(kind.clone(), of, *kernel).stride(*stride);
                self.add(index, &op, &[x, dy, dx])?;
                Ok(true)
            }
            // Activations are done.
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn rejects_too_many_dispatches_over_all_layers() {
        // 2^49 flop for each layer, with windows as large as the image.
        let of = |layers: usize| {
            let net = (0..layers)
                .fold(Sequential::new([1, 512, 512]), |net, _| net.conv(1, [511; 2], [1; 2], [255; 2]));
            Op::<f32>::lower(&net.forward(1 << 10), &DeviceProfile::h100())
        };
        let one = of(1).unwrap().dispatches.len();
        let max = (1 << 16) / one;
        assert_eq!(of(max).unwrap().dispatches.len(), max * one);
        let e = of(max + 1).unwrap_err();
        let text = format!(
            "sequential: layer {max} (conv): sequential-forward: `fused` takes {} dispatches",
            (max + 1) * one
        );
        assert!(e.kind() == ErrorKind::TooLarge && e.to_string().starts_with(&text), "{e}");
    }
}

use super::builder::{ArrayPlace, FusedLayer, SequentialBuilder};
use super::{Loss, Parameter, SequentialLayer, images, pool_at};
use crate::conv::{Conv2dBackwardData, Conv2dBackwardWeights};
use crate::dense::{Activation, Gemm};
use crate::nn::{
    ActivationBackward, BatchNormBackward, BiasBackward, BinaryCrossEntropy, CrossEntropy, Pool2dBackward,
    Pool2dBackwardWeights, SoftmaxBackward, SquaredError,
};
use crate::program::prelude::*;

impl SequentialBuilder<'_> {
    /// Appends the loss and the gradients; `x` and `target` are operands 0 and 1.
    pub(super) fn gradients(&mut self, loss: Resource, gradients: Resource) -> Result<()> {
        let stages = self.net.stages(true)?;
        let trained = self.net.trained()?;
        let has_parameters = |stage: &FusedLayer| {
            let prefix = format!("{}.", stage.index);
            trained.iter().any(|p| p.name.starts_with(&prefix))
        };
        let Some(first) = stages.iter().position(has_parameters) else {
            return Err(err!(Shape, "sequential: no layer of the network has parameters; there is nothing to train"));
        };
        if trained.windows(2).any(|pair| pair[0].end() < pair[1].offset) {
            // Zeros the gaps between tensors, which no other op writes: sums of no rows are 0.
            let n = trained.last().map_or(0, Parameter::end);
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
        let widest = stages.iter().map(|s| self.samples(s.from).and_then(|n| Ok(n.max(self.samples(s.to)?))));
        let widest = widest.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0);
        let (mut dy, mut other) = (self.area(widest), self.area(widest));
        self.loss(places[stages.len()], loss, dy)?;
        for (i, stage) in stages.iter().enumerate().skip(first).rev() {
            let (x, y) = (places[i], places[i + 1]);
            if stage.activation != Activation::None {
                let value = if stage.activation == Activation::Gelu { x } else { y };
                let op = ActivationBackward::new(stage.activation, self.samples(stage.to)?);
                self.add(stage.index, &op, &[value, dy, other])?;
                (dy, other) = (other, dy);
            }
            if self.backward(stage, [x, y, dy, other], gradients, i > first)? {
                (dy, other) = (other, dy);
            }
        }
        Ok(())
    }

    /// Appends the mean loss of the outputs, and its gradient.
    fn loss(&mut self, outputs: ArrayPlace, loss: Resource, dx: ArrayPlace) -> Result<()> {
        let (batch, index) = (self.batch, self.net.layers.len());
        let (target, mean) = ((Resource::Operand(1), 0), (loss, 0));
        let shape = self.net.output_shape()?;
        let n = self.samples(shape)?;
        match self.net.loss {
            Loss::CrossEntropy => {
                let losses = self.area(batch);
                let op = CrossEntropy::new(batch, shape.iter().product()).with_gradient();
                self.add(index, &op, &[outputs, target, losses, mean, dx])
            }
            Loss::BinaryCrossEntropy => {
                self.add(index, &BinaryCrossEntropy::new(n).with_gradient(), &[outputs, target, mean, dx])
            }
            Loss::SquaredError => self.add(index, &SquaredError::new(n).with_gradient(), &[outputs, target, mean, dx]),
        }
    }

    /// Appends the gradients of a layer with respect to its parameters and, if it is `wanted`, its input, which goes
    /// to `dx`. Returns whether it wrote `dx`.
    fn backward(
        &mut self, stage: &FusedLayer, [x, y, dy, dx]: [ArrayPlace; 4], gradients: Resource, wanted: bool,
    ) -> Result<bool> {
        let FusedLayer { index, from: shape, to, .. } = *stage;
        let (batch, len) = (self.batch, shape.iter().product());
        let plane = to[1] * to[2];
        let (weight, bias) = (["weight"].as_slice(), ["bias"].as_slice());
        let weights = self.tensors(index, weight, self.values);
        let of_weights = self.tensors(index, weight, gradients);
        let of_bias = self.tensors(index, bias, gradients);
        match &stage.layer {
            SequentialLayer::Conv(conv) => {
                let layer = conv.with_bias_at(images(batch, shape));
                let op = Conv2dBackwardWeights::new(&layer).with_bias();
                self.add(index, &op, &[&[x, dy], &of_weights[..], &of_bias].concat())?;
                if wanted {
                    let operands = [&[dy], &weights[..], &[dx]].concat();
                    self.add(index, &Conv2dBackwardData::new(&layer), &operands)?;
                }
                Ok(wanted)
            }
            SequentialLayer::Linear { outputs } => {
                let op = Gemm::new(*outputs, len, batch).trans_a();
                self.add(index, &op, &[&[dy, x], &of_weights[..]].concat())?;
                let op = BiasBackward::new([batch, *outputs, 1]);
                self.add(index, &op, &[&[dy], &of_bias[..]].concat())?;
                if wanted {
                    let operands = [&[dy], &weights[..], &[dx]].concat();
                    self.add(index, &Gemm::new(batch, len, *outputs), &operands)?;
                }
                Ok(wanted)
            }
            SequentialLayer::Pool(pool) => {
                let pool = pool_at(pool, batch, shape);
                if !of_bias.is_empty() {
                    let op = BiasBackward::new([batch, to[0], plane]);
                    self.add(index, &op, &[&[dy], &of_bias[..]].concat())?;
                }
                if !of_weights.is_empty() {
                    let operands = [&[x, dy], &of_weights[..]].concat();
                    self.add(index, &Pool2dBackwardWeights::of(&pool), &operands)?;
                }
                if wanted {
                    let operands = [&[x, dy], &weights[..], &[dx]].concat();
                    self.add(index, &Pool2dBackward::of(&pool), &operands)?;
                }
                Ok(wanted)
            }
            SequentialLayer::BatchNorm(norm) => {
                let op = BatchNormBackward::new(images(batch, shape)).eps(norm.eps).deterministic();
                let operands = [&[x], &weights[..], &[dy, dx], &of_weights, &of_bias].concat();
                self.add(index, &op, &operands)?;
                Ok(true)
            }
            SequentialLayer::Softmax => {
                self.add(index, &SoftmaxBackward::new(batch, len), &[y, dy, dx])?;
                Ok(true)
            }
            // Activations are done, and the sign passes its gradient on.
            SequentialLayer::Activation(_) | SequentialLayer::Sign | SequentialLayer::Flatten => Ok(false),
        }
    }
}

use super::builder::{ArrayPlace, FusedLayer, SequentialBuilder};
use super::{Loss, Optimizer, Sequential, SequentialLayer};
use crate::dense::Activation;
use crate::nn::batch_norm_train::RunningStatistics;
use crate::program::prelude::*;

/// The forward pass of a network, from [`Sequential::forward`]. Operands are `x`, `parameters`, `output`.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    pub(super) net: Sequential,
    pub(super) batch: usize,
}

/// Loss and gradients of a network, from [`Sequential::gradient`]. Operands are `x`, `target`, `parameters`, `loss`,
/// `gradients`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    pub(super) net: Sequential,
    pub(super) batch: usize,
}

/// A training step of a network, from [`Sequential::train`]. Operands are `x`, `target`, `parameters`, `state`, `loss`.
#[derive(Debug, Clone, PartialEq)]
pub struct Train {
    pub(super) net: Sequential,
    pub(super) batch: usize,
    pub(super) optimizer: Optimizer,
}

operands! {
    impl[] Forward, f32 {
        fn record(x: f32, parameters: f32, output: f32);
    }
    impl[] Gradient, f32 {
        fn record<L>(x: f32, target: L, parameters: f32, loss: f32, gradients: f32);
    }
    impl[] Train, f32 {
        fn record<L>(x: f32, target: L, parameters: f32, state: f32, loss: f32);
        /// Takes the learning rate, one element.
        optional with_rate(rate: f32);
    }
}

impl SequentialBuilder<'_> {
    /// Adds the operands `x` and `target`.
    fn sample_operands(&mut self) -> Result<()> {
        let (inputs, outputs) = (self.samples(self.net.input)?, self.samples(self.net.output_shape()?)?);
        self.operand("x", DType::F32, inputs, Access::Read);
        match self.net.loss {
            Loss::CrossEntropy => self.operand("target", DType::U32, self.batch, Access::Read),
            Loss::BinaryCrossEntropy | Loss::SquaredError => {
                self.operand("target", DType::F32, outputs, Access::Read);
            }
        }
        Ok(())
    }
}

impl Op<f32> for Forward {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { net, batch } = self;
        let mut b = SequentialBuilder::new(net, *batch, Resource::Operand(1), profile, "sequential-forward")?;
        let (inputs, outputs) = (b.samples(net.input)?, b.samples(net.output_shape()?)?);
        b.operand("x", DType::F32, inputs, Access::Read);
        b.operand("parameters", DType::F32, net.parameter_len()?, Access::Read);
        b.operand("output", DType::F32, outputs, Access::Write);
        let mut stages = net.stages(false)?;
        if stages.is_empty() {
            // A network that only flattens copies.
            let (layer, activation) = (SequentialLayer::Activation(Activation::None), Activation::None);
            stages.push(FusedLayer { index: 0, layer, activation, from: net.input, to: net.output_shape()? });
        }
        let between = stages[..stages.len() - 1].iter().map(|s| b.samples(s.to)).collect::<Result<Vec<_>>>()?;
        // Layers write to two areas in turn, each as large as its largest array.
        let widest = |parity: usize| between.iter().skip(parity).step_by(2).max().copied();
        let areas: Vec<ArrayPlace> = [widest(0), widest(1)].into_iter().flatten().map(|n| b.area(n)).collect();
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
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { net, batch } = self;
        let mut b = SequentialBuilder::new(net, *batch, Resource::Operand(2), profile, "sequential-gradient")?;
        b.statistics = Some(RunningStatistics::Absent);
        b.sample_operands()?;
        b.operand("parameters", DType::F32, net.parameter_len()?, Access::Read);
        b.operand("loss", DType::F32, 1, Access::Write);
        b.operand("gradients", DType::F32, net.trained_len()?, Access::Write);
        b.gradients(Resource::Operand(3), Resource::Operand(4))?;
        Ok(b.program)
    }
}

impl Op<f32> for Train {
    proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        let Self { net, batch, optimizer } = self;
        let mut b = SequentialBuilder::new(net, *batch, Resource::Operand(2), profile, "sequential-train")?;
        b.statistics = Some(RunningStatistics::InPlace);
        b.sample_operands()?;
        b.operand("parameters", DType::F32, net.parameter_len()?, Access::ReadWrite);
        b.operand("state", DType::F32, net.state_len(optimizer)?, Access::ReadWrite);
        let rated = match optimizer {
            Optimizer::Sgd(sgd) => sgd.is_rated(),
            Optimizer::Adam(adam) => adam.is_rated(),
        };
        if rated {
            b.operand("rate", DType::F32, 1, Access::Read);
        }
        let loss = Resource::Operand(b.program.operands.len());
        b.operand("loss", DType::F32, 1, Access::Write);
        let n = net.trained_len()?;
        let gradients = b.area(n);
        b.gradients(loss, gradients.0)?;
        let state = |elements: usize| (Resource::Operand(3), 4 * elements as u64);
        let ([second, fullness, _], rate) = (net.state_places(optimizer)?, (Resource::Operand(4), 0));
        let mut operands = vec![(Resource::Operand(2), 0), gradients, state(0)];
        let end = net.layers.len();
        match optimizer {
            Optimizer::Sgd(sgd) => {
                operands.push(rate);
                b.add(end, &sgd.of(n), &operands)?;
            }
            Optimizer::Adam(adam) => {
                operands.extend([state(second), state(fullness), rate]);
                b.add(end, &adam.of(n), &operands)?;
            }
        }
        Ok(b.program)
    }
}

//! The three plans of a network: results, gradients, or a training step.

use super::builder::{ArrayPlace, FusedLayer, SequentialBuilder};
use super::{Optimizer, STEP, Sequential, SequentialLayer};
use crate::dense::Activation;
use crate::element::DType;
use crate::error::Result;
use crate::program::{Access, DeviceProfile, Op, Program, Resource, operands};

/// The forward pass of a network, from [`Sequential::forward`]. Operands are `x`, `parameters`, `output`.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    pub(super) net: Sequential,
    pub(super) batch: usize,
}

/// Loss and gradients of a network, from [`Sequential::gradient`]. Operands are `x`, `labels`, `parameters`, `loss`,
/// `gradients`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    pub(super) net: Sequential,
    pub(super) batch: usize,
}

/// A training step of a network, from [`Sequential::train`]. Operands are `x`, `labels`, `parameters`, `state`, `loss`.
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
        let between =
            stages[..stages.len() - 1].iter().map(|s| b.samples(s.to)).collect::<Result<Vec<_>>>()?;
        // Layers write to two areas in turn, each as large as its largest array.
        let widest = |parity: usize| between.iter().skip(parity).step_by(2).max().copied();
        let areas: Vec<ArrayPlace> =
            [widest(0), widest(1)].into_iter().flatten().map(|n| b.area(n)).collect();
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
        let mut b =
            SequentialBuilder::new(net, *batch, Resource::Operand(2), profile, "sequential-gradient")?;
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
        let mut b = SequentialBuilder::new(net, *batch, Resource::Operand(2), profile, "sequential-train")?;
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

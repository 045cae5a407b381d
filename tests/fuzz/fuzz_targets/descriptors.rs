//! Ops with shapes and options drawn from the bytes of an input.

use super::draw::{Draw, Lowered};
use super::forms;
use tilework::nn::{Adam, Loss, Optimizer, Sequential, Sgd};
use tilework::operations;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};

/// Lowers an op by name, a sample of the catalogue, or a network.
pub(crate) fn lowered(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    if draw.rarely(10) {
        return network(draw, profile);
    }
    let op = draw.below(operations().count());
    match operations().nth(op).filter(|op| !op.solver) {
        Some(op) if !draw.rarely(10) => forms::lowered(draw, op, profile),
        _ => sample(draw, profile),
    }
}

/// A sample of the catalogue, for any variant of any op.
fn sample(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let op = draw.below(operations().count());
    let Some(op) = operations().nth(op) else { return Op::<f32>::lower(&Softmax::new(1, 1), profile) };
    let variant = draw.pick((op.variants)()).name;
    let mut programs = (op.samples)(profile, variant)?;
    let which = draw.below(programs.len());
    if programs.is_empty() { Op::<f32>::lower(&Softmax::new(1, 1), profile) } else { Ok(programs.swap_remove(which)) }
}

fn small(draw: &mut Draw<'_>) -> [usize; 2] {
    if draw.rarely(6) { draw.sizes() } else { [draw.below(4), draw.below(4)] }
}

fn network(draw: &mut Draw<'_>, profile: &DeviceProfile) -> Lowered {
    let mut net = Sequential::new(draw.sizes());
    for _ in 0..draw.below(6) {
        net = match draw.below(9) {
            0 => net.conv(draw.size(), small(draw), small(draw), small(draw)),
            1 => {
                let kernel = small(draw);
                let weights = draw.floats(kernel[0].saturating_mul(kernel[1]).min(64));
                let kind = draw.pick(&[PoolKind::Max, PoolKind::Average, PoolKind::Weighted(weights)]);
                let (stride, learnt) = (small(draw), draw.rarely(2));
                net.pool_with(kind, kernel, |pool| {
                    let pool = pool.stride(stride).with_bias();
                    if learnt { pool.with_weights() } else { pool }
                })
            }
            2 => net.linear(draw.size()),
            3 => net.activation(draw.pick(&Activation::ALL)),
            4 => net.flatten(),
            5 => net.batch_norm_with(|norm| norm.eps(draw.float() as f32)),
            6 => net.sign(),
            7 => {
                let (groups, dilation) = (draw.below(4), small(draw));
                net.conv_with(draw.size(), small(draw), |conv| conv.groups(groups).dilation(dilation))
            }
            _ => net.softmax(),
        };
    }
    let batch = draw.size();
    let _ = (net.input_len(), net.output_shape(), net.parameters(), net.parameter_len(), net.trained_len());
    let net = net.loss(draw.pick(&[Loss::CrossEntropy, Loss::BinaryCrossEntropy, Loss::SquaredError]));
    match draw.below(3) {
        0 => Op::<f32>::lower(&net.forward(batch), profile),
        1 => Op::<f32>::lower(&net.gradient(batch), profile),
        _ => {
            let n = draw.size();
            let optimizer: Optimizer = match draw.below(3) {
                0 => Sgd::new(n, draw.float() as f32).into(),
                1 => Sgd::new(n, draw.float() as f32).with_momentum(0.5).into(),
                _ => Adam::new(n, draw.float() as f32).into(),
            };
            let _ = (net.state_len(&optimizer), net.state(&optimizer));
            Op::<f32>::lower(&net.train(batch, optimizer), profile)
        }
    }
}

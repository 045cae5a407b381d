//! Fits the decoder's head on the device.

use super::common::network::layers::Linear;
use super::common::{Failure, Random};
use super::weights::BYTES;
use tilework::nn::{Adam, Optimizer, Sequential};
use tilework::{Gpu, Plannable};

/// Vectors per step.
const BATCH: usize = 128;

/// Learning rate of the first epoch; it falls in later ones.
const RATE: f32 = 3e-3;

/// Vectors, and the byte that follows each.
#[derive(Default)]
pub(crate) struct Samples {
    pub(crate) vectors: Vec<f32>,
    pub(crate) next: Vec<u32>,
}

/// Fits a head in `epochs` passes over the samples, in an order drawn from the seed. Calls `progress` with the mean
/// loss of each pass.
pub(crate) fn fit(
    gpu: &Gpu, samples: &Samples, epochs: usize, seed: u64, mut progress: impl FnMut(f32),
) -> Result<Linear, Failure> {
    let width = samples.vectors.len() / samples.next.len().max(1);
    // Samples that do not fill a batch are left out; fewer samples than a batch are one batch.
    let batch = BATCH.min(samples.next.len());
    let steps = samples.next.len() / batch.max(1);
    let net = Sequential::new([width, 1, 1]).linear(BYTES);
    let parameters = gpu.alloc_zeroed::<f32>(net.parameter_len()?)?;
    let state = gpu.alloc_zeroed::<f32>(net.state_len(&Optimizer::from(Adam::for_network(RATE)))?)?;
    let losses = gpu.alloc::<f32>(steps * 64)?;
    // Align batches for the device's bindings.
    let [of_vectors, of_labels] = [batch * width, batch].map(|n| n.next_multiple_of(64));
    let (vectors, labels) = (gpu.alloc::<f32>(steps * of_vectors)?, gpu.alloc::<u32>(steps * of_labels)?);
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..samples.next.len()).collect();
    for epoch in 0..epochs {
        let rate = RATE * (epochs - epoch) as f32 / epochs as f32;
        let plan = net.train(batch, Adam::for_network(rate)).plan::<f32>(gpu)?;
        for i in (1..order.len()).rev() {
            order.swap(i, (random.next() % (i as u64 + 1)) as usize);
        }
        let (mut x, mut y) = (vec![0.0; steps * of_vectors], vec![0; steps * of_labels]);
        for (step, part) in order.chunks_exact(batch).enumerate() {
            for (i, &sample) in part.iter().enumerate() {
                let vector = &samples.vectors[sample * width..(sample + 1) * width];
                x[step * of_vectors + i * width..][..width].copy_from_slice(vector);
                y[step * of_labels + i] = samples.next[sample];
            }
        }
        vectors.slice(..)?.write(&x)?;
        labels.slice(..)?.write(&y)?;
        let mut rec = gpu.recorder();
        for step in 0..steps {
            let [x, y] = [step * of_vectors, step * of_labels];
            plan.record(
                &mut rec,
                vectors.slice(x..x + batch * width)?,
                labels.slice(y..y + batch)?,
                &parameters,
                &state,
                losses.slice(step * 64..step * 64 + 1)?,
            )?;
        }
        rec.submit()?;
        let sum: f32 = losses.read()?.iter().step_by(64).sum();
        progress(sum / steps as f32);
    }
    let values = parameters.read()?;
    let mut head = Linear { weight: vec![], bias: vec![], outputs: BYTES, inputs: width };
    for tensor in net.parameters()? {
        let part = values[tensor.offset..tensor.offset + tensor.len()].to_vec();
        if tensor.shape.len() == 2 { head.weight = part } else { head.bias = part }
    }
    Ok(head)
}

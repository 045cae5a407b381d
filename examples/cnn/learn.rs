//! Training and testing.

use super::common::Failure;
use std::time::Instant;
use tilework::io::idx::Labelled;
use tilework::nn::{Adam, Optimizer, PoolKind, Sequential};
use tilework::{Activation, Buffer, Gpu, Plannable};

/// Classes of the data sets.
pub(crate) const CLASSES: usize = 10;

/// Two 3 x 3 convolutions with pooling, and two fully connected layers.
pub(crate) fn network(h: usize, w: usize) -> Sequential {
    Sequential::new([1, h, w])
        .conv(32, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .conv(64, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .flatten()
        .linear(128)
        .activation(Activation::Relu)
        .linear(CLASSES)
}

/// Options of training.
pub(crate) struct Training {
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
    pub(crate) rate: f32,
    pub(crate) seed: u64,
}

/// The result of an epoch.
pub(crate) struct Epoch {
    /// Mean loss of its batches.
    pub(crate) loss: f32,
    pub(crate) images_per_second: f64,
}

/// Alignment of batches in elements, for every device's bindings.
const STEP: usize = 64;

/// Maximum images uploaded at a time.
const AT_ONCE: usize = 1 << 13;

/// A pixel, normalised by the mean and deviation of MNIST.
fn brightness(pixel: u8) -> f32 {
    (f32::from(pixel) / 255.0 - 0.1307) / 0.3081
}

/// Batches on the device, each aligned for a binding.
struct Batches {
    images: Buffer<f32>,
    labels: Buffer<u32>,
    per_batch: [usize; 2],
}

impl Batches {
    fn new(gpu: &Gpu, batch: usize, pixels: usize, most: usize) -> tilework::Result<Self> {
        let per_batch = [batch * pixels, batch].map(|n| n.next_multiple_of(STEP));
        let [images, labels] = per_batch.map(|n| n * most);
        Ok(Self { images: gpu.alloc(images)?, labels: gpu.alloc(labels)?, per_batch })
    }

    /// Fills the first batches with these images.
    fn fill(&self, data: &Labelled, order: &[usize], batch: usize) -> tilework::Result<usize> {
        let [_, h, w] = data.shape;
        let count = order.len().div_ceil(batch);
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        for (k, part) in order.chunks(batch).enumerate() {
            for &i in part {
                images.extend(data.images[i * h * w..(i + 1) * h * w].iter().map(|p| brightness(*p)));
                labels.push(u32::from(data.labels[i]));
            }
            images.resize((k + 1) * self.per_batch[0], 0.0);
            labels.resize((k + 1) * self.per_batch[1], 0);
        }
        self.images.slice(..images.len())?.write(&images)?;
        self.labels.slice(..labels.len())?.write(&labels)?;
        Ok(count)
    }
}

/// Returns the numbers below `n`, shuffled by the seed.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    // splitmix64 (Steele, Lea and Flood, 2014), and the Fisher-Yates shuffle.
    let mut state = seed;
    for i in (1..n).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        order.swap(i, ((z ^ (z >> 31)) % (i as u64 + 1)) as usize);
    }
    order
}

/// Trains the network and returns its parameters. Calls `progress` with the images done and a batch's loss, and `done`
/// after each epoch. Images that do not fill a batch are left out, different ones in each epoch.
pub(crate) fn train(
    gpu: &Gpu,
    net: &Sequential,
    data: &Labelled,
    how: &Training,
    mut progress: impl FnMut(usize, f32),
    mut done: impl FnMut(&Epoch) -> Result<(), Failure>,
) -> Result<Vec<f32>, Failure> {
    let [n, h, w] = data.shape;
    let batch = how.batch;
    if batch == 0 || n < batch {
        return Err(Failure::bad_input(format!(
            "--batch {batch}: must be from 1 to the number of images, {n}"
        )));
    }
    let optimizer = Optimizer::from(Adam::new(0, how.rate));
    let plan = net.train(batch, optimizer.clone()).plan::<f32>(gpu)?;
    let parameters = gpu.upload(&net.initial(how.seed)?)?;
    let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer)?)?;
    let at_once = (AT_ONCE / batch).clamp(1, n / batch);
    let batches = Batches::new(gpu, batch, h * w, at_once)?;
    let losses = gpu.alloc_zeroed::<f32>(at_once * STEP)?;
    for epoch in 0..how.epochs {
        let order = shuffled(n, how.seed.wrapping_add(1 + epoch as u64));
        let whole = n / batch * batch;
        let (start, mut total) = (Instant::now(), 0.0);
        for part in order[..whole].chunks(at_once * batch) {
            let count = batches.fill(data, part, batch)?;
            let mut rec = gpu.recorder();
            for i in 0..count {
                let [x, labels] = [0, 1].map(|k| i * batches.per_batch[k]);
                plan.record(
                    &mut rec,
                    batches.images.slice(x..x + batch * h * w)?,
                    batches.labels.slice(labels..labels + batch)?,
                    &parameters,
                    &state,
                    losses.slice(i * STEP..i * STEP + 1)?,
                )?;
            }
            rec.submit()?;
            let of_part: Vec<f32> = losses.read()?.into_iter().step_by(STEP).take(count).collect();
            total += of_part.iter().map(|l| f64::from(*l)).sum::<f64>();
            progress(part.len(), of_part[count - 1]);
        }
        let loss = (total / (whole / batch) as f64) as f32;
        done(&Epoch { loss, images_per_second: whole as f64 / start.elapsed().as_secs_f64() })?;
    }
    Ok(parameters.read()?)
}

/// Counts images by class (row) and prediction (column).
pub(crate) struct Confusion(pub(crate) Vec<Vec<usize>>);

impl Confusion {
    /// Returns the share of correct predictions.
    pub(crate) fn accuracy(&self) -> f64 {
        let right: usize = (0..CLASSES).map(|i| self.0[i][i]).sum();
        right as f64 / self.0.iter().flatten().sum::<usize>().max(1) as f64
    }
}

/// Predicts the classes of all images.
pub(crate) fn test(
    gpu: &Gpu,
    net: &Sequential,
    parameters: &[f32],
    data: &Labelled,
) -> Result<(Confusion, f64), Failure> {
    let [n, h, w] = data.shape;
    let batch = n.clamp(1, 512);
    let plan = net.forward(batch).plan::<f32>(gpu)?;
    let parameters = gpu.upload(parameters)?;
    let batches = Batches::new(gpu, batch, h * w, 1)?;
    let logits = gpu.alloc::<f32>(batch * CLASSES)?;
    let mut confusion = Confusion(vec![vec![0; CLASSES]; CLASSES]);
    let start = Instant::now();
    let all: Vec<usize> = (0..n).collect();
    for part in all.chunks(batch) {
        batches.fill(data, part, batch)?;
        let mut rec = gpu.recorder();
        plan.record(&mut rec, batches.images.slice(..batch * h * w)?, &parameters, &logits)?;
        rec.submit()?;
        let logits = logits.read()?;
        for (row, &i) in logits.chunks(CLASSES).zip(part) {
            let best = (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0);
            confusion.0[usize::from(data.labels[i])][best] += 1;
        }
    }
    Ok((confusion, n as f64 / start.elapsed().as_secs_f64()))
}

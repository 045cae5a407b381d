//! Training and testing.

use super::common::Failure;
use super::models::{CLASSES, Model, Progress};
use std::f64::consts::PI;
use std::time::Instant;
use tilework::io::idx::Labelled;
use tilework::{Buffer, DType, Gpu, Plannable};

/// How the learning rate falls over all steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    Constant,
    /// Half a cosine, to 0.
    Cosine,
    /// A tenth after each third.
    Steps,
}

impl Schedule {
    pub(crate) const ALL: [Self; 3] = [Self::Constant, Self::Cosine, Self::Steps];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Cosine => "cosine",
            Self::Steps => "steps",
        }
    }

    /// Returns the share of the rate in step `step` of `steps`.
    pub(crate) fn share(self, step: usize, steps: usize) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Cosine => 0.5 + 0.5 * (PI * step as f64 / steps as f64).cos(),
            Self::Steps => 0.1f64.powi((3 * step / steps) as i32),
        }
    }
}

/// Options of training.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Training {
    pub(crate) model: Model,
    pub(crate) epochs: usize,
    pub(crate) batch: usize,
    pub(crate) rate: f32,
    pub(crate) schedule: Schedule,
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
    model: Model,
    images: Buffer<f32>,
    /// Words of targets.
    targets: Buffer<u32>,
    /// Elements of a batch, of both.
    len: [usize; 2],
    per_batch: [usize; 2],
}

impl Batches {
    fn new(gpu: &Gpu, model: Model, batch: usize, pixels: usize, most: usize) -> tilework::Result<Self> {
        let len = [batch * pixels, batch * model.target(0).len()];
        let per_batch = len.map(|n| n.next_multiple_of(STEP));
        let [images, targets] = per_batch.map(|n| n * most);
        Ok(Self { model, images: gpu.alloc(images)?, targets: gpu.alloc(targets)?, len, per_batch })
    }

    /// Fills the first batches with these images.
    fn fill(&self, data: &Labelled, order: &[usize], batch: usize) -> tilework::Result<usize> {
        let [_, h, w] = data.shape;
        let count = order.len().div_ceil(batch);
        let (mut images, mut targets) = (Vec::new(), Vec::new());
        for (k, part) in order.chunks(batch).enumerate() {
            for &i in part {
                images.extend(data.images[i * h * w..(i + 1) * h * w].iter().map(|p| brightness(*p)));
                targets.extend(self.model.target(data.labels[i]));
            }
            images.resize((k + 1) * self.per_batch[0], 0.0);
            targets.resize((k + 1) * self.per_batch[1], 0);
        }
        self.images.slice(..images.len())?.write(&images)?;
        self.targets.slice(..targets.len())?.write(&targets)?;
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

/// Trains a network from `from` on; returns where it ends, and the loss of each batch. Calls `progress` with the images
/// done and a batch's loss, and `done` after each epoch. Images that do not fill a batch are left out, different ones
/// in each epoch. The same options and data give the same bits, also from the middle on.
pub(crate) fn train(
    gpu: &Gpu, how: &Training, data: &Labelled, from: Progress, mut progress: impl FnMut(usize, f32),
    mut done: impl FnMut(&Epoch, &Progress) -> Result<(), Failure>,
) -> Result<(Progress, Vec<f32>), Failure> {
    let [n, h, w] = data.shape;
    let Training { model, batch, .. } = *how;
    if batch == 0 || n < batch {
        return Err(Failure::bad_input(format!("--batch {batch}: must be from 1 to the number of images, {n}")));
    }
    if !(how.rate >= 0.0 && how.rate.is_finite()) {
        return Err(Failure::bad_input(format!("--rate {}: must be a finite number from 0 on", how.rate)));
    }
    let plan = model.network(h, w).train(batch, model.optimizer()).plan::<f32>(gpu)?;
    let classes = plan.program().operands[1].dtype == DType::U32;
    let (parameters, state) = (gpu.upload(&from.parameters)?, gpu.upload(&from.state)?);
    let (per_epoch, mut now, mut all) = (n / batch, from, Vec::new());
    let at_once = (AT_ONCE / batch).clamp(1, per_epoch);
    let batches = Batches::new(gpu, model, batch, h * w, at_once)?;
    let (losses, rates) = (gpu.alloc_zeroed::<f32>(at_once * STEP)?, gpu.alloc::<f32>(at_once * STEP)?);
    for epoch in now.epochs..how.epochs {
        let order = shuffled(n, how.seed.wrapping_add(1 + epoch as u64));
        let (start, first, mut step) = (Instant::now(), all.len(), epoch * per_epoch);
        for part in order[..per_epoch * batch].chunks(at_once * batch) {
            let count = batches.fill(data, part, batch)?;
            let rate = |i: usize| how.schedule.share(step + i / STEP, how.epochs * per_epoch);
            let of_part = (0..count * STEP).map(|i| (f64::from(how.rate) * rate(i)) as f32);
            rates.slice(..count * STEP)?.write(&of_part.collect::<Vec<_>>())?;
            step += count;
            let mut rec = gpu.recorder();
            for i in 0..count {
                let [x, target] = [0, 1].map(|k| i * batches.per_batch[k]);
                let x = batches.images.slice(x..x + batches.len[0])?;
                let target = batches.targets.slice(target..target + batches.len[1])?;
                let call = plan.with_rate(rates.slice(i * STEP..i * STEP + 1)?);
                let loss = losses.slice(i * STEP..i * STEP + 1)?;
                if classes {
                    call.record(&mut rec, x, target, &parameters, &state, loss)?;
                } else {
                    call.record(&mut rec, x, target.bitcast::<f32>()?, &parameters, &state, loss)?;
                }
            }
            rec.submit()?;
            all.extend(losses.read()?.into_iter().step_by(STEP).take(count));
            progress(part.len(), all[all.len() - 1]);
        }
        let total: f64 = all[first..].iter().map(|l| f64::from(*l)).sum();
        let images_per_second = (per_epoch * batch) as f64 / start.elapsed().as_secs_f64();
        now = Progress { epochs: epoch + 1, parameters: parameters.read()?, state: state.read()? };
        done(&Epoch { loss: (total / per_epoch as f64) as f32, images_per_second }, &now)?;
    }
    Ok((now, all))
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
pub(crate) fn test(gpu: &Gpu, model: Model, parameters: &[f32], data: &Labelled) -> Result<(Confusion, f64), Failure> {
    let [n, h, w] = data.shape;
    let batch = n.clamp(1, 512);
    let plan = model.scores(h, w).forward(batch).plan::<f32>(gpu)?;
    let parameters = gpu.upload(parameters)?;
    let batches = Batches::new(gpu, model, batch, h * w, 1)?;
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

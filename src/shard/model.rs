//! Predicted times of schedules and algorithms: links by alpha-beta, devices by their roofline.

use super::schedule::{Step, TREE_BYTES};
use super::training::BUCKET_BYTES;
use crate::program::prelude::*;
use std::collections::VecDeque;

/// A link between any two ranks: a message of `b` bytes takes `latency + b / bandwidth` seconds. A rank sends its
/// messages one after another, at the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Seconds of an empty message.
    pub latency: f64,
    /// Bytes in a second, in each direction.
    pub bandwidth: f64,
}

impl Link {
    /// NVLink 4 between H100s: 3 us, 330 GB/s in one direction, which NCCL's all-reduce of 1 GiB reaches between two.
    pub const NVLINK4: Self = Self { latency: 3e-6, bandwidth: 330e9 };
    /// PCIe 5 x16 through the host's memory, down and up again: 20 us, 20 GB/s.
    pub const HOST: Self = Self { latency: 20e-6, bandwidth: 20e9 };
    /// InfiniBand NDR, 400 Gbit/s: 5 us, 45 GB/s.
    pub const NDR: Self = Self { latency: 5e-6, bandwidth: 45e9 };
}

/// Messages that a [`Model`] counted, and the time that it predicts for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Messages of all ranks.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Bytes sent by the rank that sends most.
    pub most_bytes: u64,
    /// Seconds until the last rank has finished.
    pub seconds: f64,
}

/// Ranks that move no data: each has a clock, messages are counted and take the time of the [`Link`].
///
/// ```
/// use tilework::shard::{Link, Model, schedule};
///
/// // An all-reduce of 1 GiB over 64 ranks sends 2 (p - 1) messages a rank.
/// let mut model = Model::new(64, Link::NVLINK4);
/// model.run(4, |rank| schedule::all_reduce(rank, 64, 1 << 28, 4))?;
/// assert_eq!(model.counted().messages, 64 * 2 * 63);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Model {
    link: Link,
    clocks: Vec<f64>,
    sent: Vec<u64>,
    messages: u64,
}

impl Model {
    /// Creates ranks whose clocks are at 0.
    pub fn new(size: usize, link: Link) -> Self {
        Self { link, clocks: vec![0.0; size], sent: vec![0; size], messages: 0 }
    }

    /// Advances the clock of a rank by work on its device.
    pub fn compute(&mut self, rank: usize, seconds: f64) {
        if let Some(clock) = self.clocks.get_mut(rank) {
            *clock += seconds;
        }
    }

    /// Runs the schedules of all ranks, on elements of `bytes` bytes.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if a rank waits for a message that nobody sends, a
    /// message has another length than the receiver expects, or one is left over.
    pub fn run(&mut self, bytes: usize, steps: impl Fn(usize) -> Vec<Step>) -> Result<()> {
        let size = self.clocks.len();
        let mut plans: Vec<_> = (0..size).map(|rank| VecDeque::from(steps(rank))).collect();
        // Messages under way from a rank to a rank: elements, and when they arrive.
        let mut links = vec![VecDeque::<(usize, f64)>::new(); size * size];
        loop {
            let mut moved = false;
            for rank in 0..size {
                while let Some(step) = plans[rank].front() {
                    match step {
                        Step::Send { to, range } => {
                            let sent = (range.len() * bytes) as u64;
                            self.clocks[rank] += sent as f64 / self.link.bandwidth;
                            let arrival = self.clocks[rank] + self.link.latency;
                            links[rank * size + to].push_back((range.len(), arrival));
                            self.sent[rank] += sent;
                            self.messages += 1;
                        }
                        Step::Receive { from, range, .. } => {
                            let Some((elements, arrival)) = links[from * size + rank].pop_front() else {
                                break;
                            };
                            if elements != range.len() {
                                return Err(err!(
                                    InvalidArgument,
                                    "model: rank {rank} expects {} elements from rank {from}, which sends {elements}",
                                    range.len()
                                ));
                            }
                            self.clocks[rank] = self.clocks[rank].max(arrival);
                        }
                    }
                    plans[rank].pop_front();
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        if let Some(rank) = plans.iter().position(|plan| !plan.is_empty()) {
            return Err(err!(InvalidArgument, "model: rank {rank} waits for ever at {:?}", plans[rank][0]));
        }
        if let Some(at) = links.iter().position(|link| !link.is_empty()) {
            let (from, to) = (at / size, at % size);
            return Err(err!(InvalidArgument, "model: rank {to} never takes a message of rank {from}"));
        }
        Ok(())
    }

    /// Returns the messages so far, and the time of the latest clock.
    pub fn counted(&self) -> Counted {
        Counted {
            messages: self.messages,
            bytes: self.sent.iter().sum(),
            most_bytes: self.sent.iter().copied().max().unwrap_or(0),
            seconds: self.clocks.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// Seconds of one device for some work: the larger of its arithmetic and its memory traffic.
fn roofline(device: &Ceilings, flop: f64, bytes: f64) -> f64 {
    (flop / device.fma_flop_per_second).max(bytes / device.copy_bytes_per_second)
}

/// Predicts the time of algorithms on `p` devices, in closed form. The guide `shards` derives the formulas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Rates of each device.
    pub device: Ceilings,
    /// The link between any two devices.
    pub link: Link,
}

impl Prediction {
    /// Returns the seconds of an all-reduce of `bytes` bytes.
    pub fn all_reduce(&self, p: usize, bytes: f64) -> f64 {
        let Link { latency, bandwidth } = self.link;
        if p < 2 {
            0.0
        } else if bytes <= TREE_BYTES as f64 {
            2.0 * steps_of_tree(p) * (latency + bytes / bandwidth)
        } else {
            2.0 * (p as f64 - 1.0) * (latency + bytes / p as f64 / bandwidth)
        }
    }

    /// Returns the seconds of an f32 product of two `n` x `n` matrices on a grid of devices. Blocks travel while the
    /// devices multiply.
    pub fn gemm(&self, p: usize, n: usize) -> f64 {
        let [rows, columns] = super::grid(p);
        let n = n as f64;
        let work = roofline(&self.device, 2.0 * n * n * n / p as f64, 12.0 * n * n / p as f64);
        let block = 4.0 * n * n / p as f64;
        let messages = (rows + columns - 2) as f64;
        let moved = messages * (self.link.latency + block / self.link.bandwidth);
        // The first product is of blocks that are there.
        let first = work / rows.max(columns) as f64;
        first + moved.max(work - first)
    }

    /// Returns the seconds of a sort of `n` keys of 4 bytes: four passes of a radix sort, the exchange, and the merges.
    pub fn sort(&self, p: usize, n: usize) -> f64 {
        let each = 4.0 * n as f64 / p as f64;
        // A pass reads and writes all keys; counting reads them once more.
        let sort = roofline(&self.device, 0.0, 9.0 * each);
        if p < 2 {
            return sort;
        }
        let others = (p as f64 - 1.0) * self.link.latency + each * (p as f64 - 1.0) / p as f64 / self.link.bandwidth;
        sort + others + roofline(&self.device, 0.0, 2.0 * each * steps_of_tree(p))
    }

    /// Returns the seconds of an iteration of conjugate gradients on a Poisson grid of `side`^3 points, cut into slabs.
    pub fn cg_iteration(&self, p: usize, side: usize) -> f64 {
        let rows = (side as f64).powi(3) / p as f64;
        // 7 entries of 8 bytes a row, and 14 passes over vectors: 3 of the product, 2 of the sums, 9 of the step.
        let work = roofline(&self.device, 0.0, rows * (7.0 * 8.0 + 4.0 * 14.0));
        if p < 2 {
            return work;
        }
        let halo = self.link.latency + 2.0 * 4.0 * (side as f64).powi(2) / self.link.bandwidth;
        // The halo travels during the product with the rank's own entries.
        let product = roofline(&self.device, 0.0, rows * 7.0 * 8.0);
        work + (halo - product).max(0.0) + self.all_reduce(p, 8.0)
    }

    /// Returns the seconds of a training step whose one-device time is `step` for all samples, with `parameters` f32
    /// parameters. The last bucket of gradients follows the backward pass; the others travel during it, two thirds of
    /// the step.
    pub fn train_step(&self, p: usize, step: f64, parameters: usize) -> f64 {
        let bytes = 4.0 * parameters as f64;
        let last = bytes.min(BUCKET_BYTES as f64);
        let (each, others) = (step / p as f64, self.all_reduce(p, bytes) - self.all_reduce(p, last));
        each + self.all_reduce(p, last) + (others - each * 2.0 / 3.0).max(0.0)
    }
}

fn steps_of_tree(p: usize) -> f64 {
    f64::from(p.next_power_of_two().trailing_zeros())
}

/// Runs a schedule of all ranks on fresh clocks.
///
/// # Errors
/// As [`Model::run`].
pub fn count(size: usize, link: Link, bytes: usize, steps: impl Fn(usize) -> Vec<Step>) -> Result<Counted> {
    let mut model = Model::new(size, link);
    model.run(bytes, steps)?;
    Ok(model.counted())
}

#[cfg(test)]
mod tests;

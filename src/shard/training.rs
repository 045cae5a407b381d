//! Training of one network on several devices, each with a part of the batch. Gradients are added up in buckets, while
//! the backward pass goes on to earlier layers.

use super::rank::Rank;
use super::transport::{Combine, Transport};
use crate::elementwise::Axpy;
use crate::gpu::{Buffer, Executable, Slice};
use crate::nn::{Optimizer, Sequential};
use crate::plan::{Plan, Plannable};
use crate::program::prelude::*;
use std::ops::Range;

/// Bytes of gradients that are added up at once, but for the last.
pub(super) const BUCKET_BYTES: usize = 4 << 20;
/// Elements at which tensors begin.
const TENSOR_STEP: usize = 64;
const GRADIENTS: usize = 4;

/// A part of the backward pass, and the gradients that no later part changes.
#[derive(Debug)]
struct GradientBucket {
    pass: Executable,
    /// The factor of this rank's gradients.
    weigh: Plan<Axpy, f32>,
    range: Range<usize>,
}

/// Cuts the dispatches of a gradient: each part ends where gradients of at least `bytes` are whole. Layers come from
/// last to first, so these lie behind those that follow.
fn cut_gradient(program: &Program, bytes: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let touched = |i: usize| {
        let bindings = program.dispatches[i].bindings.iter();
        let ends = bindings.filter(|b| b.resource == Resource::Operand(GRADIENTS)).map(|b| b.offset + b.size);
        ends.max().unwrap_or(0) as usize / size_of::<f32>()
    };
    let mut parts = Vec::new();
    let (mut end, last) = (program.operands[GRADIENTS].len, program.dispatches.len());
    // The gradients that change after each dispatch.
    let mut after = vec![0; last + 1];
    for i in (0..last).rev() {
        after[i] = after[i + 1].max(touched(i));
    }
    let mut first = 0;
    for (i, changes) in after.iter().enumerate().take(last).skip(1) {
        let begin = changes.next_multiple_of(TENSOR_STEP).min(end);
        if (end - begin) * size_of::<f32>() >= bytes && begin > 0 {
            parts.push((first..i, begin..end));
            (first, end) = (i, begin);
        }
    }
    parts.push((first..last, 0..end));
    parts
}

/// Makes scratch areas operands behind the others: parts of a program share what is in them.
fn with_scratch_as_operands(mut program: Program) -> Program {
    let before = program.operands.len();
    for bytes in std::mem::take(&mut program.scratch) {
        let len = bytes.div_ceil(4) as usize;
        program.operands.push(Operand { name: "scratch", dtype: DType::U32, len, access: Access::ReadWrite });
    }
    for dispatch in &mut program.dispatches {
        for binding in &mut dispatch.bindings {
            if let Resource::Scratch(i) = binding.resource {
                binding.resource = Resource::Operand(before + i);
            }
        }
        if let crate::program::Grid::Indirect { resource, .. } = &mut dispatch.grid
            && let Resource::Scratch(i) = *resource
        {
            *resource = Resource::Operand(before + i);
        }
    }
    program
}

/// Trains a [`Sequential`] on this rank's part of each batch; [`Rank::trainer`] makes one.
///
/// All ranks hold the same parameters. A step computes the gradients of the rank's samples, adds those of all ranks,
/// weighted by their numbers of samples, and lets the optimizer update the parameters, alike on all ranks. Gradients of
/// the last layers are there first: buckets of 4 MiB or more are under way while earlier layers run.
#[derive(Debug)]
pub struct Trainer<'r, L: Transport> {
    rank: &'r Rank<L>,
    buckets: Vec<GradientBucket>,
    update: Executable,
    /// The factor of this rank's loss.
    weigh_loss: Plan<Axpy, f32>,
    parameters: Buffer<f32>,
    gradients: Buffer<f32>,
    weighted: Buffer<f32>,
    /// What the passes leave for each other.
    between: Vec<Buffer<u32>>,
    loss: Buffer<f32>,
    weighted_loss: Buffer<f32>,
    /// The state of the optimizer, in the order of its operands after parameters and gradients.
    state: Vec<Buffer<f32>>,
}

impl<L: Transport> Rank<L> {
    /// Prepares training on `batch` samples of this rank, with the initial parameters of `seed`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::nn::{Adam, Sequential};
    /// use tilework::{prelude::*, shard};
    ///
    /// let net = Sequential::new([2, 1, 1]).linear(8).activation(Activation::Relu).linear(2);
    /// let gpus = vec![Gpu::new()?; 2];
    /// let losses = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let gpu = rank.gpu();
    ///     // One of two samples.
    ///     let sample = if rank.index() == 0 { [1.0f32, 0.0] } else { [0.0, 1.0] };
    ///     let (x, label) = (gpu.upload(&sample)?, gpu.upload(&[rank.index() as u32])?);
    ///     let mut trainer = rank.trainer(&net, 1, Adam::for_network(0.01), 1)?;
    ///     (0..100).map(|_| trainer.step(&x, &label)).collect::<tilework::Result<Vec<_>>>()
    /// })?;
    /// assert!(losses[0] == losses[1] && losses[0][99] < 0.5);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Precision
    /// Losses are those of one device with the whole batch, to rounding: sums have another order.
    ///
    /// # Errors
    /// See [`Rank`]; [`InvalidArgument`](ErrorKind::InvalidArgument) if a rank has no samples, or ranks pass
    /// different networks or seeds; [`Unsupported`](ErrorKind::Unsupported) for batch norms, whose statistics
    /// would be those of a rank, and a rate as an operand; those of [`Sequential::gradient`].
    pub fn trainer(
        &self, net: &Sequential, batch: usize, optimizer: impl Into<Optimizer>, seed: u64,
    ) -> Result<Trainer<'_, L>> {
        const OP: &str = "sharded training";
        let (gpu, n) = (self.gpu(), net.trained_len()?);
        if n != net.parameter_len()? {
            return Err(err!(
                Unsupported,
                "{OP}: the network has batch norms, whose statistics would be those of a rank's samples; leave them out"
            ));
        }
        self.agree(OP, &["the number of parameters", "the seed"], &[n as u64, seed])?;
        let batches = self.gather_equal(&[batch as u64])?;
        if let Some(rank) = batches.iter().position(|samples| *samples == 0) {
            return Err(err!(InvalidArgument, "{OP}: rank {rank} has no samples; use fewer ranks"));
        }
        let share = batch as f64 / batches.iter().sum::<u64>() as f64;
        let update = match optimizer.into() {
            Optimizer::Sgd(sgd) if !sgd.is_rated() => gpu.prepare_lowered(gpu.lower::<f32, _>(&sgd.of(n))?)?,
            Optimizer::Adam(adam) if !adam.is_rated() => gpu.prepare_lowered(gpu.lower::<f32, _>(&adam.of(n))?)?,
            _ => return Err(err!(Unsupported, "{OP}: a rate as an operand; give the rate to the optimizer")),
        };
        let gradient = with_scratch_as_operands(gpu.lower::<f32, _>(&net.gradient(batch))?);
        let between = gradient.operands.iter().skip(GRADIENTS + 1).map(|area| gpu.alloc_zeroed(area.len));
        let between = between.collect::<Result<_>>()?;
        let mut buckets = Vec::new();
        for (dispatches, range) in cut_gradient(&gradient, BUCKET_BYTES) {
            let dispatches = gradient.dispatches[dispatches].to_vec();
            let pass = gpu.prepare_lowered(Program { dispatches, ..gradient.clone() })?;
            let weigh = Axpy::new(range.len(), share).plan::<f32>(gpu)?;
            buckets.push(GradientBucket { pass, weigh, range });
        }
        // Devices may differ.
        let counts = self.gather_equal(&[buckets.len() as u64])?;
        let longest = counts.iter().copied().max().unwrap_or(1) as usize;
        let mut own = vec![0u64; longest];
        for (begin, bucket) in own.iter_mut().zip(&buckets) {
            *begin = bucket.range.start as u64;
        }
        self.agree(OP, &vec!["the begin of a bucket of gradients"; longest], &own)?;
        let states = update.program().operands.iter().skip(2);
        let state = states.map(|operand| gpu.alloc_zeroed(operand.len)).collect::<Result<_>>()?;
        Ok(Trainer {
            rank: self,
            buckets,
            update,
            weigh_loss: Axpy::new(1, share).plan::<f32>(gpu)?,
            parameters: gpu.upload(&net.initial(seed)?)?,
            gradients: gpu.alloc(n)?,
            weighted: self.alloc(n)?,
            between,
            loss: gpu.alloc(1)?,
            weighted_loss: self.alloc(1)?,
            state,
        })
    }
}

impl<L: Transport> Trainer<'_, L> {
    /// Makes a step on this rank's samples, and returns the loss of all ranks' samples before it.
    ///
    /// # Errors
    /// See [`Rank`]; those of recording [`Sequential::gradient`].
    pub fn step<'a, T: Element>(
        &mut self, x: impl Into<Slice<'a, f32>>, target: impl Into<Slice<'a, T>>,
    ) -> Result<f32> {
        let of = |buffer| Slice::<f32>::from(buffer).untyped();
        let mut operands = vec![x.into().untyped(), target.into().untyped()];
        operands.extend([&self.parameters, &self.loss, &self.gradients].map(of));
        operands.extend(self.between.iter().map(|area| Slice::from(area).untyped()));
        let (mut under_way, mut loss) = (Vec::new(), None);
        for GradientBucket { pass, weigh, range } in &self.buckets {
            let (own, weighted) = (self.gradients.slice(range.clone())?, self.weighted.slice(range.clone())?);
            let mut rec = self.rank.gpu().recorder();
            pass.record(&mut rec, &operands)?;
            rec.clear(weighted)?;
            weigh.record(&mut rec, own, weighted)?;
            // The loss is there before all gradients.
            if loss.is_none() {
                rec.clear(&self.weighted_loss)?;
                self.weigh_loss.record(&mut rec, &self.loss, &self.weighted_loss)?;
            }
            rec.submit()?;
            if loss.is_none() {
                loss = Some(self.weighted_loss.slice(..)?.start_read()?);
            }
            under_way.push(self.rank.begin_all_reduce(weighted, Combine::Sum)?);
        }
        under_way.into_iter().try_for_each(|started| self.rank.finish_all_reduce(started))?;
        let loss = loss.ok_or_else(|| err!(Shape, "sharded training: no gradients"))?;
        let mut rec = self.rank.gpu().recorder();
        let operands = [&self.parameters, &self.weighted].into_iter().chain(&self.state);
        let operands: Vec<_> = operands.map(|buffer| Slice::from(buffer).untyped()).collect();
        self.update.record(&mut rec, &operands)?;
        rec.submit()?;
        let loss = self.rank.all_reduce_few(loss, Combine::Sum)?;
        loss.first().copied().ok_or_else(|| err!(Shape, "sharded training: no loss"))
    }

    /// Returns the parameters, alike on all ranks: as [`Sequential`] lays them out.
    pub fn parameters(&self) -> &Buffer<f32> {
        &self.parameters
    }
}

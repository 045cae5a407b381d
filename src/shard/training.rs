//! Training of one network on several devices, each with a part of the batch.

use super::rank::Rank;
use super::transport::{Combine, Transport};
use crate::element::Element;
use crate::elementwise::Axpy;
use crate::error::{Result, err};
use crate::gpu::{Buffer, Executable, Slice};
use crate::nn::{Gradient, Optimizer, Sequential};
use crate::plan::{Plan, Plannable};

/// Trains a [`Sequential`] on this rank's part of each batch; [`Rank::trainer`] makes one.
///
/// All ranks hold the same parameters. A step computes the gradients of the rank's samples, adds those of all ranks,
/// weighted by their numbers of samples, and lets the optimizer update the parameters, alike on all ranks.
#[derive(Debug)]
pub struct Trainer<'r, L: Transport> {
    rank: &'r Rank<L>,
    gradient: Plan<Gradient, f32>,
    update: Executable,
    /// The factors of this rank's gradients and loss.
    weigh: Plan<Axpy, f32>,
    weigh_loss: Plan<Axpy, f32>,
    parameters: Buffer<f32>,
    gradients: Buffer<f32>,
    weighted: Buffer<f32>,
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
    /// See [`Rank`]; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if a rank has no samples, or ranks pass
    /// different networks or seeds; [`Unsupported`](crate::ErrorKind::Unsupported) for batch norms, whose statistics
    /// would be those of a rank, and a rate as an operand; those of [`Sequential::gradient`].
    pub fn trainer(
        &self,
        net: &Sequential,
        batch: usize,
        optimizer: impl Into<Optimizer>,
        seed: u64,
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
            Optimizer::Sgd(sgd) if !sgd.is_rated() => {
                gpu.prepare_lowered(gpu.lower::<f32, _>(&sgd.of(n))?)?
            }
            Optimizer::Adam(adam) if !adam.is_rated() => {
                gpu.prepare_lowered(gpu.lower::<f32, _>(&adam.of(n))?)?
            }
            _ => return Err(err!(Unsupported, "{OP}: a rate as an operand; give the rate to the optimizer")),
        };
        let states = update.program().operands.iter().skip(2);
        let state = states.map(|operand| gpu.alloc_zeroed(operand.len)).collect::<Result<_>>()?;
        Ok(Trainer {
            rank: self,
            gradient: net.gradient(batch).plan::<f32>(gpu)?,
            update,
            weigh: Axpy::new(n, share).plan::<f32>(gpu)?,
            weigh_loss: Axpy::new(1, share).plan::<f32>(gpu)?,
            parameters: gpu.upload(&net.initial(seed)?)?,
            gradients: gpu.alloc(n)?,
            weighted: self.alloc(n)?,
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
        &mut self,
        x: impl Into<Slice<'a, f32>>,
        target: impl Into<Slice<'a, T>>,
    ) -> Result<f32> {
        let (x, target) = (x.into(), target.into());
        let mut rec = self.rank.gpu().recorder();
        self.gradient.record(&mut rec, x, target, &self.parameters, &self.loss, &self.gradients)?;
        for (weigh, from, to) in [
            (&self.weigh, &self.gradients, &self.weighted),
            (&self.weigh_loss, &self.loss, &self.weighted_loss),
        ] {
            rec.clear(to)?;
            weigh.record(&mut rec, from, to)?;
        }
        rec.submit()?;
        self.rank.all_reduce_slice(&self.weighted, Combine::Sum)?;
        let loss = self.weighted_loss.slice(..)?.start_read()?;
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

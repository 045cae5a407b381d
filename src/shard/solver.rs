//! Conjugate gradients on shards.

use super::matrix::ShardedMatrix;
use super::rank::Rank;
use super::transport::{Combine, Transport};
use crate::elementwise::{Zip, ZipFn};
use crate::error::{Result, err};
use crate::gpu::{Buffer, Executable, Readback, Recorder, Slice};
use crate::plan::{Plan, Plannable};
use crate::sparse::shard_steps;
use crate::sparse::{Outcome, Solution};

/// Options of [`Rank::conjugate_gradient`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShardedCg {
    tolerance: f64,
    iterations: usize,
}

impl Default for ShardedCg {
    fn default() -> Self {
        Self { tolerance: 1e-5, iterations: 1000 }
    }
}

impl ShardedCg {
    /// Sets the residual at which to stop, relative to the norm of `b`; the default is 1e-5.
    #[must_use]
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets the maximum number of iterations; the default is 1000.
    #[must_use]
    pub fn iterations(mut self, iterations: usize) -> Self {
        self.iterations = iterations;
        self
    }

    fn check(&self) -> Result<()> {
        if !self.tolerance.is_finite() || self.tolerance < 0.0 {
            let tolerance = self.tolerance;
            return Err(err!(
                InvalidArgument,
                "sharded cg: the tolerance is {tolerance}; it must be 0 or more"
            ));
        }
        if self.iterations == 0 {
            return Err(err!(InvalidArgument, "sharded cg: 0 iterations; use 1 or more"));
        }
        Ok(())
    }
}

/// The vectors of a solve, and the programs between messages.
struct ShardWork<'a, L: Transport> {
    rank: &'a Rank<L>,
    a: &'a ShardedMatrix,
    dots: Executable,
    directions: Executable,
    residual: Executable,
    minus: Plan<Zip, f32>,
    /// The residual, with room for elements of other ranks.
    r: Buffer<f32>,
    w: Buffer<f32>,
    p: Buffer<f32>,
    s: Buffer<f32>,
    /// Sums of this rank.
    sums: Buffer<f32>,
    /// Beta, and alpha of the step before.
    turn: Buffer<f32>,
    alpha: Buffer<f32>,
}

impl<L: Transport> Rank<L> {
    /// Solves `A x = b` for a symmetric positive definite matrix in shards. `b` and `x` hold this rank's elements, in the
    /// order of its rows; `x` is the initial guess, then the solution. `progress` gets each iteration and its `|r| / |b|`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard, sparse::Csr};
    ///
    /// // Each of two ranks holds a row of [4 1; 1 3].
    /// let gpus = vec![Gpu::new()?; 2];
    /// let x = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let values = if rank.index() == 0 { vec![4.0, 1.0] } else { vec![1.0, 3.0] };
    ///     let rows = Csr { rows: 1, cols: 2, row_ptrs: vec![0, 2], col_idxs: vec![0, 1], values };
    ///     let (a, mut x) = (rank.matrix(&rows)?, [0.0]);
    ///     let b = [1.0 + rank.index() as f32];
    ///     rank.conjugate_gradient(&shard::ShardedCg::default(), &a, &b, &mut x, |_, _| ())?;
    ///     Ok(x[0])
    /// })?;
    /// assert!((x[0] - 1.0 / 11.0).abs() < 1e-5 && (x[1] - 7.0 / 11.0).abs() < 1e-5);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Precision
    /// f32 throughout, but for step lengths, which the host computes in f64. The curvature of a step follows from the
    /// one before, which loses a little accuracy against [`ConjugateGradient`](crate::ConjugateGradient): iterations may
    /// differ by a few. The residual of the result is computed anew as `b - A x`; if rounding has spoilt it, iterations go
    /// on from `x` as long as that helps.
    ///
    /// # Cost
    /// An iteration is a product, two all-reduces of a number each, and 13 passes over vectors. The device works on while
    /// the numbers travel: the sum of `r r` during the product, that of `w r` during 8 of the passes.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](crate::ErrorKind::Shape) for vectors of other lengths;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for invalid options. A solver that does not converge
    /// returns no error, but an [`Outcome`].
    ///
    /// # Algorithm
    /// A. T. Chronopoulos and C. W. Gear, 1989: `shaders/sparse/cg_shard_directions.wgsl`, `cg_shard_residual.wgsl`,
    /// `cg_shard_dots.wgsl`.
    pub fn conjugate_gradient(
        &self,
        options: &ShardedCg,
        a: &ShardedMatrix,
        b: &[f32],
        x: &mut [f32],
        mut progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        options.check()?;
        let gpu = self.gpu();
        let (b, own) = (gpu.upload(&a.permute(b)?)?, gpu.upload(&a.permute(x)?)?);
        let (tolerance, limit) = (options.tolerance.to_bits(), options.iterations as u64);
        self.agree("sharded cg", &["the tolerance's bits", "iterations"], &[tolerance, limit])?;
        let work = ShardWork::new(self, a)?;
        let scale = work.square_of(Slice::from(&b))?.sqrt();
        if scale == 0.0 {
            x.fill(0.0);
            return Ok(Solution {
                outcome: Outcome::Converged,
                iterations: 0,
                residual: 0.0,
                history: vec![0.0],
            });
        }
        let relative = |square: f64| square.sqrt() / scale;
        let mut solution =
            Solution { outcome: Outcome::Limit, iterations: 0, residual: 0.0, history: Vec::new() };
        let mut square = work.start(&b, &own)?;
        solution.residual = relative(square);
        solution.history.push(solution.residual);
        progress(0, solution.residual);
        loop {
            let first = solution.residual;
            let outcome = work.iterate(&own, square, options, relative, &mut solution, &mut progress)?;
            square = work.start(&b, &own)?;
            solution.residual = relative(square);
            solution.outcome = match outcome {
                _ if solution.residual <= 1.001 * options.tolerance => Outcome::Converged,
                Outcome::Converged
                    if solution.residual < 0.5 * first && solution.iterations < options.iterations =>
                {
                    continue;
                }
                Outcome::Converged => Outcome::Stagnated,
                other => other,
            };
            break;
        }
        x.copy_from_slice(&a.restore(&own.read()?)?);
        Ok(solution)
    }
}

impl<'a, L: Transport> ShardWork<'a, L> {
    fn new(rank: &'a Rank<L>, a: &'a ShardedMatrix) -> Result<Self> {
        let (gpu, n) = (rank.gpu(), a.rows());
        let profile = gpu.profile();
        Ok(Self {
            rank,
            a,
            dots: gpu.prepare_lowered(shard_steps::dots(n, profile)?)?,
            directions: gpu.prepare_lowered(shard_steps::directions(n, profile)?)?,
            residual: gpu.prepare_lowered(shard_steps::residual(n, profile)?)?,
            minus: Zip::new(ZipFn::Sub, n).plan::<f32>(gpu)?,
            r: rank.alloc(a.vector_len())?,
            w: gpu.alloc(n)?,
            p: gpu.alloc(n)?,
            s: gpu.alloc(n)?,
            sums: gpu.alloc(2)?,
            turn: gpu.alloc(2)?,
            alpha: gpu.alloc(1)?,
        })
    }

    fn own(&self) -> Result<Slice<'_, f32>> {
        self.r.slice(..self.a.rows())
    }

    /// Records this rank's sums of `r r` and `w r`.
    fn record_dots(&self, rec: &mut Recorder, r: Slice<'_, f32>, w: Slice<'_, f32>) -> Result<()> {
        self.dots.record(rec, &[r.untyped(), w.untyped(), Slice::from(&self.sums).untyped()])
    }

    /// Records `x += alpha p` of the step before, and the next `p` and `s`.
    fn record_directions(&self, rec: &mut Recorder, x: &Buffer<f32>) -> Result<()> {
        let [turn, w, p, s, x] = [&self.turn, &self.w, &self.p, &self.s, x].map(|v| Slice::from(v).untyped());
        self.directions.record(rec, &[turn, self.own()?.untyped(), w, p, s, x])
    }

    /// Records `r -= alpha s`, and this rank's sum of the new `r r`.
    fn record_residual(&self, rec: &mut Recorder) -> Result<()> {
        let [alpha, s, sums] = [&self.alpha, &self.s, &self.sums].map(|v| Slice::from(v).untyped());
        self.residual.record(rec, &[alpha, s, self.own()?.untyped(), sums])
    }

    /// Submits the copy of this rank's sums to the host.
    fn start_sums(&self) -> Result<Readback<f32>> {
        self.sums.slice(..)?.start_read()
    }

    /// Adds up the sums of all ranks.
    fn all_sums(&self, sums: Readback<f32>) -> Result<[f64; 2]> {
        let all = self.rank.all_reduce_few(sums, Combine::Sum)?;
        Ok([0, 1].map(|i| all.get(i).copied().map_or(f64::NAN, f64::from)))
    }

    /// The square of the norm of a vector of all ranks.
    fn square_of(&self, b: Slice<'_, f32>) -> Result<f64> {
        let mut rec = self.rank.gpu().recorder();
        self.record_dots(&mut rec, b, b)?;
        rec.submit()?;
        Ok(self.all_sums(self.start_sums()?)?[0])
    }

    /// Computes `r = b - A x`, and returns the square of its norm.
    fn start(&self, b: &Buffer<f32>, x: &Buffer<f32>) -> Result<f64> {
        let gpu = self.rank.gpu();
        let mut rec = gpu.recorder();
        rec.copy(x, self.own()?)?;
        let coming = self.rank.start_halo(self.a, &self.r, rec)?;
        self.rank.multiply_inner(self.a, &self.r, &self.w)?;
        self.rank.finish(coming)?;
        let mut rec = gpu.recorder();
        self.a.outer.record(&mut rec, &self.r, &self.w)?;
        self.minus.record(&mut rec, b, &self.w, self.own()?)?;
        [&self.p, &self.s].into_iter().try_for_each(|vector| rec.clear(vector))?;
        rec.submit()?;
        self.square_of(self.own()?)
    }

    /// Iterates from the residual in `r`, whose norm has this square, until there is an outcome.
    fn iterate(
        &self,
        x: &Buffer<f32>,
        mut square: f64,
        options: &ShardedCg,
        relative: impl Fn(f64) -> f64,
        solution: &mut Solution,
        progress: &mut impl FnMut(usize, f64),
    ) -> Result<Outcome> {
        let gpu = self.rank.gpu();
        let mut rec = gpu.recorder();
        // The square of the norm and the step length of the iteration before.
        let mut before: Option<[f64; 2]> = None;
        loop {
            let coming = self.rank.start_halo(self.a, &self.r, rec)?;
            let sums = before.map(|_| self.start_sums()).transpose()?;
            self.rank.multiply_inner(self.a, &self.r, &self.w)?;
            self.rank.finish(coming)?;
            if let Some(sums) = sums {
                square = self.all_sums(sums)?[0];
                solution.iterations += 1;
                solution.history.push(relative(square));
                progress(solution.iterations, relative(square));
            }
            let outcome = if !square.is_finite() {
                Some(Outcome::NotFinite)
            } else if relative(square) <= options.tolerance {
                Some(Outcome::Converged)
            } else {
                (solution.iterations >= options.iterations).then_some(Outcome::Limit)
            };
            let beta = before.map_or(0.0, |[square_before, _]| square / square_before);
            self.turn.slice(..)?.write_with_next(&[beta, before.map_or(0.0, |b| b[1])].map(|x| x as f32))?;
            rec = gpu.recorder();
            if let Some(outcome) = outcome {
                // The x of the last step is still to come.
                self.record_directions(&mut rec, x)?;
                rec.submit()?;
                return Ok(outcome);
            }
            self.a.outer.record(&mut rec, &self.r, &self.w)?;
            self.record_dots(&mut rec, self.own()?, Slice::from(&self.w))?;
            rec.submit()?;
            let sums = self.start_sums()?;
            let mut rec_directions = gpu.recorder();
            self.record_directions(&mut rec_directions, x)?;
            rec_directions.submit()?;
            let along = self.all_sums(sums)?[1];
            let curvature = before.map_or(along, |[_, alpha]| along - beta * square / alpha);
            if !curvature.is_finite() {
                return Ok(Outcome::NotFinite);
            }
            if curvature <= 0.0 {
                return Ok(Outcome::NotPositiveDefinite(curvature as f32));
            }
            let alpha = square / curvature;
            self.alpha.slice(..)?.write_with_next(&[alpha as f32])?;
            before = Some([square, f64::from(alpha as f32)]);
            rec = gpu.recorder();
            self.record_residual(&mut rec)?;
        }
    }
}

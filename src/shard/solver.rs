//! Conjugate gradients on shards.

use super::matrix::ShardedMatrix;
use super::rank::Rank;
use super::transport::{Combine, Transport};
use crate::elementwise::{Zip, ZipFn};
use crate::error::{Result, err};
use crate::gpu::{Buffer, Executable, Recorder, Slice};
use crate::plan::{Plan, Plannable};
use crate::sparse::shard_steps::{self, CURVATURE, FAILED, HEAD};
use crate::sparse::{Outcome, Solution};

/// Options of [`Rank::conjugate_gradient`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShardedCg {
    tolerance: f64,
    iterations: usize,
    check_every: usize,
}

impl Default for ShardedCg {
    fn default() -> Self {
        Self { tolerance: 1e-5, iterations: 1000, check_every: 16 }
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

    /// Sets how many iterations run before the host looks whether one failed, and, if the link reduces on the device,
    /// at the residual; the default is 16.
    #[must_use]
    pub fn check_every(mut self, iterations: usize) -> Self {
        self.check_every = iterations;
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
        if self.iterations == 0 || !(1..=4096).contains(&self.check_every) {
            return Err(err!(
                InvalidArgument,
                "sharded cg: {} iterations, {} between checks; use 1 or more, and 1 to 4096",
                self.iterations,
                self.check_every
            ));
        }
        Ok(())
    }
}

/// The vectors of a solve, and the programs between messages.
struct ShardWork<'a, L: Transport> {
    rank: &'a Rank<L>,
    a: &'a ShardedMatrix,
    dots: Executable,
    step: Executable,
    minus: Plan<Zip, f32>,
    /// The residual, with room for elements of other ranks.
    r: Buffer<f32>,
    w: Buffer<f32>,
    p: Buffer<f32>,
    s: Buffer<f32>,
    sums: Buffer<f32>,
    state: Buffer<f32>,
    check_every: usize,
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
    /// f32 throughout. Both sums of an iteration are reduced at once, which loses a little accuracy against
    /// [`ConjugateGradient`](crate::ConjugateGradient): iterations may differ by a few. The residual of the result is
    /// computed anew as `b - A x`; if rounding has spoilt it, iterations go on from `x` as long as that helps. If the link
    /// reduces on the device, `x` may be up to [`check_every`](ShardedCg::check_every) steps further than the iterations
    /// that are told.
    ///
    /// # Cost
    /// An iteration is a product, an all-reduce of two numbers, and 11 passes over vectors.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](crate::ErrorKind::Shape) for vectors of other lengths;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for invalid options. A solver that does not converge
    /// returns no error, but an [`Outcome`].
    ///
    /// # Algorithm
    /// A. T. Chronopoulos and C. W. Gear, 1989: `shaders/sparse/cg_shard_step.wgsl`, `cg_shard_scalars.wgsl`,
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
        let work = ShardWork::new(self, a, options.check_every)?;
        let scale = work.norm_of(Slice::from(&b))?;
        if scale == 0.0 {
            x.fill(0.0);
            return Ok(Solution {
                outcome: Outcome::Converged,
                iterations: 0,
                residual: 0.0,
                history: vec![0.0],
            });
        }
        let relative = |square: f32| f64::from(square).sqrt() / scale;
        let mut solution = Solution {
            outcome: Outcome::Limit,
            iterations: 0,
            residual: work.start(&b, &own)? / scale,
            history: Vec::new(),
        };
        solution.history.push(solution.residual);
        progress(0, solution.residual);
        loop {
            let first = solution.residual;
            let outcome = work.iterate(&own, options, relative, &mut solution, &mut progress)?;
            solution.residual = work.start(&b, &own)? / scale;
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
    fn new(rank: &'a Rank<L>, a: &'a ShardedMatrix, check_every: usize) -> Result<Self> {
        let (gpu, n) = (rank.gpu(), a.rows());
        let profile = gpu.profile();
        Ok(Self {
            rank,
            a,
            dots: gpu.prepare_lowered(shard_steps::dots(n, profile)?)?,
            step: gpu.prepare_lowered(shard_steps::step(n, check_every, profile)?)?,
            minus: Zip::new(ZipFn::Sub, n).plan::<f32>(gpu)?,
            r: rank.alloc(a.vector_len())?,
            w: gpu.alloc(n)?,
            p: gpu.alloc(n)?,
            s: gpu.alloc(n)?,
            sums: rank.alloc(2)?,
            state: gpu.alloc(HEAD + check_every)?,
            check_every,
        })
    }

    fn own(&self) -> Result<Slice<'_, f32>> {
        self.r.slice(..self.a.rows())
    }

    /// Records this rank's sums of `r r` and `w r`.
    fn record_dots(&self, rec: &mut Recorder, r: Slice<'_, f32>, w: Slice<'_, f32>) -> Result<()> {
        self.dots.record(rec, &[r.untyped(), w.untyped(), Slice::from(&self.sums).untyped()])
    }

    /// Adds up the sums of all ranks. Returns them if the host gets to know them.
    fn reduce_sums(&self) -> Result<Option<[f32; 2]>> {
        self.rank.all_reduce_few(&self.sums, Combine::Sum).map(|sums| sums.map(|s| [s[0], s[1]]))
    }

    /// The norm of a vector of all ranks.
    fn norm_of(&self, b: Slice<'_, f32>) -> Result<f64> {
        let mut rec = self.rank.gpu().recorder();
        self.record_dots(&mut rec, b, b)?;
        rec.submit()?;
        let known = self.reduce_sums()?;
        let square = known.map_or_else(|| Ok(self.sums.read()?[0]), |sums| Ok(sums[0]))?;
        Ok(f64::from(square).sqrt())
    }

    /// Computes `r = b - A x`, and returns its norm.
    fn start(&self, b: &Buffer<f32>, x: &Buffer<f32>) -> Result<f64> {
        let gpu = self.rank.gpu();
        let mut rec = gpu.recorder();
        rec.copy(x, self.own()?)?;
        self.rank.spmv_between(self.a, &self.r, &self.w, rec, |rec| {
            self.minus.record(rec, b, &self.w, self.own()?)?;
            [&self.p, &self.s, &self.state].into_iter().try_for_each(|vector| rec.clear(vector))
        })?;
        self.norm_of(self.own()?)
    }

    /// Iterates from the residual in `r` until there is an outcome.
    fn iterate(
        &self,
        x: &Buffer<f32>,
        options: &ShardedCg,
        relative: impl Fn(f32) -> f64,
        solution: &mut Solution,
        progress: &mut impl FnMut(usize, f64),
    ) -> Result<Outcome> {
        let gpu = self.rank.gpu();
        let (mut since, mut told) = (0, 0);
        let mut rec = gpu.recorder();
        // Takes the square of a residual; that before the first step is known.
        let mut tell = |square: f32| {
            let residual = relative(square);
            told += 1;
            if told > 1 {
                solution.iterations += 1;
                solution.history.push(residual);
                progress(solution.iterations, residual);
            }
            if !square.is_finite() {
                Some(Outcome::NotFinite)
            } else if residual <= options.tolerance {
                Some(Outcome::Converged)
            } else {
                (solution.iterations >= options.iterations).then_some(Outcome::Limit)
            }
        };
        loop {
            self.rank.spmv_between(self.a, &self.r, &self.w, rec, |rec| {
                self.record_dots(rec, self.own()?, Slice::from(&self.w))
            })?;
            let known = self.reduce_sums()?;
            rec = gpu.recorder();
            let mut outcome = None;
            if let Some([square, _]) = known {
                outcome = tell(square);
            }
            if outcome.is_none() {
                let vectors = [&self.sums, &self.state, &self.w].map(|v| Slice::from(v).untyped());
                let updated = [&self.p, &self.s, x].map(|v| Slice::from(v).untyped());
                self.step.record(&mut rec, &[&vectors[..], &[self.own()?.untyped()], &updated].concat())?;
                since += 1;
            }
            if outcome.is_none() && since % self.check_every == 0 {
                rec.submit()?;
                rec = gpu.recorder();
                let state = self.state.read()?;
                if known.is_none() {
                    outcome = state[HEAD..].iter().find_map(|square| tell(*square));
                }
                if outcome.is_none() && state[FAILED] > 0.0 {
                    let curvature = state[CURVATURE];
                    let finite = curvature.is_finite();
                    outcome = Some(if finite {
                        Outcome::NotPositiveDefinite(curvature)
                    } else {
                        Outcome::NotFinite
                    });
                }
            }
            if let Some(outcome) = outcome {
                return Ok(outcome);
            }
        }
    }
}

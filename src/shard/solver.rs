use super::matrix::ShardedMatrix;
use super::rank::Rank;
use super::transport::{Combine, Transport};
use crate::elementwise::{Zip, ZipFn};
use crate::error::{Result, err};
use crate::gpu::{Buffer, Executable, Recorder, Slice};
use crate::plan::{Plan, Plannable};
use crate::sparse::shard_steps::{self, state};
use crate::sparse::{Outcome, Solution};
use std::collections::VecDeque;

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
            return Err(err!(InvalidArgument, "sharded cg: the tolerance is {tolerance}; it must be 0 or more"));
        }
        if self.iterations == 0 {
            return Err(err!(InvalidArgument, "sharded cg: 0 iterations; use 1 or more"));
        }
        Ok(())
    }
}

/// Steps that are recorded at once where there is one rank. As many are under way while the host looks at the residuals
/// of those before; at the end they are in vain.
const STEPS: usize = 8;

/// A solve of a rank, on wgpu's side or on the link's stream.
pub(super) trait CgSteps {
    /// The square of the norm of the right-hand side.
    fn square_of_b(&self) -> Result<f64>;

    /// Computes the residual `b - A x`, and returns the square of its norm.
    fn start(&self) -> Result<f64>;

    /// Iterates from the residual until there is an outcome.
    fn iterate(&self, progress: &mut SolveProgress<'_>) -> Result<Outcome>;

    /// Returns `x`, in the order of the device.
    fn solution(&self) -> Result<Vec<f32>>;
}

/// The vectors of a solve, and the programs of a step.
struct ShardWork<'a, L: Transport> {
    rank: &'a Rank<L>,
    a: &'a ShardedMatrix,
    dots: Executable,
    total: Executable,
    update: Executable,
    minus: Plan<Zip, f32>,
    /// Finds the lengths of a step on the device: there is one rank.
    alone: Option<Executable>,
    b: Buffer<f32>,
    x: Buffer<f32>,
    /// The residual, with room for elements of other ranks.
    r: Buffer<f32>,
    w: Buffer<f32>,
    p: Buffer<f32>,
    s: Buffer<f32>,
    partials: Buffer<f32>,
    sums: Buffer<f32>,
    state: Buffer<u32>,
}

/// The lengths of steps, from the sums `r r` and `w r` of each.
#[derive(Default)]
struct Recurrence {
    /// `r r` and alpha of the step before.
    before: Option<[f64; 2]>,
}

impl Recurrence {
    /// Returns alpha and beta, or the curvature where there is no step.
    fn next(&mut self, [square, along]: [f64; 2]) -> std::result::Result<[f32; 2], f64> {
        let beta = self.before.map_or(0.0, |[before, _]| square / before);
        let curvature = self.before.map_or(along, |[_, alpha]| along - beta * square / alpha);
        if !curvature.is_finite() || curvature <= 0.0 {
            return Err(curvature);
        }
        let alpha = (square / curvature) as f32;
        self.before = Some([square, f64::from(alpha)]);
        Ok([alpha, beta as f32])
    }
}

pub(super) struct SolveProgress<'s> {
    options: &'s ShardedCg,
    scale: f64,
    solution: Solution,
    told: &'s mut dyn FnMut(usize, f64),
}

impl SolveProgress<'_> {
    /// The sum `r r` at which to stop.
    pub(super) fn threshold(&self) -> f64 {
        (self.options.tolerance * self.scale).powi(2)
    }

    fn relative(&self, square: f64) -> f64 {
        square.sqrt() / self.scale
    }

    /// Notes the residual after one more step.
    pub(super) fn note(&mut self, square: f64) {
        let relative = self.relative(square);
        self.solution.iterations += 1;
        self.solution.history.push(relative);
        (self.told)(self.solution.iterations, relative);
    }

    pub(super) fn left(&self) -> usize {
        self.options.iterations.saturating_sub(self.solution.iterations)
    }
}

impl<L: Transport> Rank<L> {
    /// Solves `A x = b` for a symmetric positive definite matrix in shards. `b` and `x` hold this rank's elements, in
    /// the order of its rows; `x` is the initial guess, then the solution. `progress` gets each iteration and its `|r|
    /// / |b|`.
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
    /// f32 throughout, but for step lengths that the host or NCCL's stream computes in f64. The curvature of a step
    /// follows from the one before, which loses a little accuracy against
    /// [`ConjugateGradient`](crate::ConjugateGradient): iterations may differ by a few. The residual of the result is
    /// computed anew as `b - A x`; if rounding has spoilt it, iterations go on from `x` as long as that helps.
    ///
    /// # Cost
    /// An iteration is a product, 11 passes over vectors, and one all-reduce of two numbers, for which the device
    /// waits. Elements of other ranks travel during the product. One rank needs no host: it records 8 iterations at a
    /// time.
    ///
    /// With `Nccl` everything stays on its stream, in CUDA's memory, which holds the matrix a second time: products add
    /// up on the way, so there are 9 passes, and no rank waits for its host. Matrices whose rows have very different
    /// lengths, and machines without NVRTC, go the other way.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](crate::ErrorKind::Shape) for vectors of other lengths;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for invalid options. A solver that does not converge
    /// returns no error, but an [`Outcome`].
    ///
    /// # Algorithm
    /// A. T. Chronopoulos and C. W. Gear, 1989: `shaders/sparse/cg_shard_step.wgsl`, `cg_shard_update.wgsl`,
    /// `cg_stream.cu`.
    pub fn conjugate_gradient(
        &self, options: &ShardedCg, a: &ShardedMatrix, b: &[f32], x: &mut [f32], mut progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        options.check()?;
        let (b, own) = (a.permute(b)?, a.permute(x)?);
        let (tolerance, limit) = (options.tolerance.to_bits(), options.iterations as u64);
        self.agree("sharded cg", &["the tolerance's bits", "iterations"], &[tolerance, limit])?;
        let work = self.cg_steps(a, &b, &own)?;
        drop((b, own));
        let scale = work.square_of_b()?.sqrt();
        let solution = Solution { outcome: Outcome::Limit, iterations: 0, residual: 0.0, history: Vec::new() };
        if scale == 0.0 {
            x.fill(0.0);
            return Ok(Solution { outcome: Outcome::Converged, history: vec![0.0], ..solution });
        }
        let mut progress = SolveProgress { options, scale, solution, told: &mut progress };
        let mut first = progress.relative(work.start()?);
        progress.solution.history.push(first);
        (progress.told)(0, first);
        loop {
            let outcome = work.iterate(&mut progress)?;
            let residual = progress.relative(work.start()?);
            let solution = &mut progress.solution;
            solution.residual = residual;
            solution.outcome = match outcome {
                _ if residual <= 1.001 * options.tolerance => Outcome::Converged,
                Outcome::Converged if residual < 0.5 * first && solution.iterations < options.iterations => {
                    first = residual;
                    continue;
                }
                Outcome::Converged => Outcome::Stagnated,
                other => other,
            };
            break;
        }
        x.copy_from_slice(&a.restore(&work.solution()?)?);
        Ok(progress.solution)
    }

    /// A solve for vectors in the order of the device.
    fn cg_steps<'a>(&'a self, a: &'a ShardedMatrix, b: &[f32], x: &[f32]) -> Result<Box<dyn CgSteps + 'a>> {
        #[cfg(all(feature = "nccl", target_os = "linux"))]
        if let (Some(nccl), Some(a)) = (self.transport().nccl(), &a.on_stream) {
            return Ok(Box::new(super::nccl::StreamWork::new(self, nccl, a, b, x)?));
        }
        Ok(Box::new(ShardWork::new(self, a, b, x)?))
    }
}

impl<'a, L: Transport> ShardWork<'a, L> {
    fn new(rank: &'a Rank<L>, a: &'a ShardedMatrix, b: &[f32], x: &[f32]) -> Result<Self> {
        let (gpu, n) = (rank.gpu(), a.rows());
        let profile = gpu.profile();
        Ok(Self {
            rank,
            a,
            dots: gpu.prepare_lowered(shard_steps::dots(n, profile)?)?,
            total: gpu.prepare_lowered(shard_steps::total(n, profile)?)?,
            update: gpu.prepare_lowered(shard_steps::update(n, profile)?)?,
            minus: Zip::new(ZipFn::Sub, n).plan::<f32>(gpu)?,
            alone: (rank.size() == 1).then(|| gpu.prepare_lowered(shard_steps::step(n, profile)?)).transpose()?,
            b: gpu.upload(b)?,
            x: gpu.upload(x)?,
            r: rank.alloc(a.vector_len())?,
            w: gpu.alloc(n)?,
            p: gpu.alloc(n)?,
            s: gpu.alloc(n)?,
            partials: gpu.alloc(shard_steps::partials_len(n))?,
            sums: gpu.alloc(2)?,
            state: gpu.alloc_zeroed(state::WORDS)?,
        })
    }

    fn own(&self) -> Result<Slice<'_, f32>> {
        self.r.slice(..self.a.rows())
    }

    /// Records this rank's partial sums of `r r` and `w r`.
    fn record_dots(&self, rec: &mut Recorder, r: Slice<'_, f32>, w: Slice<'_, f32>) -> Result<()> {
        self.dots.record(rec, &[r.untyped(), w.untyped(), Slice::from(&self.partials).untyped()])
    }

    fn record_total(&self, rec: &mut Recorder) -> Result<()> {
        self.total.record(rec, &[&self.partials, &self.sums].map(|v| Slice::from(v).untyped()))
    }

    /// Records a step with the lengths in the state.
    fn record_update(&self, rec: &mut Recorder) -> Result<()> {
        let [w, p, s, x] = [&self.w, &self.p, &self.s, &self.x].map(|v| Slice::from(v).untyped());
        self.update.record(rec, &[Slice::from(&self.state).untyped(), w, p, s, x, self.own()?.untyped()])
    }

    /// Adds up the sums of all ranks.
    fn all_sums(&self) -> Result<[f64; 2]> {
        let sums = self.sums.slice(..)?.start_read()?;
        let all = self.rank.all_reduce_few(sums, Combine::Sum)?;
        Ok([0, 1].map(|i| all.get(i).copied().map_or(f64::NAN, f64::from)))
    }

    /// The square of the norm of a vector of all ranks.
    fn square_of(&self, b: Slice<'_, f32>) -> Result<f64> {
        let mut rec = self.rank.gpu().recorder();
        self.record_dots(&mut rec, b, b)?;
        self.record_total(&mut rec)?;
        rec.submit()?;
        Ok(self.all_sums()?[0])
    }

    /// The device of the only rank goes on by itself.
    fn iterate_alone(&self, step: &Executable, progress: &mut SolveProgress<'_>) -> Result<Outcome> {
        /// Batches of steps under way.
        const AHEAD: usize = 2;
        let threshold = progress.threshold() as f32;
        let left = u32::try_from(progress.left()).unwrap_or(u32::MAX);
        self.state.slice(..8)?.write(&state::first(threshold, left))?;
        // The last sum follows the last step.
        let mut to_record = left as usize + 1;
        let mut seen = 0;
        let mut batches = VecDeque::new();
        loop {
            while batches.len() < AHEAD && to_record > 0 {
                let mut rec = self.rank.gpu().recorder();
                let steps = to_record.min(STEPS);
                for _ in 0..steps {
                    self.a.inner.record(&mut rec, &self.r, &self.w)?;
                    self.a.outer.record(&mut rec, &self.r, &self.w)?;
                    self.record_dots(&mut rec, self.own()?, Slice::from(&self.w))?;
                    step.record(
                        &mut rec,
                        &[Slice::from(&self.partials).untyped(), Slice::from(&self.state).untyped()],
                    )?;
                    self.record_update(&mut rec)?;
                }
                rec.submit()?;
                to_record -= steps;
                batches.push_back(self.state.slice(..)?.start_read()?);
            }
            let Some(batch) = batches.pop_front() else { return Ok(Outcome::Limit) };
            let words = batch.wait()?;
            let word = |at: usize| words.get(at).copied().unwrap_or(u32::MAX);
            let number = |at: usize| f32::from_bits(word(at));
            let sums = word(state::COUNT) as usize;
            for sum in seen..sums.min(seen + state::HISTORY_LEN) {
                // The first is that of the residual at the start.
                if sum > 0 {
                    progress.note(f64::from(number(state::HISTORY + sum % state::HISTORY_LEN)));
                }
            }
            seen = sums;
            match word(state::STATUS) {
                state::GOING => {}
                state::CONVERGED => return Ok(Outcome::Converged),
                state::LIMIT => return Ok(Outcome::Limit),
                state::NOT_POSITIVE => return Ok(Outcome::NotPositiveDefinite(number(state::CURVATURE))),
                _ => return Ok(Outcome::NotFinite),
            }
        }
    }

    /// The host adds up the sums of all ranks, and finds the lengths of a step.
    fn iterate_by_host(&self, progress: &mut SolveProgress<'_>) -> Result<Outcome> {
        let gpu = self.rank.gpu();
        let mut rec = gpu.recorder();
        let mut lengths = Recurrence::default();
        loop {
            let coming = self.rank.start_halo(self.a, &self.r, rec)?;
            self.rank.multiply_inner(self.a, &self.r, &self.w)?;
            self.rank.finish(coming)?;
            rec = gpu.recorder();
            self.a.outer.record(&mut rec, &self.r, &self.w)?;
            self.record_dots(&mut rec, self.own()?, Slice::from(&self.w))?;
            self.record_total(&mut rec)?;
            rec.submit()?;
            let sums = self.all_sums()?;
            if lengths.before.is_some() {
                progress.note(sums[0]);
            }
            if !sums[0].is_finite() {
                return Ok(Outcome::NotFinite);
            }
            if progress.relative(sums[0]) <= progress.options.tolerance {
                return Ok(Outcome::Converged);
            }
            if progress.left() == 0 {
                return Ok(Outcome::Limit);
            }
            let [alpha, beta] = match lengths.next(sums) {
                Ok(lengths) => lengths,
                Err(curvature) if curvature.is_finite() => {
                    return Ok(Outcome::NotPositiveDefinite(curvature as f32));
                }
                Err(_) => return Ok(Outcome::NotFinite),
            };
            self.state.slice(..3)?.write_with_next(&state::with_lengths(alpha, beta))?;
            rec = gpu.recorder();
            self.record_update(&mut rec)?;
        }
    }
}

impl<L: Transport> CgSteps for ShardWork<'_, L> {
    fn square_of_b(&self) -> Result<f64> {
        self.square_of(Slice::from(&self.b))
    }

    fn start(&self) -> Result<f64> {
        let gpu = self.rank.gpu();
        let mut rec = gpu.recorder();
        rec.copy(&self.x, self.own()?)?;
        let coming = self.rank.start_halo(self.a, &self.r, rec)?;
        self.rank.multiply_inner(self.a, &self.r, &self.w)?;
        self.rank.finish(coming)?;
        let mut rec = gpu.recorder();
        self.a.outer.record(&mut rec, &self.r, &self.w)?;
        self.minus.record(&mut rec, &self.b, &self.w, self.own()?)?;
        [&self.p, &self.s].into_iter().try_for_each(|vector| rec.clear(vector))?;
        rec.submit()?;
        self.square_of(self.own()?)
    }

    fn iterate(&self, progress: &mut SolveProgress<'_>) -> Result<Outcome> {
        match &self.alone {
            Some(step) => self.iterate_alone(step, progress),
            None => self.iterate_by_host(progress),
        }
    }

    fn solution(&self) -> Result<Vec<f32>> {
        self.x.read()
    }
}

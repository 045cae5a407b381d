//! Solvers: plans of many iterations that run until the device finds them done.

use super::DeviceMatrix;
use crate::gpu::{Buffer, Encoder, Executable, Gpu, RawSlice, Readback, Recorder, Slice, Waiting};
use crate::program::prelude::*;
use crate::sparse::solver::{HEAD, Phases, SolverState};
use crate::sparse::{ConjugateGradient, Outcome, PageRank, PowerIteration, Solution};
use std::collections::VecDeque;

/// A solver that is ready to run any number of times, on any matrix stored as planned.
/// [`Gpu::conjugate_gradient`], [`Gpu::power_iteration`] and [`Gpu::page_rank`] make one.
///
/// `solve` and `run` keep the device busy: while it runs one batch of iterations, the next is already submitted, and
/// the host reads the residual of the one before. To put iterations into an encoder of your own, call
/// [`record_start`](Self::record_start) and then [`record_steps`](Self::record_steps) any number of times. Iterations
/// after the last one needed change nothing, and [`progress`](Self::progress) returns the state.
///
/// # Errors
/// As [`Plan`](crate::Plan). A solver that does not converge returns no error, but an [`Outcome`].
#[derive(Debug)]
pub struct Solver<M> {
    method: M,
    engine: Engine,
}

impl Gpu {
    /// Plans a solver of linear systems: [`ConjugateGradient`].
    ///
    /// # Errors
    /// As [`ConjugateGradient`], of compiling its kernels, and [`Gpu::alloc`].
    pub fn conjugate_gradient(&self, method: &ConjugateGradient) -> Result<Solver<ConjugateGradient>> {
        let engine = Engine::new(self, method.phases(&self.planning_profile())?, 2)?;
        Ok(Solver { method: method.clone(), engine })
    }

    /// Plans a search for an eigenvalue: [`PowerIteration`].
    ///
    /// # Errors
    /// As [`PowerIteration`], of compiling its kernels, and [`Gpu::alloc`].
    pub fn power_iteration(&self, method: &PowerIteration) -> Result<Solver<PowerIteration>> {
        let engine = Engine::new(self, method.phases(&self.planning_profile())?, 1)?;
        Ok(Solver { method: method.clone(), engine })
    }

    /// Plans the ranking of a graph's nodes: [`PageRank`].
    ///
    /// # Errors
    /// As [`PageRank`], of compiling its kernels, and [`Gpu::alloc`].
    pub fn page_rank(&self, method: &PageRank) -> Result<Solver<PageRank>> {
        let given = 1 + usize::from(method.personalised);
        let engine = Engine::new(self, method.phases(&self.planning_profile())?, given)?;
        Ok(Solver { method: method.clone(), engine })
    }
}

/// Declares `record_start` and `record_steps` of a solver with these vectors.
macro_rules! recorders {
    ($this:ident, $matrix:ident, $($vector:ident: $ty:ty),+; $vectors:expr) => {
        /// Records the work before the first iteration. Errors: as [`Plan`](crate::Plan).
        pub fn record_start<'a, Enc: Encoder>(
            &$this,
            rec: &mut Recorder<Enc>,
            $matrix: &'a DeviceMatrix,
            $($vector: $ty),+
        ) -> Result<()> {
            $this.engine.record_start(rec, $matrix, &$vectors)
        }

        /// Records `check_every` iterations. Errors: as [`Plan`](crate::Plan).
        pub fn record_steps<'a, Enc: Encoder>(
            &$this,
            rec: &mut Recorder<Enc>,
            $matrix: &'a DeviceMatrix,
            $($vector: $ty),+
        ) -> Result<()> {
            $this.engine.record(&$this.engine.steps, rec, $matrix, &$vectors)
        }
    };
}

impl<M> Solver<M> {
    /// Returns the method and its options.
    pub fn method(&self) -> &M {
        &self.method
    }

    /// Returns the program of a batch of iterations, as plain data.
    pub fn program(&self) -> &Program {
        self.engine.steps.program()
    }

    /// Waits for submitted work. Returns the number of iterations done, and the outcome once there is one.
    ///
    /// # Errors
    /// Device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn progress(&self) -> Result<(usize, Option<Outcome>)> {
        Waiting::block(|waiting| self.progress_by(waiting))
    }

    /// As [`progress`](Self::progress), without blocking the thread.
    ///
    /// # Errors
    /// Device lost.
    pub async fn progress_async(&self) -> Result<(usize, Option<Outcome>)> {
        self.progress_by(Waiting::Yielding).await
    }

    async fn progress_by(&self, waiting: Waiting) -> Result<(usize, Option<Outcome>)> {
        let latest = self.engine.parse_state(&Slice::from(&self.engine.state).read_by(waiting).await?);
        Ok((latest.iterations, latest.outcome))
    }
}

impl Solver<ConjugateGradient> {
    /// Solves `A x = b` from the guess in `x`. `progress` gets each iteration and its `|r| / |b|`, in order, after
    /// the device has finished it.
    ///
    /// # Errors
    /// As [`Solver`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn solve<'a>(
        &self, a: &'a DeviceMatrix, b: impl Into<Slice<'a, f32>>, x: impl Into<Slice<'a, f32>>,
        progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        Waiting::block(|waiting| self.solve_by(waiting, a, b.into(), x.into(), progress))
    }

    /// As [`solve`](Self::solve), without blocking the thread.
    ///
    /// # Errors
    /// As [`Solver`].
    pub async fn solve_async<'a>(
        &self, a: &'a DeviceMatrix, b: impl Into<Slice<'a, f32>>, x: impl Into<Slice<'a, f32>>,
        progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        self.solve_by(Waiting::Yielding, a, b.into(), x.into(), progress).await
    }

    pub(super) async fn solve_by<'a>(
        &self, waiting: Waiting, a: &'a DeviceMatrix, b: Slice<'a, f32>, x: Slice<'a, f32>,
        mut progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        let vectors = [b.untyped(), x.untyped()];
        let engine = &self.engine;
        let mut history = Vec::new();
        let mut first = engine.begin(waiting, a, &vectors).await?;
        // Squares of norms. b's norm is unknown until the device has computed it.
        let norm = |square: f32, scale: f32| {
            let scale = if scale > 0.0 { f64::from(scale) } else { 1.0 };
            (f64::from(square) / scale).sqrt()
        };
        if first.outcome.is_none() && first.scale == 0.0 {
            // The solution is known.
            engine.clear(x)?;
            return Ok(Solution { outcome: Outcome::Converged, iterations: 0, residual: 0.0, history: vec![0.0] });
        }
        let scale = first.scale;
        history.push(norm(first.residual, scale));
        progress(0, history[0]);
        loop {
            let each = |iteration: usize, square: f32| {
                history.push(norm(square, scale));
                progress(iteration, norm(square, scale));
            };
            let last = engine.run(waiting, a, &vectors, first.clone(), each).await?;
            let outcome = last.outcome.unwrap_or(Outcome::Limit);
            let stuck = matches!(outcome, Outcome::NotFinite | Outcome::Diagonal(_));
            let again = if stuck { last.clone() } else { engine.again(waiting, a, &vectors).await? };
            let residual = norm(again.residual, scale);
            let ended = outcome == Outcome::Converged;
            let small = self.method.meets(residual, f64::from(scale).sqrt());
            if ended && !small && again.outcome.is_none() && again.residual < 0.25 * first.residual {
                // The recurrence's residual has drifted: continue from the true one.
                first = again;
                continue;
            }
            let outcome = match again.outcome {
                _ if small && (ended || matches!(outcome, Outcome::Limit | Outcome::TooSmall)) => Outcome::Converged,
                Some(Outcome::Limit) if ended => Outcome::Limit,
                _ if ended => Outcome::Stagnated,
                _ => outcome,
            };
            return Ok(Solution { outcome, iterations: last.iterations, residual, history });
        }
    }

    recorders!(self, a, b: impl Into<Slice<'a, f32>>, x: impl Into<Slice<'a, f32>>;
        [b.into().untyped(), x.into().untyped()]);
}

impl Solver<PowerIteration> {
    /// Finds the eigenvalue and its eigenvector, starting from `x`. `progress` gets each iteration and its residual, in
    /// order, after the device has finished it.
    ///
    /// # Errors
    /// As [`Solver`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run<'a>(
        &self, a: &'a DeviceMatrix, x: impl Into<Slice<'a, f32>>, progress: impl FnMut(usize, f64),
    ) -> Result<(f32, Solution)> {
        Waiting::block(|waiting| self.run_by(waiting, a, x.into(), progress))
    }

    /// As [`run`](Self::run), without blocking the thread.
    ///
    /// # Errors
    /// As [`Solver`].
    pub async fn run_async<'a>(
        &self, a: &'a DeviceMatrix, x: impl Into<Slice<'a, f32>>, progress: impl FnMut(usize, f64),
    ) -> Result<(f32, Solution)> {
        self.run_by(Waiting::Yielding, a, x.into(), progress).await
    }

    pub(super) async fn run_by<'a>(
        &self, waiting: Waiting, a: &'a DeviceMatrix, x: Slice<'a, f32>, progress: impl FnMut(usize, f64),
    ) -> Result<(f32, Solution)> {
        let (last, solution) = self.engine.whole(waiting, a, &[x.untyped()], progress).await?;
        Ok((last.value, solution))
    }

    recorders!(self, a, x: impl Into<Slice<'a, f32>>; [x.into().untyped()]);
}

impl Solver<PageRank> {
    /// Computes the ranks into `x`. `start` is the restart distribution, if planned as personalised.
    /// `progress` gets each iteration and the change of the ranks, in order, after the device has finished it.
    ///
    /// # Errors
    /// As [`Solver`]; [`InvalidArgument`](ErrorKind::InvalidArgument) for a `start` that was not planned, or
    /// a planned one that is missing.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run<'a>(
        &self, t: &'a DeviceMatrix, start: Option<Slice<'a, f32>>, x: impl Into<Slice<'a, f32>>,
        progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        Waiting::block(|waiting| self.run_by(waiting, t, start, x.into(), progress))
    }

    /// As [`run`](Self::run), without blocking the thread.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_async<'a>(
        &self, t: &'a DeviceMatrix, start: Option<Slice<'a, f32>>, x: impl Into<Slice<'a, f32>>,
        progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        self.run_by(Waiting::Yielding, t, start, x.into(), progress).await
    }

    pub(super) async fn run_by<'a>(
        &self, waiting: Waiting, t: &'a DeviceMatrix, start: Option<Slice<'a, f32>>, x: Slice<'a, f32>,
        progress: impl FnMut(usize, f64),
    ) -> Result<Solution> {
        Ok(self.engine.whole(waiting, t, &self.vectors(start, x)?, progress).await?.1)
    }

    recorders!(self, t, start: Option<Slice<'a, f32>>, x: impl Into<Slice<'a, f32>>; self.vectors(start, x.into())?);

    fn vectors<'a>(&self, start: Option<Slice<'a, f32>>, x: Slice<'a, f32>) -> Result<Vec<RawSlice<'a>>> {
        if start.is_some() != self.method.personalised {
            return Err(err!(
                InvalidArgument,
                "page-rank: the vector `start` {}",
                if start.is_some() {
                    "was not planned; plan with `personalised()`, or leave it out"
                } else {
                    "is missing; pass it, or plan without `personalised()`"
                }
            ));
        }
        Ok(start.iter().map(Slice::untyped).chain([x.untyped()]).collect())
    }
}

/// The programs of a solver, and its state on the device between them.
#[derive(Debug)]
struct Engine {
    gpu: Gpu,
    start: Executable,
    again: Option<Executable>,
    steps: Executable,
    state: Buffer<u32>,
    partials: Buffer<f32>,
    work: Vec<Buffer<f32>>,
    n: usize,
    /// Number of operands after the arrays of the matrix.
    others: usize,
}

impl Engine {
    /// Takes `given` vectors from the caller and allocates the others.
    fn new(gpu: &Gpu, phases: Phases, given: usize) -> Result<Self> {
        let Phases { start, again, steps, n, lists } = phases;
        let lens: Vec<usize> = steps.operands.iter().skip(lists).map(|o| o.len).collect();
        let len = |i: usize| lens.get(i).copied().unwrap_or(0);
        let work = lens.iter().skip(2 + given).map(|&len| gpu.alloc(len)).collect::<Result<_>>()?;
        Ok(Self {
            gpu: gpu.clone(),
            start: gpu.prepare_lowered(start)?,
            again: again.map(|program| gpu.prepare_lowered(program)).transpose()?,
            steps: gpu.prepare_lowered(steps)?,
            state: gpu.alloc(len(0))?,
            partials: gpu.alloc(len(1))?,
            work,
            n,
            others: lens.len(),
        })
    }

    fn record<Enc: Encoder>(
        &self, what: &Executable, rec: &mut Recorder<Enc>, a: &DeviceMatrix, vectors: &[RawSlice<'_>],
    ) -> Result<()> {
        a.check_format(what.program(), self.others)?;
        let sums = [Slice::from(&self.state).untyped(), Slice::from(&self.partials).untyped()];
        let work: Vec<_> = self.work.iter().map(|buffer| Slice::from(buffer).untyped()).collect();
        let lists = a.slices_for(what.gpu(), what.program())?;
        let operands = [lists.as_slice(), &sums, vectors, &work].concat();
        what.record(rec, &operands)
    }

    fn record_start<Enc: Encoder>(
        &self, rec: &mut Recorder<Enc>, a: &DeviceMatrix, vectors: &[RawSlice<'_>],
    ) -> Result<()> {
        rec.clear(&self.state)?;
        self.record(&self.start, rec, a, vectors)
    }

    fn parse_state(&self, words: &[u32]) -> SolverState {
        SolverState::of(words, self.n)
    }

    fn submit(&self, record: impl FnOnce(&mut Recorder) -> Result<()>) -> Result<()> {
        let mut rec = self.gpu.recorder();
        record(&mut rec)?;
        rec.submit()
    }

    /// Reads the state after everything submitted so far.
    fn snapshot(&self) -> Result<Readback<u32>> {
        Slice::from(&self.state).start_read()
    }

    async fn begin(&self, waiting: Waiting, a: &DeviceMatrix, vectors: &[RawSlice<'_>]) -> Result<SolverState> {
        self.submit(|rec| self.record_start(rec, a, vectors))?;
        Ok(self.parse_state(&self.snapshot()?.wait_by(waiting).await?))
    }

    /// Recomputes the residual and continues from it.
    async fn again(&self, waiting: Waiting, a: &DeviceMatrix, vectors: &[RawSlice<'_>]) -> Result<SolverState> {
        let what = self.again.as_ref().unwrap_or(&self.start);
        self.submit(|rec| self.record(what, rec, a, vectors))?;
        Ok(self.parse_state(&self.snapshot()?.wait_by(waiting).await?))
    }

    fn clear(&self, x: Slice<'_, f32>) -> Result<()> {
        self.submit(|rec| rec.clear(x))
    }

    /// Iterates from a state until there is an outcome, and calls `each` for every iteration.
    async fn run(
        &self, waiting: Waiting, a: &DeviceMatrix, vectors: &[RawSlice<'_>], mut latest: SolverState,
        mut each: impl FnMut(usize, f32),
    ) -> Result<SolverState> {
        /// Batches under way: one on the device and one queued.
        const AHEAD: usize = 2;
        let slots = self.state.len() - HEAD;
        let mut under_way = VecDeque::new();
        while latest.outcome.is_none() {
            while under_way.len() < AHEAD {
                self.submit(|rec| self.record(&self.steps, rec, a, vectors))?;
                under_way.push_back(self.snapshot()?);
            }
            let Some(oldest) = under_way.pop_front() else { break };
            let words = oldest.wait_by(waiting).await?;
            let now = self.parse_state(&words);
            for iteration in latest.iterations..now.iterations {
                each(iteration + 1, f32::from_bits(words[HEAD + iteration % slots]));
            }
            latest = now;
        }
        Ok(latest)
    }

    /// Runs all of a method that has no residual before its first iteration.
    async fn whole(
        &self, waiting: Waiting, a: &DeviceMatrix, vectors: &[RawSlice<'_>], mut progress: impl FnMut(usize, f64),
    ) -> Result<(SolverState, Solution)> {
        let mut history = Vec::new();
        let first = SolverState { outcome: None, ..SolverState::of(&[], self.n) };
        self.submit(|rec| self.record_start(rec, a, vectors))?;
        let each = |iteration: usize, residual: f32| {
            history.push(f64::from(residual));
            progress(iteration, f64::from(residual));
        };
        let last = self.run(waiting, a, vectors, first, each).await?;
        let outcome = last.outcome.unwrap_or(Outcome::Limit);
        let residual = history.last().copied().unwrap_or(0.0);
        Ok((last.clone(), Solution { outcome, iterations: last.iterations, residual, history }))
    }
}

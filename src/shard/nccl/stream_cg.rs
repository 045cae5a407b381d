//! Conjugate gradients of ranks whose link is a stream: vectors, products, messages and sums stay on it.

use super::Nccl;
use crate::cuda::sparse::cg_stream::{self, SLICE, SlicedRows, state};
use crate::cuda::{CudaBuffer, CudaEvent, CudaExecutable, CudaGpu, CudaProgram, CudaStream, PinnedBuffer};
use crate::program::prelude::*;
use crate::shard::Rank;
use crate::shard::solver::{CgSteps, SolveProgress};
use crate::shard::transport::Transport;
use crate::sparse::{Csr, Outcome};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// Steps that are put on the stream at once. As many more are under way while the host looks at their residuals; at the
/// end they are in vain.
const STEPS: usize = 8;
/// Batches of steps under way.
const AHEAD: usize = 2;
/// A matrix whose slices have more slots than this many times its entries stays with wgpu.
const MAX_PADDING: usize = 2;

/// Rows in slices, on the device.
struct SlicedMatrix {
    rows: SlicedRows,
    slices: CudaBuffer<u32>,
    columns: CudaBuffer<u32>,
    values: CudaBuffer<f32>,
}

/// A rank's rows on CUDA's side, and what it exchanges in a product.
pub(in crate::shard) struct StreamMatrix {
    rows: usize,
    /// Elements of a vector, those of other ranks included.
    vector: usize,
    inner: SlicedMatrix,
    outer: SlicedMatrix,
    indices: CudaBuffer<u32>,
    /// For each rank, its elements among those that are sent, and among those that come behind the rows.
    sends: Vec<Range<usize>>,
    receives: Vec<Range<usize>>,
}

impl std::fmt::Debug for StreamMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamMatrix({} rows, vectors of {})", self.rows, self.vector)
    }
}

impl SlicedMatrix {
    /// Returns `None` for rows of very different lengths, of which slices would be mostly padding.
    fn new(gpu: &CudaGpu, first: usize, matrix: &Csr) -> Result<Option<Self>> {
        let slots: usize = matrix
            .row_ptrs
            .windows(2)
            .map(|row| (row[1] - row[0]) as usize)
            .collect::<Vec<_>>()
            .chunks(SLICE)
            .map(|lens| SLICE * lens.iter().max().copied().unwrap_or(0))
            .sum();
        let small = SLICE * SLICE;
        if slots > MAX_PADDING * matrix.col_idxs.len() + small {
            return Ok(None);
        }
        let sliced = matrix.to_sell(SLICE, 1)?;
        Ok(Some(Self {
            rows: SlicedRows { first, rows: matrix.rows, slots },
            slices: gpu.upload(&sliced.slice_ptrs)?,
            columns: gpu.upload(&sliced.col_idxs)?,
            values: gpu.upload(&sliced.values)?,
        }))
    }
}

impl Nccl {
    /// Uploads a rank's rows to CUDA's side: those that need no element of another rank, then the others. `sent` lists
    /// the elements that others need. `None` if the solver cannot run there.
    pub(in crate::shard) fn stream_matrix(
        &self, [inner, outer]: [&Csr; 2], sent: &[u32], sends: Vec<Range<usize>>, receives: Vec<Range<usize>>,
    ) -> Result<Option<StreamMatrix>> {
        let gpu = self.bridge.stream().gpu();
        if gpu.nvrtc().is_err() {
            return Ok(None);
        }
        let (Some(first), Some(last)) = (SlicedMatrix::new(gpu, 0, inner)?, SlicedMatrix::new(gpu, inner.rows, outer)?)
        else {
            return Ok(None);
        };
        Ok(Some(StreamMatrix {
            rows: inner.rows + outer.rows,
            vector: outer.cols,
            inner: first,
            outer: last,
            indices: gpu.upload(sent)?,
            sends,
            receives,
        }))
    }
}

struct StreamPrograms {
    inner: CudaExecutable,
    outer: CudaExecutable,
    gather: CudaExecutable,
    start: CudaExecutable,
    total_of_start: CudaExecutable,
    total: CudaExecutable,
    step: CudaExecutable,
    update: CudaExecutable,
}

pub(in crate::shard) struct StreamWork<'a, L: Transport> {
    rank: &'a Rank<L>,
    nccl: &'a Nccl,
    a: &'a StreamMatrix,
    programs: StreamPrograms,
    /// Products and sums run on `main`; elements of other ranks travel on `side`.
    main: CudaStream,
    side: CudaStream,
    b: CudaBuffer<f32>,
    x: CudaBuffer<f32>,
    /// The residual, with room for elements of other ranks.
    r: CudaBuffer<f32>,
    w: CudaBuffer<f32>,
    p: CudaBuffer<f32>,
    s: CudaBuffer<f32>,
    sent: CudaBuffer<f32>,
    /// Pairs of partial sums of a product, and of the start.
    partials: CudaBuffer<u64>,
    partials_of_start: CudaBuffer<u64>,
    total: CudaBuffer<u64>,
    state: CudaBuffer<u64>,
}

/// States of a batch of steps on their way to the host.
struct StateBatch {
    words: PinnedBuffer<u64>,
    there: CudaEvent,
}

impl<'a, L: Transport> StreamWork<'a, L> {
    pub(in crate::shard) fn new(
        rank: &'a Rank<L>, nccl: &'a Nccl, a: &'a StreamMatrix, b: &[f32], x: &[f32],
    ) -> Result<Self> {
        let main = nccl.bridge.stream().clone();
        let gpu = main.gpu().clone();
        let profile = gpu.profile();
        let (n, vector) = (a.rows, a.vector);
        let [inner, outer] = [&a.inner, &a.outer].map(|part| part.rows.parts(profile));
        let parts = inner + outer;
        let of_start = cg_stream::parts_of(n, profile);
        let ready = |program: CudaProgram| gpu.prepare_lowered(program);
        let sizes = [vector, n, parts as usize];
        let programs = StreamPrograms {
            inner: ready(cg_stream::product(a.inner.rows, sizes, 0, profile)?)?,
            outer: ready(cg_stream::product(a.outer.rows, sizes, inner, profile)?)?,
            gather: ready(cg_stream::gather(vector, a.indices.len())?)?,
            start: ready(cg_stream::start(n, vector, profile)?)?,
            total_of_start: ready(cg_stream::total(of_start))?,
            total: ready(cg_stream::total(parts))?,
            step: ready(cg_stream::step())?,
            update: ready(cg_stream::update(n, vector)?)?,
        };
        let work = Self {
            rank,
            nccl,
            a,
            programs,
            side: gpu.stream()?,
            b: gpu.upload(b)?,
            x: gpu.upload(x)?,
            r: gpu.alloc(vector)?,
            w: gpu.alloc(n)?,
            p: gpu.alloc(n)?,
            s: gpu.alloc(n)?,
            sent: gpu.alloc(a.indices.len())?,
            partials: gpu.alloc(2 * parts as usize)?,
            partials_of_start: gpu.alloc(2 * of_start as usize)?,
            total: gpu.alloc(2)?,
            state: gpu.alloc(state::WORDS)?,
            main,
        };
        // Elements of other ranks count as written before the first arrive.
        work.main.clear(&work.r)?;
        Ok(work)
    }

    /// Waits for an event. A rank that is late or gone leaves NCCL's kernels waiting: they end with the group.
    fn wait(&self, event: &CudaEvent) -> Result<()> {
        let waited = self.nccl.wait_until_done(event);
        if waited.is_err() {
            self.nccl.communicator.abort()?;
        }
        waited
    }

    fn run(&self, program: &CudaExecutable, operands: &[crate::cuda::RawCudaSlice<'_>]) -> Result<()> {
        program.run(&self.main, operands)
    }

    fn multiply_part(&self, program: &CudaExecutable, part: &SlicedMatrix) -> Result<()> {
        let operands =
            [raw(&part.slices), raw(&part.columns), raw(&part.values), raw(&self.r), raw(&self.w), raw(&self.partials)];
        self.run(program, &operands)
    }

    /// `w = A r` with partial sums. Elements of other ranks travel during the product of the rows that need none.
    fn multiply(&self) -> Result<()> {
        let bytes = size_of::<f32>();
        let address = |base: u64, range: &Range<usize>| base + (range.start * bytes) as u64;
        let of = |ranges: &[Range<usize>], base: u64| -> Vec<(usize, u64, usize)> {
            let there = ranges.iter().enumerate().filter(|(_, range)| !range.is_empty());
            there.map(|(rank, range)| (rank, address(base, range), range.len() * bytes)).collect()
        };
        let sends = of(&self.a.sends, self.sent.address());
        let receives = of(&self.a.receives, self.r.address() + (self.a.rows * bytes) as u64);
        let travel = !sends.is_empty() || !receives.is_empty();
        if travel {
            let start = Instant::now();
            self.side.wait_for(&self.main.record()?)?;
            let gather = [raw(&self.r), raw(&self.a.indices), raw(&self.sent)];
            self.programs.gather.run(&self.side, &gather)?;
            self.nccl.communicator.exchange(&self.side, &sends, &receives)?;
            self.rank.add(sends.len(), sends.iter().map(|send| send.2).sum(), start);
        }
        self.multiply_part(&self.programs.inner, &self.a.inner)?;
        if travel {
            self.main.wait_for(&self.side.record()?)?;
        }
        self.multiply_part(&self.programs.outer, &self.a.outer)
    }

    fn add_up(&self, program: &CudaExecutable, partials: &CudaBuffer<u64>) -> Result<()> {
        self.run(program, &[raw(partials), raw(&self.total)])?;
        if self.rank.size() > 1 {
            let start = Instant::now();
            self.nccl.communicator.add_doubles(&self.main, self.total.address(), self.total.len())?;
            self.rank.add(1, self.total.len() * size_of::<f64>(), start);
        }
        Ok(())
    }

    /// `r = b - w`, and the square of its norm.
    fn restart(&self) -> Result<f64> {
        let [b, w, r, p, s] = [&self.b, &self.w, &self.r, &self.p, &self.s].map(raw);
        self.run(&self.programs.start, &[b, w, r, p, s, raw(&self.partials_of_start)])?;
        self.add_up(&self.programs.total_of_start, &self.partials_of_start)?;
        self.wait(&self.main.record()?)?;
        self.total.read()?.first().map_or(Ok(f64::NAN), |bits| Ok(f64::from_bits(*bits)))
    }

    fn batch(&self, steps: usize) -> Result<StateBatch> {
        // All ranks are there before any waits for messages on its stream.
        self.rank.barrier()?;
        for _ in 0..steps {
            self.multiply()?;
            self.add_up(&self.programs.total, &self.partials)?;
            self.run(&self.programs.step, &[raw(&self.total), raw(&self.state)])?;
            let [w, p, s, x, r] = [&self.w, &self.p, &self.s, &self.x, &self.r].map(raw);
            self.run(&self.programs.update, &[raw(&self.state), w, p, s, x, r])?;
        }
        let words = self.main.gpu().pinned(state::WORDS)?;
        self.main.download(&self.state, &words)?;
        Ok(StateBatch { words, there: self.main.record()? })
    }
}

fn raw<T: Element>(buffer: &CudaBuffer<T>) -> crate::cuda::RawCudaSlice<'_> {
    crate::cuda::CudaSlice::from(buffer).untyped()
}

impl<L: Transport> CgSteps for StreamWork<'_, L> {
    fn square_of_b(&self) -> Result<f64> {
        self.rank.barrier()?;
        self.main.clear(&self.w)?;
        self.restart()
    }

    fn start(&self) -> Result<f64> {
        self.rank.barrier()?;
        self.main.copy(&self.x, self.r.slice(..self.a.rows)?)?;
        self.multiply()?;
        self.restart()
    }

    fn iterate(&self, progress: &mut SolveProgress<'_>) -> Result<Outcome> {
        let left = progress.left();
        self.state.write(&state::first(progress.threshold(), left as u64))?;
        // The last sum follows the last step.
        let mut to_put = left.saturating_add(1);
        let mut seen = 0;
        let mut batches = VecDeque::new();
        loop {
            while batches.len() < AHEAD && to_put > 0 {
                let steps = to_put.min(STEPS);
                batches.push_back(self.batch(steps)?);
                to_put -= steps;
            }
            let Some(mut batch) = batches.pop_front() else { return Ok(Outcome::Limit) };
            self.wait(&batch.there)?;
            let words = batch.words.get()?;
            let word = |at: usize| words.get(at).copied().unwrap_or(u64::MAX);
            let number = |at: usize| f64::from_bits(word(at));
            let sums = word(state::COUNT) as usize;
            for sum in seen..sums.min(seen + state::HISTORY_LEN) {
                // The first is that of the residual at the start.
                if sum > 0 {
                    progress.note(number(state::HISTORY + sum % state::HISTORY_LEN));
                }
            }
            seen = sums;
            match word(state::STATUS) {
                state::GOING => {}
                state::CONVERGED => return Ok(Outcome::Converged),
                state::LIMIT => return Ok(Outcome::Limit),
                state::NOT_POSITIVE => {
                    return Ok(Outcome::NotPositiveDefinite(number(state::CURVATURE) as f32));
                }
                _ => return Ok(Outcome::NotFinite),
            }
        }
    }

    fn solution(&self) -> Result<Vec<f32>> {
        self.x.read()
    }
}

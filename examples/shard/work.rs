//! The jobs of `shard`, for any link.

use super::common::Random;
use super::common::measured::{digits, time};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use tilework::nn::{Adam, PoolKind, Sequential};
use tilework::prelude::*;
use tilework::shard::{
    Blocks, Combine, Exchange, Link, Prediction, Rank, RankSpan, ShardedCg, Transport, balanced_rows, part,
};
use tilework::sparse::Csr;
use tilework::{Result, reference};

/// A job for all ranks.
pub(crate) enum Job {
    /// An all-reduce.
    Reduce { elements: usize },
    /// A sort.
    Sort { items: usize },
    /// A product of square matrices.
    Gemm { n: usize },
    /// Conjugate gradients on a 3-D grid.
    Poisson { side: usize, iterations: usize },
    /// Conjugate gradients on a matrix from a file.
    Solve { matrix: Arc<Csr>, rows: Option<Vec<Range<usize>>>, iterations: usize },
    /// Training.
    Train { batch: usize },
}

/// What a rank measured.
pub(crate) struct Measured {
    /// The median of all runs, of the slowest rank.
    pub(crate) seconds: f64,
    /// Work of this rank in a run.
    pub(crate) work: f64,
    /// Bytes that this rank sent in a run.
    pub(crate) bytes: u64,
    /// The link as measured, if there is more than one rank.
    pub(crate) link: Option<Link>,
    /// Seconds that the model predicts, 0 if it does not.
    pub(crate) predicted: f64,
    /// Whether the result is right.
    pub(crate) right: bool,
    /// A sentence about the run.
    pub(crate) note: String,
    /// What this rank was busy with in a run of its own, if that was asked for.
    pub(crate) spans: Vec<RankSpan>,
}

/// Work, correctness and a sentence about a run.
struct Done {
    work: f64,
    right: bool,
    note: String,
    /// Runs, each in seconds of this rank, and the bytes sent in one.
    seconds: Vec<f64>,
    bytes: u64,
    spans: Vec<RankSpan>,
}

/// How a job is run.
#[derive(Clone, Copy)]
pub(crate) struct Runs {
    /// Runs of which the median counts.
    pub(crate) repeat: usize,
    /// Whether one more is watched.
    pub(crate) watch: bool,
}

impl Job {
    /// Each rank has the rows of its range, or as many entries as others.
    pub(crate) fn solve(matrix: Csr, rows: Option<Vec<Range<usize>>>, iterations: usize) -> Self {
        Self::Solve { matrix: Arc::new(matrix), rows, iterations }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Reduce { elements } => {
                format!("all-reduce of {} MB of f32", digits(*elements as f64 * 4e-6))
            }
            Self::Sort { items } => format!("sort of {items} u32 keys"),
            Self::Gemm { n } => format!("product of f32 matrices, {n} x {n}"),
            Self::Poisson { side, .. } => {
                format!("conjugate gradients, Poisson on {side}^3 points; time per iteration")
            }
            Self::Solve { matrix, .. } => {
                format!("conjugate gradients, {} rows, {} entries; time per iteration", matrix.rows, matrix.entries())
            }
            Self::Train { batch } => format!("training steps of {batch} images; time per step"),
        }
    }

    /// The unit of the rate and its factor.
    pub(crate) fn unit(&self) -> (&'static str, f64) {
        match self {
            Self::Reduce { .. } => ("GB/s reduced", 1e-9),
            Self::Sort { .. } => ("Gkeys/s", 1e-9),
            Self::Gemm { .. } => ("TFLOP/s", 1e-12),
            Self::Poisson { .. } | Self::Solve { .. } => ("iterations/s", 1.0),
            Self::Train { .. } => ("images/s", 1.0),
        }
    }

    pub(crate) fn note(&self, ranks: usize, measured: &[Measured]) -> String {
        let first = measured.first();
        let note = first.map_or("", |m| m.note.as_str());
        let link = first.and_then(|m| m.link).map_or_else(String::new, |link| {
            format!("; link: {} GB/s, {}", digits(link.bandwidth * 1e-9), time(link.latency))
        });
        format!("{ranks} devices: {note}{link}")
    }
}

/// Measures the link: the rate of large slices around a ring, and the time of a small sum for each step of its tree.
fn link<L: Transport>(rank: &Rank<L>) -> Result<Option<Link>> {
    if rank.size() == 1 {
        return Ok(None);
    }
    let n = if rank.gpu().profile().is_cpu() { 1 << 18 } else { 1 << 25 };
    let (own, other) = (rank.upload(&vec![1.0f32; n])?, rank.alloc::<f32>(n)?);
    let small = rank.upload(&[1.0f32, 2.0])?;
    let (next, last) = ((rank.index() + 1) % rank.size(), (rank.index() + rank.size() - 1) % rank.size());
    let (mut bandwidth, mut latency) = (0f64, f64::INFINITY);
    for _ in 0..4 {
        let moved = run(rank, || {
            let exchange =
                Exchange { sends: vec![(vec![next], Slice::from(&own))], receives: vec![(last, Slice::from(&other))] };
            let started = rank.begin(exchange)?;
            rank.finish(started)
        })?;
        bandwidth = bandwidth.max(4.0 * n as f64 / moved);
        latency = latency.min(run(rank, || rank.all_reduce_slice(&small, Combine::Sum))?);
    }
    let steps = 2 * rank.size().next_power_of_two().trailing_zeros();
    Ok(Some(Link { latency: latency / f64::from(steps), bandwidth }))
}

/// Runs and waits for the device; returns the seconds since all ranks began.
fn run<L: Transport>(rank: &Rank<L>, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    rank.wait()?;
    rank.barrier()?;
    let start = Instant::now();
    work()?;
    rank.wait()?;
    Ok(start.elapsed().as_secs_f64())
}

/// What several runs gave.
struct Ran {
    /// Seconds of each that counts.
    seconds: Vec<f64>,
    /// Bytes sent in one.
    bytes: u64,
    /// What this rank was busy with in one more.
    spans: Vec<RankSpan>,
    /// All runs.
    turns: usize,
}

/// Runs several times after a first run, which compiles and allocates, and others, in which a card raises its clock.
fn runs<L: Transport>(rank: &Rank<L>, runs: Runs, mut work: impl FnMut() -> Result<()>) -> Result<Ran> {
    /// Seconds for which a card is busy before runs count, and the maximum of runs for that.
    const WARM: f64 = 0.5;
    const MAX_WARM: usize = 50;
    run(rank, &mut work)?;
    let mut turns = 1;
    if !rank.gpu().profile().is_cpu() {
        let mut took = [run(rank, &mut work)? as f32];
        rank.all_reduce(&mut took, Combine::Max)?;
        let warm = ((WARM / f64::from(took[0])) as usize).min(MAX_WARM);
        for _ in 0..warm {
            run(rank, &mut work)?;
        }
        turns += 1 + warm;
    }
    let before = rank.traffic().bytes;
    let seconds = (0..runs.repeat).map(|_| run(rank, &mut work)).collect::<Result<Vec<_>>>()?;
    // Barriers send no bytes.
    let bytes = (rank.traffic().bytes - before) / runs.repeat.max(1) as u64;
    turns += runs.repeat + usize::from(runs.watch);
    let spans = if runs.watch { rank.watch(work)?.1 } else { Vec::new() };
    Ok(Ran { seconds, bytes, spans, turns })
}

/// Runs a job on this rank.
pub(crate) fn measure<L: Transport>(job: &Job, rank: &Rank<L>, how: Runs) -> Result<Measured> {
    let ceilings = rank.gpu().ceilings()?;
    let link = link(rank)?;
    let model = Prediction { device: ceilings, link: link.unwrap_or(Link::HOST) };
    let p = rank.size();
    let (done, predicted) = match job {
        Job::Reduce { elements } => (reduce(rank, *elements, how)?, model.all_reduce(p, 4.0 * *elements as f64)),
        Job::Sort { items } => {
            let done = sort(rank, *items, how)?;
            let all = done.work * p as f64;
            (done, model.sort(p, all as usize))
        }
        Job::Gemm { n } => (gemm(rank, *n, how)?, model.gemm(p, *n)),
        Job::Poisson { side, iterations } => {
            let rows = side * side * side;
            let mine = part(rows, p, rank.index());
            (solve(rank, poisson(*side, mine), *iterations, how)?, model.cg_iteration(p, *side))
        }
        Job::Solve { matrix, rows, iterations } => {
            let mine = match rows {
                Some(rows) => rows.get(rank.index()).cloned().unwrap_or_default(),
                None => balanced_rows(&matrix.row_ptrs, p)[rank.index()].clone(),
            };
            (solve(rank, rows_of(matrix, mine), *iterations, how)?, 0.0)
        }
        // The rest is the time of one device.
        Job::Train { batch } => (train(rank, *batch, how)?, model.train_step(p, 0.0, network().trained_len()?)),
    };
    // The slowest rank of each run, then the median.
    let mut seconds: Vec<f32> = done.seconds.iter().map(|s| *s as f32).collect();
    rank.all_reduce(&mut seconds, Combine::Max)?;
    seconds.sort_by(f32::total_cmp);
    let seconds = f64::from(seconds[seconds.len() / 2]);
    let Done { work, right, note, bytes, spans, .. } = done;
    Ok(Measured { seconds, work, bytes, link, predicted, right, note, spans })
}

fn reduce<L: Transport>(rank: &Rank<L>, n: usize, how: Runs) -> Result<Done> {
    let data = rank.upload(&vec![1.0f32; n])?;
    let Ran { seconds, bytes, spans, turns } = runs(rank, how, || rank.all_reduce_slice(&data, Combine::Sum))?;
    // A run multiplies by the number of ranks, exactly while that is a power of two.
    let want = (0..turns).fold(1f32, |x, _| x * rank.size() as f32);
    let got = data.read()?;
    let right = got.iter().all(|x| (x - want).abs() <= 1e-4 * want || !want.is_finite());
    let work = 4.0 * n as f64 / rank.size() as f64;
    Ok(Done { work, right, note: format!("each element is {}", got[0]), seconds, bytes, spans })
}

fn sort<L: Transport>(rank: &Rank<L>, items: usize, how: Runs) -> Result<Done> {
    let limits = &rank.gpu().profile().limits;
    // A shard, and a little more for what the cuts leave uneven, fits a binding.
    let most = (limits.max_storage_binding.min(limits.max_buffer_size) / 4 / 64 * 63) as usize;
    let n = part(items, rank.size(), rank.index()).len().min(most);
    let mut random = Random::new(1 + rank.index() as u64);
    let keys: Vec<u32> = (0..n).map(|_| (random.next() >> 16) as u32).collect();
    let shard = rank.upload(&keys)?;
    let sum = |keys: &[u32]| keys.iter().fold(0u64, |sum, key| sum.wrapping_add(u64::from(*key)));
    let mut totals = [sum(&keys), keys.len() as u64];
    drop(keys);
    let mut sorted = None;
    let Ran { seconds, bytes, spans, .. } = runs(rank, how, || {
        sorted = None;
        sorted = Some(rank.sort(&shard)?);
        Ok(())
    })?;
    let sorted = sorted.map_or_else(|| Ok(Vec::new()), |shard| shard.read())?;
    let mut found = [sum(&sorted), sorted.len() as u64];
    rank.all_reduce(&mut totals, Combine::Sum)?;
    rank.all_reduce(&mut found, Combine::Sum)?;
    // Ends of the shards of all ranks, of those that have any keys.
    let ends: Vec<u32> = sorted.first().into_iter().chain(sorted.last()).copied().collect();
    let (ends, _) = rank.all_gather(&ends)?;
    let right = sorted.is_sorted() && ends.is_sorted() && totals == found;
    let note = format!("{} keys in all, {} on rank 0", found[1], sorted.len());
    Ok(Done { work: n as f64, right, note, seconds, bytes, spans })
}

/// An element of a factor: small whole numbers, so that the processor can compute single results.
fn element(seed: usize, row: usize, column: usize) -> f32 {
    let mixed = (row.wrapping_mul(0x9e37_79b9) ^ column.wrapping_mul(0x85eb_ca6b) ^ seed).wrapping_mul(0xc2b2_ae35);
    ((mixed >> 13) % 17) as f32 / 8.0 - 1.0
}

fn gemm<L: Transport>(rank: &Rank<L>, n: usize, how: Runs) -> Result<Done> {
    let blocks = Blocks::new(n, n, n, rank.size());
    let block = |seed, [rows, columns]: [Range<usize>; 2]| -> Vec<f32> {
        rows.flat_map(|r| columns.clone().map(move |c| element(seed, r, c))).collect()
    };
    // Memory first: elements of a block that does not fit would take long.
    let [a, b] = [blocks.a(rank.index()), blocks.b(rank.index())]
        .map(|[rows, columns]| rank.alloc::<f32>(rows.len() * columns.len()));
    let (a, b) = (a?, b?);
    a.write(&block(1, blocks.a(rank.index())))?;
    b.write(&block(2, blocks.b(rank.index())))?;
    let mut c = None;
    let Ran { seconds, bytes, spans, .. } = runs(rank, how, || {
        c = None;
        c = Some(rank.gemm(&blocks, &a, &b)?);
        Ok(())
    })?;
    let c = c.map_or_else(|| Ok(Vec::new()), |c| c.read())?;
    let [rows, columns] = blocks.c(rank.index());
    let mut random = Random::new(9);
    let mut worst = 0f64;
    for _ in 0..50.min(c.len()) {
        let at = (random.next() % c.len() as u64) as usize;
        let (row, column) = (rows.start + at / columns.len(), columns.start + at % columns.len());
        let terms = (0..n).map(|k| f64::from(element(1, row, k)) * f64::from(element(2, k, column)));
        let (want, sizes) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
        worst =
            worst.max((f64::from(c[at]) - want).abs() / (f64::from(f32::EPSILON) * (n as f64 + 4.0) * (1.0 + sizes)));
    }
    let work = 2.0 * (n as f64).powi(3) / rank.size() as f64;
    let note = format!("50 elements checked, at most {} of the bound off", digits(worst));
    Ok(Done { work, right: worst <= 1.0, note, seconds, bytes, spans })
}

/// Some rows of a matrix.
fn rows_of(a: &Csr, rows: Range<usize>) -> Csr {
    let entries = a.row_ptrs[rows.start] as usize..a.row_ptrs[rows.end] as usize;
    Csr {
        rows: rows.len(),
        cols: a.cols,
        row_ptrs: a.row_ptrs[rows.start..=rows.end].iter().map(|p| p - entries.start as u32).collect(),
        col_idxs: a.col_idxs[entries.clone()].to_vec(),
        values: a.values[entries].to_vec(),
    }
}

/// Some rows of the 7-point stencil on a grid.
fn poisson(side: usize, rows: Range<usize>) -> Csr {
    let n = side * side * side;
    let mut a = Csr { rows: rows.len(), cols: n, row_ptrs: vec![0], ..Csr::default() };
    for row in rows {
        let [z, y, x] = [row / side / side, row / side % side, row % side];
        let mut entry = |there: bool, column: usize, value: f32| {
            if there {
                a.col_idxs.push(column as u32);
                a.values.push(value);
            }
        };
        entry(z > 0, row.wrapping_sub(side * side), -1.0);
        entry(y > 0, row.wrapping_sub(side), -1.0);
        entry(x > 0, row.wrapping_sub(1), -1.0);
        entry(true, row, 6.0);
        entry(x + 1 < side, row + 1, -1.0);
        entry(y + 1 < side, row + side, -1.0);
        entry(z + 1 < side, row + side * side, -1.0);
        a.row_ptrs.push(a.col_idxs.len() as u32);
    }
    a
}

/// Solves for the solution that is 1 everywhere. Times are those of an iteration.
fn solve<L: Transport>(rank: &Rank<L>, rows: Csr, iterations: usize, how: Runs) -> Result<Done> {
    let ones = vec![1.0; rows.cols];
    let zeros = vec![0.0; rows.rows];
    let b: Vec<f32> = reference::spmv(1.0, &rows, &ones, 0.0, &zeros)?.into_iter().map(|b| b as f32).collect();
    let matrix = rank.matrix(&rows)?;
    drop((rows, ones));
    let options = ShardedCg::default().tolerance(1e-6).iterations(iterations);
    let (mut solution, mut x) = (None, zeros.clone());
    let mut each = Vec::new();
    let (mut begins, mut ends) = (Instant::now(), Instant::now());
    let mut bytes = 0;
    let mut spans = Vec::new();
    for turn in 0..=how.repeat {
        x.copy_from_slice(&zeros);
        rank.wait()?;
        rank.barrier()?;
        let before = rank.traffic().bytes;
        solution = Some(rank.conjugate_gradient(&options, &matrix, &b, &mut x, |iteration, _| {
            ends = Instant::now();
            if iteration == 0 {
                begins = ends;
            }
        })?);
        let iterations = solution.as_ref().map_or(1, |s| s.iterations).max(1);
        if turn > 0 {
            each.push((ends - begins).as_secs_f64() / iterations as f64);
            bytes = (rank.traffic().bytes - before) / iterations as u64;
        }
    }
    if how.watch {
        x.copy_from_slice(&zeros);
        spans = rank.watch(|| rank.conjugate_gradient(&options, &matrix, &b, &mut x, |_, _| ()))?.1;
    }
    let Some(solution) = solution else {
        return Ok(Done { work: 0.0, right: false, note: String::new(), seconds: each, bytes, spans });
    };
    let first = solution.history.first().copied().unwrap_or(1.0);
    let fell = solution.residual < first && solution.residual.is_finite();
    // The residual of x, computed anew, is the one that iterations came to, to rounding.
    let last = solution.history.last().copied().unwrap_or(f64::NAN);
    let kept = (solution.residual - last).abs() <= 0.02 * last + 1e-5;
    let right = fell && kept && x.iter().all(|x| x.is_finite());
    let work = 1.0 / rank.size() as f64;
    Ok(Done {
        work,
        right,
        note: format!("{solution}, {} elements of other ranks", matrix.halo()),
        seconds: each,
        bytes,
        spans,
    })
}

fn network() -> Sequential {
    Sequential::new([1, 28, 28])
        .conv(32, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .conv(64, [3, 3], [1, 1], [1, 1])
        .activation(Activation::Relu)
        .pool(PoolKind::Max, [2, 2], [2, 2])
        .flatten()
        .linear(10)
}

/// Trains on random images with labels that depend on them. Times are those of a step.
fn train<L: Transport>(rank: &Rank<L>, batch: usize, how: Runs) -> Result<Done> {
    let net = network();
    let mine = part(batch, rank.size(), rank.index());
    let mut random = Random::new(5);
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for sample in 0..batch {
        let label = (random.next() >> 20) % 10;
        // A bright row tells the label.
        let pixel = |i: usize, noise: u64| {
            if i as u64 / 28 / 2 == label { 1.0 } else { (noise >> 40) as f32 / 16_777_216.0 - 0.5 }
        };
        let image: Vec<f32> = (0..784).map(|i| pixel(i, random.next())).collect();
        if mine.contains(&sample) {
            images.extend(image);
            labels.push(label as u32);
        }
    }
    let mut trainer = rank.trainer(&net, mine.len(), Adam::for_network(0.001), 1)?;
    let (x, target) = (rank.gpu().upload(&images)?, rank.gpu().upload(&labels)?);
    let mut losses = Vec::new();
    let how = Runs { repeat: how.repeat.max(3), ..how };
    let Ran { seconds, bytes, spans, .. } = runs(rank, how, || {
        losses.push(trainer.step(&x, &target)?);
        Ok(())
    })?;
    let (first, last) = (losses.first().copied().unwrap_or(0.0), losses.last().copied().unwrap_or(0.0));
    let right = last.is_finite() && last < first;
    let note = format!("loss {first:.4} before, {last:.4} after {} steps", losses.len());
    Ok(Done { work: mine.len() as f64, right, note, seconds, bytes, spans })
}

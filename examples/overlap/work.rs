//! The two works: their data, their chunks, and what the processor says.

use super::common::{Failure, room_for};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use tilework::prelude::*;
use tilework::stream::{Pipeline, Timeline};

/// Maximum rounds of a kernel: a software driver ends a thread's loops after 65535 steps, and a thread may
/// have four elements.
pub(crate) const MAX_ROUNDS: u32 = 8192;
/// Steps that the processor takes to check a run.
const STEPS: usize = 1 << 26;

/// What is streamed.
pub(crate) enum Work {
    Add(Add),
    Histogram(Box<Bytes>),
}

/// The sum of two vectors, each element of which then goes through some rounds of a generator of random numbers.
pub(crate) struct Add {
    x: Vec<u32>,
    y: Vec<u32>,
    z: Vec<u32>,
}

/// Bytes that are counted by value, some rounds again and again.
pub(crate) struct Bytes {
    file: Option<PathBuf>,
    /// Nothing if there is a file.
    bytes: Vec<u8>,
    len: u64,
    counts: [u64; 256],
}

/// A generator with a fixed start: splitmix64 (Steele, Lea, Flood 2014).
fn random(i: u64) -> u64 {
    let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Add {
    /// Vectors of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Result<Self, Failure> {
        let n = bytes as usize / 4;
        room_for(&format!("--size {bytes}: three vectors"), n, 12)?;
        let x = (0..n as u64).map(|i| random(i) as u32).collect();
        let y = (0..n as u64).map(|i| (random(i) >> 32) as u32).collect();
        // Written to, so that no run is the first to touch it.
        Ok(Self { x, y, z: vec![1; n] })
    }
}

impl Bytes {
    /// Vectors from a file, or made-up ones of `bytes` bytes.
    pub(crate) fn new(file: Option<PathBuf>, bytes: u64) -> Result<Self, Failure> {
        if file.is_none() {
            room_for(&format!("--size {bytes}: as many bytes"), bytes as usize, 1)?;
        }
        let made = |n: u64| (0..n).map(|i| (random(i) & random(i + 7)) as u8).collect::<Vec<u8>>();
        let bytes = if file.is_none() { made(bytes) } else { Vec::new() };
        let mut all = Self { file, len: bytes.len() as u64, bytes, counts: [0; 256] };
        let (mut reader, mut piece) = (all.open()?, vec![0; 1 << 20]);
        let (mut counts, mut len) = ([0; 256], 0);
        loop {
            let n = reader.read(&mut piece).map_err(|e| all.failed(&e))?;
            if n == 0 {
                break;
            }
            piece[..n].iter().for_each(|b| counts[usize::from(*b)] += 1);
            len += n as u64;
        }
        drop(reader);
        (all.counts, all.len) = (counts, len);
        Ok(all)
    }

    fn open(&self) -> Result<Box<dyn Read + Send + '_>, Failure> {
        Ok(match &self.file {
            Some(path) => Box::new(File::open(path).map_err(|e| Failure::file(path, &e))?),
            None => Box::new(&self.bytes[..]),
        })
    }

    fn failed(&self, e: &std::io::Error) -> Failure {
        Failure::file(self.file.as_deref().unwrap_or("the bytes made up".as_ref()), e)
    }
}

/// One round of [`Add`], which no compiler makes shorter.
fn round(s: u32) -> u32 {
    s.wrapping_mul(1_664_525).wrapping_add(s >> 16)
}

/// How many elements are left out from one that is checked to the next.
fn stride(n: usize, rounds: u32) -> usize {
    (n * (rounds as usize + 1)).div_ceil(STEPS) | 1
}

impl Work {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "vector addition",
            Self::Histogram(_) => "histogram of bytes",
        }
    }

    /// Bytes that go to the device and come back.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Add(work) => 12 * work.x.len() as u64,
            Self::Histogram(work) => work.len,
        }
    }

    /// Rounds of its kernel that are the least, and the most.
    pub(crate) fn rounds(&self) -> (u32, u32) {
        match self {
            Self::Add(_) => (0, MAX_ROUNDS),
            Self::Histogram(_) => (1, MAX_ROUNDS),
        }
    }

    /// Which part of the results is checked, in words.
    pub(crate) fn checked(&self, rounds: u32) -> String {
        match self {
            Self::Add(work) => match stride(work.x.len(), rounds) {
                1 => "every element".into(),
                stride => format!("one element in {stride}"),
            },
            Self::Histogram(_) => "every count".into(),
        }
    }

    /// Streams all, or the first `chunks` chunks of `chunk` bytes. Says whether the results are right.
    pub(crate) fn run(
        &mut self,
        gpu: &Gpu,
        (chunk, in_flight): (u64, usize),
        rounds: u32,
        chunks: usize,
    ) -> Result<(Timeline, bool), Failure> {
        match self {
            Self::Add(work) => work.run(gpu, (chunk, in_flight), rounds, chunks),
            Self::Histogram(work) => work.run(gpu, (chunk, in_flight), rounds, chunks),
        }
    }
}

impl Add {
    fn run(
        &mut self,
        gpu: &Gpu,
        (chunk, in_flight): (u64, usize),
        rounds: u32,
        chunks: usize,
    ) -> Result<(Timeline, bool), Failure> {
        let len = (chunk as usize / 4).clamp(1, self.x.len().max(1));
        let Self { x, y, z } = self;
        z.fill(0);
        let function = match rounds {
            0 => ZipFn::Add,
            _ => ZipFn::custom(&format!(
                "fn zip(x: T, y: T) -> T {{
                     var s = x + y;
                     for (var i = 0u; i < {rounds}u; i++) {{ s = s * 1664525u + (s >> 16u); }}
                     return s;
                 }}"
            )),
        };
        let plan = |n| Zip::new(function.clone(), n).plan::<u32>(gpu);
        let whole = plan(len)?;
        // The last chunk may be shorter. It is planned ahead, since that compiles nothing but takes its time.
        let last = plan((x.len().max(1) - 1) % len + 1)?;
        let mut pipeline = Pipeline::new(gpu, in_flight);
        let (xs, ys, zs) = (pipeline.input(len), pipeline.input(len), pipeline.output(len));
        let mut inputs = x.chunks(len).zip(y.chunks(len)).take(chunks);
        let mut outputs = z.chunks_mut(len);
        let mut done = 0;
        let mut stream = || {
            pipeline.run(
                |chunk| {
                    let Some((x, y)) = inputs.next() else { return Ok(false) };
                    chunk.write(xs, x)?;
                    chunk.write(ys, y)?;
                    Ok(true)
                },
                |rec, chunk| {
                    let (x, y) = (chunk.input(xs)?, chunk.input(ys)?);
                    let plan = if x.len() == len { &whole } else { &last };
                    Ok(plan.record(rec, x, y, chunk.output(zs, x.len())?)?)
                },
                |chunk| {
                    let z = chunk.read::<u32>(zs)?;
                    done += z.len();
                    if let Some(to) = outputs.next() {
                        to.copy_from_slice(z);
                    }
                    Ok(())
                },
            )
        };
        let timeline = stream()?;
        let right = (0..done).step_by(stride(x.len(), rounds)).all(|i| {
            let sum = x[i].wrapping_add(y[i]);
            z[i] == (0..rounds).fold(sum, |s, _| round(s))
        });
        Ok((timeline, right && done == x.len().min(chunks.saturating_mul(len))))
    }
}

impl Bytes {
    fn run(
        &mut self,
        gpu: &Gpu,
        (chunk, in_flight): (u64, usize),
        rounds: u32,
        chunks: usize,
    ) -> Result<(Timeline, bool), Failure> {
        let len = chunk.clamp(1, self.len.max(1)) as usize;
        let plan = |n| Histogram::new(n, 256).plan::<u8>(gpu);
        let whole = plan(len)?;
        let last = plan((self.len.max(1) as usize - 1) % len + 1)?;
        let mut pipeline = Pipeline::new(gpu, in_flight);
        let (bytes, counts) = (pipeline.input::<u8>(len), pipeline.output::<u32>(256));
        let mut reader = self.open()?;
        let mut sums = [0u64; 256];
        let timeline = pipeline.run(
            |chunk| {
                if chunk.number() == chunks {
                    return Ok(false);
                }
                Ok(chunk.space(bytes)?.read(&mut reader)? > 0)
            },
            |rec, chunk| {
                let bytes = chunk.input(bytes)?;
                let plan = if bytes.len() == len { &whole } else { &last };
                let counts = chunk.output(counts, 256)?;
                (0..rounds).try_for_each(|_| Ok(plan.record(rec, bytes, counts)?))
            },
            |chunk| {
                sums.iter_mut().zip(chunk.read(counts)?).for_each(|(sum, n)| *sum += u64::from(*n));
                Ok(())
            },
        )?;
        let all = chunks.saturating_mul(len) as u64 >= self.len;
        let some = sums.iter().sum::<u64>() == self.len.min(chunks.saturating_mul(len) as u64);
        Ok((timeline, some && (!all || sums == self.counts)))
    }
}

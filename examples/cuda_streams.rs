//! Overlaps copies with kernels and with each other. Measures copies of pinned and pageable memory, and a vector
//! addition cut into chunks whose uploads, kernels and downloads overlap, issued chunk by chunk (depth-first) or step
//! by step (breadth-first).
//!
//! ```sh
//! cargo run --release --features cuda --example cuda_streams
//! cargo run --release --features cuda --example cuda_streams -- 1000000 --streams 2 --chunks 8
//! ```
//!
//! Exit code 1 if a result is wrong, 2 for bad arguments, 3 without a CUDA device or a compiler for it.

#[path = "common/mod.rs"]
mod common;

use common::{Args, Failure, exit_code, say};
use std::io::Write;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;
use tilework::cuda::{CudaBuffer, CudaGpu, CudaStream, PinnedBuffer};
use tilework::io::shown;
use tilework::prelude::*;
use tilework::{CudaPlan, Result};

const USAGE: &str = "\
usage: cuda_streams [ELEMENTS] [--streams S] [--chunks C]

  ELEMENTS     elements of each f32 vector, at most 2^30 (2^24)
  --streams S  number of streams, 1 to 64 (4)
  --chunks C   number of chunks, 1 to 4096 (16)
";

struct Arguments {
    n: usize,
    streams: usize,
    chunks: usize,
}

fn main() -> ExitCode {
    common::main("cuda_streams", std::io::stdout().lock(), |args, out, err| {
        exit_code("cuda_streams", all(args, out), err)
    })
}

fn all(args: lexopt::Parser, out: &mut dyn Write) -> Result<u8, Failure> {
    let Some(arguments) = arguments(args)? else {
        return say(out, USAGE).map(|()| 0);
    };
    let cuda = CudaGpu::new().and_then(|cuda| cuda.nvrtc().map(|_| cuda.clone()));
    let right = run(&cuda.map_err(Failure::missing)?, &arguments, out)?;
    if !right {
        say(out, "a result is WRONG\n")?;
    }
    Ok(u8::from(!right))
}

fn arguments(parser: lexopt::Parser) -> Result<Option<Arguments>, Box<dyn std::error::Error>> {
    use lexopt::prelude::*;
    let mut given = Arguments { n: 1 << 24, streams: 4, chunks: 16 };
    let within = |name: &str, value: usize, most: usize| match value {
        0 => Err(format!("{name}: must be from 1 to {most}")),
        value if value > most => Err(format!("{name}: {value} is above {most}")),
        value => Ok(value),
    };
    let mut parser = Args::new(parser, &[]);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("streams") => given.streams = within("--streams", parser.value()?.parse()?, 64)?,
            Long("chunks") => given.chunks = within("--chunks", parser.value()?.parse()?, 4096)?,
            Long("help") | Short('h') => return Ok(None),
            Value(n) => given.n = within("ELEMENTS", n.parse()?, 1 << 30)?,
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Some(given))
}

/// The vectors, on the host and on the device.
struct Vectors {
    host: [PinnedBuffer<f32>; 3],
    device: [CudaBuffer<f32>; 3],
}

/// A part of the vectors, with the plan that adds it.
struct Chunk {
    range: Range<usize>,
    plan: CudaPlan<Zip, f32>,
}

impl Vectors {
    fn upload(&self, stream: &CudaStream, part: &Range<usize>) -> Result<()> {
        for (host, device) in self.host.iter().zip(&self.device).take(2) {
            stream.upload(host.slice(part.clone())?, device.slice(part.clone())?)?;
        }
        Ok(())
    }

    fn add(&self, stream: &CudaStream, chunk: &Chunk) -> Result<()> {
        let [x, y, z] = &self.device;
        let part = || chunk.range.clone();
        chunk.plan.run(stream, x.slice(part())?, y.slice(part())?, z.slice(part())?)
    }

    fn download(&self, stream: &CudaStream, part: &Range<usize>) -> Result<()> {
        stream.download(self.device[2].slice(part.clone())?, self.host[2].slice(part.clone())?)
    }

    /// Returns whether each element is the sum, and erases it.
    fn take_sums(&mut self) -> Result<bool> {
        let [x, y, z] = &mut self.host;
        let (x, y, z) = (x.get()?, y.get()?, z.get_mut()?);
        let right = x.iter().zip(y).zip(&*z).all(|((x, y), z)| x + y == *z);
        z.fill(f32::NAN);
        Ok(right)
    }
}

/// Returns the median host seconds of five runs.
fn median(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut seconds = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[2])
}

fn run(cuda: &CudaGpu, arguments: &Arguments, out: &mut dyn Write) -> Result<bool, Failure> {
    let &Arguments { n, streams: number, chunks } = arguments;
    let (profile, nvrtc) = (cuda.profile(), cuda.nvrtc()?);
    say(
        out,
        &format!(
            "{} at {}, compute capability {}.{}, driver for CUDA {}.{}\nNVRTC {}.{} at {}\n{} copy engines: {}\n\n",
            profile.name,
            profile.pci_bus_id,
            profile.compute[0],
            profile.compute[1],
            profile.driver[0],
            profile.driver[1],
            nvrtc.version().0,
            nvrtc.version().1,
            shown(nvrtc.path()),
            profile.copy_engines,
            match profile.copy_engines {
                0 => "kernels wait for copies",
                1 => "one copy at a time overlaps with kernels",
                _ => "copies both ways overlap with kernels and each other",
            }
        ),
    )?;
    let streams = (0..number.max(2)).map(|_| cuda.stream()).collect::<Result<Vec<_>>>()?;
    let mut vectors = Vectors {
        host: [cuda.pinned(n)?, cuda.pinned(n)?, cuda.pinned(n)?],
        device: [cuda.alloc(n)?, cuda.alloc(n)?, cuda.alloc(n)?],
    };
    for (step, host) in vectors.host.iter_mut().take(2).enumerate() {
        for (i, x) in host.get_mut()?.iter_mut().enumerate() {
            *x = ((i * (step + 3)) % 1001) as f32 * 0.5;
        }
    }
    copies(&mut vectors, &streams, out)?;
    // Chunks begin at multiples of 4 elements, because the kernels use vectors.
    let each = n.div_ceil(chunks).next_multiple_of(4);
    let parts = (0..n).step_by(each).map(|at| {
        let range = at..n.min(at + each);
        Ok(Chunk { plan: Zip::new(ZipFn::Add, range.len()).plan::<f32>(cuda)?, range })
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let whole = [Chunk { plan: Zip::new(ZipFn::Add, n).plan::<f32>(cuda)?, range: 0..n }];
    let moved = 12.0 * n as f64;
    say(out, &format!("z = x + y, {n} f32 each, including uploads and download\n"))?;
    let mut right = true;
    let mut first = None;
    let mut row = |vectors: &mut Vectors, name: &str, work: &dyn Fn(&Vectors) -> Result<()>| -> Result<(), Failure> {
        let seconds = median(|| work(vectors))?;
        right &= vectors.take_sums()?;
        let base = *first.get_or_insert(seconds);
        let rate = moved * 1e-9 / seconds;
        let gain = base / seconds;
        say(out, &format!("  {name:<44} {:9.3} ms {rate:7.1} GB/s {gain:6.2} x\n", seconds * 1e3))
    };
    let wait = || streams.iter().try_for_each(CudaStream::wait);
    let depth_first = |vectors: &Vectors, streams: &[CudaStream], chunks: &[Chunk]| {
        for (chunk, stream) in chunks.iter().zip(streams.iter().cycle()) {
            vectors.upload(stream, &chunk.range)?;
            vectors.add(stream, chunk)?;
            vectors.download(stream, &chunk.range)?;
        }
        wait()
    };
    let streams = &streams[..number];
    row(&mut vectors, "one stream, one chunk", &|v| depth_first(v, &streams[..1], &whole))?;
    let named = |how: &str| format!("{number} streams, {} chunks, {how}", parts.len());
    row(&mut vectors, &named("depth-first"), &|v| depth_first(v, streams, &parts))?;
    row(&mut vectors, &named("breadth-first"), &|v| {
        // One step for a chunk of each stream, before the next step.
        for chunks in parts.chunks(streams.len()) {
            let both = || chunks.iter().zip(streams);
            both().try_for_each(|(chunk, stream)| v.upload(stream, &chunk.range))?;
            both().try_for_each(|(chunk, stream)| v.add(stream, chunk))?;
            both().try_for_each(|(chunk, stream)| v.download(stream, &chunk.range))?;
        }
        wait()
    })?;
    Ok(right)
}

/// Prints the copy rates of pinned and pageable memory.
fn copies(vectors: &mut Vectors, streams: &[CudaStream], out: &mut dyn Write) -> Result<(), Failure> {
    let n = vectors.device[0].len();
    let bytes = 4.0 * n as f64;
    say(out, &format!("copies of {n} f32\n"))?;
    let mut row = |name: &str, bytes: f64, seconds: f64| {
        let rate = bytes * 1e-9 / seconds;
        say(out, &format!("  {name:<44} {:9.3} ms {rate:7.1} GB/s\n", seconds * 1e3))
    };
    let mut pageable = vectors.host[0].get()?.to_vec();
    let device = &vectors.device[0];
    row("pageable memory to the device", bytes, median(|| device.write(&pageable))?)?;
    let read = median(|| device.slice(..)?.read_into(&mut pageable))?;
    row("the device to pageable memory", bytes, read)?;
    let (up, down) = (&streams[0], &streams[1]);
    let upload = |v: &Vectors| up.upload(&v.host[0], &v.device[0]);
    let download = |v: &Vectors| down.download(&v.device[1], &v.host[2]);
    let to = median(|| upload(vectors).and_then(|()| up.wait()))?;
    row("pinned memory to the device", bytes, to)?;
    let from = median(|| download(vectors).and_then(|()| down.wait()))?;
    row("the device to pinned memory", bytes, from)?;
    let both = median(|| {
        upload(vectors)?;
        download(vectors)?;
        up.wait()?;
        down.wait()
    })?;
    row("both at once, on two streams", 2.0 * bytes, both)?;
    say(out, "\n")
}

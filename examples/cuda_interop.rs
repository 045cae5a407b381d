//! Calls CUDA from a wgpu program, on its own buffers: prefix sums with a grid-wide barrier, and a matrix product on
//! tensor cores.
//!
//! wgpu kernels fill buffers, CUDA works on the same memory, wgpu reads the results, and the processor checks them.
//! Each is timed three ways: in place, ordered by semaphores; in place, with host waits; and copied through the host.
//!
//! ```sh
//! cargo run --release --features cuda --example cuda_interop
//! cargo run --release --features cuda --example cuda_interop -- --copy
//! ```
//!
//! Exit code 1 if a result is wrong, 2 for bad arguments, 3 if something is missing: an adapter, CUDA, a driver that
//! shares memory, or a card open in both.

#[path = "common/mod.rs"]
mod common;

use common::{Failure, exit_code, say};
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cuda_interop [--adapter SUBSTRING] [--elements N] [--size N] [--copy]

  --adapter SUBSTRING  wgpu adapter, by its backend or a part of its name or driver (the best one)
  --elements N         elements of the prefix sums (16777216)
  --size N             rows and columns of the matrices, even (4096)
  --copy               only copy through the host, which works with any adapter and any CUDA device
";

fn main() -> ExitCode {
    common::main("cuda_interop", std::io::stdout().lock(), |args, out, err| {
        exit_code("cuda_interop", interop::main(args, out), err)
    })
}

#[cfg(not(target_os = "linux"))]
mod interop {
    use super::{Failure, USAGE, Write, say};

    pub(super) fn main(_: lexopt::Parser, out: &mut dyn Write) -> Result<u8, Failure> {
        say(out, &format!("memory is shared on Linux only\n{USAGE}")).map(|()| 3)
    }
}

#[cfg(target_os = "linux")]
mod interop {
    use super::common::Args;
    use super::{Failure, USAGE, Write, say};
    use half::f16;
    use std::error::Error;
    use std::time::{Duration, Instant};
    use tilework::cuda::{Bridge, CudaBuffer, CudaGpu, CudaOptions, CudaStream, Order};
    use tilework::gpu::{AdapterFilter, OwnKernel};
    use tilework::prelude::*;
    use tilework::program::Grid;
    use tilework::{CudaPlan, Element, ErrorKind, Result};

    const FILL: &str = "\
// Pseudo-random numbers with an exact product: see `small` in the example.
#import workgroup/index

struct Params { n: u32, seed: u32, halves: u32 }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;

fn small(i: u32) -> u32 {
    return ((i + params.seed) * 2654435761u) >> 28u;
}

@compute @workgroup_size(256)
fn fill(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(id) * 256u + lane;
    if i >= params.n {
        return;
    }
    if params.halves == 0u {
        words[i] = small(i);
        return;
    }
    let pair = vec2<f32>(vec2<u32>(small(2u * i), small(2u * i + 1u)));
    words[i] = pack2x16float((pair - 8.0) / 8.0);
}
";

    /// Returns element `i` of the kernel's output: 0 to 15, which stands for (x - 8) / 8 in 16 bits.
    fn small(i: usize, seed: u32) -> u32 {
        (i as u32).wrapping_add(seed).wrapping_mul(2_654_435_761) >> 28
    }

    struct Arguments {
        adapter: AdapterFilter,
        elements: usize,
        size: usize,
        copy: bool,
    }

    fn arguments(parser: lexopt::Parser) -> Result<Option<Arguments>, lexopt::Error> {
        use lexopt::prelude::*;
        let mut found = Arguments { adapter: AdapterFilter::Best, elements: 1 << 24, size: 4096, copy: false };
        let mut parser = Args::new(parser, &[]);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("adapter") => found.adapter = AdapterFilter::Name(parser.value()?.string()?),
                Long("elements") => found.elements = parser.number(1..=1 << 30)?,
                Long("size") => found.size = parser.number(2..=1 << 14)?,
                Long("copy") => found.copy = true,
                Long("help") | Short('h') => return Ok(None),
                _ => return Err(argument.unexpected()),
            }
        }
        if found.size % 2 == 1 {
            return Err(format!("--size {}: must be even", found.size).into());
        }
        Ok(Some(found))
    }

    pub(super) fn main(args: lexopt::Parser, out: &mut dyn Write) -> Result<u8, Failure> {
        let Some(arguments) = arguments(args)? else {
            return say(out, USAGE).map(|()| 0);
        };
        let missing = [ErrorKind::NoAdapter, ErrorKind::Unsupported, ErrorKind::InvalidArgument];
        run(&arguments, out).map(|right| u8::from(!right)).map_err(|e| match e.downcast_ref::<tilework::Error>() {
            Some(known) if missing.contains(&known.kind()) => Failure::missing(known),
            _ => e.into(),
        })
    }

    /// The result of work that prints.
    type Told<T> = std::result::Result<T, Box<dyn Error>>;

    /// How data moves between the two sides.
    enum Way {
        InPlace(Bridge),
        Copied,
    }

    impl Way {
        fn name(&self) -> &'static str {
            match self {
                Way::InPlace(bridge) if *bridge.order() == Order::Semaphores => "in place, semaphores",
                Way::InPlace(_) => "in place, host waits",
                Way::Copied => "copied through the host",
            }
        }
    }

    /// The same elements on both sides: shared memory, or two copies.
    struct Pair<T: Element> {
        wgpu: Buffer<T>,
        cuda: CudaBuffer<T>,
    }

    struct Both {
        gpu: Gpu,
        cuda: CudaGpu,
        stream: CudaStream,
        fill: OwnKernel,
    }

    impl Both {
        fn pair<T: Element>(&self, way: &Way, n: usize) -> Result<Pair<T>> {
            match way {
                Way::InPlace(bridge) => {
                    let wgpu = self.gpu.alloc_shared(n)?;
                    Ok(Pair { cuda: bridge.open(&wgpu)?, wgpu })
                }
                Way::Copied => Ok(Pair { wgpu: self.gpu.alloc(n)?, cuda: self.cuda.alloc(n)? }),
            }
        }

        /// Fills the buffer with numbers by a wgpu kernel.
        fn fill<T: Element>(&self, buffer: &Buffer<T>, seed: u32) -> Result<()> {
            let halves = T::DTYPE.size() == 2;
            let words = buffer.len() / (1 + usize::from(halves));
            let params = [words as u32, seed, u32::from(halves)];
            let Grid::Direct(workgroups) = Grid::fold(words.div_ceil(256) as u64) else {
                unreachable!("a fold is direct");
            };
            let mut rec = self.gpu.recorder();
            self.fill.record(&mut rec, &[Arg::uniform(&params), buffer.into()], workgroups)?;
            rec.submit()
        }

        /// Calls CUDA between two pieces of wgpu work.
        fn call(
            &self, way: &Way, give: &dyn Fn() -> Result<()>, work: &dyn Fn() -> Result<()>,
            take: &dyn Fn() -> Result<()>,
        ) -> Result<()> {
            match way {
                Way::InPlace(bridge) => {
                    bridge.to_cuda()?;
                    work()?;
                    bridge.to_wgpu()
                }
                Way::Copied => {
                    give()?;
                    work()?;
                    take()
                }
            }
        }

        /// Returns the host seconds of one `round`, with many submitted ahead.
        fn time(&self, round: &dyn Fn() -> Result<()>) -> Result<f64> {
            let settle = || self.gpu.wait().and_then(|()| self.stream.wait());
            let mut rounds = 1;
            loop {
                let begin = Instant::now();
                (0..rounds).try_for_each(|_| round())?;
                settle()?;
                let took = begin.elapsed();
                if took > Duration::from_millis(300) {
                    return Ok(took.as_secs_f64() / f64::from(rounds));
                }
                rounds *= if took < Duration::from_millis(30) { 8 } else { 2 };
            }
        }

        /// Fills `x` with wgpu and sums it into `y` with CUDA, for wgpu to read.
        fn sum_once(&self, way: &Way, scan: &CudaPlan<Scan<Sum>, u32>, x: &Pair<u32>, y: &Pair<u32>) -> Result<()> {
            self.fill(&x.wgpu, 7)?;
            self.call(way, &|| x.cuda.copy_from_wgpu(&x.wgpu), &|| scan.run(&self.stream, &x.cuda, &y.cuda), &|| {
                y.cuda.copy_to_wgpu(&y.wgpu)
            })
        }

        /// Prints the cost of a handover, and CUDA's speed on wgpu's memory.
        fn prices(&self, ways: &[Way], scan: &CudaPlan<Scan<Sum>, u32>, n: usize, out: &mut dyn Write) -> Told<()> {
            let one = Scan::new(Sum, 1).plan::<u32>(&self.cuda)?;
            for way in ways {
                let (x, y) = (self.pair::<u32>(way, 1)?, self.pair::<u32>(way, 1)?);
                let turn = self.time(&|| self.sum_once(way, &one, &x, &y))?;
                say(out, &format!("one element, there and back, {}: {:.1} us\n", way.name(), turn * 1e6))?;
            }
            for (way, memory) in
                ways.iter().take(1).zip(["memory of wgpu"]).chain([(&Way::Copied, "memory of its own")])
            {
                let (x, y) = (self.pair::<u32>(way, n)?, self.pair::<u32>(way, n)?);
                let runs = self.stream.measure(9, |stream| scan.run(stream, &x.cuda, &y.cuda))?;
                let rate = 8.0 * n as f64 / runs.median() * 1e-9;
                say(out, &format!("CUDA's kernel alone on {memory}: {:.1} us, {rate:.1} GB/s\n", runs.median() * 1e6))?;
            }
            Ok(())
        }

        /// Runs the prefix sums. Returns whether they are correct.
        fn sums(&self, way: &Way, scan: &CudaPlan<Scan<Sum>, u32>, n: usize, out: &mut dyn Write) -> Told<bool> {
            let (x, y) = (self.pair::<u32>(way, n)?, self.pair::<u32>(way, n)?);
            let round = || self.sum_once(way, scan, &x, &y);
            round()?;
            let got = y.wgpu.read()?;
            let mut sum = 0u32;
            let right = (0..n).all(|i| {
                sum = sum.wrapping_add(small(i, 7));
                got[i] == sum
            });
            let seconds = self.time(&round)?;
            // Written by wgpu, read and written by CUDA.
            let bytes = 12.0 * n as f64;
            let (name, rate) = (way.name(), bytes / seconds * 1e-9);
            let text = format!("  {name:24} {:9.1} us {rate:9.1} GB/s  {}\n", seconds * 1e6, verdict(right));
            say(out, &text)?;
            Ok(right)
        }

        /// Runs the matrix product. Returns whether sixteen of its rows are correct: sums of these numbers are exact.
        fn product(&self, way: &Way, gemm: &CudaPlan<Gemm, f16>, n: usize, out: &mut dyn Write) -> Told<bool> {
            let (a, b) = (self.pair::<f16>(way, n * n)?, self.pair::<f16>(way, n * n)?);
            let c = self.pair::<f32>(way, n * n)?;
            let round = || {
                self.fill(&a.wgpu, 1)?;
                self.fill(&b.wgpu, 2)?;
                self.call(
                    way,
                    &|| a.cuda.copy_from_wgpu(&a.wgpu).and_then(|()| b.cuda.copy_from_wgpu(&b.wgpu)),
                    &|| gemm.run(&self.stream, &a.cuda, &b.cuda, &c.cuda),
                    &|| c.cuda.copy_to_wgpu(&c.wgpu),
                )
            };
            round()?;
            let got = c.wgpu.read()?;
            let centred = |i, seed| small(i, seed) as i32 - 8;
            let right_factor: Vec<i32> = (0..n * n).map(|i| centred(i, 2)).collect();
            let right = (0..16).map(|i| i * (n - 1) / 15).all(|row| {
                let mut sums = vec![0; n];
                for (k, rows) in right_factor.chunks(n).enumerate() {
                    let factor = centred(row * n + k, 1);
                    sums.iter_mut().zip(rows).for_each(|(sum, b)| *sum += factor * b);
                }
                sums.iter().zip(&got[row * n..]).all(|(sum, got)| *got == *sum as f32 / 64.0)
            });
            let seconds = self.time(&round)?;
            let flop = 2.0 * (n as f64).powi(3);
            let (name, rate) = (way.name(), flop / seconds * 1e-12);
            let text = format!("  {name:24} {:9.1} us {rate:9.1} TFLOP/s  {}\n", seconds * 1e6, verdict(right));
            say(out, &text)?;
            Ok(right)
        }
    }

    fn verdict(right: bool) -> &'static str {
        if right { "right" } else { "WRONG" }
    }

    fn run(arguments: &Arguments, out: &mut dyn Write) -> Told<bool> {
        let options = GpuOptions { adapter: arguments.adapter.clone(), ..Default::default() };
        let gpu = pollster::block_on(Gpu::request(options))?;
        say(out, &format!("wgpu: {} through {}\n", gpu.profile().name, gpu.profile().backend))?;
        let fill = gpu.kernel("fill.wgsl", FILL, "fill")?;
        let cuda = if arguments.copy { CudaGpu::new()? } else { CudaGpu::beside(&gpu, CudaOptions::default())? };
        say(out, &format!("CUDA: {}\n", cuda.profile().identity()))?;
        let stream = cuda.stream()?;
        let both = Both { gpu, cuda, stream, fill };

        let mut ways = vec![Way::Copied];
        if !arguments.copy {
            let bridge = Bridge::new(&both.gpu, &both.stream)?;
            say(out, &format!("order: {}\n", bridge.order()))?;
            let waits = Bridge::with_host_waits(&both.gpu, &both.stream, "asked for, to compare")?;
            let semaphores = *bridge.order() == Order::Semaphores;
            ways.insert(0, Way::InPlace(waits));
            if semaphores {
                ways.insert(0, Way::InPlace(bridge));
            }
        }

        let mut right = true;
        let n = arguments.elements;
        let scan = Scan::new(Sum, n).plan::<u32>(&both.cuda)?;
        say(
            out,
            &format!(
                "prefix sums of {n} elements, filled by wgpu, summed by CUDA ({}):\n",
                scan.report().decision.variant
            ),
        )?;
        for way in &ways {
            right &= both.sums(way, &scan, n, out)?;
        }
        if !arguments.copy {
            both.prices(&ways, &scan, n, out)?;
        }
        let n = arguments.size;
        let gemm = Gemm::new(n, n, n).mixed_precision().plan::<f16>(&both.cuda)?;
        say(
            out,
            &format!("product of two {n} x {n} matrices of f16, into f32 ({}):\n", gemm.report().decision.variant),
        )?;
        for way in &ways {
            right &= both.product(way, &gemm, n, out)?;
        }
        Ok(right)
    }
}

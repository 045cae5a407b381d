//! Shared by the benchmarks: devices, measurement, and the result file.
//!
//! `cargo bench` measures device time (see `Gpu::measure`) under criterion, on the best adapter. `TILEWORK_ADAPTER=all`
//! measures every adapter, `TILEWORK_ADAPTER=llvmpipe,nvidia` the best of each name. With the feature `cuda` the first
//! CUDA device is measured, too. The backend is part of a benchmark's id, as in
//! `gemm/register/f32/vulkan-nvidia-h100/4096x4096x4096`.
//!
//! `TILEWORK_RESULTS=FILE` takes the median of 25 runs of each case instead, and writes the rows as JSON. With
//! `TILEWORK_PEERS=FILE`, written by `benches/peers/cuda.cu` on the same card, each row has the fastest peer's time.

#![allow(dead_code)] // each benchmark uses a part
#![allow(clippy::expect_used, reason = "a benchmark that cannot run panics")]

use criterion::Criterion;
use std::time::{Duration, Instant, SystemTime};
#[cfg(feature = "cuda")]
use tilework::cuda::{CudaBuffer, CudaGpu, CudaStream};
use tilework::gpu::{AdapterFilter, Measurement, RawSlice, Tuning};
use tilework::prelude::*;
use tilework::program::{Cost, Op};
use tilework::{Element, ErrorKind, Result};

/// A device, and the rows measured on it.
pub(crate) struct Bench {
    pub(crate) gpu: Gpu,
    /// Only for the first adapter.
    #[cfg(feature = "cuda")]
    pub(crate) cuda: Option<CudaGpu>,
    criterion: Criterion,
    results: Option<String>,
    peers: Vec<serde_json::Value>,
    rows: Vec<serde_json::Value>,
}

/// A case to measure.
pub(crate) struct Case<'a> {
    pub(crate) op: &'a str,
    pub(crate) variant: &'a str,
    pub(crate) dtype: &'a str,
    pub(crate) size: String,
    pub(crate) cost: Cost,
}

/// The device of a row.
struct On {
    backend: String,
    adapter: String,
    driver: String,
}

impl On {
    fn wgpu(gpu: &Gpu) -> Self {
        let profile = gpu.profile();
        let [adapter, driver] = [&profile.name, &profile.driver].map(String::clone);
        Self { backend: profile.id(), adapter, driver }
    }
}

/// A buffer as an operand.
pub(crate) trait Operand {
    /// Returns the first `n` elements.
    fn first(&self, n: usize) -> Result<RawSlice<'_>>;
}

impl<T: Element> Operand for Buffer<T> {
    fn first(&self, n: usize) -> Result<RawSlice<'_>> {
        Ok(self.slice(..n)?.untyped())
    }
}

/// Errors of planning that mean the op does not fit the device.
const SKIPPED: [ErrorKind; 3] = [ErrorKind::Unsupported, ErrorKind::InvalidArgument, ErrorKind::TooLarge];

/// A named group of cases.
pub(crate) type Group = (&'static str, fn(&mut Bench) -> Result<()>);

/// Runs the groups that the command line names (`a|b`), or all, on each adapter of TILEWORK_ADAPTER, and writes rows.
pub(crate) fn groups(groups: &[Group]) -> Result<()> {
    let wanted: Vec<_> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wants = |group| wanted.is_empty() || wanted.iter().any(|n| n.split(['|', '/']).any(|n| n == group));
    let names = std::env::var("TILEWORK_ADAPTER").unwrap_or_default();
    let adapters: Vec<_> = match names.as_str() {
        "" => vec![AdapterFilter::Best],
        "all" => (0..Gpu::adapters().len()).map(AdapterFilter::Index).collect(),
        names => names.split(',').map(|name| AdapterFilter::Name(name.trim().to_owned())).collect(),
    };
    for (i, adapter) in adapters.into_iter().enumerate() {
        // Measure the policies, not tuned choices.
        let options = GpuOptions { adapter, tuning: Tuning::Off, ..Default::default() };
        match pollster::block_on(Gpu::request(options)) {
            Ok(gpu) => {
                let mut bench = Bench::new(gpu, i == 0);
                for (_, run) in groups.iter().filter(|(name, _)| wants(*name)) {
                    run(&mut bench)?;
                }
                bench.finish();
            }
            Err(e) => println!("skipped: {e}"),
        }
    }
    Ok(())
}

impl Bench {
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables, reason = "only CUDA needs it"))]
    fn new(gpu: Gpu, first: bool) -> Self {
        println!("{} ({})", gpu.profile().name, gpu.profile().driver);
        let criterion = Criterion::default()
            .configure_from_args()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_millis(500));
        let results = std::env::var("TILEWORK_RESULTS").ok();
        let peers = std::env::var("TILEWORK_PEERS").map(|path| {
            let text = std::fs::read_to_string(&path).expect("TILEWORK_PEERS names a file");
            serde_json::from_str(&text).expect("it is what benches/peers/cuda.cu prints")
        });
        Self {
            gpu,
            #[cfg(feature = "cuda")]
            cuda: CudaGpu::new().map_err(|e| println!("skipped: {e}")).ok().filter(|_| first),
            criterion,
            results,
            peers: peers.unwrap_or_default(),
            rows: Vec::new(),
        }
    }

    /// Returns `large` on a card, `small` on a software adapter.
    pub(crate) fn scale<T>(&self, large: T, small: T) -> T {
        if self.gpu.profile().is_cpu() { small } else { large }
    }

    /// Measures an op on the beginnings of these buffers. Skips an op that does not fit the device.
    pub(crate) fn op<T: Element>(
        &mut self, op: &impl Op<T>, size: impl Into<String>, operands: &[&dyn Operand],
    ) -> Result<()> {
        self.op_as(op, ("", ""), size, operands)
    }

    /// As [`op`](Self::op), with names of variant and element type; empty ones are those of the program.
    pub(crate) fn op_as<T: Element>(
        &mut self, op: &impl Op<T>, (variant, dtype): (&str, &str), size: impl Into<String>, operands: &[&dyn Operand],
    ) -> Result<()> {
        let plan = match op.plan::<T>(&self.gpu) {
            Err(e) if SKIPPED.contains(&e.kind()) => return Ok(()),
            plan => plan?.into_executable(),
        };
        let program = plan.program();
        let slices = operands.iter().zip(&program.operands).map(|(buffer, o)| buffer.first(o.len));
        let slices = slices.collect::<Result<Vec<_>>>()?;
        let case = Case {
            op: program.op,
            variant: if variant.is_empty() { program.variant() } else { variant },
            dtype: if dtype.is_empty() { T::DTYPE.name() } else { dtype },
            size: size.into(),
            cost: program.cost,
        };
        self.device(&case, |rec| plan.record(rec, &slices));
        Ok(())
    }

    /// Measures the device time of what `record` records.
    pub(crate) fn device(&mut self, case: &Case<'_>, mut record: impl FnMut(&mut Recorder) -> Result<()>) {
        let gpu = self.gpu.clone();
        self.measured(case, On::wgpu(&gpu), |runs| gpu.measure(runs, &mut record));
    }

    /// Measures the device time of what `work` submits to a stream.
    #[cfg(feature = "cuda")]
    pub(crate) fn stream(
        &mut self, case: &Case<'_>, stream: &CudaStream, mut work: impl FnMut(&CudaStream) -> Result<()>,
    ) {
        let profile = stream.gpu().profile();
        let [major, minor] = profile.driver;
        let on = On { backend: profile.id(), adapter: profile.name.clone(), driver: format!("CUDA {major}.{minor}") };
        self.measured(case, on, |runs| stream.measure(runs, &mut work));
    }

    fn measured(&mut self, case: &Case<'_>, on: On, mut measure: impl FnMut(usize) -> Result<Measurement>) {
        let Case { op, variant, dtype, size, cost } = case;
        let On { backend, adapter, driver } = on;
        if self.results.is_none() {
            let mut group = self.criterion.benchmark_group(*op);
            group.bench_function(format!("{variant}/{dtype}/{backend}/{size}"), |b| {
                b.iter_custom(|runs| {
                    let measured = measure(runs as usize).expect("the case runs");
                    // measure() limits the number of runs; criterion needs the time of all.
                    let mean = measured.seconds.iter().sum::<f64>() / measured.seconds.len() as f64;
                    Duration::from_secs_f64(mean * runs as f64)
                });
            });
            group.finish();
            return;
        }
        let measured = measure(self.scale(25, 5)).expect("the case runs");
        let seconds = measured.median();
        let (gbps, gflops) = (cost.bytes / seconds * 1e-9, cost.flop / seconds * 1e-9);
        println!(
            "{op:<8} {variant:<20} {dtype:<4} {size:<24} {:>11.2} us {gbps:>9.1} GB/s {gflops:>10.1} GFLOP/s",
            seconds * 1e6
        );
        let of_peer = dtype.trim_end_matches(" split");
        let same = |p: &&serde_json::Value| p["op"] == *op && p["dtype"] == *of_peer && p["size"] == **size;
        let time = |p: &serde_json::Value| p["seconds"].as_f64().unwrap_or(f64::INFINITY);
        let peer = self.peers.iter().filter(same).min_by(|p, q| time(p).total_cmp(&time(q)));
        self.rows.push(serde_json::json!({
            "op": op, "variant": variant, "dtype": dtype, "size": size, "seconds": seconds, "gbps": gbps,
            "gflops": gflops, "clock": measured.clock.to_string(), "min_seconds": measured.min(),
            "peer": peer.map(|p| &p["peer"]), "peer_seconds": peer.map(|p| &p["seconds"]),
            "backend": backend, "adapter": adapter, "driver": driver,
        }));
    }

    /// Measures a host-side routine.
    pub(crate) fn host(&mut self, name: &str, mut routine: impl FnMut()) {
        if self.results.is_none() {
            let id = format!("{name}/{}", self.gpu.profile().id());
            self.criterion.bench_function(&id, |b| b.iter(&mut routine));
            return;
        }
        let mut seconds = Vec::new();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(500) {
            let one = Instant::now();
            routine();
            seconds.push(one.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        println!("{name:<40} {:>11.2} us on the host", median * 1e6);
        let On { backend, adapter, driver } = On::wgpu(&self.gpu);
        self.rows.push(serde_json::json!({
            "op": "runtime", "variant": name, "seconds": median, "clock": "host",
            "backend": backend, "adapter": adapter, "driver": driver,
        }));
    }

    /// Appends the rows, with date and version, to the result file, if there is one.
    fn finish(self) {
        let Some(path) = self.results else { return };
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let mut all: Vec<serde_json::Value> =
            std::fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
        for mut row in self.rows {
            row["date"] = now.split('T').next().into();
            row["version"] = env!("CARGO_PKG_VERSION").into();
            all.push(row);
        }
        let text = serde_json::to_string_pretty(&all).expect("rows are plain data");
        std::fs::write(&path, text + "\n").unwrap_or_else(|e| println!("{path}: {e}"));
    }
}

/// Makes a buffer of pseudo-random numbers, in several uploads so that large ones need little host memory.
pub(crate) fn random<T: Element>(gpu: &Gpu, n: usize, value: impl Fn(u32) -> T) -> Result<Buffer<T>> {
    let buffer = gpu.alloc::<T>(n)?;
    parts(n, value, |start, part| buffer.slice(start..start + part.len())?.write(part))?;
    Ok(buffer)
}

/// As [`random`], on a CUDA device.
#[cfg(feature = "cuda")]
pub(crate) fn random_on_cuda<T: Element>(gpu: &CudaGpu, n: usize, value: impl Fn(u32) -> T) -> Result<CudaBuffer<T>> {
    let buffer = gpu.alloc::<T>(n)?;
    parts(n, value, |start, part| buffer.slice(start..start + part.len())?.write(part))?;
    Ok(buffer)
}

/// Passes `n` pseudo-random numbers to `put` in pieces, each with its position.
fn parts<T>(n: usize, value: impl Fn(u32) -> T, mut put: impl FnMut(usize, &[T]) -> Result<()>) -> Result<()> {
    const CHUNK: usize = 1 << 22;
    let mut state = 0x2545_f491u32;
    for start in (0..n).step_by(CHUNK) {
        let len = CHUNK.min(n - start);
        let part: Vec<T> = (0..len)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                value(state)
            })
            .collect();
        put(start, &part)?;
    }
    Ok(())
}

/// f16 numbers, uniform in [-0.5, 0.5).
pub(crate) fn half(bits: u32) -> half::f16 {
    half::f16::from_f32(centred(bits))
}

/// Uniform in [-0.5, 0.5).
pub(crate) fn centred(bits: u32) -> f32 {
    (bits >> 8) as f32 / 16_777_216.0 - 0.5
}

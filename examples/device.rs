//! Prints the limits, features and measured ceilings of each adapter and, if built with the feature `cuda`, of each
//! CUDA device.
//!
//! ```sh
//! cargo run --release --example device
//! cargo run --release --example device -- --adapter nvidia --no-measure
//! cargo run --release --features cuda --example device
//! ```
//!
//! Exit code 2 for bad arguments, 3 without an adapter.

#[path = "common/mod.rs"]
mod common;

use common::{Args, Failure, exit_code, say};
use std::io::Write;
use std::process::ExitCode;
use tilework::gpu::AdapterFilter;
use tilework::program::{Ceilings, DeviceProfile, FOLD};
use tilework::{Gpu, GpuOptions};

const USAGE: &str = "\
usage: device [--adapter SUBSTRING] [--no-measure]

  --adapter SUBSTRING  only adapters of this backend, or with this in their name or driver; and CUDA devices
                       with this in their name
  --no-measure         do not measure ceilings, which takes a moment
";

fn main() -> ExitCode {
    common::main("device", std::io::stdout().lock(), |args, out, err| {
        exit_code("device", run(args, out).map(|()| 0), err)
    })
}

fn run(parser: lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    use lexopt::prelude::*;
    let (mut wanted, mut measure) = (String::new(), true);
    let mut parser = Args::new(parser, &[]);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("adapter") => wanted = parser.value()?.string()?,
            Long("no-measure") => measure = false,
            Short('h') | Long("help") => {
                return say(out, USAGE);
            }
            _ => return Err(arg.unexpected().into()),
        }
    }
    let cuda = cuda_devices(&wanted, measure);
    let filter = if wanted.is_empty() { AdapterFilter::Best } else { AdapterFilter::Name(wanted) };
    let adapters: Vec<_> = Gpu::adapters().into_iter().enumerate().filter(|(i, p)| filter.fits(*i, p)).collect();
    if adapters.is_empty() && cuda.is_empty() {
        // The error says what is missing, and what to do.
        open(filter)?;
    }
    for (index, profile) in adapters {
        let ceilings =
            if measure { Some(open(AdapterFilter::Index(index)).and_then(|gpu| gpu.ceilings())) } else { None };
        say(out, &describe(index, &profile, ceilings))?;
    }
    say(out, &cuda)
}

/// Nothing: the program was built without CUDA.
#[cfg(not(feature = "cuda"))]
fn cuda_devices(_: &str, _: bool) -> String {
    String::new()
}

/// Describes the CUDA devices with `wanted` in their name, or says in one line why there are none.
#[cfg(feature = "cuda")]
fn cuda_devices(wanted: &str, measure: bool) -> String {
    use tilework::cuda::{CudaFilter, CudaGpu, CudaOptions};
    let devices = match CudaGpu::devices() {
        Ok(devices) => devices,
        // Of interest to who asks for all devices.
        Err(e) if wanted.is_empty() => return format!("{e}\n"),
        Err(_) => return String::new(),
    };
    let wanted = wanted.to_lowercase();
    let fits = |name: &str| name.to_lowercase().contains(&wanted) || "cuda".contains(&wanted);
    let devices = devices.iter().enumerate().filter(|(_, device)| fits(&device.name));
    devices
        .map(|(ordinal, device)| {
            let options = CudaOptions { device: CudaFilter::Ordinal(ordinal), ..CudaOptions::default() };
            let ceilings = measure.then(|| CudaGpu::open(options).and_then(|gpu| gpu.ceilings()));
            describe_cuda(ordinal, device, ceilings)
        })
        .collect()
}

#[cfg(feature = "cuda")]
fn describe_cuda(
    ordinal: usize, p: &tilework::cuda::CudaProfile, ceilings: Option<tilework::Result<Ceilings>>,
) -> String {
    let mhz = |khz: u32| if khz == 0 { "not reported".to_owned() } else { format!("{} MHz", khz / 1000) };
    let mut rows = vec![
        ("CUDA device", format!("{ordinal}: {}", p.name)),
        ("  PCI address", p.pci_bus_id.clone()),
        ("  driver supports CUDA", format!("{}.{}", p.driver[0], p.driver[1])),
        ("  compute capability", format!("{}.{}", p.compute[0], p.compute[1])),
        ("  multiprocessors", p.multiprocessors.to_string()),
        ("memory", bytes(p.total_memory)),
        ("  L2 cache", bytes(p.l2_bytes)),
        ("  bus", format!("{} bits", p.memory_bus_bits)),
        ("  memory clock", mhz(p.memory_clock_khz)),
        ("  copy engines", p.copy_engines.to_string()),
        ("multiprocessor", String::new()),
        ("  clock", mhz(p.clock_khz)),
        ("  registers", p.registers.to_string()),
        ("  shared memory", bytes(p.shared_per_multiprocessor.into())),
        ("  threads", p.max_threads_per_multiprocessor.to_string()),
        ("  blocks", p.max_blocks_per_multiprocessor.to_string()),
        ("block", String::new()),
        ("  threads", p.max_threads_per_block.to_string()),
        ("  shared memory", bytes(p.shared_per_block_optin.into())),
        ("  shared memory of the system", bytes(p.shared_reserved_per_block.into())),
        ("grid-wide barriers", if p.cooperative_launch { "yes" } else { "no" }.to_owned()),
    ];
    rows.extend(ceiling_rows(ceilings));
    table(&rows)
}

fn open(adapter: AdapterFilter) -> tilework::Result<Gpu> {
    pollster::block_on(Gpu::request(GpuOptions { adapter, ..Default::default() }))
}

/// Formats a row per property, grouped by subject.
fn describe(index: usize, p: &DeviceProfile, ceilings: Option<tilework::Result<Ceilings>>) -> String {
    let (limits, features) = (&p.limits, &p.features);
    let has = |there: bool| if there { "yes" } else { "no" }.to_owned();
    let [size_x, size_y, size_z] = limits.max_workgroup_size;
    let subgroups = match p.subgroup_sizes {
        _ if !features.subgroups => "none".to_owned(),
        // Some drivers have subgroups but do not report their size.
        (0, _) | (_, 0) => "not reported".to_owned(),
        (min, max) if min == max => format!("{min} threads"),
        (min, max) => format!("{min} to {max} threads"),
    };
    let mut rows = vec![
        ("adapter", format!("{index}: {}", p.name)),
        ("  driver", p.driver.clone()),
        ("  backend", p.backend.clone()),
        ("  class", format!("{:?}", p.class).to_lowercase()),
        ("memory", String::new()),
        ("  largest buffer", bytes(limits.max_buffer_size)),
        ("  largest storage binding", bytes(limits.max_storage_binding)),
        ("  largest uniform binding", bytes(limits.max_uniform_binding)),
        ("  storage buffers in a kernel", limits.max_storage_buffers.to_string()),
        ("  alignment of storage bindings", bytes(limits.storage_alignment.into())),
        ("  alignment of uniform bindings", bytes(limits.uniform_alignment.into())),
        ("workgroup", String::new()),
        ("  memory", bytes(limits.max_workgroup_bytes.into())),
        ("  threads", limits.max_invocations.to_string()),
        ("  along x, y, z", format!("{size_x}, {size_y}, {size_z}")),
        ("  workgroups along a dimension", limits.max_workgroups_per_dimension.to_string()),
        ("  fold width of tilework", format!("{FOLD} workgroups, then the next dimension")),
        ("subgroup", subgroups),
        ("features", String::new()),
        ("  f16 in shaders", has(features.f16)),
        ("  64-bit integers in shaders", has(features.int64)),
        ("  timestamps", has(features.timestamps)),
        ("  pipelines kept on disk", has(features.pipeline_cache)),
        ("  cooperative matrices", has(features.cooperative_matrix)),
    ];
    for shape in &p.cooperative {
        let extents = format!("{} x {} x {}", shape.m, shape.n, shape.k);
        rows.push(("    m x n x k", format!("{extents}, {} to {}", shape.factors, shape.result)));
    }
    rows.extend(ceiling_rows(ceilings));
    table(&rows)
}

/// The rows of measured ceilings; none if they were not asked for.
fn ceiling_rows(ceilings: Option<tilework::Result<Ceilings>>) -> Vec<(&'static str, String)> {
    match ceilings {
        None => Vec::new(),
        Some(Err(e)) => vec![("ceilings", format!("not measured: {e}"))],
        Some(Ok(c)) => vec![
            ("ceilings, measured", String::new()),
            ("  copy, read plus written", format!("{:.1} GB/s", c.copy_bytes_per_second * 1e-9)),
            ("  f32 multiply-add, as two", format!("{:.1} GFLOP/s", c.fma_flop_per_second * 1e-9)),
            ("  balance", format!("{:.1} operations per byte", c.fma_flop_per_second / c.copy_bytes_per_second)),
        ],
    }
}

/// Formats a row per property, and an empty line.
fn table(rows: &[(&str, String)]) -> String {
    let lines = rows.iter().map(|(name, value)| format!("{name:<32} {value}").trim_end().to_owned() + "\n");
    lines.chain(["\n".to_owned()]).collect()
}

/// Formats bytes as `2147483644 B (2.00 GiB)`.
fn bytes(n: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| n >= *unit) {
        Some((unit, name)) => format!("{n} B ({:.2} {name})", n as f64 / *unit as f64),
        None => format!("{n} B"),
    }
}

//! Prints the limits, features and measured ceilings of each adapter.
//!
//! ```sh
//! cargo run --release --example device
//! cargo run --release --example device -- --adapter nvidia --no-measure
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

  --adapter SUBSTRING  only adapters of this backend, or with this in their name or driver
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
    let filter = if wanted.is_empty() { AdapterFilter::Best } else { AdapterFilter::Name(wanted) };
    let adapters: Vec<_> =
        Gpu::adapters().into_iter().enumerate().filter(|(i, p)| filter.fits(*i, p)).collect();
    if adapters.is_empty() {
        // The error says what is missing, and what to do.
        open(filter)?;
    }
    for (index, profile) in adapters {
        let ceilings = if measure {
            Some(open(AdapterFilter::Index(index)).and_then(|gpu| gpu.ceilings()))
        } else {
            None
        };
        say(out, &describe(index, &profile, ceilings))?;
    }
    Ok(())
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
    match ceilings {
        None => {}
        Some(Err(e)) => rows.push(("ceilings", format!("not measured: {e}"))),
        Some(Ok(c)) => rows.extend([
            ("ceilings, measured", String::new()),
            ("  copy, read plus written", format!("{:.1} GB/s", c.copy_bytes_per_second * 1e-9)),
            ("  f32 multiply-add, as two", format!("{:.1} GFLOP/s", c.fma_flop_per_second * 1e-9)),
            (
                "  balance",
                format!("{:.1} operations per byte", c.fma_flop_per_second / c.copy_bytes_per_second),
            ),
        ]),
    }
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

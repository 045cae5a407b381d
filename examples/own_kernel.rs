//! Runs a kernel of your own: reflects, checks and times it, and verifies the result.
//!
//! The task is a mean of three neighbours: `y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3`, where the ends count twice. The
//! program runs the kernel below, or that of a file. A kernel may bind a uniform struct with a member `n: u32`, one
//! storage buffer to read (`x`) and one to write (`y`), in any order and with any names.
//!
//! ```sh
//! cargo run --release --example own_kernel
//! cargo run --release --example own_kernel -- --print > mine.wgsl
//! cargo run --release --example own_kernel -- mine.wgsl
//! ```
//!
//! Exit code 1 if the result is wrong, 2 if the kernel is rejected, 3 without an adapter.

#[path = "common/mod.rs"]
mod common;

use common::{Args, Failure, exit_code, say};
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tilework::io::shown;
use tilework::prelude::*;
use tilework::program::Grid;
use tilework::shader::{BindingKind, Interface, Spec, Target, expand_text};

/// Not a multiple of any workgroup size.
const N: usize = 1_000_003;

const USAGE: &str = "\
usage: own_kernel [KERNEL.wgsl | --print]

  KERNEL.wgsl  run this kernel, not the built-in one
  --print      print the built-in kernel
";

const BUILT_IN: &str = "\
// The mean of three neighbours; one thread computes one element.
// tilework's fragments can be imported: this one gives workgroup_index(), for launches of any size.
#import workgroup/index

struct Params { n: u32 }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn mean_of_three(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(id) * 64u + lane;
    if i >= params.n {
        return;
    }
    let before = x[max(i, 1u) - 1u];
    let after = x[min(i + 1u, params.n - 1u)];
    y[i] = (before + x[i] + after) / 3.0;
}
";

fn main() -> ExitCode {
    common::main("own_kernel", std::io::stdout().lock(), |args, out, err| {
        exit_code("own_kernel", run(args, out).map_err(Failure::from), err)
    })
}

/// The parsed command line.
enum Asked {
    Text(&'static str),
    Run(Option<PathBuf>),
}

fn parse(args: lexopt::Parser) -> Result<Asked, Failure> {
    use lexopt::prelude::*;
    let (mut args, mut file) = (Args::new(args, &[]), None);
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Asked::Text(USAGE)),
            Long("print") => return Ok(Asked::Text(BUILT_IN)),
            Value(path) if file.is_none() => file = Some(PathBuf::from(path)),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(Asked::Run(file))
}

fn run(args: lexopt::Parser, out: &mut dyn Write) -> Result<u8, Box<dyn Error>> {
    let (name, text) = match parse(args)? {
        Asked::Text(text) => {
            say(out, text)?;
            return Ok(0);
        }
        Asked::Run(Some(path)) => {
            let name = shown(&path);
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
            (name, text)
        }
        Asked::Run(None) => ("mean_of_three.wgsl".to_owned(), BUILT_IN.to_owned()),
    };

    // Validation needs no device; errors name the line of the file.
    let module = expand_text(&name, &text, &Spec::new(), Target::Naga)?.validate()?;
    let entries = module.entries();
    let [entry] = entries[..] else {
        return Err(format!("{name}: {} entry points; this example needs exactly one", entries.len()).into());
    };
    let interface = module.interface(entry)?;
    say(out, &describe(&name, &interface))?;

    let gpu = Gpu::new()?;
    let kernel = gpu.kernel(&name, &text, entry)?;
    say(out, &format!("compiled for {}, with all runtime checks\n", gpu.profile().name))?;

    let host: Vec<f32> = (0..N).map(|i| ((i * 7919) % 1000) as f32 / 1000.0).collect();
    let x = gpu.upload(&host)?;
    // Elements that the kernel does not write stay NaN and fail the check.
    let y = gpu.upload(&vec![f32::NAN; N])?;
    let params = fill_params(&interface, N as u32)?;
    let (mut inputs, mut outputs) = (vec![Arg::from(&x)], vec![Arg::from(&y)]);
    let args = interface
        .bindings
        .iter()
        .map(|binding| match binding.kind {
            BindingKind::Uniform => Some(Arg::Uniform(&params)),
            BindingKind::Read => inputs.pop(),
            BindingKind::ReadWrite => outputs.pop(),
        })
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| format!("{name}: more buffers than the task has: one to read, one to write"))?;
    let lanes: u32 = interface.workgroup_size.iter().product();
    let Grid::Direct(workgroups) = Grid::fold(N.div_ceil(lanes as usize) as u64) else {
        return Err("a fold is always direct".into());
    };

    let mut rec = gpu.recorder();
    kernel.record(&mut rec, &args, workgroups)?;
    rec.submit()?;
    let got = y.read()?;

    let wrong = (0..N).filter_map(|i| {
        let three = [host[i.saturating_sub(1)], host[i], host[(i + 1).min(N - 1)]];
        let want = three.iter().map(|&v| f64::from(v)).sum::<f64>() / 3.0;
        // Two additions round by half a unit in the last place each, the division by 2.5 (WGSL).
        let bound = 3.5 * f64::from(f32::EPSILON) * want.abs();
        let close = (f64::from(got[i]) - want).abs() <= bound;
        (!close).then_some((i, got[i], want))
    });
    let wrong: Vec<_> = wrong.collect();
    if let Some((i, got, want)) = wrong.first() {
        let count = wrong.len();
        let first = format!("the first is y[{i}] = {got}, expected {want}");
        say(out, &format!("WRONG: {count} of {N} elements; {first}\n"))?;
        return Ok(1);
    }
    let m = gpu.measure(9, |rec| kernel.record(rec, &args, workgroups))?;
    let rate = 2.0 * 4.0 * N as f64 / m.median() * 1e-9;
    let time = format!("{:.1} us ({} clock)", m.median() * 1e6, m.clock);
    say(out, &format!("right: all {N} elements; {time}, {rate:.2} GB/s\n"))?;
    Ok(0)
}

/// Describes the kernel's bindings.
fn describe(name: &str, interface: &Interface) -> String {
    let [x, y, z] = interface.workgroup_size;
    let mut text = format!("{name}: {} with {x} x {y} x {z} threads per workgroup\n", interface.entry);
    text += &format!("  workgroup memory: {} bytes\n", interface.workgroup_bytes);
    for b in &interface.bindings {
        let kind = format!("{:?}, at least {} bytes", b.kind, b.min_size);
        text += &format!("  binding {}: {} ({kind})\n", b.index, b.name);
        for m in &b.members {
            text += &format!("    {}: {} bytes at {}\n", m.name, m.size, m.offset);
        }
    }
    text
}

/// Returns the bytes of the uniform struct: zeros, but `n` at its member.
fn fill_params(interface: &Interface, n: u32) -> Result<Vec<u8>, Box<dyn Error>> {
    let Some(uniform) = interface.bindings.iter().find(|b| b.kind == BindingKind::Uniform) else {
        return Ok(Vec::new());
    };
    let mut bytes = vec![0; uniform.min_size as usize];
    let member = uniform.members.iter().find(|m| m.name == "n" && m.size == 4);
    let place = member.and_then(|m| bytes.get_mut(m.offset as usize..m.offset as usize + 4));
    let place = place.ok_or_else(|| format!("the uniform {} has no member n: u32", uniform.name))?;
    place.copy_from_slice(&n.to_ne_bytes());
    Ok(bytes)
}

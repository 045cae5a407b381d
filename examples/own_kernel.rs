//! A kernel of your own: reflected, checked, run, and its result verified.
//!
//! The task is a mean of three neighbours: `y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3`, where the ends count twice.
//! Without an argument the kernel below does it; with a file, yours does. It may bind a uniform struct with a
//! member `n: u32`, one storage buffer to read (`x`) and one to write (`y`), in any order and of any name.
//!
//! ```sh
//! cargo run --release --example own_kernel
//! cargo run --release --example own_kernel -- --print > mine.wgsl
//! cargo run --release --example own_kernel -- mine.wgsl
//! ```
//!
//! Exit code 1 if the result is wrong, 2 if the kernel is refused, 3 if this machine has no adapter.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use tilework::ErrorKind;
use tilework::prelude::*;
use tilework::program::Grid;
use tilework::shader::{BindingKind, Interface, Spec, Target, expand_text};

/// Not a multiple of any workgroup.
const N: usize = 1_000_003;

const BUILT_IN: &str = "\
// The mean of three neighbours; one invocation computes one element.
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
    match run() {
        Ok(code) => code,
        Err(e) => {
            let none =
                matches!(e.downcast_ref::<tilework::Error>(), Some(e) if e.kind() == ErrorKind::NoAdapter);
            eprintln!("own_kernel: {e}");
            ExitCode::from(if none { 3 } else { 2 })
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let (name, text) = match file {
        Some(option) if option == "--print" => {
            // A reader that has gone away is no failure.
            let _ = std::io::stdout().write_all(BUILT_IN.as_bytes());
            return Ok(ExitCode::SUCCESS);
        }
        Some(path) => {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
            (path, text)
        }
        None => ("mean_of_three.wgsl".to_owned(), BUILT_IN.to_owned()),
    };

    // Validation needs no device; errors name the line of the file.
    let module = expand_text(&name, &text, &Spec::new(), Target::Naga)?.validate()?;
    let entries = module.entries();
    let [entry] = entries[..] else {
        return Err(format!("{name}: {} entry points; this example wants one", entries.len()).into());
    };
    let interface = module.interface(entry)?;
    print_interface(&name, &interface);

    let gpu = Gpu::new()?;
    let kernel = gpu.kernel(&name, &text, entry)?;
    println!("compiled for {}, with all runtime checks", gpu.profile().name);

    let host: Vec<f32> = (0..N).map(|i| ((i * 7919) % 1000) as f32 / 1000.0).collect();
    let x = gpu.upload(&host)?;
    // What the kernel does not write stays NaN, and will not pass.
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
        println!(
            "WRONG: {} of {N} elements; the first is y[{i}] = {got}, which should be {want}",
            wrong.len()
        );
        return Ok(ExitCode::FAILURE);
    }
    let m = gpu.measure(9, |rec| kernel.record(rec, &args, workgroups))?;
    let rate = 2.0 * 4.0 * N as f64 / m.median() * 1e-9;
    println!("right: all {N} elements; {:.1} us ({} clock), {rate:.2} GB/s", m.median() * 1e6, m.clock);
    Ok(ExitCode::SUCCESS)
}

fn print_interface(name: &str, interface: &Interface) {
    let [x, y, z] = interface.workgroup_size;
    println!("{name}: {} with {x} x {y} x {z} invocations a workgroup", interface.entry);
    println!("  workgroup memory: {} bytes", interface.workgroup_bytes);
    for b in &interface.bindings {
        println!("  binding {}: {} ({:?}, at least {} bytes)", b.index, b.name, b.kind, b.min_size);
        for m in &b.members {
            println!("    {}: {} bytes at {}", m.name, m.size, m.offset);
        }
    }
}

/// The bytes of the kernel's uniform struct: zeros, with the number of elements where its `n` is.
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

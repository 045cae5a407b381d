//! Compares all backends of this machine: Vulkan, Metal, Direct3D 12 and OpenGL adapters, CUDA, and the processor with
//! references, plain loops, tiled loops and a crate.
//!
//! ```sh
//! cargo run --release --example compare
//! cargo run --release --example compare -- --ops gemm,attention --backends vulkan,cpu --out pictures
//! ```
//!
//! Checks each result against the reference before timing it. Prints rows and writes them to `rows.json`, and draws,
//! for each op, time and throughput by size with the device's ceiling, and bars by backend. Exit code 1 if a result is
//! wrong, 2 for bad arguments.

mod backends;
mod cases;
mod chart;
mod check;
mod cli;
#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "cuda")]
mod cuda;
mod draw;
mod loops;
mod problem;
mod rows;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("compare", std::io::stdout().lock(), cli::run)
}

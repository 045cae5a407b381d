//! Every backend of this machine side by side: adapters of Vulkan, Metal, Direct3D 12 and OpenGL, and the processor by
//! the library's reference, plain loops, tiled loops and a crate.
//!
//! ```sh
//! cargo run --release --example compare
//! cargo run --release --example compare -- --ops gemm,attention --backends vulkan,cpu --out pictures
//! ```
//!
//! Each result is checked against the reference before it is timed. Rows go to the terminal and to `rows.json`; of each
//! op there are pictures of time and throughput against size, with what the device allows, and of bars by backend. Exit
//! code 1 if a result is wrong, 2 for bad arguments.

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

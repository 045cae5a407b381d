//! Checks a kernel without a GPU and counts its costs: one of tilework's ops, named as in the `op` example, or any
//! WGSL.
//!
//! ```sh
//! cargo run --release --example sanitize -- reduce x.npy --op max --axis last --schedule adversarial
//! cargo run --release --example sanitize -- kernel.wgsl --workgroups 4,1,1 --buffer in.npy --buffer zeros:4096
//! ```
//!
//! Exit code 0 without findings, 1 with findings, 2 with one line on standard error for bad input.

mod cli;
#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("sanitize", std::io::stdout().lock(), cli::run)
}

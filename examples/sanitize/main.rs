//! Runs a kernel without a GPU and says what is wrong with it and what it costs: one of ours as the `op` example names
//! it, or anybody's WGSL.
//!
//! ```sh
//! cargo run --release --example sanitize -- reduce x.npy --op max --axis last --schedule adversarial
//! cargo run --release --example sanitize -- kernel.wgsl --workgroups 4,1,1 --buffer in.npy --buffer zeros:4096
//! ```
//!
//! Exit code 0 if nothing is found, 1 if something is, 2 with one line on standard error for bad input.

mod cli;
#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("sanitize", std::io::stdout().lock(), cli::run)
}

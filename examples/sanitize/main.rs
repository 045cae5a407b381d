//! Runs a kernel without a GPU and says what is wrong with it and what it costs: one of ours as the `op` example names
//! it, or anybody's WGSL.
//!
//! ```sh
//! cargo run --release --example sanitize -- reduce x.npy --op max --axis last --schedule adversarial
//! cargo run --release --example sanitize -- kernel.wgsl --workgroups 4,1,1 --buffer in.npy --buffer zeros:4096
//! ```
//!
//! Exit code 0 if nothing is found, 1 if something is, 2 with one line on standard error for bad input.

#[allow(dead_code, reason = "the op example lists ops too")]
#[path = "../op/asked.rs"]
mod asked;
mod cli;
#[allow(dead_code, reason = "other programs open files by it")]
#[path = "../streaming/failure.rs"]
mod failure;
#[path = "../op/header.rs"]
mod header;
#[allow(dead_code, reason = "the op example writes files too")]
#[path = "../op/npy.rs"]
mod npy;

use std::process::ExitCode;

fn main() -> ExitCode {
    failure::main("sanitize", std::io::stdout().lock(), cli::run)
}

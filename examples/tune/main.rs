//! Measures variants of ops on this device, and keeps the fastest for planning.
//!
//! ```sh
//! cargo run --release --example tune                                          # every op, nothing is kept
//! cargo run --release --example tune -- --ops gemm,reduce --sizes large --save
//! ```
//!
//! Each candidate's result is compared with the default's; a variant that differs is denied on this driver (with
//! `--save`, also in later runs). Exit code 1 if a variant is wrong, the device fails, or the results cannot be saved,
//! 2 for bad input, 3 without an adapter.

mod cases;
mod cli;
#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("tune", std::io::stdout().lock(), cli::run)
}

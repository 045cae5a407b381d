//! Measures every variant of the matrix product on one shape, and draws them on this device's roofline: coarsening by 2
//! and 4, rows of sums with A straight from storage and staged, loops rolled and unrolled, k in slices.
//!
//! ```sh
//! cargo run --release --example ladder
//! cargo run --release --example ladder -- 1000 2000 500 --out ladder.svg
//! ```
//!
//! Exit code 1 if a result is wrong, 2 for bad arguments, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("ladder", std::io::stdout().lock(), cli::run)
}

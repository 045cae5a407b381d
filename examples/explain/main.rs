//! Predicts and measures every variant of an op: bytes, operations, intensity, barriers, workgroup memory, occupancy,
//! time, and the roofline with all variants on it.
//!
//! ```sh
//! cargo run --release --example explain -- gemm --shape 1024x1024 --shape 1024x1024 -o gemm.svg
//! cargo run --release --example explain -- reduce --shape 16777216 --op max
//! cargo run --release --example explain -- spmv --matrix bcsstk16.mtx
//! cargo run --release --example explain -- occupancy --threads 288 --shared 10K --registers 9K --device h100
//! ```
//!
//! Takes any op with its keys, as the `op` example does; the arrays are random. Exit code 0 on success, 2 with one line
//! on standard error for bad input, 3 without an adapter, 1 if a device fails.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod inputs;
mod occupancy;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("explain", std::io::stdout().lock(), cli::run)
}

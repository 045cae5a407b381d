//! What each variant of an op would do on a shape, and what it did: bytes, operations, intensity, barriers, workgroup
//! memory, occupancy, predicted and measured time, and the roofline with all of them on it.
//!
//! ```sh
//! cargo run --release --example explain -- gemm --shape 1024x1024 --shape 1024x1024 -o gemm.svg
//! cargo run --release --example explain -- reduce --shape 16777216 --op max
//! cargo run --release --example explain -- spmv --matrix bcsstk16.mtx
//! ```
//!
//! Any op and its keys as the `op` example has them; the arrays are random. Exit code 0 on success, 2 with one line on
//! standard error for bad input, 3 if this machine has no adapter, 1 if a device fails.

#[allow(dead_code, reason = "the op example reads arrays from files")]
#[path = "../op/asked.rs"]
mod asked;
mod cli;
#[allow(dead_code, reason = "other programs open files by it")]
#[path = "../streaming/failure.rs"]
mod failure;
#[path = "../op/header.rs"]
mod header;
mod inputs;
#[allow(dead_code, reason = "the op example writes files too")]
#[path = "../op/npy.rs"]
mod npy;
#[allow(dead_code, reason = "other programs draw pixels too")]
#[path = "../pictures/mod.rs"]
mod pictures;
#[path = "../pictures/roofline.rs"]
mod roofline;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    failure::main("explain", std::io::stdout().lock(), cli::run)
}

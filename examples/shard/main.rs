//! Works on all devices of this machine at once, and measures how much faster that is than one.
//!
//! ```sh
//! cargo run --release --example shard -- sort --items 2^28
//! cargo run --release --example shard -- gemm 16384
//! cargo run --release --example shard -- solve --grid 200
//! cargo run --release --features nccl --example shard -- reduce --bytes 1G --link nccl
//! mpirun -n 2 cargo run --release --features mpi --example shard -- train --link mpi
//! mpirun --hostfile hosts -n 16 target/release/examples/shard train --link mpi # built on each host
//! ```
//!
//! Each device has a thread, a rank, and holds a shard of the data. A table has a row for 1, 2, 4, ... devices: the
//! time, the speed-up, the bytes that travelled, the share of the link's measured rate, and the time that the model
//! predicts. Results are checked. Exit code 1 for a wrong result or if a device fails, 2 for bad input, 3 without an
//! adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod picture;
mod table;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("shard", std::io::stdout().lock(), cli::run)
}

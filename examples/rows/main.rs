//! Prints lines of large files by number: finds line starts on the device, and reads only the requested bytes.
//!
//! ```sh
//! cargo run --release --example rows -- big.log                        # how many lines, how fast
//! cargo run --release --example rows -- big.log --line 1000000         # that line
//! cargo run --release --example rows -- big.log --range 10..20 --index big.rows
//! ```
//!
//! Reads a file in chunks, the next while the device works on the last. The example's kernel marks newlines eight bytes
//! at a time, `Select` keeps the marks with any, and the host turns them into 64-bit positions. Exit code 1 if
//! `--check` finds a difference or the device fails, 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod index;
mod saved;

use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("rows", BufWriter::new(std::io::stdout().lock()), cli::run)
}

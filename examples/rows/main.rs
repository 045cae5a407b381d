//! Lines of large files by number: finds where lines begin on the device, then reads only the bytes asked for.
//!
//! ```sh
//! cargo run --release --example rows -- big.log                        # how many lines, how fast
//! cargo run --release --example rows -- big.log --line 1000000         # that line
//! cargo run --release --example rows -- big.log --range 10..20 --index big.rows
//! ```
//!
//! A file is read in chunks, the next one while the device works on the last. A kernel of the example's own marks
//! newlines eight bytes at a time, `Select` keeps the marks that have any, and the host makes them positions of 64
//! bits. Exit code 1 if `--check` finds a difference or the device fails, 2 for bad input, 3 if there is no adapter.

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

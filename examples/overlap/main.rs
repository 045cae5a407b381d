//! Measures the gain of overlapping host copies with device work, and the limit of a single queue.
//!
//! ```sh
//! cargo run --release --example overlap -- -o overlap.svg
//! cargo run --release --example overlap -- --balance --chunk 4M,16M --in-flight 2,3,4
//! cargo run --release --example overlap -- --only histogram --file book.txt
//! ```
//!
//! A vector addition and a histogram of bytes run through `stream::Pipeline`, first one chunk after another, then with
//! several chunks in flight. The processor checks every run. `--balance` makes kernels heavier until the device takes
//! as long as the slower host copy, where overlap gains most. `-o` draws a timeline. Exit code 1 for a wrong result or
//! if the device fails, 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod picture;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("overlap", std::io::stdout().lock(), cli::run)
}

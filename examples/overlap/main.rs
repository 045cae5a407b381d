//! What is gained when host copies run beside the device's work, and what one queue prevents.
//!
//! ```sh
//! cargo run --release --example overlap -- -o overlap.svg
//! cargo run --release --example overlap -- --balance --chunk 4M,16M --in-flight 2,3,4
//! cargo run --release --example overlap -- --only histogram --file book.txt
//! ```
//!
//! A vector addition and a histogram of bytes run through `stream::Pipeline`, first one chunk after another, then
//! with several chunks in flight. Every run is checked against the processor. With `--balance` kernels are made
//! heavier until the device takes as long as the slower of the two host copies, which is where overlap gains most.
//! `-o` draws what ran when. Exit code 1 for a wrong result or if the device fails, 2 for bad input, 3 if there is no
//! adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod picture;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("overlap", std::io::stdout().lock(), cli::run)
}

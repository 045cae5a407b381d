//! Finds the most frequent words of text files, on the device.
//!
//! ```sh
//! cargo run --release --example wordcount -- README.md
//! cargo run --release --example wordcount -- books/*.txt --top 50 --check
//! ```
//!
//! Reads files as one stream, in pieces that end between words, the next one while the device works on the last.
//! `counter.rs` describes the device's part, `words.rs` defines words. Counts are exact. Exit code 1 if `--check` finds
//! a difference or the device fails, 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod counter;
mod pieces;
mod words;

use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("wordcount", BufWriter::new(std::io::stdout().lock()), cli::run)
}

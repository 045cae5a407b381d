//! The most frequent words of text files: split, hashed, sorted and counted on the device.
//!
//! ```sh
//! cargo run --release --example wordcount -- README.md
//! cargo run --release --example wordcount -- books/*.txt --top 50 --check
//! ```
//!
//! Files are read as one stream, in pieces that end where a word does, the next one while the device works on the last.
//! `counter.rs` says what happens on the device, `words.rs` what a word is. Counts are exact.
//! Exit code 1 if `--check` finds a difference or the device fails, 2 for bad input, 3 if there is no adapter.

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

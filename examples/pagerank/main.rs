//! Ranks the nodes of a graph on the device.
//!
//! ```sh
//! cargo run --release --example pagerank -- 4elt.mtx --top 10 --spy 4elt.png
//! cargo run --release --example pagerank -- web.mtx --damping 0.9 -o ranks.mtx
//! ```
//!
//! A graph is a square matrix: an entry in row i and column j is a link from i to j. The processor takes one more step
//! from the result, in f64, and reports how far ranks move. Exit code 1 if it does not converge or the device fails, 2
//! for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("pagerank", std::io::stdout().lock(), cli::run)
}

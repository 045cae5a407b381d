//! Builds a quadtree over points in the plane on the device, level by level, without a host round trip.
//!
//! ```sh
//! cargo run --release --example quadtree -- --picture tree.png
//! cargo run --release --example quadtree -- places.csv --leaf-capacity 8 --max-depth 12 -o tree.json
//! cargo run --release --example quadtree -- --points 1000000 --shape spiral
//! ```
//!
//! `tree.rs` runs the library's `Quadtree`, `points.rs` the files. The processor builds the same tree by the reference
//! and compares. Exit code 1 if the trees differ or the device fails, 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod picture;
mod points;
mod results;
mod tree;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("quadtree", std::io::stdout().lock(), cli::run)
}

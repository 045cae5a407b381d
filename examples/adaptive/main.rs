//! Integrates a field over a grid that is refined on the device where the field varies, level by level, without a host
//! round trip.
//!
//! ```sh
//! cargo run --release --example adaptive -- --field vortex --picture vortex.png
//! cargo run --release --example adaptive -- --image photo.jpg --threshold 0.2 --picture cells.png
//! ```
//!
//! `adaptive_grid.rs` runs the library's `AdaptiveGrid`; `field.rs` and `fields.wgsl` have the fields. The processor
//! checks every cell. Exit code 1 if it finds a difference or the device fails, 2 for bad input, 3 without an adapter.

mod adaptive_grid;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod field;
mod picture;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("adaptive", std::io::stdout().lock(), cli::run)
}

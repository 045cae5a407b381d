//! A grid on the device that is fine where a field varies and coarse elsewhere, refined level by level
//! without a look from the host between, and the integral of the field over it.
//!
//! ```sh
//! cargo run --release --example adaptive -- --field vortex --picture vortex.png
//! cargo run --release --example adaptive -- --image photo.jpg --threshold 0.2 --picture cells.png
//! ```
//!
//! `adaptive_grid.rs` says what happens on the device, `field.rs` what fields there are. The processor
//! measures each cell too and follows how cells split. Exit code 1 if it finds something else or the device
//! fails, 2 for bad input, 3 if there is no adapter.

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

//! Image filters on PNG and JPEG files.
//!
//! ```sh
//! cargo run --release --example image -- in.jpg edges.png --ops grey,gaussian=1.5,sobel
//! cargo run --release --example image -- in.png out.png --ops blur=3,equalize --check
//! ```
//!
//! The picture goes to the device once, each filter's result is the next one's input, and the last one comes back.
//! Exit code 1 if `--check` finds a difference or the device fails, 2 for bad input, 3 if there is no adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("image", std::io::stdout().lock(), cli::run)
}

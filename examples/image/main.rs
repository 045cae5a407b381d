//! Applies image filters to PNG and JPEG files.
//!
//! ```sh
//! cargo run --release --example image -- in.jpg edges.png --ops grey,gaussian=1.5,sobel
//! cargo run --release --example image -- in.png out.png --ops blur=3,equalize --check
//! ```
//!
//! The picture is uploaded once, each filter's result is the next one's input, and the last one is downloaded. Exit
//! code 1 if `--check` finds a difference or the device fails, 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod steps;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("image", std::io::stdout().lock(), cli::run)
}

//! Trains a convolutional network to recognise digits or clothes.
//!
//! ```sh
//! cargo run --release --example cnn -- train --data fashion-mnist --weights fashion.safetensors
//! cargo run --release --example cnn -- test --data fashion-mnist --weights fashion.safetensors
//! ```
//!
//! `--data` is a folder with the IDX files of MNIST or Fashion-MNIST, plain or as .gz. The network has two 3 x 3
//! convolutions with pooling and two fully connected layers; a training step (forward, backward, Adam) is one plan. The
//! same seed on the same device gives the same losses. Exit code 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod learn;
mod weights;

use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("cnn", BufWriter::new(std::io::stdout().lock()), cli::run)
}

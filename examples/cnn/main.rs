//! Trains a network to recognise digits or clothes.
//!
//! ```sh
//! cargo run --release --example cnn -- train --data fashion-mnist --weights fashion.safetensors
//! cargo run --release --example cnn -- test --data fashion-mnist --weights fashion.safetensors
//! cargo run --release --example cnn -- train --data fashion-mnist --model lenet --curve loss.png
//! ```
//!
//! `--data` is a folder with the IDX files of MNIST or Fashion-MNIST, plain or as .gz. `--model` picks a
//! convolutional network, LeNet with batch norms, two hidden layers, or a perceptron. A training step (forward,
//! backward, optimizer) is one plan; the schedule writes the learning rate. The same seed on the same device gives the
//! same losses, also from a checkpoint on. Exit code 2 for bad input, 3 without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod learn;
mod models;
mod weights;

use std::io::BufWriter;
use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("cnn", BufWriter::new(std::io::stdout().lock()), cli::run)
}

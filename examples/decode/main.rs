//! Measures what quantisation costs a decoder: perplexity of a text by the types of weights and of the KV cache.
//! `decode train` trains a small transformer instead.
//!
//! ```sh
//! cargo run --release --example decode -- README.md
//! cargo run --release --example decode -- book.txt --width 256 --layers 4 --bytes 200000
//! cargo run --release --example decode -- train book.txt --curve loss.svg
//! ```
//!
//! The decoder reads bytes, with RMS norm, rotary positions, grouped heads and GELU. Its body is random, drawn from a
//! seed; only the head, which turns the last layer's vectors into logits, is fitted to the first three quarters of the
//! text, also on the device. The perplexity is that of the last quarter, next to that of counting bytes and pairs of
//! bytes. The numbers are those of a small model; their differences matter. Then the text is read token by token with
//! the cache, which must give the same logits.
//!
//! With `train` all weights of a transformer of two layers are trained on the device, which predicts the text character
//! by character: forward pass, gradients (`attention-backward` among them) and Adam. It prints the loss, draws it, and
//! writes a line.
//!
//! Exit code 1 if it does not or the device fails, 2 for bad input, 3
//! without an adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod head;
mod model;
mod text;
mod train;
mod transformer;
mod weights;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("decode", std::io::stdout().lock(), cli::run)
}

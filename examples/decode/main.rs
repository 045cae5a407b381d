//! What quantisation costs a decoder: perplexity of a text by the types of weights and of the cache of keys and values.
//!
//! ```sh
//! cargo run --release --example decode -- README.md
//! cargo run --release --example decode -- book.txt --width 256 --layers 4 --bytes 200000
//! ```
//!
//! The decoder reads bytes: RMS norm, attention with rotary positions and grouped heads, GELU. Its body is random, by
//! a seed, and stays so; only the head, which makes logits of the last layer's vectors, is fitted to the first three
//! quarters of the text, on the device too. Perplexity is that of the last quarter, beside what counting bytes and
//! pairs of them gives: numbers of a small model, whose differences are what matters here. Then the text is read
//! token by token with the cache, which must give the logits of the whole pass. Exit code 1 if it does not or the
//! device fails, 2 for bad input, 3 if there is no adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod head;
mod model;
mod text;
mod weights;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("decode", std::io::stdout().lock(), cli::run)
}

//! Sentences to vectors, by a transformer whose every step is a kernel of the library.
//!
//! ```sh
//! cargo run --release --example encoder -- --weights model.safetensors --vocab vocab.txt \
//!     "A man is eating food." "Someone has a meal." "The stock market fell."
//! cargo run --release --example encoder -- --weights model.safetensors --vocab vocab.txt --precision f16 --bench "A sentence."
//! ```
//!
//! The files are those of a BERT encoder for sentences, such as all-MiniLM-L6-v2: six layers of embeddings by number,
//! attention, products with bias and GELU, layer norms; the mean of a sentence's tokens, made one of norm 1, is its
//! vector. All ops are planned once and recorded as one submission. Exit code 1 if `--check` finds a vector that is
//! off or the device fails, 2 for bad input, 3 if there is no adapter.

mod cli;
#[path = "../common/mod.rs"]
mod common;
mod exact;
mod model;
mod tokens;
mod weights;

use std::process::ExitCode;

fn main() -> ExitCode {
    common::main("encoder", std::io::stdout().lock(), cli::run)
}

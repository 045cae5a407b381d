//! Embeds sentences with a BERT encoder.
//!
//! ```sh
//! cargo run --release --example encoder -- --weights model.safetensors --vocab vocab.txt \
//!     "A man is eating food." "Someone has a meal." "The stock market fell."
//! cargo run --release --example encoder -- --weights model.safetensors --vocab vocab.txt \
//!     --precision f16 --bench "A sentence."
//! ```
//!
//! The files are those of a BERT sentence encoder such as all-MiniLM-L6-v2: embeddings, then layers of attention,
//! products with bias and GELU, and layer norms; the normalised mean of a sentence's tokens is its vector. All ops are
//! planned once and recorded as one submission. Exit code 1 if `--check` finds a wrong vector or the device fails, 2
//! for bad input, 3 without an adapter.

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

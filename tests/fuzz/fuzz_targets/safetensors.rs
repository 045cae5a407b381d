//! Bytes as a safetensors file, by the readers of the examples `cnn` and `encoder`.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the modules of the examples do more than read")]

#[path = "../../../examples/cnn/weights.rs"]
mod cnn;
mod common;
#[path = "../../../examples/encoder/weights.rs"]
mod encoder;
mod file;
#[path = "../../../examples/cnn/models.rs"]
mod models;

use libfuzzer_sys::fuzz_target;
use tilework::nn::Sequential;

fuzz_target!(|data: &[u8]| {
    let path = file::holding(data);
    let net = Sequential::new([1, 2, 2]).flatten().linear(2);
    if let Ok(values) = cnn::load(path, &net) {
        assert_eq!(Ok(values.len()), net.parameter_len());
    }
    let heads = usize::from(data.last().copied().unwrap_or(0) % 4);
    if let Ok(weights) = encoder::Weights::read(path, heads) {
        assert_eq!(weights.words.len(), weights.pieces * weights.hidden);
    }
});

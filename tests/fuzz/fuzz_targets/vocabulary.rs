//! Bytes as the vocabulary of the example `encoder`, and after the last empty line a text to split into its pieces.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the modules of the example do more than read")]

mod common;
#[path = "../../../examples/encoder/tokens.rs"]
mod tokens;

use libfuzzer_sys::fuzz_target;
use tokens::Vocabulary;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (pieces, words) = text.rsplit_once("\n\n").unwrap_or((&text, &text));
    // Without the special pieces the rest is not read.
    for pieces in [pieces.to_owned(), format!("[UNK]\n[CLS]\n[SEP]\n{pieces}")] {
        let Ok(vocabulary) = Vocabulary::parse(&pieces) else { continue };
        let limit = data.len() % 64;
        let numbers = vocabulary.tokens(words, limit);
        assert!(numbers.len() <= limit.max(1), "{} of {limit}", numbers.len());
        assert!(numbers.iter().all(|n| (*n as usize) < vocabulary.len()));
    }
});

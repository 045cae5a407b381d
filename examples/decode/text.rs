//! A text in two parts, and what counting says of it.

use super::common::{Failure, open_file};
use super::weights::BYTES;
use std::io::Read;
use std::path::Path;
use tilework::analysis::perplexity;

/// Pieces of a text, each of as many bytes as a decoder reads together.
pub(crate) struct Text {
    /// To fit the head to.
    pub(crate) fitted: Vec<Vec<u8>>,
    /// To be judged by.
    pub(crate) judged: Vec<Vec<u8>>,
}

impl Text {
    /// The first `most` bytes of a file, whole pieces: three quarters and one.
    pub(crate) fn read(path: &Path, context: usize, most: usize) -> Result<Self, Failure> {
        let (file, _) = open_file(path)?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes).map_err(|e| Failure::file(path, &e))?;
        Self::of(&bytes, context).map_err(|e| e.at(path))
    }

    pub(crate) fn of(bytes: &[u8], context: usize) -> Result<Self, Failure> {
        let pieces: Vec<Vec<u8>> = bytes.chunks_exact(context).map(<[u8]>::to_vec).collect();
        if pieces.len() < 2 {
            return Err(Failure::bad_input(format!(
                "{} bytes are too few: at least two pieces of {context} (--context) are needed",
                bytes.len()
            )));
        }
        let judged = pieces.len().div_ceil(4);
        let (fitted, judged) = pieces.split_at(pieces.len() - judged);
        Ok(Self { fitted: fitted.to_vec(), judged: judged.to_vec() })
    }

    /// Perplexity of the last part by how often bytes come in the first: each for itself, and behind the one before it.
    pub(crate) fn by_counting(&self) -> [f64; 2] {
        // As if every byte had been seen behind each a little: nothing is impossible.
        const UNSEEN: f64 = 0.05;
        let (mut single, mut pairs) = (vec![UNSEEN; BYTES], vec![UNSEEN; BYTES * BYTES]);
        let pair = |pair: &[u8]| usize::from(pair[0]) * BYTES + usize::from(pair[1]);
        for piece in &self.fitted {
            for two in piece.windows(2) {
                single[usize::from(two[1])] += 1.0;
                pairs[pair(two)] += 1.0;
            }
        }
        let all: f64 = single.iter().sum();
        let behind: Vec<f64> = pairs.chunks(BYTES).map(|row| row.iter().sum()).collect();
        let judged = || self.judged.iter().flat_map(|piece| piece.windows(2));
        let alone: Vec<f64> = judged().map(|two| -(single[usize::from(two[1])] / all).ln()).collect();
        let after: Vec<f64> =
            judged().map(|two| -(pairs[pair(two)] / behind[usize::from(two[0])]).ln()).collect();
        [perplexity(&alone), perplexity(&after)]
    }
}

//! A text in two parts, and predictions by counting.

use super::common::{Failure, open_file};
use super::weights::BYTES;
use std::io::Read;
use std::path::Path;
use tilework::analysis::perplexity;

/// Pieces of a text, each as long as the context.
pub(crate) struct Text {
    /// Pieces to fit the head.
    pub(crate) fitted: Vec<Vec<u8>>,
    /// Pieces to measure perplexity.
    pub(crate) judged: Vec<Vec<u8>>,
}

impl Text {
    /// Reads whole pieces of the first `most` bytes of a file; a quarter of them is for measuring.
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
                "{} bytes are too few: give at least two pieces of {context} (--context)",
                bytes.len()
            )));
        }
        let judged = pieces.len().div_ceil(4);
        let (fitted, judged) = pieces.split_at(pieces.len() - judged);
        Ok(Self { fitted: fitted.to_vec(), judged: judged.to_vec() })
    }

    /// Returns the perplexity of the last part, by frequencies of single bytes and of pairs in the first part.
    pub(crate) fn by_counting(&self) -> [f64; 2] {
        // A small count for unseen bytes, so that nothing is impossible.
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
        let after: Vec<f64> = judged().map(|two| -(pairs[pair(two)] / behind[usize::from(two[0])]).ln()).collect();
        [perplexity(&alone), perplexity(&after)]
    }
}

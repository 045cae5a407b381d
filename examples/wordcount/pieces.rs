//! Reads several files as one stream of pieces that end between words.

use super::common::{Failure, open_file};
use super::words::ends_word;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Reads pieces of at most `chunk` bytes, or more if a word is longer. Each file gets a trailing newline, so that its
/// last word does not continue in the next file.
pub(crate) struct Pieces {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, File)>,
    chunk: usize,
    /// Bytes read after the last cut.
    rest: Vec<u8>,
}

impl Pieces {
    pub(crate) fn new(files: Vec<PathBuf>, chunk: usize) -> Self {
        Self { files: files.into_iter(), open: None, chunk, rest: Vec::new() }
    }

    /// Puts the next piece into an empty buffer; returns false at the end.
    pub(crate) fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, Failure> {
        piece.append(&mut self.rest);
        let (mut searched, mut wanted) = (0, self.chunk);
        loop {
            while piece.len() < wanted {
                if !self.read(piece, wanted)? {
                    return Ok(!piece.is_empty());
                }
            }
            if let Some(last) = piece[searched..].iter().rposition(|byte| ends_word(*byte)) {
                self.rest.extend_from_slice(&piece[searched + last + 1..]);
                piece.truncate(searched + last + 1);
                return Ok(true);
            }
            // One word fills the buffer: search for its end.
            searched = piece.len();
            wanted = 2 * searched;
        }
    }

    /// Reads until there are `wanted` bytes or a file ends; returns false after the last file.
    fn read(&mut self, piece: &mut Vec<u8>, wanted: usize) -> Result<bool, Failure> {
        let (path, file) = match &mut self.open {
            Some(open) => open,
            None => {
                let Some(path) = self.files.next() else { return Ok(false) };
                let (file, _) = open_file(&path)?;
                self.open.insert((path, file))
            }
        };
        let missing = wanted - piece.len();
        piece.try_reserve(missing).map_err(|_| {
            let held = piece.len();
            Failure::bad_input(format!("a word of {held} bytes or more is too long for this machine's memory")).at(path)
        })?;
        let read = file.take(missing as u64).read_to_end(piece).map_err(|e| Failure::file(path, &e))?;
        if read < missing {
            piece.push(b'\n');
            self.open = None;
        }
        Ok(true)
    }
}

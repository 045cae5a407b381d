//! Defines words, and counts them on the host.

use std::collections::HashMap;
use std::io::{self, BufRead};

/// Counts of words. Words are bytes, with ASCII letters in lower case.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    of: HashMap<Box<[u8]>, u64>,
    /// Scratch for the word being looked up.
    word: Vec<u8>,
}

impl Counts {
    /// Adds `count` occurrences of the word at the start of `text`, and returns its length.
    pub(crate) fn add(&mut self, text: &[u8], count: u64) -> usize {
        self.word.clear();
        for (i, byte) in text.iter().enumerate() {
            if separator(&text[i..]) > 0 {
                break;
            }
            self.word.push(byte.to_ascii_lowercase());
        }
        match self.of.get_mut(&*self.word) {
            Some(so_far) => *so_far += count,
            None => {
                self.of.insert(self.word.as_slice().into(), count);
            }
        }
        self.word.len()
    }

    /// Adds all words of `text`.
    pub(crate) fn add_all(&mut self, mut text: &[u8]) {
        while !text.is_empty() {
            let bytes = match separator(text) {
                0 => self.add(text, 1),
                bytes => bytes,
            };
            text = &text[bytes..];
        }
    }

    /// Adds the words of a file, line by line.
    pub(crate) fn add_lines(&mut self, mut text: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        while text.read_until(b'\n', &mut line)? > 0 {
            self.add_all(&line);
            line.clear();
        }
        Ok(())
    }

    /// Returns the number of words.
    pub(crate) fn all(&self) -> u64 {
        self.of.values().sum()
    }

    /// Returns the number of different words.
    pub(crate) fn different(&self) -> usize {
        self.of.len()
    }

    /// Returns the words by falling count, then by bytes.
    pub(crate) fn ranked(&self) -> Vec<(&[u8], u64)> {
        let mut ranked: Vec<_> = self.of.iter().map(|(word, count)| (&**word, *count)).collect();
        ranked.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        ranked
    }

    /// Describes the first word, in byte order, whose count differs.
    pub(crate) fn difference(&self, host: &Self) -> Option<String> {
        let of = |counts: &Self, word: &[u8]| counts.of.get(word).copied().unwrap_or(0);
        let words = self.of.keys().chain(host.of.keys()).map(|word| &**word);
        let word = words.filter(|word| of(self, word) != of(host, word)).min()?;
        let (there, here) = (of(self, word), of(host, word));
        Some(format!("`{}` occurs {here} times; the device says {there}", String::from_utf8_lossy(word)))
    }
}

/// Returns the length of the separator at the start of `text`; 0 if it starts with a word.
///
/// Words are the longest runs of ASCII letters, ASCII digits and bytes that are not ASCII, except punctuation:
/// U+0080 to U+00BF, U+2000 to U+207F (dashes, quotation marks) and U+3000 to U+303F separate words.
fn separator(text: &[u8]) -> usize {
    match text {
        [byte, ..] if byte.is_ascii() => usize::from(ends_word(*byte)),
        [0xc2, 0x80..=0xbf, ..] => 2,
        [0xe2, 0x80 | 0x81, 0x80..=0xbf, ..] | [0xe3, 0x80, 0x80..=0xbf, ..] => 3,
        _ => 0,
    }
}

/// Returns whether a word always ends at this byte.
pub(crate) fn ends_word(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

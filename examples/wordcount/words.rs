//! What a word is, and counts of words: on the host, where pieces are cut and counts come together.

use std::collections::HashMap;
use std::io::{self, BufRead};

/// How often each word occurs. Words are bytes, in lower case as far as they are ASCII.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    of: HashMap<Box<[u8]>, u64>,
    /// The word that is looked up.
    word: Vec<u8>,
}

impl Counts {
    /// Adds `count` occurrences of the word that `text` begins with, and gives the bytes of that word.
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

    /// Adds the words of `text`, one after another.
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

    /// Words, each time that one occurs.
    pub(crate) fn all(&self) -> u64 {
        self.of.values().sum()
    }

    /// Different words.
    pub(crate) fn different(&self) -> usize {
        self.of.len()
    }

    /// The words from the most frequent to the rarest; those of equal counts in the order of their bytes.
    pub(crate) fn ranked(&self) -> Vec<(&[u8], u64)> {
        let mut ranked: Vec<_> = self.of.iter().map(|(word, count)| (&**word, *count)).collect();
        ranked.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        ranked
    }

    /// The first word in the order of bytes that the host counts otherwise, in words.
    pub(crate) fn difference(&self, host: &Self) -> Option<String> {
        let of = |counts: &Self, word: &[u8]| counts.of.get(word).copied().unwrap_or(0);
        let words = self.of.keys().chain(host.of.keys()).map(|word| &**word);
        let word = words.filter(|word| of(self, word) != of(host, word)).min()?;
        let (there, here) = (of(self, word), of(host, word));
        Some(format!("`{}` occurs {here} times; the device says {there}", String::from_utf8_lossy(word)))
    }
}

/// Bytes of the separator that `text` begins with; 0 if it begins with a byte of a word.
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

/// Whether no word goes on beyond this byte, whatever follows.
pub(crate) fn ends_word(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

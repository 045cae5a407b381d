//! What a word is, and counts of words: on the host, where pieces are cut and counts come together.

use std::collections::HashMap;
use std::io::{self, BufRead};

/// How often each word occurs. Words are bytes, in lower case as far as they are ASCII.
pub(crate) type Counts = HashMap<Box<[u8]>, u64>;

/// Bytes of the separator that `text` begins with; 0 if it begins with a byte of a word.
///
/// Words are the longest runs of ASCII letters, ASCII digits and bytes that are not ASCII, except punctuation: U+0080 to U+00BF,
/// U+2000 to U+207F (dashes, quotation marks) and U+3000 to U+303F separate words.
fn separator(text: &[u8]) -> usize {
    match text {
        [0xc2, 0x80..=0xbf, ..] => 2,
        [0xe2, 0x80 | 0x81, 0x80..=0xbf, ..] | [0xe3, 0x80, 0x80..=0xbf, ..] => 3,
        [byte, ..] if byte.is_ascii() && !byte.is_ascii_alphanumeric() => 1,
        _ => 0,
    }
}

/// The word that `text` begins with, as it is written there.
pub(crate) fn first_word(text: &[u8]) -> &[u8] {
    let len = (0..text.len()).find(|&i| separator(&text[i..]) > 0).unwrap_or(text.len());
    &text[..len]
}

/// Whether no word goes on beyond this byte, whatever follows.
pub(crate) fn ends_word(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_alphanumeric()
}

/// Adds `count` occurrences of `word`.
pub(crate) fn add(counts: &mut Counts, word: &[u8], count: u64) {
    let word = word.to_ascii_lowercase();
    match counts.get_mut(&*word) {
        Some(so_far) => *so_far += count,
        None => {
            counts.insert(word.into(), count);
        }
    }
}

/// Counts the words of `text`, one after another.
pub(crate) fn count(counts: &mut Counts, mut text: &[u8]) {
    while !text.is_empty() {
        let skip = separator(text);
        if skip > 0 {
            text = &text[skip..];
        } else {
            let word = first_word(text);
            add(counts, word, 1);
            text = &text[word.len()..];
        }
    }
}

/// Counts the words of a file line by line.
pub(crate) fn count_lines(counts: &mut Counts, mut text: impl BufRead) -> io::Result<()> {
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        count(counts, &line);
        line.clear();
    }
    Ok(())
}

/// The words from the most frequent to the rarest; those of equal counts in the order of their bytes.
pub(crate) fn ranked(counts: &Counts) -> Vec<(&[u8], u64)> {
    let mut ranked: Vec<_> = counts.iter().map(|(word, count)| (&**word, *count)).collect();
    ranked.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    ranked
}

/// The first word in the order of bytes whose counts differ, in words.
pub(crate) fn difference(device: &Counts, host: &Counts) -> Option<String> {
    let differs = |word: &&Box<[u8]>| device.get(*word) != host.get(*word);
    let word = device.keys().chain(host.keys()).filter(differs).min()?;
    let of = |counts: &Counts| counts.get(word).copied().unwrap_or(0);
    let (there, here) = (of(device), of(host));
    Some(format!("`{}` occurs {here} times; the device says {there}", String::from_utf8_lossy(word)))
}

//! Tokenises text: WordPiece with the vocabulary of an uncased BERT.

use super::common::Failure;
use std::collections::HashMap;
use std::path::Path;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Longer words are unknown.
const LONGEST: usize = 100;

/// The model's word pieces and their numbers.
pub(crate) struct Vocabulary {
    pieces: HashMap<String, u32>,
    begin: u32,
    end: u32,
    unknown: u32,
}

impl Vocabulary {
    /// Reads a `vocab.txt`: each line is a piece, numbered from 0.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = std::fs::read(path).map_err(|e| Failure::file(path, &e))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::bad_input("is not UTF-8 text; a vocabulary has one piece per line").at(path))?;
        Self::parse(&text).map_err(|e| e.at(path))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let mut pieces = HashMap::new();
        for (number, piece) in text.lines().enumerate() {
            if let Some(first) = pieces.insert(piece.to_owned(), number as u32) {
                let (first, line) = (first + 1, number + 1);
                return Err(Failure::bad_input(format!("line {line} repeats `{piece}` of line {first}")));
            }
        }
        let special = |name: &str| {
            pieces
                .get(name)
                .copied()
                .ok_or_else(|| Failure::bad_input(format!("has no line `{name}`; is it a BERT vocabulary?")))
        };
        let (begin, end, unknown) = (special("[CLS]")?, special("[SEP]")?, special("[UNK]")?);
        Ok(Self { pieces, begin, end, unknown })
    }

    /// Returns the number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the numbers of a text's pieces, enclosed in `[CLS]` and `[SEP]` and cut to `limit`.
    pub(crate) fn tokens(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut tokens = vec![self.begin];
        for word in words(text) {
            self.word(&word, &mut tokens);
        }
        tokens.truncate(limit.saturating_sub(1));
        tokens.push(self.end);
        tokens
    }

    /// Splits a word into the longest pieces, from the front. A word with an unknown rest is unknown.
    fn word(&self, word: &str, tokens: &mut Vec<u32>) {
        let first = tokens.len();
        // Boundaries of characters.
        let cuts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        let mut begin = 0;
        while begin + 1 < cuts.len() && cuts.len() <= LONGEST + 1 {
            let longest = (begin + 1..cuts.len()).rev().find_map(|end| {
                let piece = &word[cuts[begin]..cuts[end]];
                let number = if begin == 0 { self.pieces.get(piece) } else { self.pieces.get(&format!("##{piece}")) };
                number.map(|number| (*number, end))
            });
            let Some((number, end)) = longest else { break };
            tokens.push(number);
            begin = end;
        }
        if begin + 1 < cuts.len() {
            tokens.truncate(first);
            tokens.push(self.unknown);
        }
    }
}

/// Splits a text into words and punctuation, in lower case without accents.
fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars() {
        let control = c.general_category_group() == GeneralCategoryGroup::Other;
        if matches!(c, '\t' | '\n' | '\r') || c.is_whitespace() && !control {
            spaced.push(' ');
        } else if is_chinese(c) {
            spaced.extend([' ', c, ' ']);
        } else if !control && c != '\u{fffd}' {
            spaced.push(c);
        }
    }
    let plain = spaced.nfd().filter(|c| c.general_category() != GeneralCategory::NonspacingMark);
    let (mut words, mut word) = (Vec::new(), String::new());
    for c in plain.flat_map(char::to_lowercase) {
        let mark = is_punctuation(c);
        if mark || c == ' ' {
            words.push(std::mem::take(&mut word));
        }
        if mark {
            words.push(c.to_string());
        } else if c != ' ' {
            word.push(c);
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a character separates words: ASCII that is no letter, digit or space counts.
fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Returns whether a character is a CJK ideograph, which is a word of its own.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x4e00..=0x9fff | 0x3400..=0x4dbf | 0x20000..=0x2a6df | 0x2a700..=0x2b73f | 0x2b740..=0x2b81f
        | 0x2b820..=0x2ceaf | 0xf900..=0xfaff | 0x2f800..=0x2fa1f)
}

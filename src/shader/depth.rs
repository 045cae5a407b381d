//! Limits how deep a compiler recurses over a text: a stack overflow ends the program and cannot be caught.
//!
//! naga itself rejects brackets and blocks that nest too deeply, but not `a + a + a + ...`, `- - - a`, `a.x.x.x`
//! and `if .. else if .. else if ..`, whose trees are as deep as they are long.

use super::lexical::{is_blank, is_word_part};

/// Maximum of nested operators. A thread's stack of 2 MiB holds four times as many.
pub(super) const MAX: usize = 1000;

/// The stack use of an `else if`, in operators.
const ELSE_IF: usize = 4;

/// An open block, or an open bracket of an expression.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    is_block: bool,
    /// Operators since it was opened or since the last comma, or `else if`s in a row.
    depth: usize,
    angles: usize,
}

/// The line, from 1, where an expression or a chain of `else if` becomes too deep. The text has no comments.
pub(super) fn too_deep(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    let block = Level { is_block: true, ..Level::default() };
    let mut levels = vec![block];
    // The sum over all levels.
    let mut sum = 0usize;
    // Operators of the statement outside of brackets, and its unclosed `<`.
    let (mut bare, mut bare_angles) = (0usize, 0usize);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            b'\n' => line += 1,
            b'(' | b'[' => levels.push(Level::default()),
            b')' | b']' => {
                if let Some(level) = levels.pop_if(|level| !level.is_block) {
                    sum -= level.depth;
                }
                count(&mut levels, &mut bare, &mut sum, 1);
            }
            // In `array<f32, 4>` the comma separates no operands, and the expression continues.
            b',' => match levels.last_mut() {
                Some(level) if !level.is_block && level.angles == 0 => {
                    sum -= std::mem::take(&mut level.depth);
                }
                Some(level) if level.is_block && bare_angles == 0 => bare = 0,
                _ => {}
            },
            b';' | b'{' | b'}' => {
                // Brackets that are still open are an error of the text.
                while let Some(level) = levels.pop_if(|level| !level.is_block) {
                    sum -= level.depth;
                }
                (bare, bare_angles) = (0, 0);
                match bytes[at] {
                    b'{' => levels.push(block),
                    b'}' => {
                        if levels.len() > 1
                            && let Some(level) = levels.pop()
                        {
                            sum -= level.depth;
                        }
                        let chained = word(&text[at + 1..]) == "else";
                        if let Some(level) = levels.last_mut() {
                            if chained {
                                level.depth += ELSE_IF;
                                sum += ELSE_IF;
                            } else {
                                sum -= std::mem::take(&mut level.depth);
                            }
                        }
                    }
                    _ => {}
                }
            }
            b'.' if rest.get(1).is_none_or(u8::is_ascii_digit) => {}
            b'_' | b'@' | b':' => {}
            byte if byte.is_ascii_punctuation() => {
                let angles = match levels.last_mut() {
                    Some(level) if !level.is_block => &mut level.angles,
                    _ => &mut bare_angles,
                };
                match byte {
                    b'<' if matches!(rest.get(1), Some(b'<' | b'=')) => at += 1,
                    b'<' => *angles += 1,
                    b'>' => *angles = angles.saturating_sub(1),
                    _ => {}
                }
                count(&mut levels, &mut bare, &mut sum, 1);
            }
            _ => {}
        }
        if sum + bare > MAX {
            return Some(line);
        }
        at += 1;
    }
    None
}

/// Counts operators of the innermost expression.
fn count(levels: &mut [Level], bare: &mut usize, sum: &mut usize, n: usize) {
    match levels.last_mut() {
        Some(level) if !level.is_block => {
            level.depth += n;
            *sum += n;
        }
        _ => *bare += n,
    }
}

/// The first word of a text, after blankspace.
fn word(text: &str) -> &str {
    let text = text.trim_start_matches(is_blank);
    &text[..text.find(|c| !is_word_part(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests;

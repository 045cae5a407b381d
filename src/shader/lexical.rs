//! Lines, blankspace and comments of WGSL. All code here that reads text uses this file.

use std::iter;

/// Whether the character ends a line, and with it a `//` comment: LF, VT, FF, CR, NEL, LS, PS.
pub(crate) const fn is_line_end(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether the character is blankspace: Unicode's Pattern_White_Space.
pub(super) const fn is_blank(c: char) -> bool {
    is_line_end(c) || matches!(c, '\t' | ' ' | '\u{200e}' | '\u{200f}')
}

/// Whether the character may be part of a word. Characters that no word may have are an error anywhere, so counting
/// them as part does no harm.
pub(super) fn is_word_part(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii() && !is_blank(c)
}

/// The lines of a text, without their ends; CR and LF together are one end.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) = match rest.char_indices().find(|(_, c)| is_line_end(*c)) {
            Some((at, _)) if rest[at..].starts_with("\r\n") => (&rest[..at], &rest[at + 2..]),
            Some((at, c)) => (&rest[..at], &rest[at + c.len_utf8()..]),
            None => (rest, ""),
        };
        rest = after;
        Some(line)
    })
}

/// The length in bytes of the comment that begins the text, without the line end of `//`, and whether it is
/// complete: a `/*` may lack its end. `None` if the text does not begin with a comment.
fn comment(text: &str) -> Option<(usize, bool)> {
    if text.starts_with("//") {
        return Some((text.find(is_line_end).unwrap_or(text.len()), true));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some((at, true));
        }
    }
    Some((bytes.len(), false))
}

/// The text with spaces in place of comments. Line ends and byte offsets stay. Also returns the offset of a `/*`
/// without an end.
pub(super) fn without_comments(text: &str) -> (String, Option<usize>) {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut open) = (text, None);
    while let Some(at) = rest.find('/') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((length, complete)) = comment(rest) else {
            out.push('/');
            rest = &rest[1..];
            continue;
        };
        if !complete {
            open = Some(out.len());
        }
        for c in rest[..length].chars() {
            if is_line_end(c) {
                out.push(c);
            } else {
                out.extend(iter::repeat_n(' ', c.len_utf8()));
            }
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    (out, open)
}

#[cfg(test)]
mod tests;

//! Names: how they are checked and shown in errors.

use crate::shader::library;

/// A name for an error: without control characters, and cut short.
pub(super) fn shown(name: &str) -> String {
    const MAX: usize = 48;
    let all: String = name.chars().take(MAX).map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.chars().nth(MAX).is_some() { all + "..." } else { all }
}

/// The library's names most similar to `name`.
pub(super) fn close_to(name: &str) -> String {
    let likeness = |other: &str| {
        let max = name.len().min(other.len());
        let before = name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let after = name.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count();
        (before + after).min(max)
    };
    let mut names: Vec<_> = library::names().collect();
    names.sort_by_key(|other| (std::cmp::Reverse(likeness(other)), *other));
    names.truncate(3);
    names.join(", ") + " and others"
}

pub(super) fn is_name(s: &str) -> bool {
    !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

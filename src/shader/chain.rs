//! Length of chains of declarations, each naming the next. naga orders declarations by recursion, and drivers
//! follow calls and types by recursion too.

use super::lexical::is_word_part;
use std::collections::HashMap;

/// Maximum length of a chain. A stack of 2 MiB holds several times as many.
pub(super) const MAX: usize = 1000;

/// A declaration at module scope: the words of its text, its own name among them.
struct Declaration<'a> {
    line: u32,
    name: Option<&'a str>,
    words: Vec<&'a str>,
}

/// The line, from 1, of a declaration that begins a chain of more than [`MAX`]. The text has no comments.
///
/// Every word that is the name of a declaration counts as a use of it, so the true chain is never longer than the
/// one found. Declarations that reach each other count as a chain of all of them, because naga follows them once
/// around.
pub(super) fn too_long(text: &str) -> Option<u32> {
    let all = declarations(text);
    if all.len() <= MAX {
        return None;
    }
    let by_name: HashMap<&str, usize> = all.iter().enumerate().filter_map(|(i, d)| Some((d.name?, i))).collect();
    let uses: Vec<Vec<usize>> = all
        .iter()
        .enumerate()
        .map(|(i, d)| {
            let mut used: Vec<usize> = d.words.iter().filter_map(|word| by_name.get(word)).copied().collect();
            used.sort_unstable();
            used.dedup();
            used.retain(|other| *other != i);
            used
        })
        .collect();
    deeper_than(MAX, &uses).map(|i| all[i].line)
}

/// The declarations of a text. Unmatched brackets are an error that naga reports before it orders declarations.
fn declarations(text: &str) -> Vec<Declaration<'_>> {
    let mut all = Vec::new();
    let new = |line| Declaration { line, name: None, words: Vec::new() };
    let (mut depth, mut angles, mut line) = (0usize, 0usize, 1);
    let mut current = new(line);
    // Whether `const`, `fn` or another of these keywords was read, but no name yet.
    let mut names = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_word_part(c) {
            let (word, after) = rest.split_at(rest.find(|c| !is_word_part(c)).unwrap_or(rest.len()));
            rest = after;
            if current.words.is_empty() {
                current.line = line;
            }
            current.words.push(word);
            if depth == 0 && angles == 0 && current.name.is_none() {
                if names {
                    current.name = Some(word);
                }
                names = matches!(word, "const" | "override" | "alias" | "struct" | "fn" | "var");
            }
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => line += 1,
            // In `var<private> name`.
            '<' if names => angles += 1,
            '>' if names => angles = angles.saturating_sub(1),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            all.push(std::mem::replace(&mut current, new(line)));
            (names, angles) = (false, 0);
        }
    }
    all.push(current);
    all
}

/// A node that begins a path of more than `max` nodes. Nodes that reach each other count as a path of all of them
/// (R. Tarjan, Depth-first search and linear graph algorithms, 1972; without recursion).
fn deeper_than(max: usize, uses: &[Vec<usize>]) -> Option<usize> {
    const NEW: usize = usize::MAX;
    let n = uses.len();
    // When each node was visited, and the earliest node of the stack that it reaches.
    let (mut met, mut low) = (vec![NEW; n], vec![0; n]);
    // Longest path from each node whose component is complete.
    let mut length = vec![0usize; n];
    let mut is_on_stack = vec![false; n];
    let mut stack = Vec::new();
    let mut count = 0;
    for root in 0..n {
        // Nodes of the current path, each with its next use.
        let mut way = Vec::new();
        if met[root] == NEW {
            way.push((root, 0));
        }
        while let Some((node, next)) = way.last_mut() {
            let node = *node;
            if *next == 0 {
                (met[node], low[node]) = (count, count);
                count += 1;
                stack.push(node);
                is_on_stack[node] = true;
            }
            if let Some(&used) = uses[node].get(*next) {
                *next += 1;
                if met[used] == NEW {
                    way.push((used, 0));
                } else if is_on_stack[used] {
                    low[node] = low[node].min(met[used]);
                }
                continue;
            }
            way.pop();
            if let Some((before, _)) = way.last() {
                low[*before] = low[*before].min(low[node]);
            }
            if low[node] < met[node] {
                continue;
            }
            let first = stack.iter().rposition(|other| *other == node).unwrap_or(0);
            let component = stack.split_off(first);
            let below = component.iter().flat_map(|i| &uses[*i]).map(|used| length[*used]).max().unwrap_or(0);
            for member in &component {
                is_on_stack[*member] = false;
                length[*member] = component.len() + below;
            }
            if length[node] > max {
                return Some(node);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;

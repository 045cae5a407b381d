//! Errors of a compiler, told in terms of the text that a user wrote.
//!
//! naga reports an error where it finds it, which may be a line of ours that calls a user's function. The user
//! needs the line of their own that is at fault, or the declaration that is missing.

use super::contained::UserText;
use super::expand::Expanded;
use super::lexical::is_word_part;
use crate::error::{Error, err};
use std::ops::Range;

/// Maximum of characters of a line that an error shows.
const MAX_SHOWN: usize = 120;

impl Expanded {
    /// The error for `message` about these bytes of the text, the most precise span first.
    pub(super) fn blame(&self, spans: &[Range<usize>], message: &str) -> Error {
        let written_by_user = |span: &&Range<usize>| {
            self.users.iter().any(|user| user.range.contains(&span.start)) || self.is_own_line(span.start)
        };
        if let Some(span) = spans.iter().find(written_by_user) {
            return self.error_at(span, message);
        }
        let begin = spans.first().map_or(0, |span| span.start);
        let (file, line) = self.origin(self.line_of(begin));
        let place = format!("{file}:{line}");
        if !self.users.is_empty() {
            return self.blame_user(&place, message);
        }
        match self.own_import_of(self.line_of(begin)) {
            Some((file, line)) => err!(
                Shader,
                "{file}:{line}: what this line imports does not compile here: {message} ({place}); the header of the imported \
                 file lists what its importer must declare"
            ),
            None => err!(Shader, "{place}: {message}"),
        }
    }

    /// An error at these bytes, with the line and a mark below it.
    fn error_at(&self, span: &Range<usize>, message: &str) -> Error {
        let (file, line) = self.origin(self.line_of(span.start));
        err!(Shader, "{file}:{line}: {message}\n{}", self.shown(span))
    }

    /// The error for users' texts that make a line of ours invalid. `place` is that line.
    fn blame_user(&self, place: &str, message: &str) -> Error {
        for user in &self.users {
            let declared = functions(self.text(), &user.range);
            let heads = user.heads();
            for (name, head) in &heads {
                if declared.iter().all(|f| f.name != *name) && message.contains(&format!("`{name}`")) {
                    let names: Vec<_> = declared.iter().map(|f| format!("`{}`", f.name)).collect();
                    let present = if names.is_empty() { "no function".to_owned() } else { names.join(", ") };
                    return err!(
                        Shader,
                        "{}: it must define `{}`{}; it defines {present}",
                        user.file,
                        self.resolved(head),
                        self.element(head)
                    );
                }
            }
            for function in &declared {
                let head = heads.iter().find(|(name, _)| *name == function.name).map(|(_, head)| *head);
                if let Some(head) = head.filter(|head| self.types(head) != self.types(function.head)) {
                    let wanted = self.resolved(head);
                    let why = format!("the function must be `{wanted}`{}", self.element(head));
                    return self.error_at(&function.range, &why);
                }
            }
        }
        let file = self.users.first().map_or("?", |user: &UserText| user.file.as_str());
        err!(Shader, "{file}: the kernel does not compile with this text: {message} ({place})")
    }

    /// The type that an alias stands for.
    fn alias<'t>(&'t self, name: &'t str) -> &'t str {
        let mut name = name;
        // An alias may name another, and the text may be wrong.
        for _ in 0..8 {
            let declares = |line: &'t str| {
                let (left, right) = line.trim().strip_prefix("alias ")?.split_once('=')?;
                (left.trim() == name).then(|| right.trim().trim_end_matches(';').trim())
            };
            match self.text().lines().find_map(declares) {
                Some(next) => name = next,
                None => break,
            }
        }
        name
    }

    /// A head of a function with types for aliases.
    fn resolved(&self, head: &str) -> String {
        let (mut out, mut rest) = (String::new(), head.trim());
        while let Some(c) = rest.chars().next() {
            let length = rest.find(|c| !is_word_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(if length == 0 { c.len_utf8() } else { length });
            out.push_str(if length == 0 { word } else { self.alias(word) });
            rest = after;
        }
        out
    }

    /// Says which type `T` is, if the function uses it.
    fn element(&self, head: &str) -> String {
        let element = self.alias("T");
        let is_used = element != "T" && self.types(head).iter().any(|ty| ty == element);
        if is_used { format!(" (`T` is {element} here)") } else { String::new() }
    }

    /// The types of parameters and result in the head of a function, without blankspace.
    fn types(&self, head: &str) -> Vec<String> {
        let (parameters, result) = head.rsplit_once("->").unwrap_or((head, ""));
        let inner = parameters.split_once('(').map_or("", |(_, inner)| inner);
        let inner = inner.rsplit_once(')').map_or(inner, |(inner, _)| inner);
        let of_parameters = inner.split(',').filter_map(|p| p.split_once(':')).map(|(_, ty)| ty);
        let all = of_parameters.chain([result]).map(|ty| self.resolved(ty));
        all.map(|ty| ty.split_whitespace().collect()).collect()
    }

    fn line_of(&self, byte: usize) -> u32 {
        let before = self.text().as_bytes().iter().take(byte).filter(|b| **b == b'\n').count();
        before as u32 + 1
    }

    /// Whether this byte lies in the text given for expansion, if that is not a file of the library.
    fn is_own_line(&self, byte: usize) -> bool {
        self.is_own() && self.origin_id(self.line_of(byte)).0 == 0
    }

    /// The line that these bytes lie in, and marks below them.
    fn shown(&self, span: &Range<usize>) -> String {
        let text = self.text();
        let begin = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let line = text.get(begin..).and_then(|rest| rest.lines().next()).unwrap_or("").trim_end();
        let column = line.get(..span.start - begin).map_or(0, |before| before.chars().count());
        let length = text.get(span.clone()).map_or(1, |marked| marked.lines().next().unwrap_or("").chars().count());
        // The part of a long line around the mark.
        let skipped = if column < MAX_SHOWN / 2 { 0 } else { column - MAX_SHOWN / 4 };
        let part: String = line.chars().skip(skipped).take(MAX_SHOWN).collect();
        let shown = part.chars().count();
        let column = column - skipped;
        let blank: String = part.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let marks = "^".repeat(length.clamp(1, shown.saturating_sub(column).max(1)));
        format!("  | {part}\n  | {blank}{marks}")
    }
}

/// The head of a function in a text, up to its `{`.
struct FunctionHead<'t> {
    name: &'t str,
    head: &'t str,
    range: Range<usize>,
}

/// The functions that this part of a text declares. Comments are not in it.
fn functions<'t>(text: &'t str, part: &Range<usize>) -> Vec<FunctionHead<'t>> {
    let mut all = Vec::new();
    let mut at = part.start;
    while let Some(found) = text.get(at..part.end).and_then(|rest| rest.find("fn")) {
        let begin = at + found;
        at = begin + 2;
        let is_word = !text[..begin].ends_with(is_word_part) && !text[at..].starts_with(is_word_part);
        let head = text[begin..part.end].split('{').next().unwrap_or("").trim_end();
        let name = head[2..].split('(').next().unwrap_or("").trim();
        if is_word && !name.is_empty() {
            all.push(FunctionHead { name, head, range: begin..begin + head.len() });
        }
    }
    all
}

//! The expander: `#import`, `#if`, and the rewriting of declared constants and aliases.
//!
//! Module scope in WGSL does not depend on order, so a fragment may use `T`, `WORKGROUP_SIZE` or
//! `op_combine` that its importer declares: generics without a template language.
//!
//! Lines end where WGSL ends them: at LF, VT, FF, CR, NEL, LS and PS. The expanded text has LF alone.
//!
//! | line | meaning |
//! |---|---|
//! | `#import op/add` | the text of `shaders/op/add.wgsl`, once per module |
//! | `#import op/add as op` | the same, as the default of a slot that a [`Spec`] may fill otherwise |
//! | `#if NAME`, `#if !NAME`, `#else`, `#endif` | keeps lines by a flag of the [`Spec`] |
//! | `#repeat NAME`, `#end` | the lines between as often as the constant of that name says, with 0, 1, ... for `$` |
//! | `const NAME: u32 = 1u;` | rewritten where the [`Spec`] has a constant of that name |
//! | `alias T = f32;` | rewritten where the [`Spec`] has an alias of that name |
//! | `enable f16;` | moved to the top, once |
//! | `diagnostic(off, ...);` | the same, for Tint: naga has not the analyses that it turns off |

use super::contained::UserText;
use super::lexical::{lines, without_comments};
use super::library;
use super::spec::{Fragment, Spec};
use crate::error::{Result, err};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Which compiler will read the text. They disagree on the preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// naga, inside wgpu: subgroup operations need no `enable`.
    Naga,
    /// Tint, inside browsers: subgroup operations need `enable subgroups;`.
    Tint,
}

/// Text ready for a WGSL compiler, with the origin of each of its lines.
#[derive(Debug, Clone)]
pub struct Expanded {
    text: String,
    files: Vec<String>,
    /// For each line of `text`, the index of its file and its line there, from 1.
    lines: Vec<(u32, u32)>,
    pub(super) users: Vec<UserText>,
}

impl Expanded {
    /// The WGSL text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// File and line (both as a person would say them) of line `line` of the expanded text, from 1.
    pub fn origin(&self, line: u32) -> (&str, u32) {
        let (file, line) = self.lines.get((line as usize).saturating_sub(1)).copied().unwrap_or((0, 1));
        (self.files.get(file as usize).map_or("?", |f| f.as_str()), line)
    }
}

/// Bytes that the `#repeat`s of a text write at the most.
const MOST_REPEATED: usize = 1 << 20;

/// Expands the embedded file `name`.
///
/// # Errors
/// [`Shader`](crate::ErrorKind::Shader), with file and line: an unknown import, an unbalanced `#if`,
/// an unknown directive, or a name of `spec` that nothing declares.
pub fn expand(name: &str, spec: &Spec, target: Target) -> Result<Expanded> {
    let text = library::source(name).ok_or_else(|| {
        let shown = shown(name);
        err!(Shader, "shaders/{shown}.wgsl: no such file; the library has {}", close_to(name))
    })?;
    expand_text(&file_of(name), text, spec, target)
}

/// Expands `text`, which calls itself `name` in errors: generated kernels, and a user's own.
///
/// # Errors
/// As [`expand`].
pub fn expand_text(name: &str, text: &str, spec: &Spec, target: Target) -> Result<Expanded> {
    let mut x = Expander {
        spec,
        out: String::with_capacity(2 * text.len()),
        lines: Vec::new(),
        files: Vec::new(),
        enables: BTreeSet::new(),
        diagnostics: BTreeSet::new(),
        done: BTreeSet::new(),
        seen: BTreeSet::new(),
        users: Vec::new(),
        directives: 0,
        repeated: 0,
    };
    x.file(name, text)?;
    x.check_all_used(name)?;
    let mut preamble = String::new();
    for diagnostic in x.diagnostics.iter().filter(|_| target == Target::Tint) {
        let _ = writeln!(preamble, "{diagnostic}");
    }
    for enable in x.enables.iter().filter(|e| target == Target::Tint || e.as_str() != "subgroups") {
        let _ = writeln!(preamble, "enable {enable};");
    }
    let mut lines = vec![(0, 1); preamble.lines().count()];
    lines.append(&mut x.lines);
    for user in &mut x.users {
        user.range = user.range.start + preamble.len()..user.range.end + preamble.len();
    }
    Ok(Expanded { text: preamble + &x.out, files: x.files, lines, users: x.users })
}

fn file_of(name: &str) -> String {
    format!("shaders/{name}.wgsl")
}

/// A name as an error shows it: without control characters, and cut short.
fn shown(name: &str) -> String {
    const MAX: usize = 48;
    let all: String = name.chars().take(MAX).map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.chars().nth(MAX).is_some() { all + "..." } else { all }
}

/// The library's names that begin and end most like `name`.
fn close_to(name: &str) -> String {
    let likeness = |other: &str| {
        let most = name.len().min(other.len());
        let before = name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        let after = name.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count();
        (before + after).min(most)
    };
    let mut names: Vec<_> = library::names().collect();
    names.sort_by_key(|other| (std::cmp::Reverse(likeness(other)), *other));
    names.truncate(3);
    names.join(", ") + " and others"
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.join(", ")
}

struct Expander<'a> {
    spec: &'a Spec,
    out: String,
    lines: Vec<(u32, u32)>,
    files: Vec<String>,
    enables: BTreeSet<String>,
    diagnostics: BTreeSet<String>,
    /// Fragments already in the text.
    done: BTreeSet<String>,
    /// Names of the spec that the text declares or asks for, as `kind name`.
    seen: BTreeSet<String>,
    users: Vec<UserText>,
    /// Directives obeyed, `enable` and `diagnostic` among them.
    directives: usize,
    /// Bytes that `#repeat` has written.
    repeated: usize,
}

/// An open `#if`: the line it stands on, whether its current branch is kept, whether `#else` came.
struct Branch {
    line: usize,
    keep: bool,
    else_seen: bool,
}

impl Expander<'_> {
    fn file(&mut self, file: &str, text: &str) -> Result<()> {
        let id = self.files.len() as u32;
        self.files.push(file.to_owned());
        let mut branches: Vec<Branch> = Vec::new();
        for (line, raw) in self.repeat(file, text)? {
            let raw = raw.as_ref();
            let at = |what: String| err!(Shader, "{file}:{line}: {what}");
            let trimmed = raw.trim();
            if let Some(directive) = trimmed.strip_prefix('#') {
                self.directives += 1;
                let (word, rest) = directive.split_once(char::is_whitespace).unwrap_or((directive, ""));
                let rest = rest.split("//").next().unwrap_or("").trim();
                match word {
                    "if" => {
                        let (negated, flag) = rest.strip_prefix('!').map_or((false, rest), |f| (true, f));
                        if !is_name(flag) {
                            return Err(at(format!("`#if` wants one flag name, not `{}`", shown(rest))));
                        }
                        self.seen.insert(format!("flag {flag}"));
                        let on = self.spec.flags.get(flag).copied().unwrap_or(false);
                        branches.push(Branch { line, keep: on != negated, else_seen: false });
                    }
                    "else" => match branches.last_mut() {
                        Some(b) if !b.else_seen => {
                            b.keep = !b.keep;
                            b.else_seen = true;
                        }
                        _ => return Err(at("`#else` without an open `#if`".into())),
                    },
                    "endif" => {
                        branches.pop().ok_or_else(|| at("`#endif` without an open `#if`".into()))?;
                    }
                    "import" => {
                        if branches.iter().all(|b| b.keep) {
                            self.import(rest, &at)?;
                        }
                    }
                    _ => {
                        return Err(at(format!(
                            "unknown directive `#{}`; there are #import, #if, #else, #endif, #repeat, #end",
                            shown(word)
                        )));
                    }
                }
                continue;
            }
            if !branches.iter().all(|b| b.keep) {
                continue;
            }
            if trimmed.starts_with("diagnostic(") {
                self.directives += 1;
                self.diagnostics.insert(trimmed.to_owned());
                continue;
            }
            let enabled = trimmed.strip_prefix("enable ").map(|e| e.split_once(';').unwrap_or((e, "")));
            // Another text behind `enable` stays where it is, and naga refuses it there.
            let is_list = |names: &str| names.split(',').all(|n| is_name(n.trim()));
            if let Some((names, after)) = enabled.filter(|(names, _)| is_list(names)) {
                self.directives += 1;
                self.enables.extend(names.split(',').map(|n| n.trim().to_owned()));
                if after.trim().is_empty() {
                    continue;
                }
                self.out.push_str(after.trim_start());
            } else {
                let rewritten = self.rewrite(trimmed, &at)?;
                self.out.push_str(rewritten.as_deref().unwrap_or(raw));
            }
            self.out.push('\n');
            self.lines.push((id, line as u32));
        }
        match branches.first() {
            Some(open) => Err(err!(Shader, "{file}:{}: `#if` is never closed by `#endif`", open.line)),
            None => Ok(()),
        }
    }

    /// The lines of `text` with their numbers, those of `#repeat` written out. A loop over a local array would
    /// have the array lie in memory instead of registers.
    fn repeat<'t>(&mut self, file: &str, text: &'t str) -> Result<Vec<(usize, Cow<'t, str>)>> {
        let mut all = Vec::new();
        let mut lines = lines(text).enumerate();
        while let Some((i, raw)) = lines.next() {
            let Some(name) = raw.trim().strip_prefix("#repeat").map(str::trim) else {
                all.push((i + 1, Cow::Borrowed(raw)));
                continue;
            };
            let at = |what: String| err!(Shader, "{file}:{}: {what}", i + 1);
            let times = self.times(name, text).ok_or_else(|| {
                at(format!(
                    "`#repeat` wants a constant of this file, or of one before it, that is a number, not `{}`",
                    shown(name)
                ))
            })?;
            self.directives += 1;
            self.seen.insert(format!("constant {name}"));
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    Some((_, end)) if end.trim() == "#end" => break,
                    Some(line) => body.push(line),
                    None => return Err(at("`#repeat` is never closed by `#end`".into())),
                }
            }
            let bytes: usize = body.iter().map(|(_, line)| line.len() + 1).sum();
            self.repeated = self.repeated.saturating_add(bytes.saturating_mul(times as usize));
            if self.repeated > MOST_REPEATED {
                return Err(at(format!(
                    "`#repeat {name}` writes {bytes} bytes {times} times; all that is repeated has at most {MOST_REPEATED}"
                )));
            }
            // Nothing, however often, is nothing.
            let times = if body.is_empty() { 0 } else { times };
            for index in 0..times {
                let index = index.to_string();
                all.extend(body.iter().map(|(j, line)| (j + 1, Cow::Owned(line.replace('$', &index)))));
            }
        }
        Ok(all)
    }

    /// The number that a constant has here. What a user's text declares, in a function perhaps, is none of ours.
    fn times(&self, name: &str, text: &str) -> Option<u32> {
        let number = |value: &str| value.trim().trim_end_matches('u').parse().ok();
        if let Some(value) = self.spec.constants.get(name) {
            return number(value);
        }
        let declared = |line: &str| {
            let (left, right) = line.trim().strip_prefix("const ")?.split_once('=')?;
            (left.split(':').next()?.trim() == name).then_some(right.split(';').next()?.to_owned())
        };
        let mut at = 0;
        let mut ours = Vec::new();
        for user in &self.users {
            ours.extend(self.out.get(at..user.range.start));
            at = user.range.end;
        }
        ours.extend(self.out.get(at..));
        let value = lines(text).chain(ours.into_iter().flat_map(lines)).find_map(declared)?;
        number(&value)
    }

    fn import(&mut self, rest: &str, at: &dyn Fn(String) -> crate::Error) -> Result<()> {
        let (default, slot) = match rest.split_once(" as ") {
            Some((default, slot)) => (default.trim(), Some(slot.trim())),
            None => (rest, None),
        };
        let mut name = default;
        if let Some(slot) = slot {
            self.seen.insert(format!("slot {slot}"));
            match self.spec.slots.get(slot) {
                Some(Fragment::Library(other)) => name = other,
                Some(Fragment::User(text)) => {
                    return self.user(slot, text, library::source(default).unwrap_or_default());
                }
                None => {}
            }
        }
        let text = library::source(name).ok_or_else(|| {
            at(format!("unknown import `{}`; the library has {}", shown(name), close_to(name)))
        })?;
        if self.done.insert(name.to_owned()) { self.file(&file_of(name), text) } else { Ok(()) }
    }

    /// A user's text, without its comments: what a compiler could take for one is then nothing that we read as another
    /// thing, and no comment reaches into what is ours.
    fn user(&mut self, slot: &str, text: &str, default: &'static str) -> Result<()> {
        let file = format!("<user {slot}>");
        if !self.done.insert(file.clone()) {
            return Ok(());
        }
        let (text, open) = without_comments(text);
        if let Some(at) = open {
            let line = lines(&text[..=at]).count();
            return Err(err!(Shader, "{file}:{line}: no `*/` closes the comment that begins here"));
        }
        let (begin, directives) = (self.out.len(), self.directives);
        self.file(&file, &text)?;
        let has_directives = self.directives > directives;
        self.users.push(UserText { range: begin..self.out.len(), default, has_directives });
        Ok(())
    }

    /// The line with its value replaced, if it declares a constant or alias that the spec names.
    fn rewrite(&mut self, line: &str, at: &dyn Fn(String) -> crate::Error) -> Result<Option<String>> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        let name: &str = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        let (kind, new) = match keyword {
            "const" => ("constant", self.spec.constants.get(name).map(String::as_str)),
            "alias" => ("alias", self.spec.aliases.get(name).copied()),
            _ => return Ok(None),
        };
        self.seen.insert(format!("{kind} {name}"));
        let Some(new) = new else { return Ok(None) };
        match rest.split_once('=') {
            Some((left, right)) if right.contains(';') => Ok(Some(format!("{keyword} {left}= {new};"))),
            _ => Err(at(format!(
                "the declaration of `{name}` must stand on one line for a spec to rewrite it"
            ))),
        }
    }

    fn check_all_used(&self, file: &str) -> Result<()> {
        let s = self.spec;
        let named = (s.constants.keys().map(|n| ("constant", n)))
            .chain(s.aliases.keys().map(|n| ("alias", n)))
            .chain(s.flags.keys().map(|n| ("flag", n)))
            .chain(s.slots.keys().map(|n| ("slot", n)));
        for (kind, name) in named {
            if !self.seen.contains(&format!("{kind} {name}")) {
                return Err(err!(
                    Shader,
                    "{file}:1: the spec sets the {kind} `{name}`, which neither this file nor its imports declare; they have: {}",
                    list(self.seen.iter().map(String::as_str))
                ));
            }
        }
        Ok(())
    }
}

fn is_name(s: &str) -> bool {
    !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, spec: &Spec) -> String {
        expand_text("k.wgsl", text, spec, Target::Naga).unwrap_err().to_string()
    }

    #[test]
    fn unknown_import_names_file_and_line() {
        let m = message("// one\n#import op/nothing\n", &Spec::new());
        assert!(m.starts_with("k.wgsl:2: unknown import `op/nothing`"), "{m}");
        assert!(m.contains("op/add"), "{m}");
    }

    #[test]
    fn an_unknown_import_is_answered_by_close_names() {
        let long = "x\u{1b}".repeat(5000);
        for (wrong, right) in
            [("op/ad", "op/add"), ("add", "op/add"), ("primitives/reduce", "primitives/reduce_"), (&long, "")]
        {
            let m = message(&format!("#import {wrong}\n"), &Spec::new());
            assert!(m.contains("unknown import") && m.contains(right) && m.len() < 200, "{m}");
            assert!(!m.contains('\u{1b}'));
            let missing = expand(wrong, &Spec::new(), Target::Naga).unwrap_err().to_string();
            assert!(missing.contains(right) && missing.len() < 200, "{missing}");
        }
    }

    #[test]
    fn every_line_end_of_wgsl_ends_a_line() {
        for end in ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
            let text = format!("// a{end}#if X{end}both{end}#else{end}const b = 1;{end}#endif{end}c");
            let x = expand_text("k.wgsl", &text, &Spec::new(), Target::Naga).unwrap();
            assert_eq!(x.text(), "// a\nconst b = 1;\nc\n", "{end:?}");
            assert_eq!([1, 2, 3].map(|l| x.origin(l).1), [1, 5, 7], "{end:?}");
        }
    }

    #[test]
    fn undeclared_spec_name_names_file() {
        for spec in [
            Spec::new().constant("TILE", 1u32),
            Spec::new().alias("TILE", "f32"),
            Spec::new().flag("TILE", true),
            Spec::new().slot("TILE", Fragment::Library("op/add")),
        ] {
            let m = message("const TILES: u32 = 1u;\n", &spec);
            assert!(m.starts_with("k.wgsl:1: the spec sets") && m.contains("`TILE`"), "{m}");
        }
    }

    #[test]
    fn unbalanced_if_names_the_line_that_opened_it() {
        assert!(message("a\n#if X\nb\n", &Spec::new()).starts_with("k.wgsl:2: `#if` is never closed"));
        assert!(message("#endif\n", &Spec::new()).starts_with("k.wgsl:1: `#endif` without"));
        assert!(
            message("#if X\n#else\n#else\n#endif", &Spec::new()).starts_with("k.wgsl:3: `#else` without")
        );
        assert!(message("#iff X\n", &Spec::new()).starts_with("k.wgsl:1: unknown directive"));
    }

    #[test]
    fn branches_constants_and_aliases_follow_the_spec() {
        let text = "enable f16;\nconst N: u32 = 1u; // items\nalias T = f32;\n#if X\n  #if !Y\nboth\n  #endif\n#else\nneither\n#endif\n";
        let x = |spec: Spec, t| expand_text("k.wgsl", text, &spec, t).unwrap();
        let off = x(Spec::new(), Target::Naga);
        assert_eq!(off.text(), "enable f16;\nconst N: u32 = 1u; // items\nalias T = f32;\nneither\n");
        assert_eq!(off.origin(4), ("k.wgsl", 9));
        let on = x(Spec::new().constant("N", 7u32).alias("T", "i32").flag("X", true), Target::Naga);
        assert_eq!(on.text(), "enable f16;\nconst N: u32 = 7u;\nalias T = i32;\nboth\n");
    }

    #[test]
    fn repeated_lines_follow_the_constant_and_keep_their_origin() {
        let text = "const N: u32 = 2u;\n#repeat N\n#if X\nx[$] = $u;\n#endif\ny\n#end\nz\n";
        let x = |spec: Spec| expand_text("k.wgsl", text, &spec, Target::Naga).unwrap();
        let two = x(Spec::new().flag("X", true));
        assert_eq!(two.text(), "const N: u32 = 2u;\nx[0] = 0u;\ny\nx[1] = 1u;\ny\nz\n");
        assert_eq!([4, 5, 6].map(|l| two.origin(l).1), [4, 6, 8]);
        assert_eq!(x(Spec::new().constant("N", 3u32)).text(), "const N: u32 = 3u;\ny\ny\ny\nz\n");
        let m = message("#repeat M\n#end\n", &Spec::new());
        assert!(m.starts_with("k.wgsl:1: `#repeat` wants a constant") && m.contains("`M`"), "{m}");
        assert!(
            message("const M = 3;\n\n#repeat M\n", &Spec::new()).starts_with("k.wgsl:3: `#repeat` is never")
        );
        assert!(message("#end\n", &Spec::new()).starts_with("k.wgsl:1: unknown directive"));
    }

    #[test]
    fn repetitions_are_bounded() {
        let most = Spec::new().constant("N", u32::MAX);
        let text = "const N = 1;\n#repeat N\n#end\n";
        assert_eq!(expand_text("k.wgsl", text, &most, Target::Naga).unwrap().text().lines().count(), 1);
        let m = message("const N = 1;\n#repeat N\nx\n#end\n", &most);
        assert!(m.starts_with("k.wgsl:2: `#repeat N` writes 2 bytes 4294967295 times"), "{m}");
        let m = message(&format!("const N = 90000;\n{}", "#repeat N\nx\n#end\n".repeat(50)), &Spec::new());
        assert!(m.starts_with("k.wgsl:17: `#repeat N`"), "{m}");
    }

    #[test]
    fn subgroups_are_enabled_for_tint_only() {
        let x = |t| expand_text("k.wgsl", "enable subgroups; fn f() {}\n", &Spec::new(), t).unwrap();
        assert_eq!(x(Target::Naga).text(), "fn f() {}\n");
        assert_eq!(x(Target::Tint).text(), "enable subgroups;\nfn f() {}\n");
        assert_eq!(x(Target::Tint).origin(2), ("k.wgsl", 1));
    }

    #[test]
    fn diagnostics_are_turned_off_for_tint_only() {
        let x = |t| expand_text("k.wgsl", "diagnostic(off, a_rule);\nfn f() {}\n", &Spec::new(), t).unwrap();
        assert_eq!(x(Target::Naga).text(), "fn f() {}\n");
        assert_eq!(x(Target::Tint).text(), "diagnostic(off, a_rule);\nfn f() {}\n");
        assert_eq!(x(Target::Tint).origin(2), ("k.wgsl", 2));
    }

    #[test]
    fn a_slot_takes_a_library_fragment_or_a_users_text() {
        let text = "#import op/add as op\n#import op/add as op\n";
        let x = |spec: Spec| expand_text("k.wgsl", text, &spec, Target::Naga).unwrap();
        assert_eq!(x(Spec::new()).text().matches("fn op_combine").count(), 1);
        let user = x(Spec::new().slot("op", Fragment::User("fn mine() {}".into())));
        assert_eq!(user.text(), "fn mine() {}\n");
        assert_eq!(user.origin(1), ("<user op>", 1));
    }
}

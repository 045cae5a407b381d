//! The expander: `#import`, `#if`, `#for`, `#block`, and rewritten constants and aliases. `shaders/README.md`
//! describes the language, with an example of each directive.
//!
//! Module scope in WGSL does not depend on order, so a fragment may use `T`, `WORKGROUP_SIZE` or `op_combine` of
//! its importer: generics without a template language.
//!
//! Lines end where WGSL ends them: at LF, VT, FF, CR, NEL, LS and PS. The expanded text has LF alone.

mod names;
mod repeat;

use self::names::{close_to, is_name, shown};
use self::repeat::{MAX_WRITTEN, TextBlock, end_of_loop};
use super::contained::UserText;
use super::formula::{self, Names, Value};
use super::lexical::{lines, without_comments};
use super::library;
use super::spec::{Constant, Fragment, Spec};
use crate::error::{Result, err};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

/// The compiler that will read the expanded text. Each needs its own preamble.
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
    /// For each file but the first, index of the file and line that imported it.
    imported_at: Vec<(u32, u32)>,
    /// For each line of `text`, the index of its file and its line there, from 1.
    lines: Vec<(u32, u32)>,
    /// Whether the first file is not one of the library.
    is_own: bool,
    pub(super) users: Vec<UserText>,
}

impl Expanded {
    /// Returns the WGSL text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// File and line of line `line` of the expanded text. Lines count from 1.
    pub fn origin(&self, line: u32) -> (&str, u32) {
        let (file, line) = self.origin_id(line);
        (self.name_of(file), line)
    }

    pub(super) fn origin_id(&self, line: u32) -> (u32, u32) {
        self.lines.get((line as usize).saturating_sub(1)).copied().unwrap_or((0, 1))
    }

    fn name_of(&self, file: u32) -> &str {
        self.files.get(file as usize).map_or("?", |f| f.as_str())
    }

    /// Whether the first file is not one of the library.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    /// The `#import` through which line `line` came in, as file and line, if the first file is not one of the
    /// library.
    pub(super) fn own_import_of(&self, line: u32) -> Option<(&str, u32)> {
        let (mut file, _) = self.origin_id(line);
        // A file comes after the one that imports it.
        while let Some(&(importer, at)) = (file as usize).checked_sub(1).and_then(|i| self.imported_at.get(i)) {
            if importer == 0 {
                return self.is_own.then(|| (self.name_of(0), at));
            }
            file = importer;
        }
        None
    }
}

/// Expands the embedded file `name`.
///
/// # Errors
/// [`Shader`](crate::ErrorKind::Shader), with file and line: an unknown import, an unbalanced `#if` or `#for`, an
/// unknown directive, a formula without a value, or a name of `spec` that nothing declares.
pub fn expand(name: &str, spec: &Spec, target: Target) -> Result<Expanded> {
    let text = library::source(name).ok_or_else(|| {
        let shown = shown(name);
        err!(Shader, "shaders/{shown}.wgsl: no such file; the library has {}", close_to(name))
    })?;
    expand_text(&file_of(name), text, spec, target)
}

/// Expands `text`, which errors call `name`: generated kernels, and a user's own.
///
/// # Errors
/// As [`expand`].
pub fn expand_text(name: &str, text: &str, spec: &Spec, target: Target) -> Result<Expanded> {
    let mut x = Expander {
        spec,
        out: String::with_capacity(2 * text.len()),
        lines: Vec::new(),
        files: Vec::new(),
        imported_at: Vec::new(),
        enables: BTreeSet::new(),
        diagnostics: BTreeSet::new(),
        done: BTreeSet::new(),
        seen: Default::default(),
        users: Vec::new(),
        directives: 0,
        written: 0,
        read: 0,
        constants: BTreeMap::new(),
        variables: Vec::new(),
        blocks: BTreeMap::new(),
        puts: 0,
    };
    for (name, value) in spec.constants.iter() {
        x.declare(
            name,
            match *value {
                Constant::Number(number) => Ok(Value::Number(number.into())),
                Constant::Bool(truth) => Ok(Value::Bool(truth)),
                Constant::Text(text) => x.value(text),
            },
        );
    }
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
    let of_library = name.strip_prefix("shaders/").and_then(|name| name.strip_suffix(".wgsl"));
    let is_own = of_library.and_then(library::source).is_none();
    let (text, files, imported_at, users) = (preamble + &x.out, x.files, x.imported_at, x.users);
    Ok(Expanded { text, files, imported_at, lines, is_own, users })
}

fn file_of(name: &str) -> String {
    format!("shaders/{name}.wgsl")
}

#[derive(Debug, Clone, Copy)]
enum NameKind {
    Alias,
    Constant,
    Flag,
    Slot,
    List,
}

impl NameKind {
    const NAMES: [&'static str; 5] = ["alias", "constant", "flag", "slot", "list"];
}

struct Expander<'a> {
    spec: &'a Spec,
    out: String,
    lines: Vec<(u32, u32)>,
    files: Vec<String>,
    imported_at: Vec<(u32, u32)>,
    enables: BTreeSet<String>,
    diagnostics: BTreeSet<String>,
    /// Fragments already in the text.
    done: BTreeSet<String>,
    /// Names of each [`NameKind`] that the text declares or asks for.
    seen: [BTreeSet<String>; 5],
    users: Vec<UserText>,
    /// Number of directives obeyed, including `enable` and `diagnostic`.
    directives: usize,
    written: usize,
    read: usize,
    /// Constants with known values: those of the spec, and those declared above.
    constants: BTreeMap<String, Value>,
    /// Variables of the enclosing loops, the innermost last.
    variables: Vec<(String, Value)>,
    blocks: BTreeMap<String, Rc<TextBlock>>,
    /// Depth of nested `#put`s.
    puts: usize,
}

/// A line of a file, and its number from 1.
type Line<'t> = (usize, &'t str);

/// An open `#if`: its line, whether its current branch is kept, whether `#else` came.
struct Branch {
    line: usize,
    keep: bool,
    else_seen: bool,
}

impl Expander<'_> {
    fn file(&mut self, file: &str, text: &str) -> Result<()> {
        let id = self.files.len() as u32;
        self.files.push(file.to_owned());
        let all: Vec<Line<'_>> = lines(text).enumerate().map(|(i, line)| (i + 1, line)).collect();
        self.block(file, id, &all)
    }

    /// Expands lines of a file: all of them, or those before an `#end`.
    fn block(&mut self, file: &str, id: u32, lines: &[Line<'_>]) -> Result<()> {
        let mut branches: Vec<Branch> = Vec::new();
        let mut next = 0;
        while let Some(&(line, raw)) = lines.get(next) {
            next += 1;
            let at = |what: String| err!(Shader, "{file}:{line}: {what}");
            let keep = branches.iter().all(|b| b.keep);
            let filled = if keep { self.filled(raw).map_err(at)? } else { Cow::Borrowed(raw) };
            if let Cow::Owned(text) = &filled {
                self.reads(text.len()).map_err(at)?;
            }
            let Some(directive) = filled.trim().strip_prefix('#') else {
                if keep {
                    self.line(&filled, (id, line as u32), &at)?;
                }
                continue;
            };
            self.directives += 1;
            let (word, rest) = directive.split_once(char::is_whitespace).unwrap_or((directive, ""));
            let rest = rest.split("//").next().unwrap_or("").trim();
            match word {
                "if" => {
                    let on = self.condition(rest, keep).map_err(|why| at(format!("`#if {}`: {why}", shown(rest))))?;
                    branches.push(Branch { line, keep: on, else_seen: false });
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
                "for" => {
                    let length =
                        end_of_loop(&lines[next..]).ok_or_else(|| at("`#for` is never closed by `#end`".into()))?;
                    if keep {
                        self.repeat(file, id, (line, rest), &lines[next..next + length])?;
                    }
                    next += length + 1;
                }
                "block" => {
                    let length =
                        end_of_loop(&lines[next..]).ok_or_else(|| at("`#block` is never closed by `#end`".into()))?;
                    if keep {
                        self.keep(file, id, rest, &lines[next..next + length])
                            .map_err(|why| at(format!("`#block {}`: {why}", shown(rest))))?;
                    }
                    next += length + 1;
                }
                "put" => {
                    if keep {
                        self.put(rest, &|why| at(format!("`#put {}`: {why}", shown(rest))))?;
                    }
                }
                "end" => return Err(at("`#end` without an open `#for` or `#block`".into())),
                "import" => {
                    if keep {
                        self.import(rest, (id, line as u32), &at)?;
                    }
                }
                _ => {
                    return Err(at(format!(
                        "unknown directive `#{}`; use #import, #if, #else, #endif, #for, #block, #put, #end",
                        shown(word)
                    )));
                }
            }
        }
        match branches.first() {
            Some(open) => Err(err!(Shader, "{file}:{}: `#if` is never closed by `#endif`", open.line)),
            None => Ok(()),
        }
    }

    fn line(&mut self, raw: &str, origin: (u32, u32), at: &dyn Fn(String) -> crate::Error) -> Result<()> {
        let (trimmed, begin) = (raw.trim(), self.out.len());
        if trimmed.starts_with("diagnostic(") {
            self.directives += 1;
            self.diagnostics.insert(trimmed.to_owned());
            return Ok(());
        }
        let enabled = trimmed.strip_prefix("enable ").map(|e| e.split_once(';').unwrap_or((e, "")));
        // Any other text after `enable` stays in place, where naga rejects it.
        let is_list = |names: &str| names.split(',').all(|n| is_name(n.trim()));
        if let Some((names, after)) = enabled.filter(|(names, _)| is_list(names)) {
            self.directives += 1;
            self.enables.extend(names.split(',').map(|n| n.trim().to_owned()));
            if after.trim().is_empty() {
                return Ok(());
            }
            self.out.push_str(after.trim_start());
        } else {
            let rewritten = self.rewrite(trimmed, at)?;
            self.out.push_str(rewritten.as_deref().unwrap_or(raw));
        }
        self.out.push('\n');
        self.lines.push(origin);
        if !self.variables.is_empty() || self.puts > 0 {
            self.written += self.out.len() - begin;
            if self.written > MAX_WRITTEN {
                return Err(at(format!("loops and blocks write more than {MAX_WRITTEN} bytes in all")));
            }
        }
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        Names { variables: &self.variables, constants: Some(&self.constants), flags: Some(&self.spec.flags) }
    }

    /// The value of a formula of variables and constants only.
    fn value(&self, text: &str) -> Result<Value, String> {
        let (value, flags) = formula::evaluate(text, &self.names())?;
        match flags.first() {
            Some(name) => Err(format!("no enclosing loop and no constant above declares `{}`", shown(name))),
            None => Ok(value),
        }
    }

    /// Whether an `#if` keeps its lines. An `#if` in skipped lines only registers its flags.
    fn condition(&mut self, text: &str, keep: bool) -> Result<bool, String> {
        // A flag of a fragment keeps its meaning even if its importer has a number of that name.
        let flag = text.trim_start_matches('!').trim_start();
        let is_number = matches!(self.constants.get(flag), Some(Value::Number(_)));
        if is_number && self.variables.iter().all(|(name, _)| name != flag) {
            self.sees(NameKind::Flag, flag);
            let negated = text.matches('!').count() % 2 == 1;
            return Ok(keep && self.spec.is_set(flag) != negated);
        }
        let found = formula::evaluate(text, &self.names());
        if let Ok((_, flags)) = &found {
            flags.iter().for_each(|flag| self.sees(NameKind::Flag, flag));
        }
        if !keep {
            return Ok(false);
        }
        found.and_then(|(value, _)| formula::truth(&value))
    }

    /// Remembers a name that the text declares or asks for.
    fn sees(&mut self, kind: NameKind, name: &str) {
        let names = &mut self.seen[kind as usize];
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
    }

    /// Remembers a constant if formulas can use its value.
    fn declare(&mut self, name: &str, value: Result<Value, String>) {
        match value {
            Ok(known) => self.constants.insert(name.to_owned(), known),
            Err(_) => self.constants.remove(name),
        };
    }

    fn import(&mut self, rest: &str, origin: (u32, u32), at: &dyn Fn(String) -> crate::Error) -> Result<()> {
        let (default, slot) = match rest.split_once(" as ") {
            Some((default, slot)) => (default.trim(), Some(slot.trim())),
            None => (rest, None),
        };
        let mut name = default;
        if let Some(slot) = slot {
            self.sees(NameKind::Slot, slot);
            match self.spec.slots.get(slot) {
                Some(Fragment::Library(other)) => name = other,
                Some(Fragment::User(text)) => {
                    return self.user(slot, text, origin, library::source(default).unwrap_or_default());
                }
                None => {}
            }
        }
        let text = library::source(name)
            .ok_or_else(|| at(format!("unknown import `{}`; the library has {}", shown(name), close_to(name))))?;
        if !self.done.insert(name.to_owned()) {
            return Ok(());
        }
        self.imported_at.push(origin);
        self.file(&file_of(name), text)
    }

    /// Expands a user's text without its comments, so that no compiler reads a comment differently from us, and no
    /// comment reaches into our text.
    fn user(&mut self, slot: &str, text: &str, origin: (u32, u32), default: &'static str) -> Result<()> {
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
        // Declarations in a user's text, perhaps inside a function, do not affect ours.
        let ours = (self.constants.clone(), std::mem::take(&mut self.blocks));
        self.imported_at.push(origin);
        self.file(&file, &text)?;
        (self.constants, self.blocks) = ours;
        let has_directives = self.directives > directives;
        self.users.push(UserText { file, range: begin..self.out.len(), default, has_directives });
        Ok(())
    }

    /// The line with its value replaced, if it declares a constant or alias of the spec.
    fn rewrite(&mut self, line: &str, at: &dyn Fn(String) -> crate::Error) -> Result<Option<String>> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        let name: &str = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        let (kind, new) = match keyword {
            "const" => (NameKind::Constant, self.spec.constants.get(name).copied()),
            "alias" => (NameKind::Alias, self.spec.aliases.get(name).copied().map(Constant::Text)),
            _ => return Ok(None),
        };
        self.sees(kind, name);
        let declared = rest.split_once('=').and_then(|(left, right)| Some((left, right.split_once(';')?.0)));
        match (new, declared) {
            (Some(new), Some((left, _))) => Ok(Some(format!("{keyword} {left}= {new};"))),
            (Some(_), None) => {
                Err(at(format!("the declaration of `{name}` must stand on one line for a spec to rewrite it")))
            }
            (None, Some((_, value))) if keyword == "const" => {
                self.declare(name, self.value(value));
                Ok(None)
            }
            (None, _) => Ok(None),
        }
    }

    fn check_all_used(&self, file: &str) -> Result<()> {
        let s = self.spec;
        let named = (s.constants.iter().map(|(n, _)| (NameKind::Constant, n)))
            .chain(s.aliases.iter().map(|(n, _)| (NameKind::Alias, n)))
            .chain(s.flags.iter().map(|(n, _)| (NameKind::Flag, n)))
            .chain(s.slots.iter().map(|(n, _)| (NameKind::Slot, n)))
            .chain(s.lists.iter().map(|(n, _)| (NameKind::List, n)));
        for (kind, name) in named {
            if !self.seen[kind as usize].contains(name) {
                let of_kind = |(kind, names): (&str, &BTreeSet<String>)| -> Vec<String> {
                    names.iter().map(|name| format!("{kind} {name}")).collect()
                };
                let seen: Vec<_> = NameKind::NAMES.into_iter().zip(&self.seen).flat_map(of_kind).collect();
                return Err(err!(
                    Shader,
                    "{file}:1: the spec sets the {} `{name}`, which neither this file nor its imports declare; they have: {}",
                    NameKind::NAMES[kind as usize],
                    seen.join(", ")
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

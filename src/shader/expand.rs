//! The expander: `#import`, `#if`, `#for`, `#block`, and the rewriting of declared constants and aliases. `shaders/README.md`
//! has the language, with an example of each directive.
//!
//! Module scope in WGSL does not depend on order, so a fragment may use `T`, `WORKGROUP_SIZE` or
//! `op_combine` that its importer declares: generics without a template language.
//!
//! Lines end where WGSL ends them: at LF, VT, FF, CR, NEL, LS and PS. The expanded text has LF alone.

use super::contained::UserText;
use super::formula::{self, Names, Value};
use super::lexical::{lines, without_comments};
use super::library;
use super::spec::{Fragment, Spec};
use crate::error::{Result, err};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

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

/// Bytes that `#for` and `#put` may write in a text.
const MOST_WRITTEN: usize = 1 << 22;

/// Bytes that they may read for it, and what a round counts for by itself: lines of loops within loops are read for each
/// of them, and an `#if` drops many.
const MOST_READ: usize = 1 << 25;
const OF_A_ROUND: usize = 16;

/// `#for`s that may lie in each other: the expander recurses over them.
const MOST_LOOPS: usize = 16;

/// `#put`s that may lie in each other.
const MOST_PUTS: usize = 4;

/// Expands the embedded file `name`.
///
/// # Errors
/// [`Shader`](crate::ErrorKind::Shader), with file and line: an unknown import, an unbalanced `#if` or `#for`,
/// an unknown directive, a formula without a value, or a name of `spec` that nothing declares.
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
        written: 0,
        read: 0,
        constants: BTreeMap::new(),
        variables: Vec::new(),
        blocks: BTreeMap::new(),
        puts: 0,
    };
    for (name, value) in &spec.constants {
        x.declare(name, value);
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
    /// Bytes that `#for` and `#put` have written, and read.
    written: usize,
    read: usize,
    /// Constants whose values are known: those of the spec, and those that stand above.
    constants: BTreeMap<String, Value>,
    /// Variables of the loops around, the innermost last.
    variables: Vec<(String, Value)>,
    /// What `#block` has given names.
    blocks: BTreeMap<String, Rc<Block>>,
    /// `#put`s that we are within.
    puts: usize,
}

/// The lines of a `#block`.
struct Block {
    file: String,
    id: u32,
    parameters: Vec<String>,
    lines: Vec<(usize, String)>,
}

/// A line of a file, and its number from 1.
type Line<'t> = (usize, &'t str);

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
        let all: Vec<Line<'_>> = lines(text).enumerate().map(|(i, line)| (i + 1, line)).collect();
        self.block(file, id, &all)
    }

    /// Lines of a file: all of them, or those that an `#end` closes.
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
                    let on = self
                        .condition(rest, keep)
                        .map_err(|why| at(format!("`#if {}`: {why}", shown(rest))))?;
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
                    let length = end_of_loop(&lines[next..])
                        .ok_or_else(|| at("`#for` is never closed by `#end`".into()))?;
                    if keep {
                        self.repeat(file, id, (line, rest), &lines[next..next + length])?;
                    }
                    next += length + 1;
                }
                "block" => {
                    let length = end_of_loop(&lines[next..])
                        .ok_or_else(|| at("`#block` is never closed by `#end`".into()))?;
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
                        self.import(rest, &at)?;
                    }
                }
                _ => {
                    return Err(at(format!(
                        "unknown directive `#{}`; there are #import, #if, #else, #endif, #for, #block, #put, #end",
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

    /// A line that is no directive.
    fn line(&mut self, raw: &str, origin: (u32, u32), at: &dyn Fn(String) -> crate::Error) -> Result<()> {
        let (trimmed, begin) = (raw.trim(), self.out.len());
        if trimmed.starts_with("diagnostic(") {
            self.directives += 1;
            self.diagnostics.insert(trimmed.to_owned());
            return Ok(());
        }
        let enabled = trimmed.strip_prefix("enable ").map(|e| e.split_once(';').unwrap_or((e, "")));
        // Another text behind `enable` stays where it is, and naga refuses it there.
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
            if self.written > MOST_WRITTEN {
                return Err(at(format!("loops and blocks write more than {MOST_WRITTEN} bytes in all")));
            }
        }
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        Names { variables: &self.variables, constants: Some(&self.constants), flags: Some(&self.spec.flags) }
    }

    /// The value of a formula of variables and constants alone.
    fn value(&self, text: &str) -> Result<Value, String> {
        let (value, flags) = formula::evaluate(text, &self.names())?;
        match flags.first() {
            Some(name) => Err(format!("no loop around and no constant above has the name `{}`", shown(name))),
            None => Ok(value),
        }
    }

    /// Whether an `#if` keeps its lines. One in lines that are left out only tells which flags there are.
    fn condition(&mut self, text: &str, keep: bool) -> Result<bool, String> {
        // A flag of a fragment keeps its meaning where its importer has a number of that name.
        let flag = text.trim_start_matches('!').trim_start();
        let is_number = matches!(self.constants.get(flag), Some(Value::Number(_)));
        if is_number && self.variables.iter().all(|(name, _)| name != flag) {
            self.seen.insert(format!("flag {flag}"));
            let negated = text.matches('!').count() % 2 == 1;
            return Ok(keep && self.spec.is_set(flag) != negated);
        }
        let found = formula::evaluate(text, &self.names());
        if let Ok((_, flags)) = &found {
            self.seen.extend(flags.iter().map(|flag| format!("flag {flag}")));
        }
        if !keep {
            return Ok(false);
        }
        found.and_then(|(value, _)| formula::truth(&value))
    }

    /// In a loop: the line with the values of its `{...}`. Braces with a blank behind the first, or with anything
    /// between them that no formula has, are WGSL's own.
    fn filled<'t>(&self, raw: &'t str) -> Result<Cow<'t, str>, String> {
        if self.variables.is_empty() {
            return Ok(Cow::Borrowed(raw));
        }
        let is_formula = |inner: &str| {
            let of_formula = |c: char| c.is_ascii_alphanumeric() || "_ +-*/%<>=!&|(),".contains(c);
            !inner.is_empty() && !inner.starts_with(' ') && inner.chars().all(of_formula)
        };
        let (mut out, mut rest) = (String::new(), raw);
        while let Some(open) = rest.find('{') {
            let inner = rest[open + 1..].split_once('}').map(|(inner, _)| inner).filter(|i| is_formula(i));
            let Some(inner) = inner else {
                out.push_str(&rest[..=open]);
                rest = &rest[open + 1..];
                continue;
            };
            let value = self.value(inner).map_err(|why| format!("`{{{}}}`: {why}", shown(inner)))?;
            out.push_str(&rest[..open]);
            out += &value.to_string();
            if out.len() > MOST_WRITTEN {
                return Err(format!("loops and blocks write more than {MOST_WRITTEN} bytes in all"));
            }
            rest = &rest[open + inner.len() + 2..];
        }
        Ok(if out.is_empty() { Cow::Borrowed(raw) } else { Cow::Owned(out + rest) })
    }

    /// The lines of a `#for`, once for each value of its variable. A loop of WGSL over a local array would have the
    /// array lie in memory instead of registers, and cannot make names.
    fn repeat(&mut self, file: &str, id: u32, (line, head): (usize, &str), body: &[Line<'_>]) -> Result<()> {
        let at = |what: String| err!(Shader, "{file}:{line}: `#for {}`: {what}", shown(head));
        let (name, values) = head
            .split_once(" in ")
            .map(|(name, values)| (name.trim(), values.trim()))
            .filter(|(name, _)| is_name(name) && !name.starts_with(|c: char| c.is_ascii_digit()))
            .ok_or_else(|| at("a loop is `#for NAME in COUNT`, `FIRST..END` or `WORD, WORD`".into()))?;
        if self.variables.iter().any(|(known, _)| known == name) {
            return Err(at(format!("a loop around has the name `{name}` already")));
        }
        if self.variables.len() == MOST_LOOPS {
            return Err(at(format!("more than {MOST_LOOPS} loops within each other")));
        }
        let bytes = OF_A_ROUND + body.iter().map(|(_, line)| line.len() + 1).sum::<usize>();
        let round = |x: &mut Self, value: Value| -> Result<()> {
            x.reads(bytes).map_err(at)?;
            x.variables.push((name.to_owned(), value));
            let result = x.block(file, id, body);
            x.variables.pop();
            result
        };
        if is_list(values) {
            return values.split(',').try_for_each(|word| round(self, Value::Word(word.trim().to_owned())));
        }
        let (first, end) = values.split_once("..").unwrap_or(("0", values));
        let bound = |text: &str| match self.value(text).map_err(at)? {
            Value::Number(number) if number >= 0 => Ok(number),
            other => Err(at(format!("`{other}` is no number of rounds"))),
        };
        let (first, end) = (bound(first)?, bound(end)?);
        (first..end).try_for_each(|i| round(self, Value::Number(i)))
    }

    /// Counts what loops and blocks read.
    fn reads(&mut self, bytes: usize) -> Result<(), String> {
        self.read = self.read.saturating_add(bytes);
        if self.read > MOST_READ {
            return Err(format!("loops and blocks read more than {MOST_READ} bytes in all"));
        }
        Ok(())
    }

    /// Remembers the lines of a `#block`.
    fn keep(&mut self, file: &str, id: u32, head: &str, body: &[Line<'_>]) -> Result<(), String> {
        let (name, parameters) = call(head).ok_or("a block is `#block NAME(NAME, NAME)`")?;
        let is_new = |i: usize| is_name(parameters[i]) && !parameters[..i].contains(&parameters[i]);
        if !(0..parameters.len()).all(is_new) {
            return Err("parameters are names, each another".into());
        }
        let block = Block {
            file: file.to_owned(),
            id,
            parameters: parameters.into_iter().map(str::to_owned).collect(),
            lines: body.iter().map(|(line, text)| (*line, (*text).to_owned())).collect(),
        };
        match self.blocks.insert(name.to_owned(), Rc::new(block)) {
            Some(_) => Err("a block above has this name".into()),
            None => Ok(()),
        }
    }

    /// Writes the lines of a block. They see its parameters, and no variables of loops around the `#put`.
    fn put(&mut self, what: &str, at: &dyn Fn(String) -> crate::Error) -> Result<()> {
        let (name, given) = call(what).ok_or_else(|| at("it is `#put NAME(TEXT, TEXT)`".into()))?;
        let block =
            self.blocks.get(name).cloned().ok_or_else(|| at("no block above has this name".into()))?;
        if given.len() != block.parameters.len() {
            return Err(at(format!("{} texts; the block takes {}", given.len(), block.parameters.len())));
        }
        let lines: Vec<Line<'_>> = block.lines.iter().map(|(line, text)| (*line, text.as_str())).collect();
        let bytes = OF_A_ROUND + lines.iter().map(|(_, line)| line.len() + 1).sum::<usize>();
        self.reads(bytes).map_err(at)?;
        if self.puts == MOST_PUTS {
            return Err(at(format!("more than {MOST_PUTS} within each other")));
        }
        let value = |text: &str| match (text.parse(), text.parse()) {
            (Ok(number), _) => Value::Number(number),
            (_, Ok(truth)) => Value::Bool(truth),
            _ => Value::Word(text.to_owned()),
        };
        let inner = block.parameters.iter().cloned().zip(given.into_iter().map(value)).collect();
        let around = std::mem::replace(&mut self.variables, inner);
        self.puts += 1;
        let result = self.block(&block.file, block.id, &lines);
        self.puts -= 1;
        self.variables = around;
        result
    }

    /// Remembers a constant, if its value is one that formulas have.
    fn declare(&mut self, name: &str, value: &str) {
        match self.value(value) {
            Ok(known) => self.constants.insert(name.to_owned(), known),
            Err(_) => self.constants.remove(name),
        };
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
        // What a user's text declares, in a function perhaps, is none of ours.
        let ours = (self.constants.clone(), std::mem::take(&mut self.blocks));
        self.file(&file, &text)?;
        (self.constants, self.blocks) = ours;
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
        let declared = rest.split_once('=').and_then(|(left, right)| Some((left, right.split_once(';')?.0)));
        match (new, declared) {
            (Some(new), Some((left, _))) => Ok(Some(format!("{keyword} {left}= {new};"))),
            (Some(_), None) => Err(at(format!(
                "the declaration of `{name}` must stand on one line for a spec to rewrite it"
            ))),
            (None, Some((_, value))) if keyword == "const" => {
                self.declare(name, value);
                Ok(None)
            }
            (None, _) => Ok(None),
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

/// Finds commas outside of all brackets.
fn is_outer_comma() -> impl FnMut(char) -> bool {
    let mut depth = 0i32;
    move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    }
}

/// Whether the values of a loop are words: a comma stands outside of all brackets.
fn is_list(values: &str) -> bool {
    values.chars().any(is_outer_comma())
}

/// A name, and what stands in the brackets behind it.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inner) = text.split_once('(')?;
    let (name, inner) = (name.trim(), inner.strip_suffix(')')?.trim());
    let given =
        if inner.is_empty() { Vec::new() } else { inner.split(is_outer_comma()).map(str::trim).collect() };
    is_name(name).then_some((name, given))
}

/// How many lines lie before the `#end` of a loop or block that begins above them.
fn end_of_loop(lines: &[Line<'_>]) -> Option<usize> {
    let mut depth = 0usize;
    lines.iter().position(|(_, line)| {
        let word = line.trim().split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or("");
        match (word, depth) {
            ("#for" | "#block", _) => depth += 1,
            ("#end", 0) => return true,
            ("#end", _) => depth -= 1,
            _ => {}
        }
        false
    })
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

    fn expanded(text: &str, spec: &Spec) -> String {
        expand_text("k.wgsl", text, spec, Target::Naga).unwrap().text().to_owned()
    }

    #[test]
    fn loops_follow_the_constant_and_keep_their_origin() {
        let text = "const N: u32 = 2u;\n#for i in N\n#if X\nx[{i}] = {i}u;\n#endif\ny\n#end\nz\n";
        let x = |spec: Spec| expand_text("k.wgsl", text, &spec, Target::Naga).unwrap();
        let two = x(Spec::new().flag("X", true));
        assert_eq!(two.text(), "const N: u32 = 2u;\nx[0] = 0u;\ny\nx[1] = 1u;\ny\nz\n");
        assert_eq!([4, 5, 6].map(|l| two.origin(l).1), [4, 6, 8]);
        assert_eq!(x(Spec::new().constant("N", 3u32)).text(), "const N: u32 = 3u;\ny\ny\ny\nz\n");
    }

    #[test]
    fn loops_nest_count_from_anywhere_and_run_over_words() {
        let text = "const N = 2;\n#for r in N\n#for c in r..N\nc_{r}_{N * c + 1};\n#end\n#end\n";
        assert_eq!(expanded(text, &Spec::new()), "const N = 2;\nc_0_1;\nc_0_3;\nc_1_3;\n");
        let text = "#for half in , _low\n#for c in x, y\na{half}.{c};\n#end\n#end\n";
        assert_eq!(expanded(text, &Spec::new()), "a.x;\na.y;\na_low.x;\na_low.y;\n");
        assert_eq!(expanded("#for i in min(1, 2)\n{i}\n#end\n", &Spec::new()), "0\n");
    }

    #[test]
    fn constants_come_from_constants_and_conditions_compare_them() {
        let text = "const K: u32 = 16u;
const PITCH: u32 = K + 8u;
#for x in a, b
const LOADS_{x}: u32 = PITCH / 4u; // of a tile
#if LOADS_{x} > 5 && !SMALL
{x} {PITCH / 4};
#else
{x} is small;
#endif
#end
";
        let of = |spec: Spec| expanded(text, &spec).lines().filter(|l| l.starts_with(['a', 'b'])).count();
        assert!(expanded(text, &Spec::new()).contains("a 6;\n"));
        assert!(expanded(text, &Spec::new().constant("K", 8u32)).contains("b is small;\n"));
        assert!(expanded(text, &Spec::new().flag("SMALL", true)).contains("a is small;\n"));
        assert_eq!(of(Spec::new()), 2);
    }

    #[test]
    fn a_number_takes_no_flag_its_name() {
        let text = "const GROUPS: u32 = 2u;\n#if GROUPS\non;\n#endif\n#if !GROUPS\noff;\n#endif\n";
        assert!(expanded(text, &Spec::new()).ends_with("2u;\noff;\n"));
        assert!(expanded(text, &Spec::new().flag("GROUPS", true)).ends_with("2u;\non;\n"));
    }

    #[test]
    fn braces_of_wgsl_stay() {
        let text =
            "#for i in 1\nif a { b({i}); }\nfn f() {}\nstruct S {a: u32}\nlet x = array(1){i};\n#end\n{i}\n";
        let wanted = "if a { b(0); }\nfn f() {}\nstruct S {a: u32}\nlet x = array(1)0;\n{i}\n";
        assert_eq!(expanded(text, &Spec::new()), wanted);
    }

    #[test]
    fn lines_left_out_are_not_read_but_must_be_balanced() {
        let text = "#if X\n#for i in NOWHERE\n#if {i} > LATER\n{y}\n#endif\n#end\n#endif\nz\n";
        assert_eq!(expanded(text, &Spec::new()), "z\n");
        let m = message("#if X\n#for i in 2\n#endif\n", &Spec::new());
        assert!(m.starts_with("k.wgsl:2: `#for` is never closed"), "{m}");
    }

    #[test]
    fn wrong_loops_and_conditions_name_their_line() {
        for (text, wanted) in [
            (
                "\n#for i in M\n#end\n",
                "k.wgsl:2: `#for i in M`: no loop around and no constant above has the name `M`",
            ),
            ("#for i in 0 - 1\n#end\n", "k.wgsl:1: `#for i in 0 - 1`: `-1` is no number of rounds"),
            ("#for i\n#end\n", "k.wgsl:1: `#for i`: a loop is"),
            ("#for 2 in 3\n#end\n", "k.wgsl:1: `#for 2 in 3`: a loop is"),
            ("#for i in 1\n#for i in 1\n#end\n#end\n", "k.wgsl:2: `#for i in 1`: a loop around"),
            ("#for i in 3\n\n", "k.wgsl:1: `#for` is never closed"),
            ("x\n#end\n", "k.wgsl:2: `#end` without"),
            ("#for i in 1\n#if X\n#end\n#endif\n", "k.wgsl:2: `#if` is never closed"),
            (
                "#for i in 1\n{j}\n#end\n",
                "k.wgsl:2: `{j}`: no loop around and no constant above has the name `j`",
            ),
            ("#for i in 1\n{i / 0}\n#end\n", "k.wgsl:2: `{i / 0}`: `0 / 0` has no value"),
            ("#if ROWS > 1\n#endif\n", "k.wgsl:1: `#if ROWS > 1`: a number is wanted"),
            ("#if 1\n#endif\n", "k.wgsl:1: `#if 1`: true or false is wanted"),
            ("#if\n#endif\n", "k.wgsl:1: `#if `: the formula ends"),
            ("#repeat N\n#end\n", "k.wgsl:1: unknown directive `#repeat`"),
        ] {
            let m = message(text, &Spec::new());
            assert!(m.starts_with(wanted), "{text}: {m}");
        }
    }

    #[test]
    fn loops_are_bounded() {
        let most = Spec::new().constant("N", u32::MAX);
        for text in ["const N = 1;\n#for i in N\n#end\n", "const N = 1;\n#for i in N\nx\n#end\n"] {
            let m = message(text, &most);
            assert!(m.starts_with("k.wgsl:2: `#for i in N`: loops and blocks read more than"), "{m}");
        }
        let m = message(&format!("const N = 90000;\n{}", "#for i in N\nx\n#end\n".repeat(50)), &Spec::new());
        assert!(m.starts_with("k.wgsl:62: `#for i in N`: loops and blocks read"), "{m}");
        let m = message(&format!("#for i in 90000\n{}\n#end\n", "x".repeat(99)), &Spec::new());
        assert!(m.starts_with("k.wgsl:2: loops and blocks write more than 4194304 bytes"), "{m}");
        // A long word in many places of a line.
        let holes = "{w}".repeat(4000);
        let word = "x".repeat(100_000);
        let m = message(&format!("#for w in {word},\n{holes}\n#end\n"), &Spec::new());
        assert!(m.starts_with("k.wgsl:2: loops and blocks write") && m.len() < 200, "{m}");
        let open: String = (0..20).map(|i| format!("#for i{i} in 2\n")).collect();
        let m = message(&format!("{open}{}", "#end\n".repeat(20)), &Spec::new());
        assert!(m.starts_with("k.wgsl:17: `#for i16 in 2`: more than 16 loops"), "{m}");
    }

    #[test]
    fn blocks_are_put_with_texts_and_numbers() {
        let text = "const N = 2;
#block load(what, from)
#for n in N
{what}_{n} = {from} + {n};
#end
#end
#block both(first)
#put load(a, {first}u)
#if first > 4
#put load(b, min(x, y))
#endif
#end
#put both(4)
#for n in 5..6
#put both({n})
#end
";
        let wanted = "const N = 2;\na_0 = 4u + 0;\na_1 = 4u + 1;\na_0 = 5u + 0;\na_1 = 5u + 1;\n\
                      b_0 = min(x, y) + 0;\nb_1 = min(x, y) + 1;\n";
        assert_eq!(expanded(text, &Spec::new()), wanted);
        let put = expand_text("k.wgsl", text, &Spec::new(), Target::Naga).unwrap();
        assert_eq!(put.origin(2), ("k.wgsl", 4), "lines are those of the block");
    }

    #[test]
    fn wrong_blocks_name_their_line() {
        let put = |body: &str, put: &str| format!("#block a(x)\n{body}\n#end\n#put {put}\n");
        for (text, wanted) in [
            ("#block a()\n", "k.wgsl:1: `#block` is never closed"),
            ("#block a\n#end\n", "k.wgsl:1: `#block a`: a block is"),
            ("#block a(x, x)\n#end\n", "k.wgsl:1: `#block a(x, x)`: parameters are names"),
            ("#block a()\n#end\n#block a()\n#end\n", "k.wgsl:3: `#block a()`: a block above has this name"),
            ("#put a()\n", "k.wgsl:1: `#put a()`: no block above"),
            (&put("", "a()"), "k.wgsl:4: `#put a()`: 0 texts; the block takes 1"),
            (&put("", "a"), "k.wgsl:4: `#put a`: it is"),
            (&put("{y}", "a(1)"), "k.wgsl:2: `{y}`: no loop around"),
            (&put("#put a({x})", "a(1)"), "k.wgsl:2: `#put a(1)`: more than 4 within each other"),
        ] {
            let m = message(text, &Spec::new());
            assert!(m.starts_with(wanted), "{text}: {m}");
        }
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

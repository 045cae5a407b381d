//! Lines written more than once: `#for`, and `#block` with `#put`.

use super::names::{is_name, shown};
use super::{Expander, Line, NameKind};
use crate::error::{Result, err};
use crate::shader::formula::Value;
use std::borrow::Cow;
use std::rc::Rc;

/// Maximum of bytes that `#for` and `#put` write in a text.
pub(super) const MAX_WRITTEN: usize = 1 << 22;

/// Maximum of bytes that they read, and the base cost of a round: lines of nested loops are read once for each
/// round, and an `#if` drops many.
const MAX_READ: usize = 1 << 25;
const OF_A_ROUND: usize = 16;

/// Maximum of nested `#for`s, because the expander recurses over them.
const MAX_LOOPS: usize = 16;

/// Maximum of nested `#put`s.
const MAX_PUTS: usize = 4;

pub(super) struct TextBlock {
    file: String,
    id: u32,
    parameters: Vec<String>,
    lines: Vec<(usize, String)>,
}

impl Expander<'_> {
    /// In a loop: the line with the values of its `{...}`. Braces are WGSL's own if a blank follows the first, or
    /// if they contain a character that formulas do not have.
    pub(super) fn filled<'t>(&self, raw: &'t str) -> Result<Cow<'t, str>, String> {
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
            if out.len() > MAX_WRITTEN {
                return Err(format!("loops and blocks write more than {MAX_WRITTEN} bytes in all"));
            }
            rest = &rest[open + inner.len() + 2..];
        }
        Ok(if out.is_empty() { Cow::Borrowed(raw) } else { Cow::Owned(out + rest) })
    }

    /// Writes the lines of a `#for` once for each value of its variable. A WGSL loop over a local array would keep
    /// the array in memory instead of registers, and cannot make names.
    pub(super) fn repeat(&mut self, file: &str, id: u32, (line, head): (usize, &str), body: &[Line<'_>]) -> Result<()> {
        let at = |what: String| err!(Shader, "{file}:{line}: `#for {}`: {what}", shown(head));
        let (name, values) = head
            .split_once(" in ")
            .map(|(name, values)| (name.trim(), values.trim()))
            .filter(|(name, _)| is_name(name) && !name.starts_with(|c: char| c.is_ascii_digit()))
            .ok_or_else(|| at("write `#for NAME in COUNT`, `FIRST..END` or `WORD, WORD`".into()))?;
        if self.variables.iter().any(|(known, _)| known == name) {
            return Err(at(format!("an enclosing loop already uses the name `{name}`")));
        }
        if self.variables.len() == MAX_LOOPS {
            return Err(at(format!("more than {MAX_LOOPS} nested loops")));
        }
        let bytes = OF_A_ROUND + body.iter().map(|(_, line)| line.len() + 1).sum::<usize>();
        let round = |x: &mut Self, value: Value| -> Result<()> {
            x.reads(bytes).map_err(at)?;
            x.variables.push((name.to_owned(), value));
            let result = x.block(file, id, body);
            x.variables.pop();
            result
        };
        let spec = self.spec;
        let given = spec.lists.get(values);
        if given.is_some() {
            self.sees(NameKind::List, values);
        }
        let values = given.map_or(values, |words| words);
        if given.is_some() || is_list(values) {
            return values.split(',').try_for_each(|word| round(self, Value::Word(word.trim().to_owned())));
        }
        let (first, end) = values.split_once("..").unwrap_or(("0", values));
        let bound = |text: &str| match self.value(text).map_err(at)? {
            Value::Number(number) if number >= 0 => Ok(number),
            other => Err(at(format!("`{other}` is not a number of rounds"))),
        };
        let (first, end) = (bound(first)?, bound(end)?);
        (first..end).try_for_each(|i| round(self, Value::Number(i)))
    }

    /// Counts what loops and blocks read.
    pub(super) fn reads(&mut self, bytes: usize) -> Result<(), String> {
        self.read = self.read.saturating_add(bytes);
        if self.read > MAX_READ {
            return Err(format!("loops and blocks read more than {MAX_READ} bytes in all"));
        }
        Ok(())
    }

    /// Remembers the lines of a `#block`.
    pub(super) fn keep(&mut self, file: &str, id: u32, head: &str, body: &[Line<'_>]) -> Result<(), String> {
        let (name, parameters) = call(head).ok_or("write `#block NAME(NAME, NAME)`")?;
        let is_new = |i: usize| is_name(parameters[i]) && !parameters[..i].contains(&parameters[i]);
        if !(0..parameters.len()).all(is_new) {
            return Err("parameters must be distinct names".into());
        }
        let block = TextBlock {
            file: file.to_owned(),
            id,
            parameters: parameters.into_iter().map(str::to_owned).collect(),
            lines: body.iter().map(|(line, text)| (*line, (*text).to_owned())).collect(),
        };
        match self.blocks.insert(name.to_owned(), Rc::new(block)) {
            Some(_) => Err("a block above already has this name".into()),
            None => Ok(()),
        }
    }

    /// Writes the lines of a block. They see its parameters, but no variables of loops around the `#put`.
    pub(super) fn put(&mut self, what: &str, at: &dyn Fn(String) -> crate::Error) -> Result<()> {
        let (name, given) = call(what).ok_or_else(|| at("write `#put NAME(TEXT, TEXT)`".into()))?;
        let block = self.blocks.get(name).cloned().ok_or_else(|| at("no block above has this name".into()))?;
        if given.len() != block.parameters.len() {
            return Err(at(format!("{} texts; the block takes {}", given.len(), block.parameters.len())));
        }
        let lines: Vec<Line<'_>> = block.lines.iter().map(|(line, text)| (*line, text.as_str())).collect();
        let bytes = OF_A_ROUND + lines.iter().map(|(_, line)| line.len() + 1).sum::<usize>();
        self.reads(bytes).map_err(at)?;
        if self.puts == MAX_PUTS {
            return Err(at(format!("more than {MAX_PUTS} nested")));
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
}

/// Finds commas outside of all brackets.
fn is_outer_comma() -> impl FnMut(char) -> bool {
    let mut depth = 0i32;
    move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    }
}

/// Whether a loop runs over words: a comma stands outside of all brackets.
fn is_list(values: &str) -> bool {
    values.chars().any(is_outer_comma())
}

/// A name, and the arguments in the brackets after it.
fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inner) = text.split_once('(')?;
    let (name, inner) = (name.trim(), inner.strip_suffix(')')?.trim());
    let given = if inner.is_empty() { Vec::new() } else { inner.split(is_outer_comma()).map(str::trim).collect() };
    is_name(name).then_some((name, given))
}

/// Number of lines before the `#end` of a loop or block that begins above them.
pub(super) fn end_of_loop(lines: &[Line<'_>]) -> Option<usize> {
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

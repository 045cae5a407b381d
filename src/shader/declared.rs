//! The interface of an entry point, read from its declarations alone: for the library's own text, which tests have
//! validated with naga and Tint. A page that runs only such text is built without naga.

use super::expand::Expanded;
use super::formula::{Names, Value, evaluate};
use super::lexical::{is_blank, is_word_part, without_comments};
use super::module::{Barriers, BindingInfo, BindingKind, Interface, Member};
use crate::error::{Result, err};
use std::collections::{BTreeMap, HashMap};

type Tokens<'t> = Vec<&'t str>;

struct DeclaredVariable<'t> {
    name: &'t str,
    /// The formulas of `@group` and `@binding`.
    place: Option<[Tokens<'t>; 2]>,
    space: &'t str,
    writes: bool,
    ty: Tokens<'t>,
}

/// A function: its body, the names of its parameters and variables, and the arguments of `@workgroup_size`.
struct DeclaredFunction<'t> {
    body: Tokens<'t>,
    own_names: Tokens<'t>,
    workgroup_size: Option<Tokens<'t>>,
}

#[derive(Default)]
struct Declarations<'t> {
    constants: BTreeMap<String, Value>,
    aliases: HashMap<&'t str, Tokens<'t>>,
    structs: HashMap<&'t str, Vec<(&'t str, Tokens<'t>)>>,
    variables: Vec<DeclaredVariable<'t>>,
    functions: HashMap<&'t str, DeclaredFunction<'t>>,
}

impl Expanded {
    /// Reads the interface of an entry point of the library's own text.
    ///
    /// # Errors
    /// [`Shader`](crate::ErrorKind::Shader) if the text has no such entry point, or declares something that the
    /// library does not.
    pub(crate) fn declared_interface(&self, entry: &str) -> Result<Interface> {
        let (code, _) = without_comments(self.text());
        let read = Declarations::read(&tokens(&code)).and_then(|found| found.interface(entry));
        read.map_err(|why| err!(Shader, "{}: {why}", self.origin(self.text().lines().count() as u32).0))
    }
}

/// The words and marks of a text without comments.
fn tokens(text: &str) -> Tokens<'_> {
    let (mut found, mut rest) = (Vec::new(), text.trim_start_matches(is_blank));
    while let Some(first) = rest.chars().next() {
        let end = match is_word_part(first) {
            true => rest.find(|c| !is_word_part(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        found.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_blank);
    }
    found
}

/// The position after the mark that closes the one at `at`.
fn after_closed(text: &[&str], at: usize, open: &str, close: &str) -> usize {
    let mut depth = 0usize;
    for (i, token) in text.iter().enumerate().skip(at) {
        if *token == open {
            depth += 1;
        } else if *token == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return i + 1;
            }
        }
    }
    text.len()
}

/// Splits at commas outside of brackets. `<` and `>` are brackets outside of round ones.
fn split<'a, 't>(text: &'a [&'t str]) -> Vec<&'a [&'t str]> {
    let (mut round, mut angle, mut from, mut parts) = (0i32, 0i32, 0, Vec::new());
    for (i, token) in text.iter().enumerate() {
        match *token {
            "(" => round += 1,
            ")" => round -= 1,
            "<" if round == 0 => angle += 1,
            ">" if round == 0 => angle -= 1,
            "," if round == 0 && angle == 0 => {
                parts.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The tokens from `from` to `to`; none if the text is shorter.
fn part<'a, 't>(text: &'a [&'t str], from: usize, to: usize) -> &'a [&'t str] {
    text.get(from..to).unwrap_or_default()
}

fn attribute<'a, 't>(attributes: &'a [&'t str], name: &str) -> Option<&'a [&'t str]> {
    let at = attributes.windows(3).position(|w| w[0] == "@" && w[1] == name && w[2] == "(")?;
    Some(part(attributes, at + 3, after_closed(attributes, at + 2, "(", ")") - 1))
}

impl<'t> Declarations<'t> {
    fn read(text: &[&'t str]) -> std::result::Result<Self, String> {
        let (mut found, mut constants, mut at) = (Self::default(), Vec::new(), 0);
        let until = |from: usize, mark: &str| {
            part(text, from, text.len()).iter().position(|token| *token == mark).map_or(text.len(), |n| from + n)
        };
        while at < text.len() {
            let first = at;
            while text.get(at) == Some(&"@") {
                at += 2;
                if text.get(at) == Some(&"(") {
                    at = after_closed(text, at, "(", ")");
                }
            }
            let attributes = &text[first..at];
            let name = text.get(at + 1).copied().unwrap_or_default();
            match text.get(at).copied().unwrap_or_default() {
                "struct" => {
                    let end = after_closed(text, at + 2, "{", "}");
                    let members = split(part(text, at + 3, end - 1)).into_iter().map(|member| {
                        let colon = member.iter().position(|token| *token == ":").unwrap_or(0);
                        match colon {
                            1 => Ok((member[0], member[2..].to_vec())),
                            _ => Err(format!("struct {name}: a member with attributes")),
                        }
                    });
                    found.structs.insert(name, members.collect::<std::result::Result<_, _>>()?);
                    at = end;
                }
                "fn" => {
                    let body = until(at, "{");
                    let end = after_closed(text, body, "{", "}");
                    let workgroup_size = attribute(attributes, "workgroup_size").map(<[_]>::to_vec);
                    let names = part(text, at, end).windows(2).filter_map(|pair| match pair {
                        [name, ":"] | ["let" | "var" | "const", name] => Some(*name),
                        _ => None,
                    });
                    let own_names = names.collect();
                    let body = part(text, body, end).to_vec();
                    found.functions.insert(name, DeclaredFunction { body, own_names, workgroup_size });
                    at = end;
                }
                "var" => {
                    let end = until(at, ";");
                    let (space, name_at) = match text.get(at + 1) {
                        Some(&"<") => {
                            let close = after_closed(text, at + 1, "<", ">");
                            (part(text, at + 2, close - 1), close)
                        }
                        _ => (&[][..], at + 1),
                    };
                    let ty_end = part(text, name_at, end).iter().position(|token| *token == "=");
                    let ty_end = ty_end.map_or(end, |n| name_at + n);
                    let formula = |of| attribute(attributes, of).map(<[_]>::to_vec);
                    found.variables.push(DeclaredVariable {
                        name: text.get(name_at).copied().unwrap_or_default(),
                        place: formula("group").zip(formula("binding")).map(|(group, binding)| [group, binding]),
                        space: space.first().copied().unwrap_or_default(),
                        writes: space.contains(&"read_write"),
                        ty: part(text, name_at + 2, ty_end).to_vec(),
                    });
                    at = end + 1;
                }
                "alias" => {
                    let end = until(at, ";");
                    found.aliases.insert(name, part(text, at + 3, end).to_vec());
                    at = end + 1;
                }
                "const" => {
                    let (begin, end) = (until(at, "="), until(at, ";"));
                    constants.push((name, part(text, begin + 1, end).concat()));
                    at = end + 1;
                }
                "enable" | "diagnostic" | "requires" | "const_assert" | ";" => at = until(at, ";") + 1,
                other => return Err(format!("`{other}` begins no declaration that the library uses")),
            }
        }
        // A constant may use one that is declared after it.
        loop {
            let known = found.constants.len();
            constants.retain(|(name, formula)| match found.evaluated(formula) {
                Some(value) => {
                    found.constants.insert((*name).to_owned(), value);
                    false
                }
                None => true,
            });
            if found.constants.len() == known {
                return Ok(found);
            }
        }
    }

    /// The value of a formula of whole numbers and truths whose names are all known.
    fn evaluated(&self, formula: &str) -> Option<Value> {
        let names = Names { constants: Some(&self.constants), ..Names::default() };
        match formula {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            // The directives' formulas have no bits.
            _ if formula.contains('|') && !formula.contains("||") => {
                let bits = formula.split('|').map(|part| match self.evaluated(part)? {
                    Value::Number(number) => Some(number),
                    _ => None,
                });
                bits.reduce(|a, b| Some(a? | b?)).flatten().map(Value::Number)
            }
            _ => evaluate(formula, &names).ok().filter(|(_, unknown)| unknown.is_empty()).map(|(value, _)| value),
        }
    }

    fn number(&self, formula: &[&str]) -> std::result::Result<u32, String> {
        let text = formula.concat();
        match self.evaluated(&text) {
            Some(Value::Number(number)) => u32::try_from(number).map_err(|e| format!("`{text}`: {e}")),
            _ => Err(format!("`{text}` is no number that is known")),
        }
    }

    /// Size and alignment of a type in bytes; of an array without an end, with one element.
    fn size(&self, ty: &[&'t str]) -> std::result::Result<(u32, u32), String> {
        let name = ty.first().copied().unwrap_or_default();
        let arguments = match ty.get(1) {
            Some(&"<") => split(part(ty, 2, ty.len() - 1)),
            _ => Vec::new(),
        };
        let scalar = |name: &str| match name {
            "f32" | "i32" | "u32" | "f" | "i" | "u" => Some(4u32),
            "f16" | "h" => Some(2),
            "i64" | "u64" => Some(8),
            "bool" => Some(1),
            _ => None,
        };
        if let Some(width) = scalar(name) {
            return Ok((width, width));
        }
        if let Some(aliased) = self.aliases.get(name) {
            return self.size(aliased);
        }
        if let Some(members) = self.structs.get(name) {
            return self.members(members).map(|(_, size, align)| (size, align));
        }
        let of = arguments.first().copied().unwrap_or_default();
        let vector = |count: u32, width: u32| (count * width, if count == 2 { 2 * width } else { 4 * width });
        // The width of the numbers of `vec3<f32>`, and of `vec3f`.
        let width = |letter: &str| match of {
            [] => scalar(letter).ok_or_else(|| format!("`{name}` is no type that is known")),
            _ => self.size(of).map(|(width, _)| width),
        };
        if let Some(rest) = name.strip_prefix("vec")
            && let Some(count) = rest.chars().next().and_then(|c| c.to_digit(10))
        {
            return Ok(vector(count, width(&rest[1..])?));
        }
        if let Some(rest) = name.strip_prefix("mat")
            && let [columns @ b'2'..=b'4', b'x', rows @ b'2'..=b'4', ..] = rest.as_bytes()
        {
            let (size, align) = vector(u32::from(rows - b'0'), width(&rest[3..])?);
            return Ok((u32::from(columns - b'0') * size.next_multiple_of(align), align));
        }
        match name {
            "atomic" => self.size(of),
            "array" => {
                let (size, align) = self.size(of)?;
                let count = arguments.get(1).map_or(Ok(1), |count| self.number(count))?;
                Ok((size.next_multiple_of(align).saturating_mul(count), align))
            }
            _ => Err(format!("`{name}` is no type that is known")),
        }
    }

    /// The members of a struct with their offsets, its size and its alignment.
    fn members(&self, members: &[(&'t str, Tokens<'t>)]) -> std::result::Result<(Vec<Member>, u32, u32), String> {
        let (mut placed, mut end, mut largest) = (Vec::new(), 0u32, 1);
        for (name, ty) in members {
            let (size, align) = self.size(ty)?;
            let offset = end.next_multiple_of(align);
            placed.push(Member { name: (*name).to_owned(), offset, size });
            (end, largest) = (offset + size, largest.max(align));
        }
        Ok((placed, end.next_multiple_of(largest), largest))
    }

    /// Adds the functions that a function calls, itself included, to `reached`, and returns its barriers.
    fn reach(&self, name: &'t str, reached: &mut HashMap<&'t str, Barriers>) -> Barriers {
        if let Some(known) = reached.get(name) {
            return *known;
        }
        let (mut sum, mut round) = (Barriers::default(), 0usize);
        let Some(function) = self.functions.get(name) else { return sum };
        // Whether each open block is in a loop, and whether the next one is the body of a loop.
        let (mut blocks, mut begins) = (Vec::new(), false);
        for (i, token) in function.body.iter().enumerate() {
            let called = function.body.get(i + 1) == Some(&"(") && i > 0 && function.body[i - 1] != ".";
            let found = match *token {
                "(" => {
                    round += 1;
                    continue;
                }
                ")" => {
                    round = round.saturating_sub(1);
                    continue;
                }
                "for" | "while" | "loop" => {
                    begins = true;
                    continue;
                }
                "{" if round == 0 => {
                    blocks.push(begins || blocks.last().copied().unwrap_or(false));
                    begins = false;
                    continue;
                }
                "}" if round == 0 => {
                    blocks.pop();
                    continue;
                }
                // One of a subgroup does not wait for the workgroup.
                word if word.ends_with("Barrier") => {
                    Barriers { all: u32::from(word != "subgroupBarrier"), in_loops: 0 }
                }
                // One before it reads, and one after.
                "workgroupUniformLoad" => Barriers { all: 2, in_loops: 0 },
                other if called && other != name => self.reach(other, reached),
                _ => continue,
            };
            let looped = begins || blocks.last().copied().unwrap_or(false);
            sum.all += found.all;
            sum.in_loops += if looped { found.all } else { found.in_loops };
        }
        reached.insert(name, sum);
        sum
    }

    fn interface(&self, entry: &str) -> std::result::Result<Interface, String> {
        let found = self.functions.get_key_value(entry);
        let Some((name, DeclaredFunction { workgroup_size: Some(size), .. })) = found else {
            return Err(format!("no entry point `{entry}`"));
        };
        let mut workgroup_size = [1; 3];
        for (extent, formula) in workgroup_size.iter_mut().zip(split(size)) {
            *extent = self.number(formula)?;
        }
        let mut reached = HashMap::new();
        let barriers = self.reach(name, &mut reached);
        let uses = |variable: &DeclaredVariable<'_>| {
            reached.keys().filter_map(|name| self.functions.get(name)).any(|function| {
                let body = &function.body;
                !function.own_names.contains(&variable.name)
                    && (1..body.len()).any(|i| body[i] == variable.name && body[i - 1] != ".")
            })
        };
        let (mut bindings, mut workgroup_bytes) = (Vec::new(), 0u32);
        for variable in self.variables.iter().filter(|variable| uses(variable)) {
            let kind = match (variable.space, variable.writes) {
                ("workgroup", _) => {
                    workgroup_bytes = workgroup_bytes.saturating_add(self.size(&variable.ty)?.0);
                    continue;
                }
                ("private", _) => continue,
                ("uniform", _) => BindingKind::Uniform,
                ("storage", true) => BindingKind::ReadWrite,
                ("storage", false) => BindingKind::Read,
                (other, _) => return Err(format!("`{}` is in `{other}`", variable.name)),
            };
            let Some([group, binding]) = &variable.place else {
                return Err(format!("`{}` is not bound", variable.name));
            };
            if self.number(group)? != 0 {
                return Err(format!("`{}` must be bound in @group(0)", variable.name));
            }
            let index = self.number(binding)?;
            let mut ty = &variable.ty;
            while let Some(aliased) = ty.first().and_then(|name| self.aliases.get(name)) {
                ty = aliased;
            }
            let members = match ty.first().and_then(|name| self.structs.get(name)) {
                Some(members) => self.members(members)?.0,
                None => Vec::new(),
            };
            let min_size = u64::from(self.size(ty)?.0);
            bindings.push(BindingInfo { index, name: variable.name.to_owned(), kind, min_size, members });
        }
        bindings.sort_by_key(|binding| binding.index);
        Ok(Interface {
            entry: entry.to_owned(),
            workgroup_size,
            workgroup_bytes,
            barriers: barriers.all,
            barriers_in_loops: barriers.in_loops,
            bindings,
        })
    }
}

#[cfg(test)]
mod tests;

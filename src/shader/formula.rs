use super::spec::Table;
use std::collections::BTreeMap;
use std::fmt;

/// Maximum of nested brackets and signs in a formula, because the parser recurses over them.
const MAX_NESTING: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(i64),
    Bool(bool),
    /// A word of `#for NAME in a, b`.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// The values of names. An unknown name is a flag that is off.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Variables of the enclosing loops, the innermost last.
    pub(super) variables: &'a [(String, Value)],
    pub(super) constants: Option<&'a BTreeMap<String, Value>>,
    pub(super) flags: Option<&'a Table<bool>>,
}

impl Names<'_> {
    /// The value of a name; an unknown name is a flag that is off.
    fn value(&self, name: &str) -> Value {
        let variable = self.variables.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
        let constant = || self.constants?.get(name);
        let flag = || self.flags?.get(name).copied();
        match variable.or_else(constant) {
            Some(value) => value.clone(),
            None => Value::Bool(flag().unwrap_or(false)),
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
            || self.constants.is_some_and(|constants| constants.contains_key(name))
    }
}

/// The value of a formula, and its names that are neither variables nor constants.
pub(super) fn evaluate<'t>(text: &'t str, names: &Names<'_>) -> Result<(Value, Vec<&'t str>), String> {
    let mut parser = Parser { rest: text.trim(), names, depth: 0, flags: Vec::new() };
    let value = parser.binary(0)?;
    if !parser.rest.is_empty() {
        return Err(format!("`{}` is not part of a formula", shortened(parser.rest)));
    }
    Ok((value, parser.flags))
}

fn shortened(text: &str) -> String {
    text.chars().take(32).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Operators by precedence, the loosest first. Longer ones come before their prefixes.
const OPERATORS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];

struct Parser<'t, 'n> {
    rest: &'t str,
    names: &'n Names<'n>,
    depth: usize,
    flags: Vec<&'t str>,
}

impl Parser<'_, '_> {
    fn skip(&mut self, symbol: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(symbol) else {
            return false;
        };
        self.rest = rest.trim_start();
        true
    }

    fn wants(&mut self, symbol: &str) -> Result<(), String> {
        if self.skip(symbol) {
            return Ok(());
        }
        Err(format!("`{symbol}` is missing at `{}`", shortened(self.rest)))
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        // `<<` is not a comparison with `<`.
        if OPERATORS[level][0] == "==" && (self.rest.starts_with("<<") || self.rest.starts_with(">>")) {
            return None;
        }
        OPERATORS[level].iter().copied().find(|operator| self.skip(operator))
    }

    fn binary(&mut self, level: usize) -> Result<Value, String> {
        if level == OPERATORS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            let right = self.binary(level + 1)?;
            left = apply(operator, &left, &right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(format!("more than {MAX_NESTING} nested brackets and signs"));
        }
        let value = if self.skip("!") {
            Value::Bool(!truth(&self.unary()?)?)
        } else if self.skip("-") {
            Value::Number(number(&self.unary()?)?.checked_neg().ok_or("a number exceeds 64 bits")?)
        } else if self.skip("(") {
            let value = self.binary(0)?;
            self.wants(")")?;
            value
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self) -> Result<Value, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(match self.rest {
                "" => "the formula ends; expected a number or a name".into(),
                rest => format!("expected a number or a name at `{}`", shortened(rest)),
            });
        }
        self.rest = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return literal(word);
        }
        if self.skip("(") {
            return self.function(word);
        }
        match word {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            name => {
                if !self.names.is_known(name) {
                    self.flags.push(name);
                }
                Ok(self.names.value(name))
            }
        }
    }

    /// A function, whose opening bracket has been read.
    fn function(&mut self, name: &str) -> Result<Value, String> {
        let mut given = vec![self.binary(0)?];
        while self.skip(",") {
            given.push(self.binary(0)?);
        }
        self.wants(")")?;
        match (name, given.as_slice()) {
            ("min", [a, b]) => Ok(Value::Number(number(a)?.min(number(b)?))),
            ("max", [a, b]) => Ok(Value::Number(number(a)?.max(number(b)?))),
            ("select", [off, on, is_on]) => Ok(if truth(is_on)? { on } else { off }.clone()),
            _ => Err(format!("no function `{}` of {} values; use min, max or select", shortened(name), given.len())),
        }
    }
}

/// `12`, `12u`, `12i`, `0x1f`.
fn literal(word: &str) -> Result<Value, String> {
    let digits = word.strip_suffix(['u', 'i']).unwrap_or(word);
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.map(Value::Number).map_err(|_| format!("`{}` is not a whole number", shortened(word)))
}

fn number(value: &Value) -> Result<i64, String> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::Bool(_) => Err("expected a number, not a flag or an undeclared name".into()),
        Value::Word(word) => Err(format!("expected a number, not the word `{}`", shortened(word))),
    }
}

pub(super) fn truth(value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(format!("expected true or false, not `{}`", shortened(&other.to_string()))),
    }
}

fn apply(operator: &str, left: &Value, right: &Value) -> Result<Value, String> {
    match (operator, left, right) {
        ("||", ..) => return Ok(Value::Bool(truth(left)? || truth(right)?)),
        ("&&", ..) => return Ok(Value::Bool(truth(left)? && truth(right)?)),
        ("==", Value::Bool(a), Value::Bool(b)) => return Ok(Value::Bool(a == b)),
        ("!=", Value::Bool(a), Value::Bool(b)) => return Ok(Value::Bool(a != b)),
        _ => {}
    }
    let (a, b) = (number(left)?, number(right)?);
    let shift = u32::try_from(b).ok().filter(|b| *b < 63);
    let result = match operator {
        "==" => return Ok(Value::Bool(a == b)),
        "!=" => return Ok(Value::Bool(a != b)),
        "<" => return Ok(Value::Bool(a < b)),
        "<=" => return Ok(Value::Bool(a <= b)),
        ">" => return Ok(Value::Bool(a > b)),
        ">=" => return Ok(Value::Bool(a >= b)),
        "<<" => shift.and_then(|by| a.checked_mul(1 << by)),
        ">>" => shift.map(|by| a >> by),
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    result.map(Value::Number).ok_or_else(|| format!("`{a} {operator} {b}` has no value of 64 bits"))
}

#[cfg(test)]
mod tests;

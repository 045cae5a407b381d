//! Options of an op by name, as on a command line.

use super::Operation;
use crate::array::HostArray;
use crate::error::{Result, err};
use std::fmt::Display;
use std::str::FromStr;

/// An option of an op.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Name, as in the `op` example.
    pub name: &'static str,
    /// The kind of value.
    pub takes: Takes,
    /// The default; empty if the op decides, or if the option is required.
    pub default: &'static str,
}

/// The form of a text that command lines read from a file.
const WGSL_FILE: &str = "FILE";

/// The kind of value of an option.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// No value: the option is on or off.
    Nothing,
    /// Text in the named form.
    Text(&'static str),
    /// One of these words; the first is the default.
    Word(fn() -> Vec<&'static str>),
    /// An array, described in a word.
    Array(&'static str),
}

impl Setting {
    /// An option without a value.
    pub(crate) const fn flag(name: &'static str) -> Self {
        Self { name, takes: Takes::Nothing, default: "" }
    }

    /// A number with its default; empty if the op decides.
    pub(crate) const fn number(name: &'static str, default: &'static str) -> Self {
        Self { name, takes: Takes::Text("N"), default }
    }

    /// Text in a form of its own, with its default.
    pub(crate) const fn text(name: &'static str, form: &'static str, default: &'static str) -> Self {
        Self { name, takes: Takes::Text(form), default }
    }

    /// A function in WGSL, which command lines read from a file.
    pub(crate) const fn wgsl(name: &'static str) -> Self {
        Self::text(name, WGSL_FILE, "")
    }

    pub(crate) fn is_wgsl(&self) -> bool {
        matches!(self.takes, Takes::Text(WGSL_FILE))
    }

    /// One number, or two as "h,w", with their default.
    pub(crate) const fn pair(name: &'static str, default: &'static str) -> Self {
        Self { name, takes: Takes::Text("N|H,W"), default }
    }

    pub(crate) const fn word(name: &'static str, words: fn() -> Vec<&'static str>) -> Self {
        Self { name, takes: Takes::Word(words), default: "" }
    }

    pub(crate) const fn array(name: &'static str, shape: &'static str) -> Self {
        Self { name, takes: Takes::Array(shape), default: "" }
    }

    /// Returns whether a value follows the name.
    pub fn takes_value(&self) -> bool {
        !matches!(self.takes, Takes::Nothing)
    }
}

/// Shows the name, the kind of value, and the default.
impl Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, takes, default } = self;
        match takes {
            Takes::Nothing => f.write_str(name),
            Takes::Text(form) if default.is_empty() => write!(f, "{name} {form}"),
            Takes::Text(form) => write!(f, "{name} {form} ({default})"),
            Takes::Word(words) => {
                let words = words();
                write!(f, "{name} {} ({})", words.join("/"), words[0])
            }
            Takes::Array(shape) => write!(f, "{name} FILE {shape}"),
        }
    }
}

/// Options passed to an op, by name.
///
/// ```
/// use tilework::program::Settings;
///
/// let gemm = tilework::operations().find(|op| op.name == "gemm").unwrap();
/// let mut settings = Settings::new(gemm);
/// settings.flag("trans-b")?;
/// settings.text("alpha", "0.5")?;
/// assert!(settings.has("trans-b") && settings.word("alpha") == Some("0.5"));
/// assert!(settings.flag("alpha").is_err()); // it takes a value
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Clone)]
pub struct Settings {
    op: &'static Operation,
    given: Vec<(&'static str, SettingValue)>,
}

#[derive(Debug, Clone)]
enum SettingValue {
    Nothing,
    Text(String),
    Array(HostArray),
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("op", &self.op.name).field("given", &self.given).finish()
    }
}

impl Settings {
    /// Starts with every option at its default.
    pub fn new(op: &'static Operation) -> Self {
        Self { op, given: Vec::new() }
    }

    /// Returns the op that the options belong to.
    pub fn op(&self) -> &'static Operation {
        self.op
    }

    fn add(&mut self, name: &str, value: SettingValue) -> Result<()> {
        let op = self.op.name;
        let Some(setting) = self.op.option(name) else {
            let names: Vec<_> = self.op.options.iter().map(|s| s.name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(err!(InvalidArgument, "{op}: no option {name}; it has {names}"));
        };
        let fits = match setting.takes {
            Takes::Nothing => matches!(value, SettingValue::Nothing),
            Takes::Array(_) => matches!(value, SettingValue::Array(_)),
            Takes::Text(_) | Takes::Word(_) => matches!(value, SettingValue::Text(_)),
        };
        if !fits {
            return Err(err!(InvalidArgument, "{op}: the option {setting} takes another kind of value"));
        }
        if self.has(name) {
            return Err(err!(InvalidArgument, "{op}: the option {name} is given twice; give it once"));
        }
        self.given.push((setting.name, value));
        Ok(())
    }

    /// Sets an option that takes no value.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument): unknown option, an option with a value, or set twice.
    pub fn flag(&mut self, name: &str) -> Result<()> {
        self.add(name, SettingValue::Nothing)
    }

    /// Sets an option from text. [`Operation::build`] checks the value.
    ///
    /// # Errors
    /// As [`flag`](Self::flag).
    pub fn text(&mut self, name: &str, value: impl Into<String>) -> Result<()> {
        self.add(name, SettingValue::Text(value.into()))
    }

    /// Sets an option whose value is an array.
    ///
    /// # Errors
    /// As [`flag`](Self::flag).
    pub fn with_array(&mut self, name: &str, value: HostArray) -> Result<()> {
        self.add(name, SettingValue::Array(value))
    }

    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let mut rest = self.clone();
        rest.given.retain(|(name, _)| !names.contains(name));
        rest
    }

    fn get(&self, name: &str) -> Option<&SettingValue> {
        self.given.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Returns whether an option is set.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the array of an option.
    pub fn array(&self, name: &str) -> Option<&HostArray> {
        match self.get(name)? {
            SettingValue::Array(array) => Some(array),
            SettingValue::Nothing | SettingValue::Text(_) => None,
        }
    }

    /// Returns the text of an option, or its default.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(SettingValue::Text(text)) => Some(text),
            Some(SettingValue::Nothing | SettingValue::Array(_)) => None,
            None => self.op.option(name).map(|s| s.default).filter(|default| !default.is_empty()),
        }
    }

    fn wrong(&self, name: &str, text: &str, why: impl Display) -> crate::error::Error {
        err!(InvalidArgument, "{}: --{name} {text}: {why}", self.op.name)
    }

    /// A number; `None` if it is not set and has no default.
    pub(crate) fn maybe<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.word(name) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|e| self.wrong(name, text, e))
    }

    /// A number that is set or has a default.
    pub(crate) fn number<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        self.maybe(name)?.ok_or_else(|| {
            let op = self.op.name;
            err!(InvalidArgument, "{op}: --{name} is missing")
        })
    }

    /// `N` numbers, separated by commas; `form` describes them. If it has a `|`, one number stands for all.
    pub(crate) fn numbers<T: FromStr + Clone, const N: usize>(&self, name: &str, form: &str) -> Result<[T; N]> {
        let op = self.op.name;
        let text = self.word(name).ok_or_else(|| err!(InvalidArgument, "{op}: --{name} {form} is missing"))?;
        let wrong = || self.wrong(name, text, format!("must be {N} numbers, {form}"));
        let parts = text.split(',').map(|part| part.trim().parse().map_err(|_| wrong()));
        let mut numbers = parts.collect::<Result<Vec<T>>>()?;
        if let ([all], true) = (&numbers[..], form.contains('|')) {
            numbers = vec![all.clone(); N];
        }
        numbers.try_into().map_err(|_| wrong())
    }

    /// As [`numbers`](Self::numbers), for an option that may be left out.
    pub(crate) fn given_numbers<T: FromStr + Clone, const N: usize>(&self, option: &Setting) -> Result<Option<[T; N]>> {
        let form = if let Takes::Text(form) = option.takes { form } else { "" };
        self.has(option.name).then(|| self.numbers(option.name, form)).transpose()
    }

    /// One number, or two as "h,w"; `usual` if it is not set and has no default.
    pub(crate) fn pair_or(&self, name: &str, usual: [usize; 2]) -> Result<[usize; 2]> {
        let Some(text) = self.word(name) else { return Ok(usual) };
        let number = |part: &str| part.trim().parse().map_err(|e| self.wrong(name, text, e));
        match text.split(',').collect::<Vec<_>>()[..] {
            [both] => Ok([number(both)?; 2]),
            [h, w] => Ok([number(h)?, number(w)?]),
            _ => Err(self.wrong(name, text, "must be one number, or two as \"h,w\"")),
        }
    }

    /// One number, or two as "h,w", with a default.
    pub(crate) fn pair(&self, name: &str) -> Result<[usize; 2]> {
        self.pair_or(name, [1, 1])
    }

    /// One of the option's words; the first if it is not set.
    pub(crate) fn choice(&self, name: &str) -> Result<&'static str> {
        let words = match self.op.option(name).map(|s| s.takes) {
            Some(Takes::Word(words)) => words(),
            _ => Vec::new(),
        };
        let text = self.word(name);
        let found = words.iter().find(|word| text.is_none_or(|text| text == **word));
        let wrong = || self.wrong(name, text.unwrap_or(""), format!("must be one of {}", words.join(", ")));
        found.copied().ok_or_else(wrong)
    }
}

impl Operation {
    /// Returns the option of this name.
    pub fn option(&self, name: &str) -> Option<&'static Setting> {
        self.options.iter().find(|setting| setting.name == name)
    }
}

/// An input of an op.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// Shape, and the type if it differs from the others': `(m, k)`, `u32 (n)`.
    pub shape: &'static str,
    /// Whether it may be left out.
    pub optional: bool,
}

impl Input {
    pub(crate) const fn new(name: &'static str, shape: &'static str) -> Self {
        Self { name, shape, optional: false }
    }

    pub(crate) const fn optional(name: &'static str, shape: &'static str) -> Self {
        Self { name, shape, optional: true }
    }
}

/// Shows the name and the shape, in brackets if it is optional.
impl Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, shape, optional } = self;
        if *optional { write!(f, "[{name} {shape}]") } else { write!(f, "{name} {shape}") }
    }
}

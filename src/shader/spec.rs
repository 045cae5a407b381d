//! The values that specialise a shader: declared constants, aliases, flags and import slots.

use super::users::check_users;
use std::fmt;
use std::sync::Arc;

/// The text for an import slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fragment {
    /// A file under `shaders/`, named without its extension: `op/add`.
    Library(&'static str),
    /// A user's WGSL. The whole kernel runs with runtime checks unless it declares only the functions of the slot,
    /// and these only compute.
    User(Arc<str>),
}

impl Fragment {
    pub(crate) fn of_user(text: &Arc<str>) -> Self {
        check_users();
        Self::User(text.clone())
    }
}

/// Values that replace declarations of a shader.
///
/// The expanded text must declare every name. An unknown name is an error, so that a typing mistake cannot silently
/// leave a default in place.
///
/// ```
/// use tilework::shader::{Spec, expand, Target};
/// let spec = Spec::new().constant("WORKGROUP_SIZE", 64u32).alias("T", "f32");
/// let shader = expand("elementwise/zip", &spec, Target::Naga)?;
/// assert!(shader.text().contains("WORKGROUP_SIZE: u32 = 64u;"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spec {
    pub(super) constants: Table<Constant>,
    pub(super) aliases: Table<&'static str>,
    pub(super) flags: Table<bool>,
    pub(super) slots: Table<Fragment>,
    pub(super) lists: Table<Arc<str>>,
}

/// Values by name, sorted by name. A plan looks up its kernels by their specs each time, so one allocation holds
/// them, and copying, comparing and hashing pass over it once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Table<V>(Vec<(&'static str, V)>);

impl<V> Default for Table<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Table<V> {
    fn insert(&mut self, name: &'static str, value: V) {
        match self.0.binary_search_by_key(&name, |(known, _)| known) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&V> {
        self.0.binary_search_by_key(&name, |(known, _)| known).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &V)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

/// The initialiser of a WGSL `const`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// `12u`.
    Number(u32),
    /// `true` or `false`.
    Bool(bool),
    /// Any other WGSL expression: `448.0`.
    Text(&'static str),
}

impl From<u32> for Constant {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Constant {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<&'static str> for Constant {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}u"),
            Self::Bool(truth) => truth.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Spec {
    /// Creates a spec that leaves every default in place.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rewrites `const name = ...;`.
    #[must_use]
    pub fn constant(mut self, name: &'static str, value: impl Into<Constant>) -> Self {
        self.constants.insert(name, value.into());
        self
    }

    /// The whole number that replaces a `const`.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        match self.constants.get(name)? {
            Constant::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.flags.get(name).copied().unwrap_or(false)
    }

    /// Rewrites `alias name = ...;`.
    #[must_use]
    pub fn alias(mut self, name: &'static str, ty: &'static str) -> Self {
        self.aliases.insert(name, ty);
        self
    }

    /// Sets a flag for `#if name`. Flags are off unless set.
    #[must_use]
    pub fn flag(mut self, name: &'static str, on: bool) -> Self {
        self.flags.insert(name, on);
        self
    }

    /// Fills the slot of `#import default as name` with another fragment.
    #[must_use]
    pub fn slot(mut self, name: &'static str, fragment: Fragment) -> Self {
        self.slots.insert(name, fragment);
        self
    }

    /// Gives the words of `#for NAME in LIST`, with commas between them.
    pub(crate) fn list(mut self, name: &'static str, words: Arc<str>) -> Self {
        self.lists.insert(name, words);
        self
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constants = self.constants.iter().map(|(k, v)| format!("{k}={v}"));
        let aliases = self.aliases.iter().map(|(k, v)| format!("{k}={v}"));
        let flags = self.flags.iter().filter(|(_, on)| **on).map(|(k, _)| k.to_owned());
        let slots = self.slots.iter().map(|(k, v)| match v {
            Fragment::Library(name) => format!("{k}={name}"),
            Fragment::User(_) => format!("{k}=user"),
        });
        let lists = self.lists.iter().map(|(k, v)| format!("{k}={v}"));
        let all: Vec<_> = constants.chain(aliases).chain(flags).chain(slots).chain(lists).collect();
        f.write_str(&all.join(" "))
    }
}

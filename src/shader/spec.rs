//! What is specialised in a shader: declared constants, aliases, flags and import slots.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Text that fills an import slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fragment {
    /// A file under `shaders/`, named without its ending: `op/add`.
    Library(&'static str),
    /// WGSL that a user brought. Unless it declares nothing but the functions that the slot wants, and these only
    /// compute, it turns the runtime checks of the whole kernel on.
    User(Arc<str>),
}

/// Values that rewrite what a shader declares.
///
/// Every name must be declared somewhere in the expanded text: a name that matches nothing is an
/// error, so that a typing mistake cannot silently leave a default in place.
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
    pub(super) constants: BTreeMap<&'static str, String>,
    pub(super) aliases: BTreeMap<&'static str, &'static str>,
    pub(super) flags: BTreeMap<&'static str, bool>,
    pub(super) slots: BTreeMap<&'static str, Fragment>,
}

/// A Rust value that can stand as the initialiser of a WGSL `const`.
pub trait Constant: Copy {
    /// The value as WGSL text.
    fn wgsl(&self) -> String;
}

impl Constant for u32 {
    fn wgsl(&self) -> String {
        format!("{self}u")
    }
}

impl Constant for bool {
    fn wgsl(&self) -> String {
        self.to_string()
    }
}

impl Constant for &str {
    fn wgsl(&self) -> String {
        (*self).to_owned()
    }
}

impl Spec {
    /// A spec that leaves every default in place.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rewrites `const name = ...;`.
    #[must_use]
    pub fn constant(mut self, name: &'static str, value: impl Constant) -> Self {
        self.constants.insert(name, value.wgsl());
        self
    }

    /// The whole number that a `const` is rewritten to.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.constants.get(name)?.strip_suffix('u')?.parse().ok()
    }

    /// Whether a flag is set.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.flags.get(name).copied().unwrap_or(false)
    }

    /// Rewrites `alias name = ...;`.
    #[must_use]
    pub fn alias(mut self, name: &'static str, ty: &'static str) -> Self {
        self.aliases.insert(name, ty);
        self
    }

    /// Sets a flag that `#if name` asks for. Flags are off unless set.
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
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constants = self.constants.iter().map(|(k, v)| format!("{k}={v}"));
        let aliases = self.aliases.iter().map(|(k, v)| format!("{k}={v}"));
        let flags = self.flags.iter().filter(|(_, on)| **on).map(|(k, _)| (*k).to_owned());
        let slots = self.slots.iter().map(|(k, v)| match v {
            Fragment::Library(name) => format!("{k}={name}"),
            Fragment::User(_) => format!("{k}=user"),
        });
        let all: Vec<_> = constants.chain(aliases).chain(flags).chain(slots).collect();
        f.write_str(&all.join(" "))
    }
}

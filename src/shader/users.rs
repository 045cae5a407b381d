//! What a device needs to know of a text, and which texts naga reads in a page.
//!
//! Natively naga parses and validates every text. A page leaves the library's text to the browser's compiler, because
//! tests have validated it, and only reads its declarations. So a page whose program takes no text of users is built
//! without naga: nothing refers to it but [`check_users`], which everything calls that takes such text.

use super::expand::Expanded;
use super::module::Interface;
use super::state::{self, StateText};
use crate::error::Result;
#[cfg(target_arch = "wasm32")]
use std::sync::OnceLock;

/// What compiling an entry point needs to know of its text.
#[derive(Debug, Clone)]
pub(crate) struct TextFacts {
    pub(crate) interface: Interface,
    pub(crate) hash: u128,
    pub(crate) has_users: bool,
    /// Whether these only compute. True without them.
    pub(crate) users_are_contained: bool,
}

/// The functions of this crate that need naga.
#[cfg(target_arch = "wasm32")]
struct UserChecks {
    facts: fn(&Expanded, &str) -> Result<TextFacts>,
    state: fn(&str, &str) -> Result<StateText>,
}

#[cfg(target_arch = "wasm32")]
static CHECKS: OnceLock<UserChecks> = OnceLock::new();

/// From now on naga checks text of users. Natively it always does.
pub(crate) fn check_users() {
    #[cfg(target_arch = "wasm32")]
    CHECKS.get_or_init(|| UserChecks { facts: validated, state: state::state_text });
}

/// What naga finds in the text.
fn validated(text: &Expanded, entry: &str) -> Result<TextFacts> {
    text.validate()?.facts(entry)
}

/// What is known of an entry point. Invalid text of a user is an error.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn facts(text: &Expanded, entry: &str) -> Result<TextFacts> {
    validated(text, entry)
}

/// What is known of an entry point. Invalid text of a user is an error once [`check_users`] was called; before, the
/// browser finds it.
#[cfg(target_arch = "wasm32")]
pub(crate) fn facts(text: &Expanded, entry: &str) -> Result<TextFacts> {
    let has_users = text.is_own() || !text.users.is_empty();
    match CHECKS.get() {
        Some(checks) if has_users => (checks.facts)(text, entry),
        _ => {
            let hash = xxhash_rust::xxh3::xxh3_128(text.text().as_bytes());
            let interface = text.declared_interface(entry)?;
            Ok(TextFacts { interface, hash, has_users, users_are_contained: !has_users })
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn state_text(text: &str, element: &str) -> Result<StateText> {
    state::state_text(text, element)
}

#[cfg(target_arch = "wasm32")]
pub(crate) fn state_text(text: &str, element: &str) -> Result<StateText> {
    match CHECKS.get() {
        Some(checks) => (checks.state)(text, element),
        None => Err(crate::error::err!(Shader, "a user's state was made without `StateOp::new`")),
    }
}

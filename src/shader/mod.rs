//! Shaders as text: the embedded sources, the expander that specialises them, validation and reflection by naga.
//! This module uses no device.
//!
//! A kernel is a `.wgsl` file under `shaders/`. [`expand`] resolves its `#import`s, `#if`s and `#for`s and rewrites
//! the constants and aliases of a [`Spec`]. [`Expanded::validate`] parses the text with naga, reports errors at the
//! line of the *original* file, and returns a [`Module`], which can be reflected ([`Module::interface`]) and given
//! to a device.
//!
//! ```
//! use tilework::shader::{Spec, Target, expand};
//! let text = expand("primitives/reduce_tree", &Spec::new(), Target::Naga)?;
//! let module = text.validate()?;
//! assert_eq!(module.interface("reduce_tree")?.bindings[0].name, "params");
//! # Ok::<(), tilework::Error>(())
//! ```

mod blame;
mod chain;
mod contained;
#[cfg(any(test, target_arch = "wasm32"))]
mod declared;
mod depth;
mod expand;
mod formula;
pub(crate) mod lexical;
mod library;
mod module;
mod spec;
mod state;
mod users;

pub use expand::{Expanded, Target, expand, expand_text};
pub use library::{names, source};
pub(crate) use module::MAX_THREAD_WORDS;
pub use module::{BindingInfo, BindingKind, Interface, Member, Module};
pub use spec::{Constant, Fragment, Spec};
pub(crate) use users::{TextFacts, check_users, facts, state_text};

//! Whether a user's fragment only computes. Its kernel then needs no runtime checks.
//!
//! Our part of a kernel provably stays within its bindings if a user's fragment cannot write, index, loop, or
//! change the meaning of a name. naga's module decides: this compares the module of the fragment with the module of
//! function stubs in its place.

use super::lexical::is_blank;
use naga::{Expression, Function, Module, Statement, TypeInner};
use std::ops::Range;

/// The range of a user's text, and the default text of its slot.
#[derive(Debug, Clone)]
pub(super) struct UserText {
    pub(super) file: String,
    /// Range in the expanded text, which has no comments.
    pub(super) range: Range<usize>,
    /// The library's text for the slot.
    pub(super) default: &'static str,
    /// Whether the expander obeyed a directive in the text, so that part of it may lie elsewhere.
    pub(super) has_directives: bool,
}

/// Whether each text declares only functions with its default's names and types, and each only computes. `module`
/// was parsed from `text`.
pub(super) fn are_contained(users: &[UserText], text: &str, module: &Module) -> bool {
    if users.is_empty() {
        return true;
    }
    let Some(ours) = without(users, text).and_then(|text| naga::front::wgsl::parse_str(&text).ok()) else {
        return false;
    };
    let declared = |m: &Module| {
        let memory = [m.global_variables.len(), m.constants.len(), m.overrides.len()];
        (memory, m.functions.len(), m.entry_points.len())
    };
    let computes = computing(module);
    declared(module) == declared(&ours) && users.iter().all(|u| u.is_contained(text, module, &ours, &computes))
}

/// The text with function stubs in place of the users' texts. naga parses them without checking that they return.
fn without(users: &[UserText], text: &str) -> Option<String> {
    let mut users: Vec<_> = users.iter().collect();
    users.sort_unstable_by_key(|u| u.range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for user in users {
        // Fails for a text inside another.
        out.push_str(text.get(at..user.range.start)?);
        for (_, head) in user.heads() {
            out.push_str(head);
            out.push_str("{}\n");
        }
        at = user.range.end;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

impl UserText {
    /// Name and head of each function of the default, without repetition.
    pub(super) fn heads(&self) -> Vec<(&'static str, &'static str)> {
        let mut heads: Vec<(&str, &str)> = Vec::new();
        for line in self.default.lines().filter(|l| l.starts_with("fn ")) {
            if let (Some((name, _)), Some((head, _))) = (line[3..].split_once('('), line.split_once('{'))
                && !heads.iter().any(|(known, _)| *known == name)
            {
                heads.push((name, head));
            }
        }
        heads
    }

    fn is_contained(&self, text: &str, module: &Module, ours: &Module, computes: &[bool]) -> bool {
        let within = |range: &Range<usize>| self.range.start < range.end && range.start < self.range.end;
        let mut functions: Vec<_> = module
            .functions
            .iter()
            .filter_map(|(h, f)| Some((module.functions.get_span(h).to_range()?, h, f)))
            .filter(|(range, ..)| within(range))
            .collect();
        functions.sort_unstable_by_key(|(range, ..)| range.start);
        let mut at = self.range.start;
        for (range, handle, function) in functions {
            // The module does not tell where an alias, an attribute or an entry point between functions lies.
            if !is_blank_text(text.get(at..range.start)) || range.end > self.range.end {
                return false;
            }
            at = range.end;
            let replaces = |default: &Function| has_types_of(function, module, default, ours);
            let default = self.heads().into_iter().find(|(name, _)| function.name.as_deref() == Some(*name));
            let default = default.and_then(|(name, _)| named(ours, name));
            if !default.is_some_and(replaces) || computes.get(handle.index()) != Some(&true) {
                return false;
            }
        }
        !self.has_directives && is_blank_text(text.get(at..self.range.end))
    }
}

fn is_blank_text(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.chars().all(is_blank))
}

fn named<'a>(module: &'a Module, name: &str) -> Option<&'a Function> {
    module.functions.iter().find_map(|(_, f)| (f.name.as_deref() == Some(name)).then_some(f))
}

/// Whether two functions of different modules take and return the same scalars, vectors and matrices. A value of
/// another type could change the meaning of our expressions.
fn has_types_of(function: &Function, module: &Module, other: &Function, others: &Module) -> bool {
    let types = |f: &Function, m: &Module| {
        let all = f.arguments.iter().map(|a| a.ty).chain(f.result.as_ref().map(|r| r.ty));
        all.map(|ty| m.types[ty].inner.clone()).collect::<Vec<_>>()
    };
    let plain =
        |ty: &TypeInner| matches!(ty, TypeInner::Scalar(_) | TypeInner::Vector { .. } | TypeInner::Matrix { .. });
    let wanted = types(other, others);
    function.arguments.len() == other.arguments.len() && types(function, module) == wanted && wanted.iter().all(plain)
}

/// For each function, whether it only computes: no memory but its own variables, no index but literals, no loop,
/// and the same for its callees. naga lists functions before their callers.
fn computing(module: &Module) -> Vec<bool> {
    let mut known = Vec::with_capacity(module.functions.len());
    for (_, function) in module.functions.iter() {
        known.push(only_computes(function, &known));
    }
    known
}

fn only_computes(function: &Function, known: &[bool]) -> bool {
    let plain = |e: &Expression| {
        matches!(
            e,
            Expression::Literal(_)
                | Expression::Constant(_)
                | Expression::ZeroValue(_)
                | Expression::Compose { .. }
                | Expression::AccessIndex { .. }
                | Expression::Splat { .. }
                | Expression::Swizzle { .. }
                | Expression::FunctionArgument(_)
                | Expression::LocalVariable(_)
                | Expression::Load { .. }
                | Expression::Unary { .. }
                | Expression::Binary { .. }
                | Expression::Select { .. }
                | Expression::Relational { .. }
                | Expression::Math { .. }
                | Expression::As { .. }
                | Expression::CallResult(_)
        )
    };
    function.expressions.iter().all(|(_, e)| plain(e)) && block_only_computes(&function.body, known)
}

fn block_only_computes(block: &naga::Block, known: &[bool]) -> bool {
    block.iter().all(|statement| match statement {
        Statement::Emit(_) | Statement::Break | Statement::Return { .. } | Statement::Store { .. } => true,
        Statement::Block(inner) => block_only_computes(inner, known),
        Statement::If { accept, reject, .. } => {
            block_only_computes(accept, known) && block_only_computes(reject, known)
        }
        Statement::Switch { cases, .. } => cases.iter().all(|c| block_only_computes(&c.body, known)),
        Statement::Call { function, .. } => known.get(function.index()) == Some(&true),
        _ => false,
    })
}

#[cfg(test)]
mod tests;

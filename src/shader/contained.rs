//! Whether a user's fragment only computes. Its kernel then needs no runtime checks.
//!
//! Our part of a kernel provably stays within its bindings if a user's fragment cannot write, index, loop, or
//! change the meaning of a name. naga's module decides: this compares the module of the fragment with the module of
//! function stubs in its place. An operator over a state may begin with its `struct State` of numbers.

use super::lexical::is_blank;
use naga::{Expression, Function, Handle, Module, Statement, Type, TypeInner};
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
    let Some(ours) = without(users, text, module).and_then(|text| naga::front::wgsl::parse_str(&text).ok()) else {
        return false;
    };
    let declared = |m: &Module| {
        let memory = [m.global_variables.len(), m.constants.len(), m.overrides.len()];
        (memory, m.functions.len(), m.entry_points.len())
    };
    let computes = computing(module);
    declared(module) == declared(&ours) && users.iter().all(|u| u.is_contained(text, module, &ours, &computes))
}

/// The text with function stubs in place of the users' texts, behind their states. naga parses them without checking
/// that they return.
fn without(users: &[UserText], text: &str, module: &Module) -> Option<String> {
    let mut users: Vec<_> = users.iter().collect();
    users.sort_unstable_by_key(|u| u.range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for user in users {
        // Fails for a text inside another.
        out.push_str(text.get(at..user.functions_begin(text))?);
        for (_, head) in user.stubs(module) {
            out.push_str(&head);
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

    /// Where the functions begin: behind the declaration of a state, if the slot is for one.
    fn functions_begin(&self, text: &str) -> usize {
        let state = self.is_state().then(|| text.get(self.range.clone()).and_then(state_len)).flatten();
        self.range.start + state.unwrap_or(0)
    }

    fn is_state(&self) -> bool {
        self.default.contains("\nstruct State {")
    }

    /// Name and head of each function that the text may declare. A state's functions may take other numbers than the
    /// default's.
    fn stubs(&self, module: &Module) -> Vec<(&'static str, String)> {
        if !self.is_state() {
            return self.heads().into_iter().map(|(name, head)| (name, head.to_owned())).collect();
        }
        let mut stubs = vec![
            ("state_identity", "fn state_identity() -> State".to_owned()),
            ("state_combine", "fn state_combine(a: State, b: State) -> State".to_owned()),
        ];
        if let Some(of) = named(module, "state_of") {
            let arguments: Vec<_> = (0..of.arguments.len()).map(|i| format!("x{i}: T")).collect();
            stubs.push(("state_of", format!("fn state_of({}) -> State", arguments.join(", "))));
        }
        if let Some(result) = named(module, "state_result").and_then(|f| f.result.as_ref()) {
            let of = match module.types[result.ty].inner {
                TypeInner::Vector { size, .. } => format!("vec{}<T>", size as u8),
                _ => "T".to_owned(),
            };
            stubs.push(("state_result", format!("fn state_result(s: State) -> {of}")));
        }
        stubs
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
        let (stubs, mut at) = (self.stubs(module), self.functions_begin(text));
        for (range, handle, function) in functions {
            // The module does not tell where an alias, an attribute or an entry point between functions lies.
            if !is_blank_text(text.get(at..range.start)) || range.end > self.range.end {
                return false;
            }
            at = range.end;
            let replaces = |default: &Function| has_types_of(function, module, default, ours);
            let default = stubs.iter().find(|(name, _)| function.name.as_deref() == Some(*name));
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

/// Length of a declaration `struct State { name: number, ... }` at the begin of a text. Each number is f32, i32 or u32.
fn state_len(text: &str) -> Option<usize> {
    let words =
        |text: &str| -> Vec<String> { text.split(is_blank).filter(|w| !w.is_empty()).map(str::to_owned).collect() };
    let (head, rest) = text.split_once('{')?;
    let (members, _) = rest.split_once('}')?;
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_member = |member: &str| {
        member.split_once(':').is_some_and(|(name, number)| {
            let (name, number) = (words(name), words(number));
            let [name] = &name[..] else { return false };
            is_word(name) && matches!(&number[..], [number] if matches!(number.as_str(), "f32" | "i32" | "u32"))
        })
    };
    let mut members_of: Vec<_> = members.split(',').collect();
    // A comma may follow the last.
    if members_of.len() > 1 && members_of.last().is_some_and(|last| words(last).is_empty()) {
        members_of.pop();
    }
    let is_state = words(head) == ["struct", "State"] && members_of.into_iter().all(is_member);
    is_state.then(|| head.len() + members.len() + 2)
}

/// Whether two functions of different modules take and return the same scalars, vectors, matrices and states. A value
/// of another type could change the meaning of our expressions.
fn has_types_of(function: &Function, module: &Module, other: &Function, others: &Module) -> bool {
    let types =
        |f: &Function| -> Vec<_> { f.arguments.iter().map(|a| a.ty).chain(f.result.as_ref().map(|r| r.ty)).collect() };
    let (own, wanted) = (types(function), types(other));
    let same = |ty: Handle<Type>, other: Handle<Type>| is_same(&module.types[ty], module, &others.types[other], others);
    function.arguments.len() == other.arguments.len()
        && own.len() == wanted.len()
        && own.into_iter().zip(wanted).all(|(ty, other)| same(ty, other))
}

/// Whether types of different modules are the same scalar, vector or matrix, or the same `State` of scalars.
fn is_same(ty: &Type, module: &Module, other: &Type, others: &Module) -> bool {
    match (&ty.inner, &other.inner) {
        (TypeInner::Struct { members, .. }, TypeInner::Struct { members: wanted, .. }) => {
            let same = |(a, b): (&naga::StructMember, &naga::StructMember)| {
                let (of_a, of_b) = (&module.types[a.ty].inner, &others.types[b.ty].inner);
                a.name == b.name && of_a == of_b && matches!(of_a, TypeInner::Scalar(_))
            };
            let is_state = |ty: &Type| ty.name.as_deref() == Some("State");
            let all = is_state(ty) && is_state(other) && members.len() == wanted.len();
            all && members.iter().zip(wanted).all(same)
        }
        (TypeInner::Scalar(_) | TypeInner::Vector { .. } | TypeInner::Matrix { .. }, wanted) => ty.inner == *wanted,
        _ => false,
    }
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

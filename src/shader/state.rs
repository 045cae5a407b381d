//! What a user's operator over a state declares: the members of its struct, and the types of its functions.

use super::{Expanded, Spec, Target, expand_text};
use crate::error::{Result, err};
use naga::{Function, Handle, Module, ScalarKind, Span, Type, TypeInner, VectorSize};

/// The name of the text in errors.
const FILE: &str = "<user state>";

/// A user's operator over a state, as its text declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateText {
    /// Names and types of the members of `State`.
    pub(crate) members: Vec<(String, &'static str)>,
    pub(crate) inputs: u32,
    pub(crate) results: Option<u32>,
}

/// Reads the declarations of a text for elements of f32, i32 or u32.
pub(super) fn state_text(text: &str, element: &str) -> Result<StateText> {
    let whole = format!("{text}\n#import element/{element}");
    let expanded = expand_text(FILE, &whole, &Spec::new(), Target::Naga)?;
    StateReader { module: &expanded.validate()?.naga, expanded: &expanded, element }.read()
}

struct StateReader<'a> {
    module: &'a Module,
    expanded: &'a Expanded,
    element: &'a str,
}

impl StateReader<'_> {
    fn read(&self) -> Result<StateText> {
        let named = |name: &str| self.module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name));
        let Some((state, Type { inner: TypeInner::Struct { members, .. }, .. })) = named("State") else {
            return Err(self.wrong("struct State", "declare `struct State` with 1 to 4 members of f32, i32 or u32"));
        };
        if !(1..=4).contains(&members.len()) {
            let why = format!("`State` has {} members; it may have 1 to 4 of f32, i32 or u32", members.len());
            return Err(self.wrong("struct State", &why));
        }
        let member = |m: &naga::StructMember| {
            let (name, ty) = (m.name.clone().unwrap_or_default(), self.numbers(m.ty));
            let ty = ty.filter(|(_, count)| *count == 1).map(|(kind, _)| name_of(kind));
            let why = format!("the member `{name}` of `State` is not f32, i32 or u32");
            ty.map(|ty| (name, ty)).ok_or_else(|| self.wrong("struct State", &why))
        };
        let members = members.iter().map(member).collect::<Result<Vec<_>>>()?;
        let is_state = |ty: Handle<Type>| ty == state;
        self.function("state_identity", "fn state_identity() -> State", |f, result| {
            f.arguments.is_empty() && result.is_some_and(is_state)
        })?;
        self.function("state_combine", "fn state_combine(a: State, b: State) -> State", |f, result| {
            f.arguments.len() == 2 && f.arguments.iter().all(|a| is_state(a.ty)) && result.is_some_and(is_state)
        })?;
        let of = self.function("state_of", "fn state_of(x: T) -> State, with 1 to 4 arguments of T", |f, result| {
            let of_element = |ty| self.numbers(ty).is_some_and(|(kind, n)| n == 1 && name_of(kind) == self.element);
            (1..=4).contains(&f.arguments.len())
                && f.arguments.iter().all(|a| of_element(a.ty))
                && result.is_some_and(is_state)
        })?;
        let inputs = of.arguments.len() as u32;
        if self.find("state_result").is_none() {
            if let Some((name, ty)) = members.iter().find(|(_, ty)| *ty != self.element) {
                let why = format!(
                    "the member `{name}` is {ty}, and elements are {}: define `fn state_result(s: State) -> vec2<T>` \
                     (T, vec3<T>, vec4<T>), which makes results of states",
                    self.element
                );
                return Err(self.wrong("struct State", &why));
            }
            return Ok(StateText { members, inputs, results: None });
        }
        let head = "fn state_result(s: State) -> T, vec2<T>, vec3<T> or vec4<T>";
        let results = |ty| self.numbers(ty).filter(|(kind, _)| name_of(*kind) == self.element).map(|(_, n)| n);
        let found = self.function("state_result", head, |f, result| {
            f.arguments.len() == 1 && is_state(f.arguments[0].ty) && result.and_then(results).is_some()
        })?;
        let results = found.result.as_ref().and_then(|result| results(result.ty));
        Ok(StateText { members, inputs, results })
    }

    fn find(&self, name: &str) -> Option<(Handle<Function>, &Function)> {
        self.module.functions.iter().find(|(_, f)| f.name.as_deref() == Some(name))
    }

    /// Finds a function, which must be like `head`.
    fn function(
        &self, name: &str, head: &str, fits: impl Fn(&Function, Option<Handle<Type>>) -> bool,
    ) -> Result<&Function> {
        let Some((handle, function)) = self.find(name) else {
            return Err(err!(Shader, "{FILE}: it must define `{head}`"));
        };
        if fits(function, function.result.as_ref().map(|result| result.ty)) {
            return Ok(function);
        }
        let span: Span = self.module.functions.get_span(handle);
        let line = span.to_range().map_or(1, |range| self.line(range.start));
        Err(err!(Shader, "{FILE}:{line}: the function must be `{head}`"))
    }

    /// Kind and count of a scalar or vector of 32-bit numbers.
    fn numbers(&self, ty: Handle<Type>) -> Option<(ScalarKind, u32)> {
        let (scalar, count) = match self.module.types[ty].inner {
            TypeInner::Scalar(scalar) => (scalar, 1),
            TypeInner::Vector { size, scalar } => (scalar, size_of(size)),
            _ => return None,
        };
        let is_number = matches!(scalar.kind, ScalarKind::Float | ScalarKind::Sint | ScalarKind::Uint);
        (is_number && scalar.width == 4).then_some((scalar.kind, count))
    }

    /// The error at the line on which `text` stands, if any.
    fn wrong(&self, text: &str, why: &str) -> crate::Error {
        match self.expanded.text().find(text) {
            Some(at) => err!(Shader, "{FILE}:{}: {why}", self.line(at)),
            None => err!(Shader, "{FILE}: {why}"),
        }
    }

    /// The user's line of a byte of the expanded text.
    fn line(&self, at: usize) -> u32 {
        let before = self.expanded.text().bytes().take(at).filter(|b| *b == b'\n').count();
        self.expanded.origin(before as u32 + 1).1
    }
}

fn size_of(size: VectorSize) -> u32 {
    match size {
        VectorSize::Bi => 2,
        VectorSize::Tri => 3,
        VectorSize::Quad => 4,
    }
}

fn name_of(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Sint => "i32",
        ScalarKind::Uint => "u32",
        _ => "f32",
    }
}

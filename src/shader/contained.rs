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
    /// Its name in errors.
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
    declared(module) == declared(&ours)
        && users.iter().all(|u| u.is_contained(text, module, &ours, &computes))
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
    let plain = |ty: &TypeInner| {
        matches!(ty, TypeInner::Scalar(_) | TypeInner::Vector { .. } | TypeInner::Matrix { .. })
    };
    let wanted = types(other, others);
    function.arguments.len() == other.arguments.len()
        && types(function, module) == wanted
        && wanted.iter().all(plain)
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
mod tests {
    use super::super::{Fragment, Spec, Target, expand_text};

    fn contained(user: &str) -> bool {
        let text = "alias T = f32;
            alias Acc = T;
            @group(0) @binding(0) var<storage, read_write> data: array<u32>;
            var<private> memory: array<f32, 4>;
            fn of_ours(x: T) -> T { return sqrt(x) + data_free(x); }
            fn data_free(x: T) -> T { return x * 2.0; }
            fn of_memory(x: T) -> T { return x + bitcast<f32>(data[0]); }
            @compute @workgroup_size(1) fn main() { data[0] = bitcast<u32>(op_combine(op_identity(), 1.0)); }
            #import op/add as op\n";
        let spec = Spec::new().slot("op", Fragment::User(user.into()));
        let module = expand_text("k.wgsl", text, &spec, Target::Naga).and_then(|x| x.validate());
        module.is_ok_and(|m| m.users_are_contained())
    }

    const IDENTITY: &str = "fn op_identity() -> T { return T(0); }\n";

    fn combining(body: &str) -> bool {
        contained(&format!("{IDENTITY}fn op_combine(a: T, b: T) -> T {{ {body}\n }}"))
    }

    #[test]
    fn fragments_that_only_compute_run_unchecked() {
        assert!(combining("return max(abs(a), abs(b));"));
        assert!(combining("var x = vec2<f32>(a, b); x.y += 1.0; if x.x < 0.0 { x.y = 2.0; } return x[1];"));
        assert!(combining("switch i32(a) { case 1, 2: { return b; } default: { return a; } }"));
        assert!(combining("return of_ours(a) + b;"));
        assert!(combining("/* fn min() {} /* nested */ } */ return a; // }"));
    }

    #[test]
    fn other_fragments_run_checked() {
        for body in [
            "var s = a; for (var i = 0; i < 3; i++) { s += b; } return s;",
            "loop { if a > b { break; } } return a;",
            "var list = array<f32, 4>(); return list[u32(a)] + b;",
            "let v = vec4<f32>(a); return v[u32(b)];",
            "memory[0] = a; return b;",
            "return f32(data[u32(a)]);",
            "return of_memory(a) + b;",
            "return f32(arrayLength(&data)) + a + b;",
            "workgroupBarrier(); return a + b;",
        ] {
            assert!(!combining(body), "{body}");
        }
    }

    #[test]
    fn shared_callees_are_visited_once() {
        let one = |i: usize| format!("fn f{i}(x: T) -> T {{ return f{0}(x) + f{0}(x); }}\n", i + 1);
        let others: String = (0..30).map(one).collect();
        let rest = "fn op_combine(a: T, b: T) -> T { return f0(a) + b; }\nfn f30(x: T) -> T { return x; }";
        assert!(!contained(&format!("{IDENTITY}{rest}\n{others}")));
    }

    #[test]
    fn fragments_with_other_functions_run_checked() {
        let rest = "fn op_combine(a: T, b: T) -> T { return a + b; }";
        assert!(contained(&format!("{IDENTITY}{rest}")));
        for more in [
            "fn min(a: u32, b: u32) -> u32 { return a + b; }",
            "fn helper() {}",
            "const size = 3;",
            "alias u16 = u32;",
            "var<private> mine: u32;",
            "@must_use fn op_more() -> u32 { return 1u; }",
            "struct S { x: f32 }",
            "const_assert 1 < 2;",
        ] {
            assert!(!contained(&format!("{IDENTITY}{more}\n{rest}")), "{more}");
        }
        assert!(!contained(&format!("#if X\n#endif\n{IDENTITY}{rest}")));
    }

    #[test]
    fn no_line_end_hides_text_from_inspection() {
        let rest = format!("{IDENTITY}fn op_combine(a: T, b: T) -> T {{ return a + b; }}");
        for end in ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
            assert!(contained(&format!("//{end}{rest}//{end}")), "{end:?}");
            assert!(!contained(&format!("//{end}var<workgroup> w: array<f32, 4>;{rest}")), "{end:?}");
            assert!(!combining(&format!("//{end}memory[u32(a)] = b;\nreturn a;")), "{end:?}");
            // The issue's kernel, as an operator.
            let taken = format!(
                "{IDENTITY}//{end}var<workgroup> w: array<f32,4>; fn op_combine(a: T, b: T) -> T {{ w[u32(a)] = 7.0; return w[u32(b)]; }}"
            );
            assert!(!contained(&taken), "{end:?}");
        }
    }

    #[test]
    fn fragments_cannot_redefine_names() {
        let rest = "fn op_combine(a: T, b: T) -> T { return a + b; }";
        for more in [
            "alias vec3 = u32;",
            "alias abs = f32;",
            "alias Other = T;",
            "const u32 = 1;",
            "const min = 1;",
            "override max: u32;",
            "var<private> sqrt: u32;",
            "var<workgroup> pow: u32;",
            "struct vec4 { x: f32 }",
            "struct bitcast { x: f32 }",
            "fn exp(x: f32) -> f32 { return x; }",
            "@compute @workgroup_size(1) fn other() {}",
            "const_assert true;",
            ";",
            "#import op/mul",
            "enable f16;",
            "diagnostic(off, derivative_uniformity);",
        ] {
            assert!(!contained(&format!("{IDENTITY}{more}\n{rest}")), "{more}");
            assert!(!contained(&format!("{more}\n{IDENTITY}{rest}")), "{more}");
            assert!(!contained(&format!("{IDENTITY}{rest}\n{more}")), "{more}");
        }
        // An attribute for our text after it.
        assert!(!contained(&format!("{IDENTITY}{rest}\n@must_use ")));
    }

    #[test]
    fn fragments_must_have_the_types_of_the_default() {
        let main = "alias T = f32;\nalias Acc = T;
            @compute @workgroup_size(1) fn main() { let x = op_combine(op_identity(), 1); }
            #import op/add as op\n";
        let contained = |user: &str| {
            let spec = Spec::new().slot("op", Fragment::User(user.into()));
            expand_text("k.wgsl", main, &spec, Target::Naga)
                .unwrap()
                .validate()
                .unwrap()
                .users_are_contained()
        };
        let of = |ty: &str| {
            format!(
                "fn op_identity() -> {ty} {{ return {ty}(1); }} fn op_combine(a: {ty}, b: {ty}) -> {ty} {{ return a; }}"
            )
        };
        assert!(contained(&of("T")) && contained(&of("f32")) && contained(&of("Acc")));
        assert!(!contained(&of("i32")) && !contained(&of("u32")));
    }

    #[test]
    fn a_comment_must_end_within_its_fragment() {
        let user = |text: &str| {
            let spec = Spec::new().slot("op", Fragment::User(text.into()));
            expand_text("k.wgsl", "#import op/add as op\nfn ours() {}\n", &spec, Target::Naga)
        };
        let error = user("fn op_identity() -> T { return 0; }\r/* a\n/* b */").unwrap_err();
        assert_eq!(error.to_string(), "<user op>:2: no `*/` closes the comment that begins here");
        let spaces = |n| " ".repeat(n);
        let blank = format!("a{}\n{}\nc\nfn ours() {{}}\n", spaces(5), spaces(6));
        assert_eq!(user("a // b\r// #if\nc").unwrap().text(), blank);
        // No comment begins in the lines that move to the top of the text.
        let moved = user("enable f16 /*;*/, /*;\n*/ f16;\n").unwrap();
        assert!(!moved.text().contains("/*"), "{}", moved.text());
    }

    #[test]
    fn constants_of_a_user_do_not_control_our_loops() {
        let ours = "#import op/add as op\n#for i in ROWS\nx\n#end\n";
        let user = "fn op_identity() -> T {\nconst ROWS = 1000;\nreturn T(0); }";
        let spec = Spec::new().slot("op", Fragment::User(user.into()));
        let error = expand_text("k.wgsl", ours, &spec, Target::Naga).unwrap_err();
        assert!(error.to_string().contains("no constant above declares `ROWS`"), "{error}");
    }
}

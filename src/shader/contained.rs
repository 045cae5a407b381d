//! Whether a user's fragment can do nothing but compute: then its kernel needs no runtime checks.
//!
//! What is ours in a kernel is proven not to reach beyond what is bound, as long as a user's fragment cannot write,
//! index, loop, or give a name of the language another meaning.

use naga::{Expression, Function, Module, Statement};

/// A user's text, and the functions that stand in its place by default.
#[derive(Debug, Clone)]
pub(super) struct UserText {
    pub(super) text: String,
    pub(super) default: &'static str,
}

impl UserText {
    /// Whether the text declares functions of the default's names alone, and each only computes.
    pub(super) fn is_contained(&self, module: &Module) -> bool {
        let wanted = |name: &str| {
            let mut heads = self.default.lines().filter_map(|l| l.strip_prefix("fn "));
            heads.any(|head| head.split('(').next() == Some(name))
        };
        let Some(own) = declared(&self.text) else { return false };
        // Functions of other names are not followed: they could call each other without end.
        own.iter().all(|name| wanted(name))
            && own.iter().all(|name| {
                let mut named = module.functions.iter().filter(|(_, f)| f.name.as_ref() == Some(name));
                named.next().is_some_and(|(_, f)| only_computes(f, module))
            })
    }
}

/// Names of the functions of a text that declares nothing else.
fn declared(text: &str) -> Option<Vec<String>> {
    if text.lines().any(|l| l.trim_start().starts_with('#')) {
        return None;
    }
    let text = without_comments(text);
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let head = rest.strip_prefix("fn")?;
        let name = head.trim_start();
        if name.len() == head.len() {
            return None;
        }
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        names.push(name[..end].to_owned());
        rest = after_body(&name[end..])?.trim_start();
    }
    Some(names)
}

/// What follows the first `{ ... }`.
fn after_body(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(&text[at + 1..]);
                }
            }
            ';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Comments as a space each; those of several lines nest.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        out.push_str(&rest[..at]);
        out.push(' ');
        let comment = &rest[at..];
        let length = if comment.starts_with("//") { comment.find('\n') } else { block_comment(comment) };
        rest = &comment[length.unwrap_or(comment.len())..];
    }
    out + rest
}

/// Bytes of the comment that the text begins with.
fn block_comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    loop {
        let next = text[at..].find("/*").into_iter().chain(text[at..].find("*/")).min()? + at;
        depth = if text[next..].starts_with("/*") { depth + 1 } else { depth - 1 };
        at = next + 2;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// No memory but its own variables, no index that is not a literal, no loop; nor in what it calls.
fn only_computes(function: &Function, module: &Module) -> bool {
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
    function.expressions.iter().all(|(_, e)| plain(e)) && block_only_computes(&function.body, module)
}

fn block_only_computes(block: &naga::Block, module: &Module) -> bool {
    block.iter().all(|statement| match statement {
        Statement::Emit(_) | Statement::Break | Statement::Return { .. } | Statement::Store { .. } => true,
        Statement::Block(inner) => block_only_computes(inner, module),
        Statement::If { accept, reject, .. } => {
            block_only_computes(accept, module) && block_only_computes(reject, module)
        }
        Statement::Switch { cases, .. } => cases.iter().all(|c| block_only_computes(&c.body, module)),
        Statement::Call { function, .. } => only_computes(&module.functions[*function], module),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Fragment, Spec, Target, expand_text};

    fn contained(user: &str) -> bool {
        let text = "alias T = f32;
            @group(0) @binding(0) var<storage, read_write> data: array<u32>;
            var<private> memory: array<f32, 4>;
            fn of_ours(x: T) -> T { return sqrt(x) + data_free(x); }
            fn data_free(x: T) -> T { return x * 2.0; }
            fn of_memory(x: T) -> T { return x + bitcast<f32>(data[0]); }
            @compute @workgroup_size(1) fn main() { data[0] = bitcast<u32>(op_combine(op_identity(), 1.0)); }
            #import op/add as op\n";
        let spec = Spec::new().slot("op", Fragment::User(user.into()));
        expand_text("k.wgsl", text, &spec, Target::Naga).unwrap().validate().unwrap().users_are_contained()
    }

    const IDENTITY: &str = "fn op_identity() -> T { return T(0); }\n";

    fn combining(body: &str) -> bool {
        contained(&format!("{IDENTITY}fn op_combine(a: T, b: T) -> T {{ {body}\n }}"))
    }

    #[test]
    fn what_computes_needs_no_checks() {
        assert!(combining("return max(abs(a), abs(b));"));
        assert!(combining("var x = vec2<f32>(a, b); x.y += 1.0; if x.x < 0.0 { x.y = 2.0; } return x[1];"));
        assert!(combining("switch i32(a) { case 1, 2: { return b; } default: { return a; } }"));
        assert!(combining("return of_ours(a) + b;"));
        assert!(combining("/* fn min() {} /* nested */ } */ return a; // }"));
    }

    #[test]
    fn what_could_do_more_keeps_its_checks() {
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
    fn functions_that_call_each_other_twice_take_no_time() {
        let one = |i: usize| format!("fn f{i}(x: T) -> T {{ return f{0}(x) + f{0}(x); }}\n", i + 1);
        let others: String = (0..30).map(one).collect();
        let rest = "fn op_combine(a: T, b: T) -> T { return f0(a) + b; }\nfn f30(x: T) -> T { return x; }";
        assert!(!contained(&format!("{IDENTITY}{rest}\n{others}")));
    }

    #[test]
    fn other_names_keep_their_checks() {
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
}

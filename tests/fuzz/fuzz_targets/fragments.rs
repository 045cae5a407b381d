//! Users' fragments made of pieces, and the conditions for those that run without checks. The target `fragment` and a
//! test of the suite draw from it.

use std::collections::BTreeSet;
use tilework::shader::{Fragment, Module, Spec, Target, expand_text};

/// Line ends, and other blankspace.
const BLANKS: [&str; 13] = [
    "\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}", " ", "\t", "\u{200e}", "\u{200f}", "\u{a0}",
];

/// Starts and ends of comments, and text that looks like them.
const MARKS: [&str; 10] = ["//", "/*", "*/", "/**/", "/* /* */ */", "///", "//!", "/", "*", "\\"];

/// Declarations that fragments without checks must not have.
const DECLARATIONS: [&str; 25] = [
    "var<workgroup> w: array<f32, 4>;",
    "var<private> p: array<f32, 4>;",
    "@group(0) @binding(1) var<storage, read_write> more: array<u32>;",
    "const LIMIT = 100000;",
    "const u32 = 1;",
    "override size: u32;",
    "alias T = u32;",
    "alias abs = f32;",
    "alias vec4 = u32;",
    "struct S { x: f32 }",
    "struct max { x: f32 }",
    "fn helper(x: T) -> T { return x; }",
    "fn min(a: T, b: T) -> T { return a; }",
    "fn at(p: ptr<private, array<f32, 4>>, i: u32) -> f32 { return (*p)[i]; }",
    "const_assert 1 < 2;",
    "@compute @workgroup_size(1) fn other() { data[100000] = 1u; }",
    "enable f16;",
    "diagnostic(off, derivative_uniformity);",
    "#import op/mul",
    "#if FLAG",
    "#endif",
    "#repeat LIMIT",
    "#end",
    ";",
    "@must_use",
];

/// Statements; from the tenth on with side effects.
const STATEMENTS: [&str; 26] = [
    "let c = a + b;",
    "var d = vec2<f32>(a, b); d.x = d.y * 2.0;",
    "if a < b { return a; } else if a > 2.0 { return b; }",
    "switch i32(a) { case 1, 2: { return b; } default: {} }",
    "return free(a);",
    "return max(abs(a), sqrt(b));",
    "return select(a, b, a > b);",
    "return bitcast<f32>(bitcast<u32>(a) ^ 1u);",
    "{ let a = 1.0; }",
    "w[u32(a)] = 7.0;",
    "memory[u32(a)] = b;",
    "memory[0] = b;",
    "let q = &memory; (*q)[u32(b)] = a;",
    "let q = &memory[u32(a)]; *q = b;",
    "data[u32(a)] = 1u;",
    "shared_words[i32(a)] = 1u;",
    "let v = vec4<f32>(a); return v[u32(b)];",
    "var v = array<f32, 8>(); v[u32(a)] = b;",
    "for (var i = 0; i < 3; i++) { if a > b { continue; } }",
    "loop { if a > b { break; } }",
    "while a < b { }",
    "workgroupBarrier();",
    "atomicAdd(&count, 1u);",
    "return reads(a);",
    "return f32(arrayLength(&data));",
    "return memory[u32(a)];",
];

const HOST: &str = "alias T = f32;
alias Acc = T;
const LIMIT: u32 = 4u;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<private> memory: array<f32, 4>;
var<workgroup> shared_words: array<u32, 4>;
var<workgroup> count: atomic<u32>;
#import op/add as op
fn free(x: T) -> T { return sqrt(abs(x)) * 2.0; }
fn reads(x: T) -> T { return x + bitcast<f32>(data[0]); }
fn bounded(i: u32) -> u32 { return min(i, LIMIT - 1u); }
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    shared_words[i] = atomicAdd(&count, 1u);
    memory[bounded(i)] = reads(free(f32(i)));
    workgroupBarrier();
    for (var at = 0u; at < LIMIT; at++) {
        data[at] = bitcast<u32>(op_combine(op_identity(), memory[max(at, 1u) - 1u]));
    }
}
";

/// A fragment for the slot `op`; `below(n)` draws a number below `n`.
pub(crate) fn fragment(below: &mut dyn FnMut(usize) -> usize) -> String {
    let mut text = String::new();
    // Half of the fragments have no forbidden declaration.
    let (wild, broken) = (below(2) == 0, below(4) == 0);
    let heads = ["fn op_identity() -> T {", "fn op_combine(a: T, b: T) -> T {"];
    for (i, head) in heads.into_iter().enumerate() {
        between(&mut text, below);
        if wild && below(3) == 0 {
            text += DECLARATIONS[below(DECLARATIONS.len())];
            between(&mut text, below);
        }
        text += head;
        for _ in 0..below(3) * i {
            between(&mut text, below);
            let some = if below(3) == 0 { STATEMENTS.len() } else { 9 };
            text += STATEMENTS[below(some)];
        }
        between(&mut text, below);
        text += ["return T(0); }", "return a + b; }"][i];
    }
    between(&mut text, below);
    if wild && below(2) == 0 {
        text += DECLARATIONS[below(DECLARATIONS.len())];
    }
    if broken {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let piece = if below(2) == 0 { MARKS[below(MARKS.len())] } else { BLANKS[below(BLANKS.len())] };
        text.insert_str(places[(below(256) * 256 + below(256)) % places.len()], piece);
    }
    text
}

/// Blankspace, a comment with any contents, or the start of one.
fn between(text: &mut String, below: &mut dyn FnMut(usize) -> usize) {
    text.push('\n');
    for _ in 0..below(3) {
        match below(4) {
            0 => *text += BLANKS[below(BLANKS.len())],
            1 => {
                let within = DECLARATIONS[below(DECLARATIONS.len())];
                *text += &format!("// {within}{}", BLANKS[below(8)]);
            }
            2 => {
                let (mark, statement) = (MARKS[below(MARKS.len())], STATEMENTS[below(STATEMENTS.len())]);
                *text += &format!("//{}{mark} {statement}\n", BLANKS[below(BLANKS.len())]);
            }
            _ => *text += &format!("/* {}{} */", MARKS[below(2) * 9], BLANKS[below(BLANKS.len())]),
        }
    }
}

/// The text without numbers, which are indices into lists.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Expands and parses a fragment; `None` if it is rejected. A fragment called contained must be so: the module has the
/// same memory, constants, types and functions as without the fragment, and the two functions of the fragment have no
/// side effects.
pub(crate) fn contained(fragment: &str) -> Option<bool> {
    let parsed = |fragment: &str| {
        let spec = Spec::new().slot("op", Fragment::User(fragment.into()));
        let expanded = expand_text("k.wgsl", HOST, &spec, Target::Naga).ok()?;
        expanded.validate().ok()
    };
    let module = parsed(fragment)?;
    if !module.users_are_contained() {
        return Some(false);
    }
    let plain = "fn op_identity() -> T { return T(0); } fn op_combine(a: T, b: T) -> T { return a + b; }";
    let expected = parsed(plain).expect("the plain fragment is valid");
    assert_eq!(declared(&module), declared(&expected), "{fragment:?}");
    let users = module.naga().0.functions.iter().filter(|(_, f)| is_users(f.name.as_deref()));
    for (_, function) in users {
        let text = format!("{:?} {:?}", function.expressions, function.body);
        for forbidden in [
            "GlobalVariable",
            "Access {",
            "ArrayLength",
            "Loop",
            "Atomic",
            "Barrier",
            "WorkGroup",
            "Subgroup",
            "Image",
            "Override",
            "Ray",
            "Cooperative",
        ] {
            assert!(!text.contains(forbidden), "{forbidden} in {fragment:?}");
        }
    }
    Some(true)
}

fn is_users(name: Option<&str>) -> bool {
    matches!(name, Some("op_identity" | "op_combine"))
}

/// All declarations of a module, and the text of the functions that are not a user's.
fn declared(module: &Module) -> BTreeSet<String> {
    let naga = module.naga().0;
    let memory = naga.global_variables.iter().map(|(_, v)| without_numbers(&format!("{v:?}")));
    let constants = naga.constants.iter().map(|(_, c)| without_numbers(&format!("{c:?}")));
    let overrides = naga.overrides.iter().map(|(_, o)| format!("override {o:?}"));
    let types = naga.types.iter().filter_map(|(_, t)| Some(format!("type {} {:?}", t.name.as_ref()?, t.inner)));
    let functions = naga.functions.iter().map(|(_, f)| f).chain(naga.entry_points.iter().map(|e| &e.function));
    let functions = functions.map(|f| {
        let text = without_numbers(&format!("{:?} {:?} {:?}", f.local_variables, f.expressions, f.body));
        if is_users(f.name.as_deref()) { format!("{:?}", f.name) } else { format!("{:?} {text}", f.name) }
    });
    memory.chain(constants).chain(overrides).chain(types).chain(functions).collect()
}

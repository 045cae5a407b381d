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
        expand_text("k.wgsl", main, &spec, Target::Naga).unwrap().validate().unwrap().users_are_contained()
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

fn state_contained(user: &str) -> bool {
    let main = "alias T = f32;
            var<private> memory: array<f32, 4>;
            @compute @workgroup_size(1) fn main() { let x = op_combine(op_identity(), op_identity()); }
            #import op/state\n";
    let spec = Spec::new().slot("state", Fragment::User(user.into())).list("STATE_FIELDS", "sum,count".into());
    let spec = spec.alias("WORD_0", "f32");
    let module = expand_text("k.wgsl", main, &spec, Target::Naga).and_then(|x| x.validate());
    module.is_ok_and(|m| m.users_are_contained())
}

#[test]
fn states_that_only_compute_run_unchecked() {
    let state = "struct State { sum: f32, count: u32 }";
    let functions = "fn state_identity() -> State { return State(0.0, 0u); }
        fn state_combine(a: State, b: State) -> State { return State(a.sum + b.sum, a.count + b.count); }
        fn state_result(s: State) -> vec2<T> { return vec2<T>(s.sum, s.sum / f32(s.count)); }";
    let of = "fn state_of(x: T, weight: T) -> State { var s = State(x, 1u); s.sum *= weight; return s; }";
    assert!(state_contained(&format!("// The mean.\n{state}\n{functions}\n{of}")));
    assert!(state_contained(&format!("struct State {{\n sum : f32,\n count:u32,\n}}{functions}{of}")));
    for (state, of) in [
        ("struct State { sum: f32, count: u32 } var<private> mine: u32;", of),
        ("struct State { sum: f32, @align(16) count: u32 }", of),
        ("alias u8 = u32; struct State { sum: f32, count: u8 }", of),
        ("struct Other { x: f32 } struct State { sum: f32, count: u32 }", of),
        (state, "fn state_of(x: T) -> State { memory[u32(x)] = x; return State(x, 1u); }"),
        (state, "fn state_of(x: T) -> State { var s = 0.0; while s < x { s += 1.0; } return State(s, 1u); }"),
        (state, "fn state_of(x: T) -> State { return State(x, 1u); } fn min(a: u32) -> u32 { return a; }"),
    ] {
        assert!(!state_contained(&format!("{state}\n{functions}\n{of}")), "{state} {of}");
    }
}

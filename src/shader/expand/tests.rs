//! Tests of the expander; compiled for tests only.

use super::*;

fn message(text: &str, spec: &Spec) -> String {
    expand_text("k.wgsl", text, spec, Target::Naga).unwrap_err().to_string()
}

#[test]
fn unknown_import_names_file_and_line() {
    let m = message("// one\n#import op/nothing\n", &Spec::new());
    assert!(m.starts_with("k.wgsl:2: unknown import `op/nothing`"), "{m}");
    assert!(m.contains("op/add"), "{m}");
}

#[test]
fn an_unknown_import_is_answered_by_close_names() {
    let long = "x\u{1b}".repeat(5000);
    for (wrong, right) in [("op/ad", "op/add"), ("add", "op/add"), ("workgroup/reduc", "workgroup/reduce"), (&long, "")]
    {
        let m = message(&format!("#import {wrong}\n"), &Spec::new());
        assert!(m.contains("unknown import") && m.contains(right) && m.len() < 200, "{m}");
        assert!(!m.contains('\u{1b}'));
        let missing = expand(wrong, &Spec::new(), Target::Naga).unwrap_err().to_string();
        assert!(missing.contains(right) && missing.len() < 200, "{missing}");
    }
}

#[test]
fn every_line_end_of_wgsl_ends_a_line() {
    for end in ["\n", "\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
        let text = format!("// a{end}#if X{end}both{end}#else{end}const b = 1;{end}#endif{end}c");
        let x = expand_text("k.wgsl", &text, &Spec::new(), Target::Naga).unwrap();
        assert_eq!(x.text(), "// a\nconst b = 1;\nc\n", "{end:?}");
        assert_eq!([1, 2, 3].map(|l| x.origin(l).1), [1, 5, 7], "{end:?}");
    }
}

#[test]
fn undeclared_spec_name_names_file() {
    for spec in [
        Spec::new().constant("TILE", 1u32),
        Spec::new().alias("TILE", "f32"),
        Spec::new().flag("TILE", true),
        Spec::new().slot("TILE", Fragment::Library("op/add")),
    ] {
        let m = message("const TILES: u32 = 1u;\n", &spec);
        assert!(m.starts_with("k.wgsl:1: the spec sets") && m.contains("`TILE`"), "{m}");
    }
}

#[test]
fn unbalanced_if_names_the_line_that_opened_it() {
    assert!(message("a\n#if X\nb\n", &Spec::new()).starts_with("k.wgsl:2: `#if` is never closed"));
    assert!(message("#endif\n", &Spec::new()).starts_with("k.wgsl:1: `#endif` without"));
    assert!(message("#if X\n#else\n#else\n#endif", &Spec::new()).starts_with("k.wgsl:3: `#else` without"));
    assert!(message("#iff X\n", &Spec::new()).starts_with("k.wgsl:1: unknown directive"));
}

#[test]
fn branches_constants_and_aliases_follow_the_spec() {
    let text = "enable f16;\nconst N: u32 = 1u; // items\nalias T = f32;\n#if X\n  #if !Y\nboth\n  #endif\n#else\nneither\n#endif\n";
    let x = |spec: Spec, t| expand_text("k.wgsl", text, &spec, t).unwrap();
    let off = x(Spec::new(), Target::Naga);
    assert_eq!(off.text(), "enable f16;\nconst N: u32 = 1u; // items\nalias T = f32;\nneither\n");
    assert_eq!(off.origin(4), ("k.wgsl", 9));
    let on = x(Spec::new().constant("N", 7u32).alias("T", "i32").flag("X", true), Target::Naga);
    assert_eq!(on.text(), "enable f16;\nconst N: u32 = 7u;\nalias T = i32;\nboth\n");
}

fn expanded(text: &str, spec: &Spec) -> String {
    expand_text("k.wgsl", text, spec, Target::Naga).unwrap().text().to_owned()
}

#[test]
fn loops_follow_the_constant_and_keep_their_origin() {
    let text = "const N: u32 = 2u;\n#for i in N\n#if X\nx[{i}] = {i}u;\n#endif\ny\n#end\nz\n";
    let x = |spec: Spec| expand_text("k.wgsl", text, &spec, Target::Naga).unwrap();
    let two = x(Spec::new().flag("X", true));
    assert_eq!(two.text(), "const N: u32 = 2u;\nx[0] = 0u;\ny\nx[1] = 1u;\ny\nz\n");
    assert_eq!([4, 5, 6].map(|l| two.origin(l).1), [4, 6, 8]);
    assert_eq!(x(Spec::new().constant("N", 3u32)).text(), "const N: u32 = 3u;\ny\ny\ny\nz\n");
}

#[test]
fn loops_nest_count_from_anywhere_and_run_over_words() {
    let text = "const N = 2;\n#for r in N\n#for c in r..N\nc_{r}_{N * c + 1};\n#end\n#end\n";
    assert_eq!(expanded(text, &Spec::new()), "const N = 2;\nc_0_1;\nc_0_3;\nc_1_3;\n");
    let text = "#for half in , _low\n#for c in x, y\na{half}.{c};\n#end\n#end\n";
    assert_eq!(expanded(text, &Spec::new()), "a.x;\na.y;\na_low.x;\na_low.y;\n");
    assert_eq!(expanded("#for i in min(1, 2)\n{i}\n#end\n", &Spec::new()), "0\n");
}

#[test]
fn constants_come_from_constants_and_conditions_compare_them() {
    let text = "const K: u32 = 16u;
const PITCH: u32 = K + 8u;
#for x in a, b
const LOADS_{x}: u32 = PITCH / 4u; // of a tile
#if LOADS_{x} > 5 && !SMALL
{x} {PITCH / 4};
#else
{x} is small;
#endif
#end
";
    let of = |spec: Spec| expanded(text, &spec).lines().filter(|l| l.starts_with(['a', 'b'])).count();
    assert!(expanded(text, &Spec::new()).contains("a 6;\n"));
    assert!(expanded(text, &Spec::new().constant("K", 8u32)).contains("b is small;\n"));
    assert!(expanded(text, &Spec::new().flag("SMALL", true)).contains("a is small;\n"));
    assert_eq!(of(Spec::new()), 2);
}

#[test]
fn a_number_takes_no_flag_its_name() {
    let text = "const GROUPS: u32 = 2u;\n#if GROUPS\non;\n#endif\n#if !GROUPS\noff;\n#endif\n";
    assert!(expanded(text, &Spec::new()).ends_with("2u;\noff;\n"));
    assert!(expanded(text, &Spec::new().flag("GROUPS", true)).ends_with("2u;\non;\n"));
}

#[test]
fn braces_of_wgsl_stay() {
    let text = "#for i in 1\nif a { b({i}); }\nfn f() {}\nstruct S {a: u32}\nlet x = array(1){i};\n#end\n{i}\n";
    let wanted = "if a { b(0); }\nfn f() {}\nstruct S {a: u32}\nlet x = array(1)0;\n{i}\n";
    assert_eq!(expanded(text, &Spec::new()), wanted);
}

#[test]
fn lines_left_out_are_not_read_but_must_be_balanced() {
    let text = "#if X\n#for i in NOWHERE\n#if {i} > LATER\n{y}\n#endif\n#end\n#endif\nz\n";
    assert_eq!(expanded(text, &Spec::new()), "z\n");
    let m = message("#if X\n#for i in 2\n#endif\n", &Spec::new());
    assert!(m.starts_with("k.wgsl:2: `#for` is never closed"), "{m}");
}

#[test]
fn wrong_loops_and_conditions_name_their_line() {
    for (text, wanted) in [
        ("\n#for i in M\n#end\n", "k.wgsl:2: `#for i in M`: no enclosing loop and no constant above declares `M`"),
        ("#for i in 0 - 1\n#end\n", "k.wgsl:1: `#for i in 0 - 1`: `-1` is not a number of rounds"),
        ("#for i\n#end\n", "k.wgsl:1: `#for i`: write"),
        ("#for 2 in 3\n#end\n", "k.wgsl:1: `#for 2 in 3`: write"),
        ("#for i in 1\n#for i in 1\n#end\n#end\n", "k.wgsl:2: `#for i in 1`: an enclosing loop"),
        ("#for i in 3\n\n", "k.wgsl:1: `#for` is never closed"),
        ("x\n#end\n", "k.wgsl:2: `#end` without"),
        ("#for i in 1\n#if X\n#end\n#endif\n", "k.wgsl:2: `#if` is never closed"),
        ("#for i in 1\n{j}\n#end\n", "k.wgsl:2: `{j}`: no enclosing loop and no constant above declares `j`"),
        ("#for i in 1\n{i / 0}\n#end\n", "k.wgsl:2: `{i / 0}`: `0 / 0` has no value"),
        ("#if ROWS > 1\n#endif\n", "k.wgsl:1: `#if ROWS > 1`: expected a number"),
        ("#if 1\n#endif\n", "k.wgsl:1: `#if 1`: expected true or false"),
        ("#if\n#endif\n", "k.wgsl:1: `#if `: the formula ends"),
        ("#repeat N\n#end\n", "k.wgsl:1: unknown directive `#repeat`"),
    ] {
        let m = message(text, &Spec::new());
        assert!(m.starts_with(wanted), "{text}: {m}");
    }
}

#[test]
fn loops_are_bounded() {
    let max = Spec::new().constant("N", u32::MAX);
    for text in ["const N = 1;\n#for i in N\n#end\n", "const N = 1;\n#for i in N\nx\n#end\n"] {
        let m = message(text, &max);
        assert!(m.starts_with("k.wgsl:2: `#for i in N`: loops and blocks read more than"), "{m}");
    }
    let m = message(&format!("const N = 90000;\n{}", "#for i in N\nx\n#end\n".repeat(50)), &Spec::new());
    assert!(m.starts_with("k.wgsl:62: `#for i in N`: loops and blocks read"), "{m}");
    let m = message(&format!("#for i in 90000\n{}\n#end\n", "x".repeat(99)), &Spec::new());
    assert!(m.starts_with("k.wgsl:2: loops and blocks write more than 4194304 bytes"), "{m}");
    // A long word in many places of a line.
    let holes = "{w}".repeat(4000);
    let word = "x".repeat(100_000);
    let m = message(&format!("#for w in {word},\n{holes}\n#end\n"), &Spec::new());
    assert!(m.starts_with("k.wgsl:2: loops and blocks write") && m.len() < 200, "{m}");
    let open: String = (0..20).map(|i| format!("#for i{i} in 2\n")).collect();
    let m = message(&format!("{open}{}", "#end\n".repeat(20)), &Spec::new());
    assert!(m.starts_with("k.wgsl:17: `#for i16 in 2`: more than 16 nested loops"), "{m}");
}

#[test]
fn blocks_are_put_with_texts_and_numbers() {
    let text = "const N = 2;
#block load(what, from)
#for n in N
{what}_{n} = {from} + {n};
#end
#end
#block both(first)
#put load(a, {first}u)
#if first > 4
#put load(b, min(x, y))
#endif
#end
#put both(4)
#for n in 5..6
#put both({n})
#end
";
    let wanted = "const N = 2;\na_0 = 4u + 0;\na_1 = 4u + 1;\na_0 = 5u + 0;\na_1 = 5u + 1;\n\
                      b_0 = min(x, y) + 0;\nb_1 = min(x, y) + 1;\n";
    assert_eq!(expanded(text, &Spec::new()), wanted);
    let put = expand_text("k.wgsl", text, &Spec::new(), Target::Naga).unwrap();
    assert_eq!(put.origin(2), ("k.wgsl", 4), "lines are those of the block");
}

#[test]
fn wrong_blocks_name_their_line() {
    let put = |body: &str, put: &str| format!("#block a(x)\n{body}\n#end\n#put {put}\n");
    for (text, wanted) in [
        ("#block a()\n", "k.wgsl:1: `#block` is never closed"),
        ("#block a\n#end\n", "k.wgsl:1: `#block a`: write"),
        ("#block a(x, x)\n#end\n", "k.wgsl:1: `#block a(x, x)`: parameters must be distinct names"),
        ("#block a()\n#end\n#block a()\n#end\n", "k.wgsl:3: `#block a()`: a block above already has this name"),
        ("#put a()\n", "k.wgsl:1: `#put a()`: no block above"),
        (&put("", "a()"), "k.wgsl:4: `#put a()`: 0 texts; the block takes 1"),
        (&put("", "a"), "k.wgsl:4: `#put a`: write"),
        (&put("{y}", "a(1)"), "k.wgsl:2: `{y}`: no enclosing loop"),
        (&put("#put a({x})", "a(1)"), "k.wgsl:2: `#put a(1)`: more than 4 nested"),
    ] {
        let m = message(text, &Spec::new());
        assert!(m.starts_with(wanted), "{text}: {m}");
    }
}

#[test]
fn subgroups_are_enabled_for_tint_only() {
    let x = |t| expand_text("k.wgsl", "enable subgroups; fn f() {}\n", &Spec::new(), t).unwrap();
    assert_eq!(x(Target::Naga).text(), "fn f() {}\n");
    assert_eq!(x(Target::Tint).text(), "enable subgroups;\nfn f() {}\n");
    assert_eq!(x(Target::Tint).origin(2), ("k.wgsl", 1));
}

#[test]
fn diagnostics_are_turned_off_for_tint_only() {
    let x = |t| expand_text("k.wgsl", "diagnostic(off, a_rule);\nfn f() {}\n", &Spec::new(), t).unwrap();
    assert_eq!(x(Target::Naga).text(), "fn f() {}\n");
    assert_eq!(x(Target::Tint).text(), "diagnostic(off, a_rule);\nfn f() {}\n");
    assert_eq!(x(Target::Tint).origin(2), ("k.wgsl", 2));
}

#[test]
fn a_slot_takes_a_library_fragment_or_a_users_text() {
    let text = "#import op/add as op\n#import op/add as op\n";
    let x = |spec: Spec| expand_text("k.wgsl", text, &spec, Target::Naga).unwrap();
    assert_eq!(x(Spec::new()).text().matches("fn op_combine").count(), 1);
    let user = x(Spec::new().slot("op", Fragment::User("fn mine() {}".into())));
    assert_eq!(user.text(), "fn mine() {}\n");
    assert_eq!(user.origin(1), ("<user op>", 1));
}

#[test]
fn a_loop_runs_over_a_list_of_the_spec() {
    let text = "#for name in NAMES\na{name};\n#end\n";
    let x = |words: &str| {
        let spec = Spec::new().list("NAMES", words.into());
        expand_text("k.wgsl", text, &spec, Target::Naga).unwrap().text().to_owned()
    };
    assert_eq!((x("x"), x("x,y")), ("ax;\n".into(), "ax;\nay;\n".into()));
    let m = message("fn f() {}\n", &Spec::new().list("NAMES", "x".into()));
    assert!(m.contains("the spec sets the list `NAMES`"), "{m}");
}

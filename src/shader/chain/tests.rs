use super::{MAX, too_long};
use crate::ErrorKind;
use crate::shader::{Spec, Target, expand_text};

/// Declarations `0..n` of a chain, each of which uses the next; `last` is the text of the last one.
fn chain(n: usize, link: &str, last: &str) -> Vec<String> {
    let link = |i: usize| link.replace("NEXT", &format!("a{}", i + 1)).replace("THIS", &format!("a{i}"));
    (0..n - 1).map(link).chain([last.replace("THIS", &format!("a{}", n - 1))]).collect()
}

const KINDS: [(&str, &str); 12] = [
    ("const THIS = NEXT;", "const THIS = 1;"),
    ("const THIS: i32 = NEXT + NEXT;", "const THIS = 0;"),
    ("override THIS: i32 = NEXT;", "override THIS: i32 = 1;"),
    ("@id(NEXT) override THIS: i32;", "const THIS = 1;"),
    ("alias THIS = NEXT;", "alias THIS = f32;"),
    ("alias THIS = array<NEXT, 1>;", "alias THIS = f32;"),
    ("struct THIS { x: NEXT }", "struct THIS { x: f32 }"),
    ("struct THIS { @align(16) x: array<NEXT, 1>, }", "struct THIS { x: f32 }"),
    ("fn THIS() { NEXT(); }", "fn THIS() {}"),
    ("fn THIS(x: i32) -> i32 { if x > 0 { return NEXT(x - 1); } return 0; }", "fn THIS(x: i32) -> i32 { return x; }"),
    ("const THIS = array<i32, NEXT>()[0] + 1;", "const THIS = 1;"),
    ("var<private> THIS: i32 = NEXT;", "const THIS = 1;"),
];

#[test]
fn rejects_long_chains_in_every_order() {
    let n = 30_000;
    for (link, last) in KINDS {
        let forward = chain(n, link, last);
        let backward: Vec<_> = forward.iter().rev().cloned().collect();
        for lines in [forward, backward] {
            let text = expand_text("k.wgsl", &lines.join("\n"), &Spec::new(), Target::Naga).unwrap();
            let error = text.validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Shader);
            assert!(error.to_string().contains(": a chain of more than 1000 declarations"), "{link}: {error}");
            assert!(error.to_string().starts_with("k.wgsl:"), "{link}: {error}");
        }
    }
    let (link, last) = KINDS[0];
    let text = chain(n, link, last).join("\n");
    assert_eq!(too_long(&text), Some((n - MAX) as u32));
    // To naga a cycle is a chain until it closes.
    assert!(too_long(&text.replace("const a29999 = 1;", "const a29999 = a0;")).is_some());
}

#[test]
fn comments_do_not_hide_a_chain() {
    for end in ["\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
        let text = chain(3000, &format!("const //{end}THIS /**/ = // ;{end} NEXT;"), "const THIS = 1;").concat();
        let text = expand_text("k.wgsl", &text, &Spec::new(), Target::Naga).unwrap();
        let error = text.validate().unwrap_err().to_string();
        assert!(error.contains("a chain of more than"), "{end:?}: {error}");
    }
}

/// naga on a thread's usual stack, with three times the accepted length.
#[test]
fn accepted_chains_fit_the_stack() {
    for (link, last) in KINDS {
        for n in [MAX, 3 * MAX] {
            let text = chain(n, link, last).join("\n");
            // `var` and `@id` of another are invalid; naga orders them before it finds out.
            if n == MAX {
                assert_eq!(too_long(&text), None, "{link}");
                let _ = expand_text("k.wgsl", &text, &Spec::new(), Target::Naga).unwrap().validate();
            }
            let _ = naga::front::wgsl::parse_str(&text);
        }
    }
}

#[test]
fn accepts_many_declarations_without_a_chain() {
    let consts: String = (0..20_000).map(|i| format!("const a{i} = b{};\nconst b{i} = 1;\n", i / 2)).collect();
    assert_eq!(too_long(&consts), None);
    let text = expand_text("k.wgsl", &consts, &Spec::new(), Target::Naga).unwrap();
    text.validate().unwrap();
    // A ladder with 2^500 paths.
    let ladder: String = (0..1001).map(|i| format!("const a{i} = a{} + a{};\n", i / 2, i / 3)).collect();
    assert_eq!(too_long(&ladder), None);
}

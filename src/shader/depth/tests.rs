use super::super::lexical::without_comments;
use super::too_deep;
use crate::ErrorKind;
use crate::shader::{Spec, Target, expand_text};

fn kernel(body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<i32>;\n\
             @compute @workgroup_size(1) fn f() {{\n{body}\n}}"
    )
}

#[test]
fn rejects_expressions_that_would_overflow_the_stack() {
    let n = 100_000;
    let chains = [
        format!("out[0] = out[1]{};", " + out[1]".repeat(n)),
        format!("out[0] = 1{};", " + 1".repeat(n)),
        format!("out[0] = {}1;", "- ".repeat(n)),
        format!("out{} = 1;", "[0]".repeat(n)),
        format!("out[0] = out{};", ".x".repeat(n)),
        format!("let p = {}out;", "&*".repeat(n)),
        format!("if out[0] == 1 {{}}{}", " else if out[0] == 2 {}".repeat(n)),
        format!("if out[0] == 1 {{}}{}", " /* } */ /* { /* */ */ else if out[0] == 2 {}".repeat(n)),
        format!("out[0] = {}1{};", "(1 + 1 + 1 + 1 + 1 + 1 + 1 + ".repeat(200), ")".repeat(200)),
    ];
    for body in chains {
        let text = expand_text("k.wgsl", &kernel(&body), &Spec::new(), Target::Naga).unwrap();
        let error = text.validate().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shader);
        assert!(error.to_string().starts_with("k.wgsl:3: more than"), "{error}");
    }
}

/// 100,000 operands, each behind an `else if` or an operator that a comment must not hide.
#[test]
fn comments_do_not_hide_depth() {
    let n = 100_000;
    for end in ["\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}"] {
        let hidden = format!("//{end}out[0] = 1{};", " + 1".repeat(n));
        let between = format!("out[0] = 1{};", format!("//{end}+ 1").repeat(n));
        let else_ifs = format!("if out[0] == 1 {{}}{}", format!("//{end}else if out[0] == 2 {{}}").repeat(n));
        let blank = format!("if out[0] == 1 {{}}{}", format!("{end}else if out[0] == 2 {{}}").repeat(n));
        for body in [hidden, between, else_ifs, blank] {
            let text = expand_text("k.wgsl", &kernel(&body), &Spec::new(), Target::Naga).unwrap();
            let error = text.validate().unwrap_err().to_string();
            assert!(error.contains(": more than"), "{end:?}: {error}");
            assert!(too_deep(&without_comments(&kernel(&body)).0).is_some(), "{end:?}");
        }
    }
}

#[test]
fn a_comma_in_angle_brackets_does_not_end_an_expression() {
    let n = 30_000;
    let chain = format!("1{}", " + array<i32, 1>(1)[0]".repeat(n));
    for body in [format!("out[0] = {chain};"), format!("out[0] = max(1, {chain});")] {
        let text = expand_text("k.wgsl", &kernel(&body), &Spec::new(), Target::Naga).unwrap();
        let error = text.validate().unwrap_err().to_string();
        assert!(error.starts_with("k.wgsl:3: more than"), "{error}");
    }
    let members: String = (0..2000).map(|i| format!("m{i}: array<vec2<f32>, 2>, ")).collect();
    assert_eq!(too_deep(&format!("struct S {{ {members} }}")), None);
}

#[test]
fn accepts_long_text_that_is_not_deep() {
    let n = 3000;
    let table = format!("let t = array<vec2<f32>, {n}>({});", "vec2<f32>(0.5, -1.5), ".repeat(n));
    let statements = "out[0] += out[1] * (out[2] + 3);".repeat(n);
    let ifs = "if out[0] == 1 { out[1] = 2; } else if out[0] == 2 { out[1] = 3; } else { out[1] = 4; }".repeat(n);
    let comments = format!("// {}\n/* {} /* */ */", "+".repeat(n), "- ".repeat(n));
    for body in [table, statements, ifs, comments] {
        assert_eq!(too_deep(&without_comments(&kernel(&body)).0), None);
        let text = expand_text("k.wgsl", &kernel(&body), &Spec::new(), Target::Naga).unwrap();
        text.validate().unwrap();
    }
    let sum = |n: usize| kernel(&format!("out[0] = 1{};", " + 1".repeat(n)));
    assert_eq!((too_deep(&sum(900)), too_deep(&sum(1100))), (None, Some(3)));
}

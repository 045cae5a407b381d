//! Limits how deep a compiler recurses over a text: a stack overflow ends the program and cannot be caught.
//!
//! naga itself rejects brackets and blocks that nest too deeply, but not `a + a + a + ...`, `- - - a`, `a.x.x.x`
//! and `if .. else if .. else if ..`, whose trees are as deep as they are long.

use super::lexical::{is_blank, is_word_part};

/// Maximum of nested operators. A thread's stack of 2 MiB holds four times as many.
pub(super) const MAX: usize = 1000;

/// The stack use of an `else if`, in operators.
const ELSE_IF: usize = 4;

/// An open block, or an open bracket of an expression.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    is_block: bool,
    /// Operators since it was opened or since the last comma, or `else if`s in a row.
    depth: usize,
    /// Unclosed `<` since then.
    angles: usize,
}

/// The line, from 1, where an expression or a chain of `else if` becomes too deep. The text has no comments.
pub(super) fn too_deep(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    let block = Level { is_block: true, ..Level::default() };
    let mut levels = vec![block];
    // The sum over all levels.
    let mut sum = 0usize;
    // Operators of the statement outside of brackets, and its unclosed `<`.
    let (mut bare, mut bare_angles) = (0usize, 0usize);
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            b'\n' => line += 1,
            b'(' | b'[' => levels.push(Level::default()),
            b')' | b']' => {
                if let Some(level) = levels.pop_if(|level| !level.is_block) {
                    sum -= level.depth;
                }
                count(&mut levels, &mut bare, &mut sum, 1);
            }
            // In `array<f32, 4>` the comma separates no operands, and the expression continues.
            b',' => match levels.last_mut() {
                Some(level) if !level.is_block && level.angles == 0 => {
                    sum -= std::mem::take(&mut level.depth);
                }
                Some(level) if level.is_block && bare_angles == 0 => bare = 0,
                _ => {}
            },
            b';' | b'{' | b'}' => {
                // Brackets that are still open are an error of the text.
                while let Some(level) = levels.pop_if(|level| !level.is_block) {
                    sum -= level.depth;
                }
                (bare, bare_angles) = (0, 0);
                match bytes[at] {
                    b'{' => levels.push(block),
                    b'}' => {
                        if levels.len() > 1
                            && let Some(level) = levels.pop()
                        {
                            sum -= level.depth;
                        }
                        let chained = word(&text[at + 1..]) == "else";
                        if let Some(level) = levels.last_mut() {
                            if chained {
                                level.depth += ELSE_IF;
                                sum += ELSE_IF;
                            } else {
                                sum -= std::mem::take(&mut level.depth);
                            }
                        }
                    }
                    _ => {}
                }
            }
            b'.' if rest.get(1).is_none_or(u8::is_ascii_digit) => {}
            b'_' | b'@' | b':' => {}
            byte if byte.is_ascii_punctuation() => {
                let angles = match levels.last_mut() {
                    Some(level) if !level.is_block => &mut level.angles,
                    _ => &mut bare_angles,
                };
                match byte {
                    b'<' if matches!(rest.get(1), Some(b'<' | b'=')) => at += 1,
                    b'<' => *angles += 1,
                    b'>' => *angles = angles.saturating_sub(1),
                    _ => {}
                }
                count(&mut levels, &mut bare, &mut sum, 1);
            }
            _ => {}
        }
        if sum + bare > MAX {
            return Some(line);
        }
        at += 1;
    }
    None
}

/// Counts operators of the innermost expression.
fn count(levels: &mut [Level], bare: &mut usize, sum: &mut usize, n: usize) {
    match levels.last_mut() {
        Some(level) if !level.is_block => {
            level.depth += n;
            *sum += n;
        }
        _ => *bare += n,
    }
}

/// The first word of a text, after blankspace.
fn word(text: &str) -> &str {
    let text = text.trim_start_matches(is_blank);
    &text[..text.find(|c| !is_word_part(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
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
            let else_ifs =
                format!("if out[0] == 1 {{}}{}", format!("//{end}else if out[0] == 2 {{}}").repeat(n));
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
        let ifs = "if out[0] == 1 { out[1] = 2; } else if out[0] == 2 { out[1] = 3; } else { out[1] = 4; }"
            .repeat(n);
        let comments = format!("// {}\n/* {} /* */ */", "+".repeat(n), "- ".repeat(n));
        for body in [table, statements, ifs, comments] {
            assert_eq!(too_deep(&without_comments(&kernel(&body)).0), None);
            let text = expand_text("k.wgsl", &kernel(&body), &Spec::new(), Target::Naga).unwrap();
            text.validate().unwrap();
        }
        let sum = |n: usize| kernel(&format!("out[0] = 1{};", " + 1".repeat(n)));
        assert_eq!((too_deep(&sum(900)), too_deep(&sum(1100))), (None, Some(3)));
    }
}

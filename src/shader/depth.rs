//! How deep a compiler recurses over a text: an overflow of the stack ends the program, and nothing can catch it.
//!
//! naga itself refuses brackets and blocks that are nested too deeply, but not `a + a + a + ...`, `- - - a`, `a.x.x.x` and
//! `if .. else if .. else if ..`, which are trees as deep as they are long.

/// Operators that may lie in each other. A stack of 2 MiB, which threads have, holds four times as many.
pub(super) const MOST: usize = 1000;

/// What an `else if` takes of a stack, in operators.
const ELSE_IF: usize = 4;

/// What is open: a block, or a bracket of an expression.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    is_block: bool,
    /// Operators since it was opened or the last comma, or `else if`s in a row.
    depth: usize,
}

/// The line where an expression or a chain of `else if` becomes too deep, from 1.
pub(super) fn too_deep(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    let mut levels = vec![Level { is_block: true, depth: 0 }];
    // Of all levels.
    let mut sum = 0usize;
    // Operators of the statement that is not within a bracket.
    let mut bare = 0usize;
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            b'\n' => line += 1,
            b'/' if rest.starts_with(b"//") => {
                at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                let length = comment(rest);
                line += rest[..length].iter().filter(|b| **b == b'\n').count() as u32;
                at += length;
                continue;
            }
            b'(' | b'[' => levels.push(Level::default()),
            b')' | b']' => {
                if let Some(level) = levels.pop_if(|level| !level.is_block) {
                    sum -= level.depth;
                }
                count(&mut levels, &mut bare, &mut sum, 1);
            }
            b',' => match levels.last_mut() {
                Some(level) if !level.is_block => sum -= std::mem::take(&mut level.depth),
                _ => bare = 0,
            },
            b';' | b'{' | b'}' => {
                // Brackets that are still open are an error of the text.
                while let Some(level) = levels.pop_if(|level| !level.is_block) {
                    sum -= level.depth;
                }
                bare = 0;
                match bytes[at] {
                    b'{' => levels.push(Level { is_block: true, depth: 0 }),
                    b'}' => {
                        if levels.len() > 1
                            && let Some(level) = levels.pop()
                        {
                            sum -= level.depth;
                        }
                        let chained = word(&bytes[at + 1..]) == Some(b"else");
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
            byte if byte.is_ascii_punctuation() => count(&mut levels, &mut bare, &mut sum, 1),
            _ => {}
        }
        if sum + bare > MOST {
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

/// The word that a text begins with, behind spaces and comments.
fn word(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        bytes = bytes.trim_ascii_start();
        let length = match bytes {
            [b'/', b'/', ..] => bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len()),
            [b'/', b'*', ..] => comment(bytes),
            _ => break,
        };
        bytes = &bytes[length..];
    }
    let length = bytes.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(bytes.len());
    (length > 0).then(|| &bytes[..length])
}

/// Bytes of the comment that a text begins with; comments nest.
fn comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
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
    fn what_would_overflow_the_stack_is_refused_at_its_line() {
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

    #[test]
    fn what_is_only_long_is_taken() {
        let n = 3000;
        let table = format!("let t = array<vec2<f32>, {n}>({});", "vec2<f32>(0.5, -1.5), ".repeat(n));
        let statements = "out[0] += out[1] * (out[2] + 3);".repeat(n);
        let ifs = "if out[0] == 1 { out[1] = 2; } else if out[0] == 2 { out[1] = 3; } else { out[1] = 4; }"
            .repeat(n);
        let comments = format!("// {}\n/* {} /* */ */", "+".repeat(n), "- ".repeat(n));
        for body in [table, statements, ifs, comments] {
            assert_eq!(too_deep(&kernel(&body)), None);
            let text = expand_text("k.wgsl", &kernel(&body), &Spec::new(), Target::Naga).unwrap();
            text.validate().unwrap();
        }
        let sum = |n: usize| kernel(&format!("out[0] = 1{};", " + 1".repeat(n)));
        assert_eq!((too_deep(&sum(900)), too_deep(&sum(1100))), (None, Some(3)));
    }
}

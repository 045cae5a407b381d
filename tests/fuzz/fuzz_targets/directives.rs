//! Random text with directives, and what its expansion must hold to. For the target `expander` and for its short twin
//! in the test suite.

use tilework::shader::{Spec, Target, expand_text, names};

/// Names that texts declare and specs set.
pub(crate) const NAMES: [&str; 10] = ["N", "T", "X", "Y", "op", "load", "WORKGROUP_SIZE", "é", "", "2 3"];

/// A formula, nested at most `depth` deep. `below(n)` draws a number below n.
fn formula(below: &mut impl FnMut(usize) -> usize, depth: usize) -> String {
    const OPERATORS: [&str; 14] = ["+", "-", "*", "/", "%", "<<", ">>", "<", "<=", "==", "!=", "&&", "||", "?"];
    match below(if depth == 0 { 4 } else { 8 }) {
        0 => ["0", "1", "2", "3", "16", "4000000000", "99999999999999999999"][below(7)].into(),
        1 => ["i", "a", "w", ""][below(4)].into(),
        2 | 3 => NAMES[below(NAMES.len())].into(),
        4 => format!("min({}, {})", formula(below, depth - 1), formula(below, depth - 1)),
        5 => format!("!({})", formula(below, depth - 1)),
        _ => {
            let (left, right) = (formula(below, depth - 1), formula(below, depth - 1));
            format!("{left} {} {right}", OPERATORS[below(OPERATORS.len())])
        }
    }
}

/// Lines of directives and declarations.
pub(crate) fn lines(below: &mut impl FnMut(usize) -> usize) -> String {
    let mut text = String::new();
    for _ in 0..below(24) {
        let name = NAMES[below(NAMES.len())];
        let line = match below(24) {
            0 => format!("#if {name}"),
            1 => format!("#if {}", formula(below, 2)),
            2 => "#else".into(),
            3 | 4 => "#endif".into(),
            5 | 6 => format!("#for i in {}", formula(below, 1)),
            7 => format!("#for {name} in {}..{}", formula(below, 1), formula(below, 1)),
            8 => "#for w in x, , y_{i}".into(),
            9..=12 => "#end".into(),
            13 => format!("#block {name}(a)"),
            14 => format!("#put {name}({})", formula(below, 1)),
            15 | 16 => format!("x_{{i}}_{{w}} = {{{}}};", formula(below, 2)),
            17 => format!("const {name}: u32 = {}u;", formula(below, 1)),
            18 => format!("alias {name} = f32; // {{i}}"),
            19 => format!("#import op/add as {name}"),
            20 => format!("#import {}", names().nth(below(names().count())).unwrap_or_default()),
            21 => format!("enable {name}, f16; let x = 1;"),
            22 => "diagnostic(off, a.rule);".into(),
            _ => format!("\tfn {name}(x: T) -> T {{ return x; }}"),
        };
        text.push_str(&line);
        text.push_str(["\n", "\r\n", "\n\n", " // c\n"][below(4)]);
    }
    text
}

/// Says if the text expands. Each line of it has an origin, and an error a file and a line.
pub(crate) fn expands(text: &str, spec: &Spec) -> bool {
    let expanded = [Target::Naga, Target::Tint].map(|target| match expand_text("k.wgsl", text, spec, target) {
        Ok(expanded) => {
            for line in 0..expanded.text().lines().count() as u32 + 2 {
                let (file, line) = expanded.origin(line);
                assert!(!file.is_empty() && line > 0);
            }
            true
        }
        Err(e) => {
            let text = e.to_string();
            let mut place = text.splitn(3, ':');
            let [file, line] = [place.next(), place.next()];
            assert!(file.is_some() && line.is_some_and(|line| line.parse::<u32>().is_ok()), "{text}");
            false
        }
    });
    expanded[0]
}

//! Random text with directives and a random spec: expanded, or an error with file and line.

#![no_main]

mod draw;
#[allow(dead_code, reason = "the target `lower` asks for ops")]
mod forms;

use draw::Draw;
use libfuzzer_sys::fuzz_target;
use tilework::shader::{Fragment, Spec, Target, expand_text, names};

/// Names that texts declare and specs set.
const NAMES: [&str; 10] = ["N", "T", "X", "Y", "op", "load", "WORKGROUP_SIZE", "é", "", "2 3"];

fuzz_target!(|data: &[u8]| {
    let mut draw = Draw::new(data);
    let spec = spec(&mut draw);
    let text = if draw.flag() { lines(&mut draw) } else { rest(draw) };
    for target in [Target::Naga, Target::Tint] {
        match expand_text("k.wgsl", &text, &spec, target) {
            Ok(expanded) => {
                for line in 0..expanded.text().lines().count() as u32 + 2 {
                    let (file, line) = expanded.origin(line);
                    assert!(!file.is_empty() && line > 0);
                }
            }
            Err(e) => {
                let text = e.to_string();
                let mut place = text.splitn(3, ':');
                assert!(
                    place.next().is_some() && place.next().is_some_and(|n| n.parse::<u32>().is_ok()),
                    "{text}"
                );
            }
        }
    }
});

fn rest(draw: Draw<'_>) -> String {
    String::from_utf8_lossy(draw.0.take_rest()).into_owned()
}

fn spec(draw: &mut Draw<'_>) -> Spec {
    let mut spec = Spec::new();
    for _ in 0..draw.below(5) {
        let name = draw.pick(&NAMES);
        spec = match draw.below(7) {
            0 => spec.constant(name, draw.u32()),
            1 => spec.constant(name, draw.pick(&["", "4294967295u", "1\n2", "x;", "0.5", "-1"])),
            2 => spec.alias(name, draw.pick(&["f32", "", "u32;\nfn f() {}"])),
            3 => spec.flag(name, draw.flag()),
            4 => spec.slot(name, Fragment::Library(draw.pick(&["op/add", "op/min", "no/such", ""]))),
            5 => spec.slot(name, Fragment::User(lines(draw).into())),
            _ => spec.constant(name, draw.flag()),
        };
    }
    spec
}

/// Lines of directives and declarations.
fn lines(draw: &mut Draw<'_>) -> String {
    let mut text = String::new();
    for _ in 0..draw.below(24) {
        let name = draw.pick(&NAMES);
        let number = draw.u32();
        let line = match draw.below(18) {
            0 => format!("#if {name}"),
            1 => format!("#if !{name}"),
            2 => "#else".into(),
            3 | 4 => "#endif".into(),
            5 => format!("#repeat {name}"),
            6 | 7 => "#end".into(),
            8 => format!("const {name}: u32 = {number}u;"),
            9 => format!("const {name} = {};", draw.below(5)),
            10 => format!("alias {name} = f32; // {number}"),
            11 => format!("#import op/add as {name}"),
            12 => {
                let which = draw.below(names().count());
                format!("#import {}", names().nth(which).unwrap_or_default())
            }
            13 => format!("enable {name}, f16; let x = 1;"),
            14 => "diagnostic(off, a.rule);".into(),
            15 => format!("x[$] = ${name};"),
            16 => "# ".repeat(draw.below(3)),
            _ => format!("\tfn {name}(x: T) -> T {{ return x; }}"),
        };
        text.push_str(&line);
        text.push_str(draw.pick(&["\n", "\r\n", "\n\n", " // c\n"]));
    }
    text
}

//! Random text with directives and a random spec: expanded, or an error with file and line.

#![no_main]

mod directives;
mod draw;
#[allow(dead_code, reason = "the target `lower` asks for ops")]
mod forms;

use directives::{NAMES, expands, lines};
use draw::Draw;
use libfuzzer_sys::fuzz_target;
use tilework::shader::{Fragment, Spec};

fuzz_target!(|data: &[u8]| {
    let mut draw = Draw::new(data);
    let spec = spec(&mut draw);
    let text = if draw.flag() { lines(&mut |n| draw.below(n)) } else { rest(draw) };
    expands(&text, &spec);
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
            5 => spec.slot(name, Fragment::User(lines(&mut |n| draw.below(n)).into())),
            _ => spec.constant(name, draw.flag()),
        };
    }
    spec
}

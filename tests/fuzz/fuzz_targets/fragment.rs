//! A user's fragment, made of pieces or of raw bytes: rejected, or contained as its module shows.

#![no_main]

mod compilers;
mod draw;
#[allow(dead_code, reason = "the target `lower` asks for ops")]
mod forms;
mod fragments;

use draw::Draw;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: compilers::leave_panics_to_the_library(), |data: &[u8]| {
    let mut draw = Draw::new(data);
    let text = if draw.rarely(4) {
        String::from_utf8_lossy(draw.0.take_rest()).into_owned()
    } else {
        fragments::fragment(&mut |n| draw.below(n))
    };
    let _ = fragments::contained(&text);
});

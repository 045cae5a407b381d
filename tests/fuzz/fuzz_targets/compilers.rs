//! Panics of naga: printed, and left to tilework to catch.

use std::collections::HashSet;
use std::panic;
use std::sync::Mutex;

/// Replaces libFuzzer's hook, which ends the process at every panic. An uncaught panic still does.
pub(crate) fn leave_panics_to_the_library() {
    static SEEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let ours = !place.contains("naga") && !place.contains("wgpu");
        let mut seen = SEEN.lock().unwrap_or_else(|e| e.into_inner());
        if seen.get_or_insert_default().insert(place) || ours {
            eprintln!("panic: {info}");
        }
        if ours {
            eprintln!("{}", std::backtrace::Backtrace::force_capture());
            std::process::abort();
        }
    }));
}

/// Whether an error reports a panic of a compiler; prints the input once per source location.
pub(crate) fn show_if_panicked(error: &tilework::Error, text: &str) {
    static SHOWN: Mutex<usize> = Mutex::new(0);
    let mut shown = SHOWN.lock().unwrap_or_else(|e| e.into_inner());
    if error.to_string().contains("compiler panicked") && *shown < 20 {
        *shown += 1;
        eprintln!("with the text: {text:?}");
    }
}

//! Panics of naga, which tilework catches: written down, and left to it.

use std::collections::HashSet;
use std::panic;
use std::sync::Mutex;

/// Takes the place of libFuzzer's hook, which ends the process at every panic. One that nobody catches still does.
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

/// Whether an error says that a compiler panicked; the input is shown once a place.
pub(crate) fn show_if_panicked(error: &tilework::Error, text: &str) {
    static SHOWN: Mutex<usize> = Mutex::new(0);
    let mut shown = SHOWN.lock().unwrap_or_else(|e| e.into_inner());
    if error.to_string().contains("compiler panicked") && *shown < 20 {
        *shown += 1;
        eprintln!("with the text: {text:?}");
    }
}

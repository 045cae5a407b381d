//! Records which variant of which op each test ran, as lines of JSON.

use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};
use tilework::program::DeviceProfile;

/// Writes a line for each new pair of a test and a variant that it ran.
struct Recording {
    /// The device's name in the library's log messages.
    device: String,
    lines: Mutex<(Box<dyn Write + Send>, HashSet<String>)>,
}

impl log::Log for Recording {
    fn enabled(&self, about: &log::Metadata<'_>) -> bool {
        about.target() == "tilework"
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args().to_string();
        // `op/variant: operands`; copies, and kernels of users, are no variants.
        let ran = text.strip_suffix(&self.device).and_then(|told| told.split_once(": ")).map(|(ran, _)| ran);
        if let Some(ran) = ran.filter(|ran| ran.contains('/') && !ran.contains(' ')) {
            // Tests run on threads with their names, or one after the other on the first thread.
            let thread = std::thread::current();
            let line = json!({"ran": ran, "test": thread.name()}).to_string();
            let (file, seen) = &mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if !seen.contains(&line) {
                writeln!(file, "{line}").expect("the recording is written");
                seen.insert(line);
            }
        }
    }

    fn flush(&self) {}
}

/// Starts to record the variants that run on this device: once per process, so on the first device that tests open.
pub(super) fn begin(open: impl FnOnce() -> Box<dyn Write + Send>, profile: &DeviceProfile, way: &str) {
    static RECORDING: OnceLock<Recording> = OnceLock::new();
    let recording = RECORDING.get_or_init(|| {
        let mut out = open();
        writeln!(out, "{}", about(profile, way)).expect("the recording is written");
        let device = format!(" on {} ({})", profile.name, profile.backend);
        Recording { device, lines: Mutex::new((out, HashSet::new())) }
    });
    if log::set_logger(recording).is_ok() {
        log::set_max_level(log::LevelFilter::Trace);
    }
}

/// The device, and the variants that it cannot run.
fn about(profile: &DeviceProfile, way: &str) -> Value {
    let ops = tilework::operations();
    let variants = ops.flat_map(|op| (op.variants)().iter().map(move |v| (op, v)));
    let unsupported: Map<String, Value> = variants
        .filter_map(|(op, v)| Some((format!("{}/{}", op.name, v.name), v.requires.missing(profile)?.into())))
        .collect();
    json!({
        "name": profile.name, "driver": profile.driver, "backend": profile.backend, "id": profile.id(), "way": way,
        "unsupported": unsupported,
    })
}

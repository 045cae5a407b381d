//! Files read ahead in chunks, with progress bars: shared by `rows` and `wordcount`.

use super::{Failure, bar};
use indicatif::{DecimalBytes, ProgressBar};
use std::sync::mpsc;
use std::thread;

/// Parses `--chunk`, in MiB, to bytes.
pub(crate) fn chunk_bytes(mib: &str) -> Result<u64, Failure> {
    mib.parse()
        .ok()
        .filter(|m| (1..=1024).contains(m))
        .map(|m: u64| m << 20)
        .ok_or_else(|| Failure::bad_input(format!("--chunk {mib}: must be a whole number of MiB from 1 to 1024")))
}

/// A progress bar of bytes.
pub(crate) fn progress(bytes: u64) -> ProgressBar {
    let template = "{bar:30} {decimal_bytes:>9} of {decimal_total_bytes} {decimal_bytes_per_sec:>12}, {eta} left";
    bar(bytes, template, 100)
}

/// Formats bytes per second.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    format!("{}/s", DecimalBytes((bytes as f64 / seconds) as u64))
}

/// Passes filled buffers to `work` while a thread fills the next one.
///
/// `fill` gets an empty buffer and returns whether it filled it. `work` runs on the caller's thread, and may return
/// buffers for reuse.
pub(crate) fn read_ahead(
    mut fill: impl FnMut(&mut Vec<u8>) -> Result<bool, Failure> + Send,
    mut work: impl FnMut(Vec<u8>) -> Result<Option<Vec<u8>>, Failure>,
) -> Result<(), Failure> {
    thread::scope(|scope| {
        let (full, filled) = mpsc::sync_channel(1);
        let (empty, emptied) = mpsc::channel::<Vec<u8>>();
        let reader = scope.spawn(move || {
            loop {
                let mut buffer = emptied.try_recv().unwrap_or_default();
                buffer.clear();
                // The receiver is gone if the work failed.
                if !fill(&mut buffer)? || full.send(buffer).is_err() {
                    return Ok(());
                }
            }
        });
        let worked = filled.iter().try_for_each(|buffer| {
            if let Some(buffer) = work(buffer)? {
                // The reader may be done.
                let _ = empty.send(buffer);
            }
            Ok(())
        });
        drop(filled);
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and(read)
    })
}

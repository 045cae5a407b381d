//! What `rows` and `wordcount` share: files in chunks that are read ahead on a thread of their own, and a progress bar.

use super::{Failure, bar};
use indicatif::{DecimalBytes, ProgressBar};
use std::sync::mpsc;
use std::thread;

/// Bytes of a `--chunk` given in MiB.
pub(crate) fn chunk_bytes(mib: &str) -> Result<u64, Failure> {
    mib.parse().ok().filter(|m| (1..=1024).contains(m)).map(|m: u64| m << 20).ok_or_else(|| {
        Failure::bad_input(format!("--chunk {mib}: must be a whole number of MiB from 1 to 1024"))
    })
}

/// A bar of bytes on standard error, hidden where that is not a terminal.
pub(crate) fn progress(bytes: u64) -> ProgressBar {
    let template =
        "{bar:30} {decimal_bytes:>9} of {decimal_total_bytes} {decimal_bytes_per_sec:>12}, {eta} left";
    bar(bytes, template, 100)
}

/// Bytes a second, in the unit that suits.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    format!("{}/s", DecimalBytes((bytes as f64 / seconds) as u64))
}

/// Hands buffers that `fill` has filled to `work`, and has the next one filled meanwhile, on a thread of its own.
///
/// `fill` gets an empty buffer and says whether there was anything left to fill it with. `work` may give buffers back
/// for reuse. The device is used by `work` only, on the caller's thread.
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
                // Nobody receives when the work has failed.
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

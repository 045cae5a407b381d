//! What `rows` and `wordcount` share: files read ahead on a thread of their own, a progress bar, and failures
//! with their exit codes.

use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tilework::gpu::AdapterFilter;
use tilework::program::Grid;
use tilework::{ErrorKind, Gpu, GpuOptions};

/// Why a program ends early: a text of one line, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    pub(crate) fn bad_input(text: impl Into<String>) -> Self {
        Self { code: 2, text: text.into() }
    }

    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::bad_input(error.to_string()).at(path)
    }

    /// Of writing a result. A reader that has gone away ends the program, which is no failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        let gone = error.kind() == io::ErrorKind::BrokenPipe;
        Self { code: if gone { 0 } else { 1 }, text: format!("writing the result: {error}") }
    }

    /// Says which file the failure is about.
    pub(crate) fn at(self, path: &Path) -> Self {
        Self { text: format!("{}: {}", path.display(), self.text), ..self }
    }
}

impl From<tilework::Error> for Failure {
    fn from(e: tilework::Error) -> Self {
        let code = match e.kind() {
            ErrorKind::NoAdapter if Gpu::adapters().is_empty() => 3,
            ErrorKind::DeviceLost | ErrorKind::OutOfMemory | ErrorKind::Timeout | ErrorKind::Validation => 1,
            _ => 2,
        };
        Self { code, text: e.to_string() }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(e: lexopt::Error) -> Self {
        Self::bad_input(format!("{e}; see --help"))
    }
}

/// The exit code of what a program came to, after a line on `err` if it failed.
pub(crate) fn exit_code(program: &str, result: Result<u8, Failure>, err: &mut dyn Write) -> u8 {
    result.unwrap_or_else(|Failure { code, text }| {
        if code != 0 {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Nobody may be reading.
            let _ = writeln!(err, "{program}: {line}");
        }
        code
    })
}

/// Opens the adapter that has `name` in its name or driver, or the best one.
pub(crate) fn open_gpu(name: Option<String>) -> Result<Gpu, Failure> {
    let adapter = name.map_or(AdapterFilter::Best, AdapterFilter::Name);
    Ok(pollster::block_on(Gpu::request(GpuOptions { adapter, ..Default::default() }))?)
}

/// A file and its bytes. Directories are refused.
pub(crate) fn open_file(path: &Path) -> Result<(File, u64), Failure> {
    let file = File::open(path).map_err(|e| Failure::file(path, &e))?;
    let meta = file.metadata().map_err(|e| Failure::file(path, &e))?;
    if meta.is_dir() {
        return Err(Failure::bad_input(format!("{}: is a directory; name its files", path.display())));
    }
    Ok((file, meta.len()))
}

/// Bytes of a `--chunk` of so many MiB.
pub(crate) fn chunk_bytes(mib: &str) -> Result<u64, Failure> {
    mib.parse().ok().filter(|m| (1..=1024).contains(m)).map(|m: u64| m << 20).ok_or_else(|| {
        Failure::bad_input(format!("--chunk {mib}: must be a whole number of MiB from 1 to 1024"))
    })
}

/// The workgroups of a kernel with an invocation for each of `items`, for its `workgroup_index()`.
pub(crate) fn workgroups(items: usize, workgroup_size: usize) -> [u32; 3] {
    match Grid::fold(items.div_ceil(workgroup_size) as u64) {
        Grid::Direct(workgroups) => workgroups,
        Grid::Indirect { .. } => unreachable!("a fold is direct"),
    }
}

/// A bar of bytes on standard error, hidden where that is not a terminal.
pub(crate) fn progress(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    let template =
        "{bar:30} {decimal_bytes:>9} of {decimal_total_bytes} {decimal_bytes_per_sec:>12}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
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

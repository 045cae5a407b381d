//! How a program on files ends early, and what it opens first.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tilework::gpu::AdapterFilter;
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

//! Failures, exit codes, and what programs open.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use tilework::gpu::AdapterFilter;
use tilework::io::shown;
use tilework::program::DeviceProfile;
use tilework::{ErrorKind, Gpu, GpuOptions};

/// Why a program ends early: one line of text, and the exit code.
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

    /// A failure to write output. A closed reader ends the program with exit code 0.
    pub(crate) fn output(error: &io::Error) -> Self {
        let gone = error.kind() == io::ErrorKind::BrokenPipe;
        Self { code: if gone { 0 } else { 1 }, text: format!("writing the result: {error}") }
    }

    /// The machine lacks what the program needs.
    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        Self { code: 3, text: what.to_string() }
    }

    /// Names the file that the failure concerns.
    pub(crate) fn at(self, path: &Path) -> Self {
        Self { text: format!("{}: {}", path.display(), self.text), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Failure {}

/// For programs that pass on errors of all kinds.
impl From<Box<dyn Error>> for Failure {
    fn from(e: Box<dyn Error>) -> Self {
        let e = match e.downcast::<Self>() {
            Ok(failure) => return *failure,
            Err(e) => e,
        };
        let e = match e.downcast::<tilework::Error>() {
            Ok(e) => return Self::from(*e),
            Err(e) => e,
        };
        match e.downcast::<lexopt::Error>() {
            Ok(e) => Self::from(*e),
            Err(e) => Self::bad_input(e.to_string()),
        }
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

/// `refuse!("...", ..)`: a [`Failure`] for bad input.
macro_rules! refuse {
    ($($arg:tt)*) => { Failure::bad_input(format!($($arg)*)) };
}
pub(crate) use refuse;

/// Rejects a list too large for this machine's memory. Allocating it would end the program.
pub(crate) fn room_for(what: &str, elements: usize, bytes_each: usize) -> Result<(), Failure> {
    let bytes = elements.saturating_mul(bytes_each);
    let mut probe = Vec::<u8>::new();
    let there = probe.try_reserve_exact(bytes).is_ok();
    // Keeps the compiler from removing the allocation.
    std::hint::black_box(&mut probe);
    if there {
        return Ok(());
    }
    Err(refuse!("{what}: {bytes} bytes exceed this machine's memory; take less"))
}

/// Returns the exit code, after writing one line to `err` if the program failed.
pub(crate) fn exit_code(program: &str, result: Result<u8, Failure>, err: &mut dyn Write) -> u8 {
    result.unwrap_or_else(|Failure { code, text }| {
        if code != 0 {
            let line = shown(text.split_whitespace().collect::<Vec<_>>().join(" "));
            // `err` may be closed.
            let _ = writeln!(err, "{program}: {line}");
        }
        code
    })
}

/// Does what a command line asks for, or prints the usage for `--help`. Returns the exit code.
pub(crate) fn answer<R>(
    (program, usage): (&str, &str), parsed: Result<Option<R>, Failure>,
    work: impl FnOnce(&R, &mut dyn Write) -> Result<u8, Failure>, out: &mut dyn Write, err: &mut dyn Write,
) -> u8 {
    let result = parsed.and_then(|request| match request {
        Some(request) => work(&request, out),
        None => say(out, usage).map(|()| 0),
    });
    exit_code(program, result, err)
}

/// Runs a program on the process's arguments, with output to `out`. The exit code is the program's, or 1 if the output
/// could not be flushed.
pub(crate) fn main(
    program: &str, mut out: impl Write, run: impl FnOnce(lexopt::Parser, &mut dyn Write, &mut dyn Write) -> u8,
) -> ExitCode {
    let err = &mut io::stderr();
    let code = run(lexopt::Parser::from_env(), &mut out, err);
    let end = out.flush().map(|()| code).map_err(|e| Failure::output(&e));
    // A failed program has already reported it.
    ExitCode::from(if code == 0 { exit_code(program, end, err) } else { code })
}

/// Writes and flushes.
pub(crate) fn say(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::output(&e))
}

/// Selects an adapter by backend and by a part of its name or driver.
pub(crate) fn adapter(backend: Option<&str>, name: Option<&str>) -> Result<AdapterFilter, Failure> {
    let named = |text: &str| AdapterFilter::Name(text.to_owned());
    let (Some(backend), Some(name)) = (backend, name) else {
        return Ok(backend.or(name).map_or(AdapterFilter::Best, named));
    };
    let both = [named(backend), named(name)];
    let mut all = Gpu::adapters().into_iter().enumerate();
    let found = all.find(|(i, profile)| both.iter().all(|filter| filter.fits(*i, profile)));
    let none = || Failure::bad_input(format!("no adapter of the backend {backend} has {name} in its name"));
    found.map(|(i, _)| AdapterFilter::Index(i)).ok_or_else(none)
}

/// Returns the profile of an adapter, or of a large card if there is none.
pub(crate) fn profile_of(filter: &AdapterFilter) -> DeviceProfile {
    let options = GpuOptions { adapter: filter.clone(), ..GpuOptions::default() };
    Gpu::find_adapter(&options).unwrap_or_else(|_| DeviceProfile::h100())
}

/// Opens the adapter of the backend `name`, or with `name` in its name or driver; by default the best.
pub(crate) fn open_gpu(name: Option<String>) -> Result<Gpu, Failure> {
    let adapter = name.map_or(AdapterFilter::Best, AdapterFilter::Name);
    open_gpu_with(GpuOptions { adapter, ..Default::default() })
}

/// Opens a device.
pub(crate) fn open_gpu_with(options: GpuOptions) -> Result<Gpu, Failure> {
    Ok(pollster::block_on(Gpu::request(options))?)
}

/// Opens a file and returns its size. Rejects directories.
pub(crate) fn open_file(path: &Path) -> Result<(File, u64), Failure> {
    let file = File::open(path).map_err(|e| Failure::file(path, &e))?;
    let meta = file.metadata().map_err(|e| Failure::file(path, &e))?;
    if meta.is_dir() {
        return Err(Failure::bad_input(format!("{}: is a directory; name its files", path.display())));
    }
    Ok((file, meta.len()))
}

#[cfg(test)]
mod tests {
    use super::room_for;

    #[test]
    fn rejects_lists_above_memory() {
        room_for("a list", 1000, 4).unwrap();
        for (elements, bytes_each) in [(usize::MAX, 8), (usize::MAX / 8, 8), (1 << 60, 4)] {
            let refused = room_for("a list", elements, bytes_each).unwrap_err().to_string();
            assert!(refused.starts_with("a list: ") && refused.ends_with("take less"), "{refused}");
        }
    }
}

//! Rows as JSON, and the file that they go to.

use crate::cases::{Case, Outcome};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilework::program::DeviceProfile;

/// A row; what is not known of an op that failed is null.
pub(crate) fn row(
    case: &Case,
    outcome: Option<&Outcome>,
    profile: &DeviceProfile,
    date: &str,
    version: &str,
) -> Value {
    json!({
        "adapter": profile.name,
        "driver": profile.driver,
        "backend": profile.backend,
        "date": date,
        "version": version,
        "op": case.op,
        "variant": outcome.map(|o| o.report.variant),
        "dtype": case.dtype.to_string(),
        "size": outcome.map(|o| &o.size),
        "seconds": outcome.map(|o| o.seconds),
        "gbps": outcome.map(Outcome::gbps),
        "gflops": outcome.map(Outcome::gflops),
        "percent": outcome.and_then(Outcome::percent),
        "error": outcome.map(|o| o.check.error),
        "passed": outcome.is_some_and(|o| o.check.passed),
    })
}

/// A file that is written whole or not at all.
pub(crate) struct Target {
    target: PathBuf,
    /// Where it is written before it is renamed. Pipes and devices are written at once.
    beside: Option<PathBuf>,
}

impl Target {
    /// Looks whether the file can be written, before any work is done.
    pub(crate) fn new(path: &Path) -> Result<Self, String> {
        let refuse = |e: &dyn std::fmt::Display| format!("--json {}: {e}", path.display());
        // A link keeps pointing where it points.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = match fs::metadata(&target) {
            Ok(there) if there.is_dir() => return Err(refuse(&"is a directory")),
            Ok(there) if !there.is_file() => return Ok(Self { target, beside: None }),
            _ => target.file_name().ok_or_else(|| refuse(&"is no name of a file"))?,
        };
        let mut name = name.to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let beside = target.with_file_name(name);
        // Tried now and taken away again: an interrupted tour leaves nothing behind.
        File::create_new(&beside).and_then(|_| fs::remove_file(&beside)).map_err(|e| refuse(&e))?;
        Ok(Self { target, beside: Some(beside) })
    }

    pub(crate) fn write(self, rows: &[Value]) -> Result<(), String> {
        let write = || {
            let mut file = File::create(self.beside.as_ref().unwrap_or(&self.target))?;
            writeln!(file, "{:#}", Value::from(rows))?;
            self.beside.as_ref().map_or(Ok(()), |beside| fs::rename(beside, &self.target))
        };
        write().map_err(|e: std::io::Error| format!("--json {}: {e}", self.target.display()))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // Renamed, or not wanted any more.
            let _ = fs::remove_file(beside);
        }
    }
}

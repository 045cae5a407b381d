//! Rows as JSON.

use crate::cases::{Case, Outcome};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use tilework::io::write_aside;
use tilework::program::DeviceProfile;

/// Formats a row. Fields of a failed op are null.
pub(crate) fn row(case: &Case, outcome: Option<&Outcome>, profile: &DeviceProfile, date: &str, version: &str) -> Value {
    json!({
        "adapter": profile.name,
        "driver": profile.driver,
        "backend": profile.backend,
        "date": date,
        "version": version,
        "op": case.op.name,
        "variant": outcome.map(|o| o.report.decision.variant),
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

/// Writes all rows to a file, or nothing.
pub(crate) fn write(path: &Path, rows: &[Value]) -> tilework::Result<()> {
    write_aside(path, |file| writeln!(file, "{:#}", Value::from(rows)))
}

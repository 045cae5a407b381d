//! Files of the field: parsers and writers, no device.
//!
//! [`matrix_market`] reads and writes sparse and dense matrices as text, also compressed; [`idx`] reads images and labels
//! of the MNIST family.

pub mod idx;
pub mod matrix_market;

use crate::error::{Result, err};
use std::fs::{self, File};
use std::path::Path;

/// Writes a file that appears when it is whole: beside its place, and renamed when `write` is done. Where that fails, nothing
/// is left and what stood at the place stays.
///
/// # Errors
/// Those of `write`, and [`Io`](crate::ErrorKind::Io); the text names the file.
///
/// ```
/// let path = std::env::temp_dir().join(format!("tilework-aside-{}", std::process::id()));
/// tilework::io::write_aside(&path, |mut file| Ok(std::io::Write::write_all(&mut file, b"all").unwrap()))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"all");
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), tilework::Error>(())
/// ```
pub fn write_aside(path: impl AsRef<Path>, write: impl FnOnce(File) -> Result<()>) -> Result<()> {
    let path = path.as_ref();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let failed = |e: std::io::Error| err!(Io, "cannot write: {e}");
    let written = File::create(&aside).map_err(failed).and_then(write);
    let done = written.and_then(|()| fs::rename(&aside, path).map_err(failed));
    if done.is_err() {
        // What is left of it; that it may not be there is no news.
        let _ = fs::remove_file(&aside);
    }
    done.map_err(|e| e.context(&path.display().to_string()))
}

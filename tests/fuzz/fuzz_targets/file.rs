//! The bytes of an input as a file, for the readers of the examples.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A file with these bytes, one per process.
pub(crate) fn holding(data: &[u8]) -> &'static PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let path = PATH.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        folder.join(format!("tilework-fuzz-{}", std::process::id()))
    });
    fs::write(path, data).expect("a temporary file");
    path
}

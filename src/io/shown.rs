//! File names for terminals.

use crate::error;
use std::path::Path;

/// Returns a file name, or other text, for a terminal: control characters are escaped, and invalid UTF-8 is replaced.
///
/// ```
/// assert_eq!(tilework::io::shown("a\x1b[2J\n.npy"), r"a\u{1b}[2J\n.npy");
/// assert_eq!(tilework::io::shown("na\u{ef}ve name.npy"), "na\u{ef}ve name.npy");
/// ```
pub fn shown(path: impl AsRef<Path>) -> String {
    error::shown(path.as_ref())
}

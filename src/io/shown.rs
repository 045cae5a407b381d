//! Names of files for people.

use crate::error;
use std::path::Path;

/// The name of a file, or another text, for a line on a terminal: control characters are escaped, which the terminal
/// would obey, and what is no UTF-8 is replaced.
///
/// ```
/// assert_eq!(tilework::io::shown("a\x1b[2J\n.npy"), r"a\u{1b}[2J\n.npy");
/// assert_eq!(tilework::io::shown("na\u{ef}ve name.npy"), "na\u{ef}ve name.npy");
/// ```
pub fn shown(path: impl AsRef<Path>) -> String {
    error::shown(path.as_ref())
}

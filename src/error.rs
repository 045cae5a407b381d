//! One error type: a kind to match on, and a text that says what to do.

use std::fmt;
use std::path::Path;

/// Result of every fallible call in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as a class to match on.
///
/// The text of the [`Error`] names the operation, its operands with their sizes, the limit that was
/// met and the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No adapter on this machine fits what was asked.
    NoAdapter,
    /// The device lacks a feature, or the element type or variant is not available for this op.
    Unsupported,
    /// An operand has the wrong number of elements, or a slice is out of range.
    Shape,
    /// An argument has a value that the op does not define.
    InvalidArgument,
    /// The request is above a limit of the device.
    TooLarge,
    /// One wgpu buffer was given both as an input and as an output.
    Aliasing,
    /// A buffer belongs to another `Gpu`, lacks a usage or an alignment, or is to be read although nothing was ever
    /// written to it.
    Buffer,
    /// The device or the host has no memory left for an allocation. Everything allocated before stays usable.
    OutOfMemory,
    /// The device is gone. Nothing that lives on it can be used again; open a new `Gpu`.
    DeviceLost,
    /// A shader does not parse, validate or fit its bindings.
    Shader,
    /// wgpu refused a call that passed our own checks.
    Validation,
    /// A wait took longer than it was allowed to.
    Timeout,
    /// The caller asked for the work to be stopped.
    Cancelled,
    /// A function that the caller gave has failed.
    Callback,
    /// A file or stream cannot be read or written.
    Io,
    /// A file or text does not have the format that it should have.
    Malformed,
}

/// Why a call failed.
///
/// ```
/// use tilework::{ErrorKind, Min, Reduce, program::{DeviceProfile, Op}};
/// let refused: tilework::Result<_> = Op::<f32>::lower(&Reduce::new(Min, 0), &DeviceProfile::webgpu_defaults());
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::Shape);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: Box<str>,
}

impl Error {
    /// Control characters of the message, which may come from the name of a file or from a shader, are escaped: a
    /// terminal would obey them.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let is_harmless = |c: char| matches!(c, '\n' | '\t') || !c.is_control();
        let message = if message.chars().all(is_harmless) { message } else { escaped(&message, is_harmless) };
        Self { kind, message: message.into_boxed_str() }
    }

    /// Returns the class of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same failure, with what was being done when it happened in front.
    pub(crate) fn context(self, doing: &str) -> Self {
        Self::new(self.kind, format!("{doing}: {}", self.message))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// A failed `unwrap()` should show the sentence, not a struct.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Error {}

fn escaped(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if kept(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

/// The name of a file, without anything that a terminal would obey: see [`io::shown`](crate::io::shown()).
pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy(), |c| !c.is_control())
}

/// `err!(Shape, "...", ..)`: an [`Error`] of that kind with a formatted text.
macro_rules! err {
    ($kind:ident, $($arg:tt)*) => {
        $crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($arg)*))
    };
}
pub(crate) use err;

/// Makes room in `list` for `more` elements, where a caller's sizes decide how many: a number that is too large is no
/// reason to end the program.
pub(crate) fn make_room<T>(doing: &str, list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| no_room::<T>(doing, list.len().saturating_add(more)))
}

/// An empty list with room for `len` elements: see [`make_room`].
pub(crate) fn with_room<T>(doing: &str, len: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| no_room::<T>(doing, len))?;
    Ok(list)
}

/// `len` times `value`: see [`make_room`].
pub(crate) fn filled<T: Clone>(doing: &str, len: usize, value: T) -> Result<Vec<T>> {
    let mut list = with_room(doing, len)?;
    list.resize(len, value);
    Ok(list)
}

/// A copy of `list`: see [`make_room`].
pub(crate) fn copied<T: Copy>(doing: &str, list: &[T]) -> Result<Vec<T>> {
    let mut copy = with_room(doing, list.len())?;
    copy.extend_from_slice(list);
    Ok(copy)
}

fn no_room<T>(doing: &str, len: usize) -> Error {
    let bytes = len.saturating_mul(size_of::<T>());
    err!(
        OutOfMemory,
        "{doing}: a list of {len} elements needs {bytes} bytes of the host's memory, which it does not have; free some, \
         or work in smaller pieces"
    )
}

#[cfg(test)]
mod tests;

//! One error type: a kind to match on, and a text that says what to do.

use std::fmt;

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
    /// A buffer belongs to another `Gpu`, or lacks a usage or an alignment.
    Buffer,
    /// The device has no memory left for an allocation. Everything allocated before stays usable.
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
    /// What was read is not of the format that it should have.
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
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into().into_boxed_str() }
    }

    /// The class of the failure.
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

/// `err!(Shape, "...", ..)`: an [`Error`] of that kind with a formatted text.
macro_rules! err {
    ($kind:ident, $($arg:tt)*) => {
        $crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($arg)*))
    };
}
pub(crate) use err;

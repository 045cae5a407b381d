//! Tracks whether memory was ever written: no op may read memory that was not.

use super::Access;
use crate::element::DType;
use crate::error::{Result, err};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether anything wrote to some memory since it was allocated.
#[derive(Debug, Default)]
pub(crate) struct Written(AtomicBool);

impl Written {
    /// For memory that holds data from the start.
    #[cfg(feature = "cuda")]
    pub(crate) fn already() -> Self {
        Self(AtomicBool::new(true))
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Loads first: the flag is nearly always set, and a load leaves other cores their cached copies.
    pub(crate) fn set(&self) {
        if !self.get() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// A use of some memory by an op.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) name: &'a str,
    pub(crate) access: Access,
    pub(crate) written: &'a Written,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
}

/// Fails if an op only reads memory that was never written. An operand that it reads and writes may be: an op need
/// not read what it overwrites. `zeroes` names the call that allocates zeros.
pub(crate) fn check_read(op: &str, uses: &[Use<'_>], zeroes: &str) -> Result<()> {
    let holds_nothing = |u: &&Use<'_>| u.access == Access::Read && u.len > 0 && !u.written.get();
    let Some(read) = uses.iter().find(holds_nothing) else { return Ok(()) };
    let fits = |u: &&Use<'_>| u.access != Access::Read && u.written.get() && (u.dtype, u.len) == (read.dtype, read.len);
    let what = format!("{op}: {} was allocated and never written", read.name);
    Err(match uses.iter().find(fits) {
        Some(other) => {
            err!(Buffer, "{what}; are {} and {} swapped? Write it first, or use {zeroes}", read.name, other.name)
        }
        None => err!(Buffer, "{what}; write it first, or use {zeroes}"),
    })
}

#[cfg(test)]
mod tests;

//! What is kept: compiled code in memory, and what outlives a run of the program: files with the feature `disk-cache`,
//! nothing without it.

mod compiled;
#[cfg(feature = "disk-cache")]
mod disk;
#[cfg(not(feature = "disk-cache"))]
mod nowhere;
mod once;

pub(crate) use compiled::{CompiledCache, InUse, KEPT};
#[cfg(feature = "disk-cache")]
pub(crate) use disk::Store;
#[cfg(feature = "disk-cache")]
pub use disk::{CacheDir, CacheReport};
#[cfg(not(feature = "disk-cache"))]
pub(crate) use nowhere::NoStore as Store;
pub(crate) use once::Once;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use once::in_own_thread;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, even after a thread panicked while it held the lock: state behind our locks is never half changed.
///
/// While holding a lock, do not call wgpu or another driver, drop their objects, or log: a logger may call the library,
/// and wgpu logs.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

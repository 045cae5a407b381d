use super::lock;
use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
#[cfg(not(target_arch = "wasm32"))]
use std::panic::resume_unwind;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// A place for a value that takes long to make. Threads that need it wait for the thread that makes it. No lock is
/// held meanwhile. The maker may ask for the value again, for example through a logger that the compiler calls:
/// then it is made twice, and the first that is ready stays.
pub(crate) struct Once<T> {
    state: Mutex<OnceState<T>>,
    changed: Condvar,
}

enum OnceState<T> {
    Missing,
    Underway(ThreadId),
    There(T),
}

thread_local! {
    static CALLER: Cell<Option<ThreadId>> = const { Cell::new(None) };
}

fn acting() -> ThreadId {
    CALLER.get().unwrap_or_else(|| thread::current().id())
}

/// Runs `work` in a thread of its own, and returns once that thread has ended: what a driver kept for it is then gone.
/// To a [`Once`], it is the same thread as the caller. Within `work` no further thread starts.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn in_own_thread<R: Send>(work: impl Fn() -> R + Sync) -> R {
    if CALLER.get().is_some() {
        return work();
    }
    let caller = acting();
    thread::scope(|scope| {
        let named = thread::Builder::new().name("tilework drivers".into());
        let started = named.spawn_scoped(scope, || {
            CALLER.set(Some(caller));
            work()
        });
        match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => work(),
        }
    })
}

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new(OnceState::Missing), changed: Condvar::new() }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

/// Lets other threads make the value if its maker failed or panicked.
struct Underway<'o, T>(&'o Once<T>);

impl<T> Drop for Underway<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if matches!(*state, OnceState::Underway(_)) {
            *state = OnceState::Missing;
        }
        self.0.changed.notify_all();
    }
}

impl<T> Once<T> {
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        match self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            OnceState::There(value) => Some(value),
            _ => None,
        }
    }
}

impl<T: Clone> Once<T> {
    pub(crate) fn there(&self) -> Option<T> {
        match &*lock(&self.state) {
            OnceState::There(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// The value, made now if it is missing.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> T {
        let Ok(value) = self.get_or_make(|| Ok::<T, Infallible>(make()));
        value
    }

    /// The value, made now if it is missing. After an error it is still missing.
    pub(crate) fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let me = acting();
        let mut state = lock(&self.state);
        let mine = loop {
            match &*state {
                OnceState::There(value) => return Ok(value.clone()),
                OnceState::Underway(maker) if *maker == me => break false,
                OnceState::Underway(_) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                OnceState::Missing => {
                    *state = OnceState::Underway(me);
                    break true;
                }
            }
        };
        drop(state);
        let _underway = mine.then(|| Underway(self));
        let made = make()?;
        let mut state = lock(&self.state);
        if let OnceState::There(first) = &*state {
            let first = first.clone();
            // A value made in vain is dropped after the lock is released.
            drop(state);
            return Ok(first);
        }
        *state = OnceState::There(made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests;

//! Compiled code in memory: made once for all that use it, and dropped when nothing does.

use super::{Once, lock};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// How many compiled kernels that nothing uses a device keeps by default: several times those of a training step or of
/// a program of one-line calls, which have at most some hundred. As many take about 1 GB with Mesa's software driver.
pub(crate) const KEPT: usize = 1024;

/// Compiled code by what it was compiled from. Code that nothing uses is kept up to a number, the most recently used
/// code first.
pub(crate) struct CompiledCache<K, V> {
    /// What it keeps, for the log.
    what: &'static str,
    max_unused: usize,
    state: Mutex<CompiledState<K, V>>,
    dropped: AtomicU64,
}

/// A place for each key, so that threads do not compile it twice.
type CompiledPlace<V> = Arc<Once<Arc<Compiled<V>>>>;

struct CompiledState<K, V> {
    /// A place that only this map has is not being filled.
    by_key: HashMap<K, CompiledPlace<V>>,
    /// Number of values with an `unused_since`.
    unused: usize,
    /// How often a value became unused.
    clock: u64,
}

/// A value. The counters change only while the cache is locked.
struct Compiled<V> {
    value: V,
    users: AtomicUsize,
    /// When its last user left; 0 while it has users, or had none yet.
    unused_since: AtomicU64,
}

/// A value in use. The cache keeps it at least until this is dropped.
pub(crate) struct InUse<K: Eq + Hash, V> {
    compiled: Arc<Compiled<V>>,
    cache: Arc<CompiledCache<K, V>>,
}

impl<K: Eq + Hash, V> Deref for InUse<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.compiled.value
    }
}

impl<K: Eq + Hash, V> Drop for InUse<K, V> {
    fn drop(&mut self) {
        self.cache.left(&self.compiled);
    }
}

impl<K: Eq + Hash, V: fmt::Debug> fmt::Debug for InUse<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.compiled.value.fmt(f)
    }
}

impl<K, V> fmt::Debug for CompiledCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledCache({})", self.what)
    }
}

impl<K, V> CompiledState<K, V> {
    fn enter(&mut self, compiled: &Compiled<V>) {
        compiled.users.fetch_add(1, Relaxed);
        self.unused -= usize::from(compiled.unused_since.swap(0, Relaxed) > 0);
    }

    fn leave(&mut self, compiled: &Compiled<V>) {
        if compiled.users.fetch_sub(1, Relaxed) == 1 {
            self.clock += 1;
            self.unused += 1;
            compiled.unused_since.store(self.clock, Relaxed);
        }
    }
}

impl<K: Eq + Hash, V> CompiledState<K, V> {
    /// Takes out the values that were unused longest, so that `max` unused ones stay, and the places of compilations
    /// that failed.
    #[must_use = "to be dropped when nothing is locked"]
    fn surplus(&mut self, max: usize) -> Vec<(K, CompiledPlace<V>)> {
        // Nobody waits at a place that only the map has.
        let since = |place: &mut CompiledPlace<V>| {
            let compiled = Arc::get_mut(place)?.get_mut();
            Some(compiled.map_or(0, |compiled| compiled.unused_since.load(Relaxed)))
        };
        let mut unused: Vec<_> = self.by_key.values_mut().filter_map(since).filter(|at| *at > 0).collect();
        unused.sort_unstable();
        let newest = unused.len().checked_sub(max.saturating_add(1)).map_or(0, |last| unused[last]);
        let goes = |_: &K, place: &mut CompiledPlace<V>| {
            let empty = Arc::get_mut(place).is_some_and(|once| once.get_mut().is_none());
            empty || since(place).is_some_and(|at| (1..=newest).contains(&at))
        };
        let surplus: Vec<_> = self.by_key.extract_if(goes).collect();
        self.unused -= unused.iter().filter(|at| **at <= newest).count();
        surplus
    }
}

impl<K: Eq + Hash + Clone, V> CompiledCache<K, V> {
    /// The value of a key, which is made now if it is missing. After an error it is still missing.
    pub(crate) fn get_or_make<E>(
        self: &Arc<Self>, key: &K, make: impl FnOnce() -> Result<V, E>,
    ) -> Result<InUse<K, V>, E> {
        let place = {
            let mut state = lock(&self.state);
            let place = match state.by_key.get(key) {
                Some(place) => place.clone(),
                None => state.by_key.entry(key.clone()).or_default().clone(),
            };
            if let Some(compiled) = place.there() {
                state.enter(&compiled);
                return Ok(InUse { compiled, cache: self.clone() });
            }
            place
        };
        let new = |value| Arc::new(Compiled { value, users: 0.into(), unused_since: 0.into() });
        match place.get_or_make(|| make().map(new)) {
            // The place is shared still, so that the value stays.
            Ok(compiled) => {
                lock(&self.state).enter(&compiled);
                Ok(InUse { compiled, cache: self.clone() })
            }
            Err(e) => {
                drop(place);
                self.forget_failed(key);
                Err(e)
            }
        }
    }

    /// Drops the place of a compilation that failed, unless another thread tries again.
    fn forget_failed(&self, key: &K) {
        let mut state = lock(&self.state);
        let failed = |place| Arc::get_mut(place).is_some_and(|once: &mut Once<_>| once.get_mut().is_none());
        let gone = if state.by_key.get_mut(key).is_some_and(failed) { state.by_key.remove_entry(key) } else { None };
        drop(state);
        drop(gone);
    }
}

impl<K: Eq + Hash, V> CompiledCache<K, V> {
    /// An empty cache that keeps at most `max_unused` values that nothing uses.
    pub(crate) fn new(what: &'static str, max_unused: usize) -> Self {
        let state = CompiledState { by_key: HashMap::new(), unused: 0, clock: 0 };
        Self { what, max_unused, state: Mutex::new(state), dropped: AtomicU64::new(0) }
    }

    /// Number of values in memory, and of those dropped so far.
    #[cfg(any(feature = "disk-cache", test))]
    pub(crate) fn counts(&self) -> (u64, u64) {
        (lock(&self.state).by_key.len() as u64, self.dropped.load(Relaxed))
    }

    /// Drops all values that nothing uses, and returns their number.
    pub(crate) fn trim(&self) -> usize {
        let surplus = {
            let mut state = lock(&self.state);
            let surplus = state.surplus(0);
            state.by_key.shrink_to_fit();
            surplus
        };
        self.drop_all(surplus)
    }

    fn left(&self, compiled: &Compiled<V>) {
        let surplus = {
            let mut state = lock(&self.state);
            state.leave(compiled);
            if state.unused <= self.max_unused {
                return;
            }
            state.surplus(self.max_unused)
        };
        self.drop_all(surplus);
    }

    fn drop_all(&self, surplus: Vec<(K, CompiledPlace<V>)>) -> usize {
        let (what, count) = (self.what, surplus.iter().filter(|(_, place)| place.there().is_some()).count());
        drop(surplus);
        self.dropped.fetch_add(count as u64, Relaxed);
        if count > 0 {
            log::debug!(target: "tilework", "dropped {count} {what} that nothing uses");
        }
        count
    }
}

#[cfg(test)]
mod tests;

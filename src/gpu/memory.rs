use super::{Gpu, lock};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

/// Bytes under one label: see [`Gpu::memory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryUse {
    /// The label given to [`Buffer::labelled`](super::Buffer::labelled), or `buffer` for buffers without one,
    /// `scratch`, `params`, `constant`, `upload` and `download` (staging, kept for reuse), `stream` (of
    /// [pipelines](crate::stream)), `shared` (with CUDA).
    pub label: String,
    /// Bytes in use.
    pub live: u64,
    /// Maximum of bytes in use at one time.
    pub peak: u64,
}

/// All device memory that a [`Gpu`] has allocated: see [`Gpu::memory`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryReport {
    /// By label, sorted.
    pub uses: Vec<MemoryUse>,
    /// Bytes in use.
    pub live: u64,
    /// Bytes of dropped buffers that wait for reuse; [`Gpu::trim`] frees them.
    pub pooled: u64,
    /// Maximum of bytes in use and pooled at one time.
    pub peak: u64,
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24} {:>15} {:>15}", "bytes", "live", "peak")?;
        for MemoryUse { label, live, peak } in &self.uses {
            writeln!(f, "{label:<24} {live:>15} {peak:>15}")?;
        }
        writeln!(f, "{:<24} {:>15}", "pooled", self.pooled)?;
        write!(f, "{:<24} {:>15} {:>15}", "all", self.live + self.pooled, self.peak)
    }
}

/// Number of labels above which unused ones are forgotten, because a program may make up new ones for ever.
const MAX_LABELS: usize = 1000;

/// The label of memory that waits for reuse.
const POOLED: &str = "pooled";

/// Counts bytes by label.
#[derive(Debug, Default)]
pub(super) struct Meter {
    ledger: Mutex<Ledger>,
    #[cfg(target_arch = "wasm32")]
    unowned: Mutex<Unowned>,
}

/// Buffers that nobody owns any more. A browser frees them late, when it collects garbage, so they are destroyed; but
/// not before all recorded work is submitted, which may use them.
#[cfg(target_arch = "wasm32")]
#[derive(Debug, Default)]
struct Unowned {
    /// Encoders with recorded work that is not submitted.
    open: usize,
    buffers: Vec<wgpu::Buffer>,
}

/// Work that is recorded and not submitted: see [`Meter::recording`].
#[cfg(target_arch = "wasm32")]
#[derive(Debug)]
pub(super) struct Recording {
    meter: Arc<Meter>,
}

#[cfg(target_arch = "wasm32")]
impl Drop for Recording {
    fn drop(&mut self) {
        let mut unowned = lock(&self.meter.unowned);
        unowned.open -= 1;
        let done = if unowned.open == 0 { std::mem::take(&mut unowned.buffers) } else { Vec::new() };
        drop(unowned);
        done.iter().for_each(wgpu::Buffer::destroy);
    }
}

#[derive(Debug, Default)]
struct Ledger {
    /// Identities of the wgpu buffers that tilework made and still holds.
    ours: HashSet<u64>,
    /// Bytes in use, and their maximum.
    labels: BTreeMap<Arc<str>, (u64, u64)>,
    all: u64,
    peak: u64,
}

impl Ledger {
    fn add(&mut self, label: &str, bytes: u64) -> Arc<str> {
        let label = match self.labels.get_key_value(label) {
            Some((known, _)) => known.clone(),
            None => label.into(),
        };
        let (live, peak) = self.labels.entry(label.clone()).or_default();
        *live += bytes;
        *peak = (*peak).max(*live);
        label
    }

    fn take(&mut self, label: &str, bytes: u64) {
        let Some((live, _)) = self.labels.get_mut(label) else { return };
        *live -= bytes;
        if *live == 0 && self.labels.len() > MAX_LABELS {
            self.labels.remove(label);
        }
    }
}

/// Bytes that count under a label until this is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    meter: Arc<Meter>,
    label: Mutex<Arc<str>>,
    bytes: u64,
    buffer: u64,
    #[cfg(target_arch = "wasm32")]
    owned: Option<wgpu::Buffer>,
}

/// A number that tells the buffers of one device apart, without keeping them alive.
fn identity(buffer: &wgpu::Buffer) -> u64 {
    let mut hasher = DefaultHasher::new();
    buffer.hash(&mut hasher);
    hasher.finish()
}

impl Meter {
    /// Whether tilework made the buffer and still holds it.
    pub(super) fn is_ours(&self, buffer: &wgpu::Buffer) -> bool {
        lock(&self.ledger).ours.contains(&identity(buffer))
    }

    /// Counts a buffer of tilework's under `label`.
    pub(super) fn charge_for(self: &Arc<Self>, buffer: &wgpu::Buffer, label: &str, bytes: u64) -> Arc<Charge> {
        let charge = self.charge(label, bytes, identity(buffer));
        #[cfg(target_arch = "wasm32")]
        let charge = {
            let mut charge = charge;
            charge.owned = Some(buffer.clone());
            charge
        };
        Arc::new(charge)
    }

    /// Keeps the buffers that work uses from being destroyed, until the result is dropped.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn recording(self: &Arc<Self>) -> Recording {
        lock(&self.unowned).open += 1;
        Recording { meter: self.clone() }
    }

    fn charge(self: &Arc<Self>, label: &str, bytes: u64, buffer: u64) -> Charge {
        let mut ledger = lock(&self.ledger);
        ledger.all += bytes;
        ledger.peak = ledger.peak.max(ledger.all);
        ledger.ours.insert(buffer);
        let label = Mutex::new(ledger.add(label, bytes));
        Charge {
            meter: self.clone(),
            label,
            bytes,
            buffer,
            #[cfg(target_arch = "wasm32")]
            owned: None,
        }
    }
}

impl Charge {
    /// Counts the bytes under another label from now on.
    pub(super) fn label(&self, label: &str) {
        let mut own = lock(&self.label);
        if **own != *label {
            let mut ledger = lock(&self.meter.ledger);
            ledger.take(&own, self.bytes);
            *own = ledger.add(label, self.bytes);
        }
    }

    /// Counts the bytes as waiting for reuse.
    pub(super) fn pooled(&self) {
        self.label(POOLED);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut ledger = lock(&self.meter.ledger);
        ledger.take(&lock(&self.label), self.bytes);
        ledger.all -= self.bytes;
        ledger.ours.remove(&self.buffer);
        #[cfg(target_arch = "wasm32")]
        if let Some(buffer) = self.owned.take() {
            drop(ledger);
            let mut unowned = lock(&self.meter.unowned);
            if unowned.open > 0 {
                unowned.buffers.push(buffer);
            } else {
                drop(unowned);
                buffer.destroy();
            }
        }
    }
}

impl Gpu {
    /// Returns the memory that tilework allocated, by use. It does not include the caller's buffers. Above 1000 labels,
    /// unused ones are left out.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let weights = gpu.alloc::<f32>(1 << 20)?.labelled("weights");
    /// let memory = gpu.memory();
    /// println!("{memory}");
    /// assert!(memory.uses.iter().any(|u| u.label == "weights" && u.live >= 4 << 20));
    /// drop(weights);
    /// assert!(gpu.memory().pooled >= 4 << 20);
    /// gpu.trim();
    /// assert_eq!(gpu.memory().pooled, 0);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn memory(&self) -> MemoryReport {
        let ledger = lock(&self.inner.meter.ledger);
        let pooled = ledger.labels.get(POOLED).map_or(0, |(live, _)| *live);
        let uses = ledger.labels.iter().filter(|(label, _)| ***label != *POOLED);
        let uses = uses.map(|(label, &(live, peak))| MemoryUse { label: label.to_string(), live, peak });
        MemoryReport { uses: uses.collect(), live: ledger.all - pooled, pooled, peak: ledger.peak }
    }
}

#[cfg(test)]
mod tests;

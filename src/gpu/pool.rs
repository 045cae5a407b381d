//! Memory: raw buffers, the pool that reuses them, and staging buffers.

use super::memory::Charge;
use super::{Gpu, GpuInner, lock, unique};
use crate::error::{ErrorKind, Result, err};
use crate::program::Written;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A wgpu buffer with an identity that survives reuse.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) buffer: wgpu::Buffer,
    pub(super) id: u64,
    pub(super) size: u64,
    /// The label that it counts under; none for a caller's buffer.
    pub(super) charge: Option<Arc<Charge>>,
}

/// Owner of a raw buffer. Dropping it returns a pooled buffer to the pool, and makes plans forget a caller's.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) raw: Raw,
    home: Weak<GpuInner>,
    pooled: bool,
    pub(super) written: Written,
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    pub(super) shared: Option<super::shared::Exportable>,
}

impl Memory {
    fn new(gpu: &Gpu, raw: Raw, pooled: bool) -> Self {
        Self {
            raw,
            home: Arc::downgrade(&gpu.inner),
            pooled,
            written: Written::default(),
            #[cfg(all(feature = "cuda", target_os = "linux"))]
            shared: None,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(gpu) = self.home.upgrade() else { return };
        if self.pooled {
            gpu.pool.put(self.raw.clone());
        } else {
            gpu.groups.forget(self.raw.id);
        }
    }
}

/// The label of buffers without a label of their own.
const BUFFER: &str = "buffer";

/// Free buffers by size, all with [`Gpu::usage`].
#[derive(Debug, Default)]
pub(super) struct Pool {
    free: Mutex<BTreeMap<u64, Vec<Raw>>>,
}

/// The allocated size for `bytes`: classes of an eighth of a power of two waste at most an eighth and make sizes
/// meet again.
fn size_class(bytes: u64, limit: u64) -> u64 {
    let roomy = bytes.max(256);
    let step = (roomy.next_power_of_two() / 16).max(256);
    let size = roomy.div_ceil(step) * step;
    // The largest buffer may not be a multiple of the step. Bindings are whole words.
    if size > limit { bytes.max(4).next_multiple_of(4) } else { size }
}

impl Pool {
    fn take(&self, size: u64) -> Option<Raw> {
        let mut free = lock(&self.free);
        let list = free.get_mut(&size)?;
        let raw = list.pop();
        if list.is_empty() {
            free.remove(&size);
        }
        raw
    }

    fn put(&self, raw: Raw) {
        if let Some(charge) = &raw.charge {
            charge.pooled();
        }
        lock(&self.free).entry(raw.size).or_default().push(raw);
    }

    pub(super) fn clear(&self) {
        let free = std::mem::take(&mut *lock(&self.free));
        drop(free);
    }
}

/// The direction in which a staging buffer carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// Staging buffers that wait for work. Those of `up` are mapped, those of `down` are not.
#[derive(Debug)]
pub(super) struct StagingPools {
    up: Mutex<Vec<Raw>>,
    down: Mutex<Vec<Raw>>,
    /// Bytes of upload buffers that the GPU still uses.
    pub(super) in_flight: Mutex<u64>,
    /// Maximum of idle staging memory to keep in each direction, and of upload bytes under way before an upload waits
    /// for the GPU.
    kept: AtomicU64,
    /// Whether a wait for a readback first asks again and again: a thread that sleeps wakes late.
    eager: AtomicBool,
}

impl Default for StagingPools {
    fn default() -> Self {
        let kept = AtomicU64::new(256 << 20);
        Self {
            up: Mutex::default(),
            down: Mutex::default(),
            in_flight: Mutex::default(),
            kept,
            eager: AtomicBool::new(false),
        }
    }
}

impl StagingPools {
    /// Maximum of idle staging memory in each direction, and of upload bytes under way.
    pub(super) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Whether a wait for a readback first asks again and again.
    pub(super) fn is_eager(&self) -> bool {
        self.eager.load(Ordering::Relaxed)
    }

    fn list(&self, direction: Direction) -> &Mutex<Vec<Raw>> {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    pub(super) fn put(&self, direction: Direction, raw: Raw) {
        let mut list = lock(self.list(direction));
        if list.iter().map(|r| r.size).sum::<u64>() + raw.size <= self.kept() {
            list.push(raw);
        }
    }

    pub(super) fn clear(&self) {
        let idle = [&self.up, &self.down].map(|list| std::mem::take(&mut *lock(list)));
        drop(idle);
    }
}

impl Gpu {
    /// Keeps at least this much staging memory in each direction: cards take long to allocate it.
    #[cfg(feature = "shard")]
    pub(crate) fn keep_staging(&self, bytes: u64) {
        self.inner.staging.kept.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Makes waits for readbacks keep the thread busy for a while, on devices other than the processor.
    #[cfg(feature = "shard")]
    pub(crate) fn wait_eagerly(&self) {
        self.inner.staging.eager.store(!self.profile().is_cpu(), Ordering::Relaxed);
    }

    /// Usages of every buffer that we allocate.
    pub(super) const USAGE: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE
        .union(wgpu::BufferUsages::COPY_SRC)
        .union(wgpu::BufferUsages::COPY_DST)
        .union(wgpu::BufferUsages::INDIRECT);

    /// Usages of a buffer of the pool of `size` bytes: those that a uniform can hold may be bound as one.
    fn usage(&self, size: u64) -> wgpu::BufferUsages {
        let limits = &self.profile().limits;
        let uniform = size <= size_class(limits.max_uniform_binding, limits.max_buffer_size);
        Self::USAGE | if uniform { wgpu::BufferUsages::UNIFORM } else { wgpu::BufferUsages::empty() }
    }

    /// Creates a wgpu buffer. Running out of memory is an error and disturbs nothing else.
    pub(super) fn create_raw(&self, label: &str, size: u64, usage: wgpu::BufferUsages, mapped: bool) -> Result<Raw> {
        let limit = self.profile().limits.max_buffer_size;
        if size > limit {
            return Err(err!(
                TooLarge,
                "allocating {size} bytes: the largest buffer of {} has {limit} bytes; split the data",
                self.profile().name
            ));
        }
        let named = format!("tilework {label}");
        let desc = wgpu::BufferDescriptor { label: Some(&named), size, usage, mapped_at_creation: mapped };
        let buffer = self.scoped(&format!("allocating {size} bytes"), || self.inner.device.create_buffer(&desc))?;
        let charge = self.inner.meter.charge_for(&buffer, label, size);
        Ok(Raw { buffer, id: unique(), size, charge: Some(charge) })
    }

    pub(super) fn allocate(&self, bytes: u64) -> Result<Arc<Memory>> {
        self.probe()?;
        let size = size_class(bytes, self.profile().limits.max_buffer_size);
        let raw = match self.inner.pool.take(size) {
            Some(raw) => {
                if let Some(charge) = &raw.charge {
                    charge.label(BUFFER);
                }
                raw
            }
            None => match self.create_raw(BUFFER, size, self.usage(size), false) {
                // Memory of the pool, of staging, or still in use by the GPU may suffice.
                #[cfg(not(target_arch = "wasm32"))]
                Err(e) if e.kind() == ErrorKind::OutOfMemory => {
                    self.wait()?;
                    self.trim_memory();
                    self.create_raw(BUFFER, size, self.usage(size), false)?
                }
                other => other?,
            },
        };
        Ok(Arc::new(Memory::new(self, raw, true)))
    }

    /// Memory that belongs to the caller, who may write to it without our knowledge.
    pub(super) fn adopt(&self, buffer: wgpu::Buffer) -> Arc<Memory> {
        let raw = Raw { size: buffer.size(), buffer, id: unique(), charge: None };
        let memory = Memory::new(self, raw, false);
        memory.written.set();
        Arc::new(memory)
    }

    /// Memory of our own that is never pooled, because its usages differ.
    pub(super) fn unpooled(&self, raw: Raw) -> Arc<Memory> {
        Arc::new(Memory::new(self, raw, false))
    }

    /// Memory shared with another interface. It is never pooled, because that interface may still use it.
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    pub(super) fn shared_memory(&self, raw: Raw, shared: super::shared::Exportable) -> Memory {
        let mut memory = Memory::new(self, raw, false);
        memory.shared = Some(shared);
        memory
    }

    pub(super) fn staging(&self, direction: Direction, bytes: u64) -> Result<Raw> {
        let fitting = |list: &[Raw]| {
            let fits = |r: &Raw| r.size >= bytes && r.size <= (bytes * 4).max(1 << 16);
            list.iter().enumerate().filter(|(_, r)| fits(r)).min_by_key(|(_, r)| r.size).map(|(i, _)| i)
        };
        {
            let mut list = lock(self.inner.staging.list(direction));
            if let Some(i) = fitting(&list) {
                return Ok(list.swap_remove(i));
            }
        }
        // Mapping needs whole words, and the limit may not be a multiple of them.
        let limit = self.profile().limits.max_buffer_size / 4 * 4;
        let size = bytes.next_power_of_two().max(4096).min(limit.max(bytes));
        let (label, usage) = match direction {
            Direction::Up => ("upload", wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC),
            Direction::Down => ("download", wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
        };
        self.create_raw(label, size, usage, direction == Direction::Up)
    }
}

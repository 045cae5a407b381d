//! The executor on wgpu: devices, buffers, recording, readback, timing.
//!
//! A [`Gpu`] is a device with its compiled pipelines, pool of memory, staging buffers and scratch. It is cheap to
//! clone, `Send` and `Sync`. [`Gpu::new`] opens the best adapter; [`Gpu::request`] opens one by name, backend or
//! index; [`Gpu::from_wgpu`] uses a device that the program already owns.
//!
//! A [`Recorder`] collects work, with an encoder of its own ([`Gpu::recorder`]) or the caller's
//! ([`Gpu::recorder_in`]). Nothing waits before a read.
//!
//! What a [`Gpu`] keeps for reuse has bounds or returns on request: memory of dropped buffers stays in the pool until
//! [`Gpu::trim`], and pipelines that no plan has stay up to [`GpuOptions::kept_pipelines`]. A program with ever new
//! shapes, such as a decoder whose context grows, therefore stays within that number. [`Gpu::memory`] and
//! [`Gpu::cache`] tell how much there is.
//!
//! Only this module uses wgpu.

mod adapter;
mod buffer;
mod ceilings;
#[cfg(any(target_arch = "wasm32", test))]
mod deferred;
#[cfg(not(target_arch = "wasm32"))]
mod drivers;
#[cfg(target_arch = "wasm32")]
#[path = "drivers/web.rs"]
mod drivers;
mod executable;
mod faults;
mod fence;
#[cfg(feature = "shard")]
mod host_memory;
mod kernel;
mod known;
mod learned;
mod memory;
mod pipeline_cache;
mod pool;
mod profile;
mod raw_slice;
mod recorder;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod shared;
#[cfg(not(target_arch = "wasm32"))]
mod stream;
mod timer;
mod transfer;
#[cfg(all(feature = "vulkan", any(feature = "cuda", feature = "shard"), target_os = "linux"))]
mod vulkan;
mod waiting;
#[cfg(feature = "shard")]
mod watch;

pub use adapter::{AdapterFilter, Backend, GpuOptions};
pub use buffer::{Buffer, Slice};
pub use executable::Executable;
#[cfg(feature = "shard")]
pub(crate) use host_memory::{HostWords, Submitted};
pub use kernel::{Arg, OwnKernel};
pub use learned::Tuning;
pub(crate) use learned::Winner;
pub use memory::{MemoryReport, MemoryUse};
pub use profile::{DispatchProfile, OpProfile, Profile};
pub use raw_slice::RawSlice;
pub use recorder::{Encoder, Recorder};
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub(crate) use shared::SharedTimeline;
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub use shared::{DeviceIdentity, ExportedMemory};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use stream::{Port, ReadView, Set, Ticket, WriteView};
#[cfg(feature = "shard")]
pub(crate) use transfer::Moving;
pub use transfer::Readback;
pub(crate) use waiting::Waiting;

pub use crate::program::{Clock, Measurement, Timing};
#[cfg(feature = "disk-cache")]
pub use crate::store::{CacheDir, CacheReport};

use crate::program::prelude::*;
use crate::store::{Store, lock};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A device with its compiled pipelines, memory pool and caches.
///
/// Cheap to clone; clones share everything. The device is freed when the last clone, buffer and plan is dropped.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::{Gpu, Sum};
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(gpu.reduce(&x, Sum)?.read()?, [6.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # One-line calls
/// A method whose page links an op, such as `reduce`, plans the op, allocates its outputs, records and submits. It
/// fails as the op and [`alloc`](Self::alloc) do, with [`Shape`](ErrorKind::Shape) if the length of an operand
/// does not match the others or the descriptor, and with [`Aliasing`](ErrorKind::Aliasing) if an operand that it
/// writes shares a buffer with another. Its page lists only other errors.
#[derive(Clone)]
pub struct Gpu {
    inner: Arc<GpuInner>,
}

struct GpuInner {
    id: u64,
    device: wgpu::Device,
    queue: wgpu::Queue,
    profile: DeviceProfile,
    options: GpuOptions,
    health: fence::Health,
    faults: faults::Faults,
    pipelines: Arc<pipeline_cache::PipelineCache>,
    store: Store,
    meter: Arc<memory::Meter>,
    learned: learned::Learned,
    pool: pool::Pool,
    staging: pool::StagingPools,
    params: executable::ParamsCache,
    groups: executable::GroupRegistry,
    scratch: Mutex<Vec<Option<pool::Raw>>>,
    ceilings: OnceLock<Ceilings>,
    #[cfg(not(target_arch = "wasm32"))]
    poller: transfer::Poller,
    #[cfg(target_arch = "wasm32")]
    deferred: deferred::Deferred,
    /// Submissions, while somebody watches.
    #[cfg(feature = "shard")]
    watched: Mutex<Vec<watch::Watched>>,
    /// When a measurement last ended: until then the device was busy.
    measured: Mutex<Option<web_time::Instant>>,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu").field("id", &self.inner.id).field("name", &self.inner.profile.name).finish()
    }
}

impl PartialEq for Gpu {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
impl Eq for Gpu {}

/// A number that no other object of this process has.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Gpu {
    fn assemble(device: wgpu::Device, queue: wgpu::Queue, profile: DeviceProfile, options: &GpuOptions) -> Self {
        let profile = DeviceProfile { deterministic: options.deterministic, ..profile };
        let health = fence::Health::new(&device, profile.opened_by != OpenedBy::Caller);
        #[cfg(feature = "disk-cache")]
        let store = Store::new(&options.cache, &profile.id(), &[&profile.name, &profile.driver, &profile.backend]);
        #[cfg(not(feature = "disk-cache"))]
        let store = Store;
        Self {
            inner: Arc::new(GpuInner {
                id: unique(),
                device,
                queue,
                profile,
                options: options.clone(),
                health,
                faults: Default::default(),
                pipelines: Arc::new(pipeline_cache::PipelineCache::new("pipelines", options.kept_pipelines)),
                store,
                meter: Default::default(),
                learned: learned::Learned::new(options.tuning),
                pool: Default::default(),
                staging: Default::default(),
                params: Default::default(),
                groups: Default::default(),
                scratch: Default::default(),
                ceilings: OnceLock::new(),
                #[cfg(not(target_arch = "wasm32"))]
                poller: Default::default(),
                #[cfg(target_arch = "wasm32")]
                deferred: Default::default(),
                #[cfg(feature = "shard")]
                watched: Default::default(),
                measured: Default::default(),
            }),
        }
    }

    /// Returns the name, limits and features of this device.
    pub fn profile(&self) -> &DeviceProfile {
        &self.inner.profile
    }

    /// Returns the wgpu device, for programs that mix their own work with ours.
    pub fn device(&self) -> &wgpu::Device {
        &self.inner.device
    }

    /// Returns the wgpu queue.
    pub fn queue(&self) -> &wgpu::Queue {
        &self.inner.queue
    }

    /// Returns the copy bandwidth and multiply-add rate of this device, measured at the first call (some tens of
    /// milliseconds on a card).
    ///
    /// # Errors
    /// Those of running two small kernels: out of memory, device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn ceilings(&self) -> Result<Ceilings> {
        Waiting::block(|waiting| self.ceilings_by(waiting))
    }

    /// As [`ceilings`](Self::ceilings), without blocking the thread. In a browser, reports have ceilings once this was
    /// called.
    ///
    /// # Errors
    /// Those of running two small kernels: out of memory, device lost.
    pub async fn ceilings_async(&self) -> Result<Ceilings> {
        self.ceilings_by(Waiting::Yielding).await
    }

    async fn ceilings_by(&self, waiting: Waiting) -> Result<Ceilings> {
        if let Some(c) = self.inner.ceilings.get() {
            return Ok(*c);
        }
        let measured = ceilings::measure(self, waiting).await?;
        Ok(*self.inner.ceilings.get_or_init(|| measured))
    }

    /// The ceilings for a report: measured now if they are not known, except in a browser, which cannot wait.
    pub(crate) fn reported_ceilings(&self) -> Option<Ceilings> {
        #[cfg(not(target_arch = "wasm32"))]
        return self.ceilings().ok();
        #[cfg(target_arch = "wasm32")]
        return self.inner.ceilings.get().copied();
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Returns statistics of the cache so far: pipelines found, compiled and saved.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// gpu.reduce(&gpu.upload(&[1.0f32, 2.0])?, Sum)?;
    /// let cache = gpu.cache();
    /// println!("{} pipelines from disk, {} compiled", cache.found, cache.compiled);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[cfg(feature = "disk-cache")]
    pub fn cache(&self) -> CacheReport {
        let (in_memory, dropped) = self.inner.pipelines.counts();
        CacheReport { in_memory, dropped, ..self.inner.store.report() }
    }

    /// Removes this device's files: compiled pipelines and results of tuning. Pipelines in memory stay in use.
    /// Winners and denied variants are forgotten.
    #[cfg(feature = "disk-cache")]
    pub fn clear_cache(&self) {
        self.inner.store.clear();
        self.inner.learned.forget();
    }

    /// Frees pooled memory, staging buffers, scratch, cached bind groups, and the compiled pipelines that no plan has:
    /// planning compiles those again, or loads them from disk. Memory in use stays. The allocator of the process may
    /// keep what a software driver frees, for later use.
    pub fn trim(&self) {
        if self.inner.pipelines.trim() > 0 && self.probe().is_ok() {
            // Mesa's software driver frees dropped pipelines when work is submitted.
            let _ = self.scoped("trimming", || self.inner.queue.submit([]));
        }
        self.trim_memory();
    }

    /// Frees what may hold device memory, to try an allocation again. Pipelines hold little, and take long to compile.
    pub(crate) fn trim_memory(&self) {
        self.inner.groups.clear();
        self.inner.pool.clear();
        self.inner.staging.clear();
        self.inner.params.trim();
        let scratch = std::mem::take(&mut *lock(&self.inner.scratch));
        drop(scratch);
        // A poll lets wgpu drop objects that the GPU has finished with.
        let _ = self.poll_once();
    }

    /// Returns an error if the device is known to be lost.
    pub(crate) fn alive(&self) -> Result<()> {
        self.inner.health.check(&self.inner.profile.name)
    }

    /// A scratch buffer of at least `bytes` for slot `slot`. All programs of a `Gpu` share it: the queue runs their
    /// passes in order, and each initialises what it reads.
    fn scratch(&self, slot: usize, bytes: u64) -> Result<pool::Raw> {
        let fitting = |slots: &[Option<pool::Raw>]| {
            slots.get(slot).and_then(Option::as_ref).filter(|raw| raw.size >= bytes).cloned()
        };
        if let Some(raw) = fitting(&lock(&self.inner.scratch)) {
            return Ok(raw);
        }
        let limit = self.profile().limits.max_buffer_size;
        let size = bytes.checked_next_power_of_two().unwrap_or(bytes).max(4096).min(limit.max(bytes));
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::INDIRECT;
        let raw = self.create_raw("scratch", size, usage, false)?;
        let mut slots = lock(&self.inner.scratch);
        // Another thread may have made one.
        if let Some(first) = fitting(&slots) {
            return Ok(first);
        }
        if slots.len() <= slot {
            slots.resize_with(slot + 1, || None);
        }
        let smaller = slots[slot].replace(raw.clone());
        drop(slots);
        drop(smaller);
        Ok(raw)
    }
}

/// The error for one that wgpu reported through a scope.
fn from_wgpu_error(doing: &str, error: &wgpu::Error) -> Error {
    let kind = match error {
        wgpu::Error::OutOfMemory { .. } => ErrorKind::OutOfMemory,
        // A lost device reports no errors: see `Gpu::probe`.
        _ => ErrorKind::Validation,
    };
    let remedy = match kind {
        ErrorKind::OutOfMemory => "; free buffers, call Gpu::trim, or split the work",
        _ => "",
    };
    Error::new(kind, format!("{doing}: {error}{remedy}"))
}

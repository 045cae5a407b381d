//! Memory of the host that several devices of a process read and write by themselves, and work that was submitted.

#[cfg(not(all(feature = "vulkan", target_os = "linux")))]
use super::Buffer;
use super::{Gpu, Slice};
use crate::program::prelude::*;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const PAGE_WORDS: usize = HostWords::ALIGNMENT / 4;

#[derive(Debug)]
#[repr(C, align(65536))]
struct HostPage([AtomicU32; PAGE_WORDS]);

// SAFETY: a word of zeros is a number.
unsafe impl bytemuck::Zeroable for HostPage {}

/// Words of the host, zero at first, that devices import by [`Gpu::import_host`].
#[derive(Debug)]
pub(crate) struct HostWords {
    pages: Vec<HostPage>,
}

impl HostWords {
    /// Alignment of the memory in bytes: of addresses and sizes that drivers import, some pages.
    pub(super) const ALIGNMENT: usize = 64 << 10;

    /// Allocates at least this many words.
    pub(crate) fn new(words: usize) -> Result<Arc<Self>> {
        let pages = bytemuck::allocation::try_zeroed_vec(words.div_ceil(PAGE_WORDS).max(1));
        let pages = pages.map_err(|()| err!(OutOfMemory, "host memory for devices: {words} words"))?;
        Ok(Arc::new(Self { pages }))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.pages[..])
    }

    /// The address.
    pub(super) fn start(&self) -> *mut c_void {
        self.pages.as_ptr().cast_mut().cast()
    }
}

/// In builds without Vulkan no device imports memory.
#[cfg(not(all(feature = "vulkan", target_os = "linux")))]
impl Gpu {
    pub(crate) fn imports_host(&self) -> bool {
        false
    }

    pub(crate) fn import_host(&self, _: &Arc<HostWords>) -> Result<Buffer<u32>> {
        Err(err!(Unsupported, "importing host memory: this build has no Vulkan; copy through the host"))
    }
}

/// Work that was submitted to a device.
pub(crate) struct Submitted {
    gpu: Gpu,
    done: Arc<AtomicBool>,
}

impl Submitted {
    pub(crate) fn wait(&self) -> Result<()> {
        /// How long a thread stays awake.
        const AWAKE: Duration = Duration::from_millis(2);
        let end = Instant::now() + AWAKE;
        while self.gpu.inner.staging.is_eager() && Instant::now() < end {
            self.gpu.poll_once()?;
            if self.done.load(Ordering::Acquire) {
                return self.gpu.probe();
            }
        }
        self.gpu.wait_for(None)
    }
}

impl Gpu {
    /// What to wait for until all work submitted so far is done. `kept` is dropped then.
    pub(crate) fn submitted(&self, kept: impl Send + 'static) -> Result<Submitted> {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        self.scoped("submitting", || {
            self.inner.queue.on_submitted_work_done(move || {
                drop(kept);
                seen.store(true, Ordering::Release);
            });
        })?;
        Ok(Submitted { gpu: self.clone(), done })
    }

    /// Lets go of what finished work used.
    pub(crate) fn poll_finished(&self) -> Result<()> {
        self.poll_once()
    }
}

impl<T: Element> Slice<'_, T> {
    pub(crate) fn gpu(&self) -> &Gpu {
        &self.buffer.gpu
    }
}

#[cfg(all(test, feature = "vulkan", target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::super::vulkan::Driver;
    use super::super::{AdapterFilter, GpuOptions};
    use super::*;
    use crate::error::ErrorKind;

    /// Every device whose driver imports memory was opened for that, and no device that a program owns.
    #[test]
    fn devices_import_memory_if_their_drivers_do() {
        for adapter in 0..Gpu::adapters().len() {
            let options = GpuOptions { adapter: AdapterFilter::Index(adapter), ..Default::default() };
            let gpu = pollster::block_on(Gpu::request(options)).unwrap();
            let able = Driver::of(&gpu, "").is_ok_and(|driver| {
                // SAFETY: a query about handles that live.
                let listed = unsafe { driver.instance.enumerate_device_extension_properties(driver.physical) }.unwrap();
                let name = ash::ext::external_memory_host::NAME;
                listed.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
            });
            assert_eq!(gpu.imports_host(), able, "{}", gpu.profile().name);
            let memory = HostWords::new(1).unwrap();
            assert_eq!(gpu.import_host(&memory).is_ok(), able);
        }
    }

    /// What a device writes is there for the host and for another device. The last of them frees the memory.
    #[test]
    fn devices_and_the_host_share_words() {
        if Gpu::adapters().is_empty() {
            return;
        }
        let [one, two] = [0, 1].map(|_| Gpu::new().unwrap());
        let memory = HostWords::new(20_000).unwrap();
        assert!(memory.bytes() == 2 * HostWords::ALIGNMENT);
        assert!((memory.start() as usize).is_multiple_of(HostWords::ALIGNMENT));
        let there = [&one, &two].map(|gpu| gpu.import_host(&memory));
        let [Ok(a), Ok(b)] = there else {
            assert!(there.into_iter().any(|r| r.is_err_and(|e| e.kind() == ErrorKind::Unsupported)));
            return;
        };
        a.slice(3..6).unwrap().write(&[7, 8, 9]).unwrap();
        one.wait().unwrap();
        assert_eq!(memory.pages[0].0[4].load(Ordering::Relaxed), 8);
        assert_eq!(b.slice(2..6).unwrap().read().unwrap(), [0, 7, 8, 9]);
        let gone = Arc::downgrade(&memory);
        drop((a, memory));
        [&one, &two].into_iter().for_each(|gpu| gpu.wait().unwrap());
        assert!(gone.upgrade().is_some());
        drop(b);
        [&one, &two].into_iter().for_each(|gpu| gpu.wait().unwrap());
        assert!(gone.upgrade().is_none());
    }
}

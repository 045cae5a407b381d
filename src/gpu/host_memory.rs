//! Memory of the host that several devices of a process read and write by themselves, imported through Vulkan.

use super::pool::Raw;
use super::shared::{Driver, Vulkan, vulkan_error, vulkan_usage};
use super::{Buffer, Gpu, Slice, lock, unique};
use crate::element::Element;
use crate::error::{Result, err};
use ash::{ext, vk};
use std::alloc::{Layout, alloc_zeroed};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Alignment of the memory in bytes: of addresses and sizes that drivers import, some pages.
const ALIGNMENT: usize = 64 << 10;

/// Memory that no group uses. It stays allocated, because a driver may hold its pages longer than a buffer lives.
static IDLE: Mutex<Vec<&'static [AtomicU32]>> = Mutex::new(Vec::new());

/// Zeroed words of the host that devices import by [`Gpu::import_host`]. Drop it when they are idle: another group then
/// gets the memory.
#[derive(Debug)]
pub(crate) struct HostWords {
    words: &'static [AtomicU32],
}

impl HostWords {
    /// Takes idle memory, or allocates some.
    pub(crate) fn new(words: usize) -> Result<Self> {
        let failed = || err!(OutOfMemory, "host memory for devices: {words} words");
        let bytes = words.checked_mul(4).and_then(|b| b.max(1).checked_next_multiple_of(ALIGNMENT));
        let bytes = bytes.ok_or_else(failed)?;
        let idle = {
            let mut idle = lock(&IDLE);
            let found = idle.iter().position(|w| w.len() * 4 == bytes);
            found.map(|at| idle.swap_remove(at))
        };
        if let Some(words) = idle {
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            return Ok(Self { words });
        }
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: the size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(failed());
        }
        // SAFETY: that many zeroed bytes, aligned, which are never freed.
        let words = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU32>(), bytes / 4) };
        Ok(Self { words })
    }

    /// Words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }
}

impl Drop for HostWords {
    fn drop(&mut self) {
        lock(&IDLE).push(self.words);
    }
}

impl Gpu {
    /// Makes memory of the host a buffer of this device, which reads and writes it over the bus. The memory must
    /// outlive the device's use of it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the device does not import memory; those of allocating.
    pub(crate) fn import_host(&self, memory: &HostWords) -> Result<Buffer<u32>> {
        const OP: &str = "importing host memory";
        const HANDLE: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        self.probe()?;
        let driver = Driver::of(self, OP)?;
        driver.needs(OP, ext::external_memory_host::NAME, "its driver imports no memory")?;
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut host);
        // SAFETY: Vulkan 1.1 has the call; the structures live here.
        unsafe { driver.instance.get_physical_device_properties2(driver.physical, &mut properties) };
        if host.min_imported_host_pointer_alignment > ALIGNMENT as u64 {
            let alignment = host.min_imported_host_pointer_alignment;
            return Err(err!(Unsupported, "{OP}: the driver wants addresses that are multiples of {alignment}"));
        }
        let bytes = memory.len() as u64 * 4;
        let pointer = memory.words.as_ptr().cast_mut().cast::<c_void>();
        let importer = ext::external_memory_host::Device::new(&driver.instance, &driver.device);
        let mut found = vk::MemoryHostPointerPropertiesEXT::default();
        let query = importer.fp().get_memory_host_pointer_properties_ext;
        // SAFETY: the extension is enabled, the memory is allocated and the structure lives here.
        unsafe { query(driver.device.handle(), HANDLE, pointer, &mut found) }
            .result()
            .map_err(|e| vulkan_error(OP, e))?;

        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HANDLE);
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(vulkan_usage(Gpu::USAGE))
            .sharing_mode(vk::SharingMode::EXCLUSIVE)
            .push_next(&mut external);
        // SAFETY: the extension is enabled and all structures live here.
        let buffer = unsafe { driver.device.create_buffer(&info, None) }.map_err(|e| vulkan_error(OP, e))?;
        // SAFETY: a query about a handle that lives.
        let needs = unsafe { driver.device.get_buffer_memory_requirements(buffer) };
        let types = needs.memory_type_bits & found.memory_type_bits;
        let bound = if types == 0 || needs.size > bytes {
            Err(vk::Result::ERROR_INVALID_EXTERNAL_HANDLE)
        } else {
            let mut import = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(HANDLE).host_pointer(pointer);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(bytes)
                .memory_type_index(types.trailing_zeros())
                .push_next(&mut import);
            // SAFETY: the type is one that the driver imports from this memory, which is never freed.
            unsafe { driver.device.allocate_memory(&info, None) }.and_then(|memory| {
                // SAFETY: both are new and belong together.
                let bound = unsafe { driver.device.bind_buffer_memory(buffer, memory, 0) };
                bound.map(|()| memory).inspect_err(|_| {
                    // SAFETY: allocated above and used by nobody.
                    unsafe { driver.device.free_memory(memory, None) };
                })
            })
        };
        let memory = bound.map_err(|e| {
            // SAFETY: created above and used by nobody.
            unsafe { driver.device.destroy_buffer(buffer, None) };
            vulkan_error(OP, e)
        })?;
        // SAFETY: this device made the buffer and its memory, and wgpu owns them from now on.
        let hal = unsafe { wgpu::hal::vulkan::Buffer::from_raw_managed(buffer, memory, 0, bytes) };
        let desc = wgpu::BufferDescriptor {
            label: Some("tilework host memory"),
            size: bytes,
            usage: Gpu::USAGE,
            mapped_at_creation: false,
        };
        // SAFETY: this device made it, with the usages of `desc` and not empty.
        // wgpu takes it as initialised.
        let made = self.scoped(OP, || unsafe { self.inner.device.create_buffer_from_hal::<Vulkan>(hal, &desc) })?;
        let charge = Some(self.inner.meter.charge_for(&made, "host memory", 0));
        let raw = Raw { size: bytes, buffer: made, id: unique(), charge };
        let buffer = Buffer::new(self, self.unpooled(raw), bytes as usize / 4);
        buffer.count_as_written();
        Ok(buffer)
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
    pub(crate) fn imports_host(&self) -> bool {
        Driver::of(self, "").is_ok_and(|driver| driver.needs("", ext::external_memory_host::NAME, "").is_ok())
    }

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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// What a device writes is there for the host and for another device; the memory comes back zeroed.
    #[test]
    fn devices_and_the_host_share_words() {
        if Gpu::adapters().is_empty() {
            return;
        }
        let [one, two] = [0, 1].map(|_| Gpu::new().unwrap());
        let memory = HostWords::new(1000).unwrap();
        assert!(memory.len() >= 1000 && (memory.words.as_ptr() as usize).is_multiple_of(ALIGNMENT));
        let there = [&one, &two].map(|gpu| gpu.import_host(&memory));
        let [Ok(a), Ok(b)] = there else {
            assert!(there.into_iter().any(|r| r.is_err_and(|e| e.kind() == ErrorKind::Unsupported)));
            return;
        };
        a.slice(3..6).unwrap().write(&[7, 8, 9]).unwrap();
        one.wait().unwrap();
        assert_eq!(memory.words[4].load(Ordering::Relaxed), 8);
        assert_eq!(b.slice(2..6).unwrap().read().unwrap(), [0, 7, 8, 9]);
        drop((a, b));
        [&one, &two].into_iter().for_each(|gpu| gpu.wait().unwrap());
        drop(memory);
        assert!(HostWords::new(1000).unwrap().words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}

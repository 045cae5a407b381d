//! Memory and semaphores for another interface to the same card: exported through Vulkan as file descriptors.
//!
//! Linux only. Memory can be exported on every Vulkan device whose driver has `VK_KHR_external_memory_fd`, on a
//! caller's device too, because wgpu enables that extension. Semaphores need `VK_KHR_external_semaphore_fd`, which
//! only devices that tilework opened have.

use super::pool::{Memory, Raw};
use super::vulkan::{Driver, Vulkan, vulkan_error, vulkan_usage};
use super::{Buffer, Gpu, unique};
use crate::program::prelude::*;
use ash::{khr, vk};
use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

/// Identifies a piece of hardware across interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The driver's name for it.
    pub name: String,
    /// `domain:bus:device.function` in lower case hexadecimal; empty if the driver does not say.
    pub pci_bus_id: String,
    /// The driver's UUID, the same in Vulkan and CUDA. Zeros if it has none.
    pub uuid: [u8; 16],
}

impl DeviceIdentity {
    /// Returns whether both are the same hardware: the same UUID, or the same place on the PCI bus.
    pub fn is_same(&self, other: &Self) -> bool {
        let known = |id: &Self| (id.uuid != [0; 16], !id.pci_bus_id.is_empty());
        let (a, b) = (known(self), known(other));
        (a.0 && b.0 && self.uuid == other.uuid)
            || (a.1 && b.1 && self.pci_bus_id.eq_ignore_ascii_case(&other.pci_bus_id))
    }
}

impl fmt::Display for DeviceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bus = if self.pci_bus_id.is_empty() { "unknown" } else { &self.pci_bus_id };
        write!(f, "{} (PCI bus {bus}, UUID ", self.name)?;
        self.uuid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// Memory of a buffer as a file descriptor for another interface, from [`Buffer::export`].
///
/// The descriptor keeps the memory alive, not the buffer. Importing it takes ownership; dropping it closes it.
#[derive(Debug)]
pub struct ExportedMemory {
    /// An opaque descriptor (`VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT`) of a dedicated allocation.
    pub fd: OwnedFd,
    /// Bytes of the allocation, which the import must state. The buffer starts at offset 0.
    pub allocation_bytes: u64,
    /// Bytes of the buffer.
    pub buffer_bytes: u64,
    /// The hardware of the memory.
    pub device: DeviceIdentity,
}

/// The parts of a shared allocation that allow repeated exports. A descriptor instead of the handle, so that
/// nothing dangles if the caller destroys the wgpu buffer.
#[derive(Debug)]
pub(super) struct Exportable {
    fd: OwnedFd,
    allocation_bytes: u64,
    buffer_bytes: u64,
}

impl Gpu {
    /// Returns the hardware behind this device.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) unless the backend is Vulkan 1.1 or later; device lost.
    pub fn identity(&self) -> Result<DeviceIdentity> {
        self.probe()?;
        Ok(DeviceIdentity {
            name: self.profile().name.clone(),
            pci_bus_id: self.inner.device.adapter_info().device_pci_bus_id,
            uuid: Driver::of(self, "identity")?.uuid(),
        })
    }

    /// Allocates `n` zeroed elements in memory that another interface to the card can open: see [`Buffer::export`].
    /// All ops take the buffer like any other.
    ///
    /// Each buffer takes an allocation and a file descriptor: drivers often allow a few thousand allocations,
    /// systems about a thousand descriptors. `n` is at least 1. Linux only, with the feature `cuda`.
    ///
    /// ```no_run
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.alloc_shared::<f32>(1 << 20)?;
    /// x.write(&vec![1.0; 1 << 20])?;
    /// let memory = x.export()?; // hand memory.fd to the other interface
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if the backend is not Vulkan, the driver exports no memory, or the
    /// device was opened without `VK_KHR_external_memory_fd`; otherwise as [`Gpu::alloc`].
    pub fn alloc_shared<T: Element>(&self, n: usize) -> Result<Buffer<T>> {
        self.probe()?;
        let bytes = self.bytes_of::<T>("alloc_shared", n)?;
        if n == 0 {
            return Err(err!(Shape, "alloc_shared: 0 elements cannot be shared; use Gpu::alloc"));
        }
        let driver = Driver::of(self, "alloc_shared")?;
        let memory = match driver.shared(bytes.next_multiple_of(4), None) {
            // Memory of the pool, of staging, or still in use by the GPU may suffice.
            Err(e) if e.kind() == ErrorKind::OutOfMemory => {
                self.wait()?;
                self.trim_memory();
                driver.shared(bytes.next_multiple_of(4), None)?
            }
            other => other?,
        };
        self.cleared(memory, n)
    }

    /// Takes memory of another interface to the card, which holds `n` elements or more, and zeroes them. The other
    /// interface keeps it alive, and this device a descriptor of it.
    ///
    /// # Errors
    /// As [`alloc_shared`](Self::alloc_shared).
    #[cfg(feature = "nccl")]
    pub(crate) fn import_shared<T: Element>(&self, fd: OwnedFd, n: usize) -> Result<Buffer<T>> {
        self.probe()?;
        let bytes = self.bytes_of::<T>("import_shared", n)?.max(4);
        let driver = Driver::of(self, "import_shared")?;
        let memory = driver.shared(bytes.next_multiple_of(4), Some(fd))?;
        self.cleared(memory, n)
    }

    fn cleared<T: Element>(&self, memory: Memory, n: usize) -> Result<Buffer<T>> {
        let buffer = Buffer::new(self, Arc::new(memory), n);
        let mut rec = self.recorder();
        rec.clear(&buffer)?;
        rec.submit()?;
        Ok(buffer)
    }
}

impl<T: Element> Buffer<T> {
    /// Returns the memory as a file descriptor, for an interface that imports it. Call this as often as necessary.
    ///
    /// The importer must not use the memory while work of this `Gpu` writes it, and the reverse.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if the buffer is not from [`Gpu::alloc_shared`]; [`Io`](ErrorKind::Io) if the
    /// process has no descriptor left.
    pub fn export(&self) -> Result<ExportedMemory> {
        let Some(shared) = &self.stored.memory.shared else {
            return Err(err!(
                Buffer,
                "export: {self:?} lies in memory that only its Gpu can use; allocate it with Gpu::alloc_shared"
            ));
        };
        let fd = shared.fd.try_clone().map_err(|e| err!(Io, "export: {self:?}: {e}"))?;
        Ok(ExportedMemory {
            fd,
            allocation_bytes: shared.allocation_bytes,
            buffer_bytes: shared.buffer_bytes,
            device: self.gpu().identity()?,
        })
    }
}

impl Driver<'_> {
    fn uuid(&self) -> [u8; 16] {
        let mut id = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
        // SAFETY: Vulkan 1.1 has the call; the structures live here.
        unsafe { self.instance.get_physical_device_properties2(self.physical, &mut properties) };
        id.device_uuid
    }

    /// A buffer of `bytes` in an exportable allocation of its own, or in memory of another interface.
    fn shared(&self, bytes: u64, import: Option<OwnedFd>) -> Result<Memory> {
        const HANDLE: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
        let op = format!("alloc_shared of {bytes} bytes");
        self.needs(
            &op,
            khr::external_memory_fd::NAME,
            "its driver exports no memory, or the program that opened it left it out: copy through the host",
        )?;
        let usage = vulkan_usage(Gpu::USAGE);
        let info = vk::PhysicalDeviceExternalBufferInfo::default().usage(usage).handle_type(HANDLE);
        let mut able = vk::ExternalBufferProperties::default();
        // SAFETY: Vulkan 1.1 has the call; the structures live here.
        unsafe {
            self.instance.get_physical_device_external_buffer_properties(self.physical, &info, &mut able);
        }
        let able = able.external_memory_properties.external_memory_features;
        let needed = match import {
            Some(_) => vk::ExternalMemoryFeatureFlags::IMPORTABLE,
            None => vk::ExternalMemoryFeatureFlags::EXPORTABLE,
        };
        if !able.contains(needed) {
            return Err(err!(
                Unsupported,
                "{op}: {} ({}) does not share storage buffers by file descriptors; copy through the host",
                self.gpu.profile().name,
                self.gpu.profile().driver
            ));
        }

        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(HANDLE);
        let info = vk::BufferCreateInfo::default()
            .size(bytes)
            .usage(usage)
            .sharing_mode(vk::SharingMode::EXCLUSIVE)
            .push_next(&mut external);
        // SAFETY: the extension is enabled and all structures live here.
        let buffer = unsafe { self.device.create_buffer(&info, None) }.map_err(|e| vulkan_error(&op, e))?;
        let (memory, allocation_bytes, fd) = match self.bind(buffer, HANDLE, import) {
            Ok(bound) => bound,
            Err(e) => {
                // SAFETY: created above and used by nobody.
                unsafe { self.device.destroy_buffer(buffer, None) };
                return Err(vulkan_error(&op, e));
            }
        };
        // SAFETY: this device made the buffer and its memory, and wgpu owns them from now on.
        let hal = unsafe { wgpu::hal::vulkan::Buffer::from_raw_managed(buffer, memory, 0, allocation_bytes) };
        let desc = wgpu::BufferDescriptor {
            label: Some("tilework shared buffer"),
            size: bytes,
            usage: Gpu::USAGE,
            mapped_at_creation: false,
        };
        // SAFETY: this device made it, with the usages of `desc` and not empty; `alloc_shared` clears it before
        // use.
        let buffer =
            self.gpu.scoped(&op, || unsafe { self.gpu.inner.device.create_buffer_from_hal::<Vulkan>(hal, &desc) })?;
        let charge = Some(self.gpu.inner.meter.charge_for(&buffer, "shared", bytes));
        let raw = Raw { size: bytes, buffer, id: unique(), charge };
        Ok(self.gpu.shared_memory(raw, Exportable { fd, allocation_bytes, buffer_bytes: bytes }))
    }

    /// Allocates memory for `buffer` or imports it, and binds it. Returns memory, size and a descriptor.
    fn bind(
        &self, buffer: vk::Buffer, handle: vk::ExternalMemoryHandleTypeFlags, import: Option<OwnedFd>,
    ) -> std::result::Result<(vk::DeviceMemory, u64, OwnedFd), vk::Result> {
        // SAFETY: queries about handles that live.
        let (needs, types) = unsafe {
            (
                self.device.get_buffer_memory_requirements(buffer),
                self.instance.get_physical_device_memory_properties(self.physical),
            )
        };
        let allowed = |i: &u32| needs.memory_type_bits & (1 << i) != 0;
        let local = |i: &u32| {
            let flags = types.memory_types[*i as usize].property_flags;
            flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL)
        };
        let all = || (0..types.memory_type_count).filter(allowed);
        let kind = all().find(local).or_else(|| all().next()).ok_or(vk::Result::ERROR_FEATURE_NOT_PRESENT)?;
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(kind);
        if let Some(fd) = import {
            return self.bind_imported(buffer, handle, info, fd).map(|(memory, fd)| (memory, needs.size, fd));
        }
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(handle);
        let mut dedicated = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let info = info.push_next(&mut export).push_next(&mut dedicated);
        // SAFETY: the size and type are those that the driver asked for; the structures live here.
        let memory = unsafe { self.device.allocate_memory(&info, None) }?;
        let get = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(handle);
        let exporter = khr::external_memory_fd::Device::new(&self.instance, &self.device);
        // SAFETY: memory and buffer belong together and nothing is bound yet; the memory was allocated for export.
        let fd =
            unsafe { self.device.bind_buffer_memory(buffer, memory, 0).and_then(|()| exporter.get_memory_fd(&get)) };
        match fd {
            // SAFETY: a new descriptor that is ours to close.
            Ok(fd) => Ok((memory, needs.size, unsafe { OwnedFd::from_raw_fd(fd) })),
            Err(e) => {
                // SAFETY: allocated above; the caller destroys the buffer and nothing else knows it.
                unsafe { self.device.free_memory(memory, None) };
                Err(e)
            }
        }
    }
}

impl Driver<'_> {
    /// Imports memory, and binds `buffer` to it. Returns the memory and a descriptor of it.
    fn bind_imported(
        &self, buffer: vk::Buffer, handle: vk::ExternalMemoryHandleTypeFlags, info: vk::MemoryAllocateInfo<'_>,
        fd: OwnedFd,
    ) -> std::result::Result<(vk::DeviceMemory, OwnedFd), vk::Result> {
        let given = fd.try_clone().map_err(|_| vk::Result::ERROR_TOO_MANY_OBJECTS)?;
        let mut import = vk::ImportMemoryFdInfoKHR::default().handle_type(handle).fd(given.as_raw_fd());
        let info = info.push_next(&mut import);
        // SAFETY: an open descriptor of memory of this device, at least as large; the structures live here.
        let memory = unsafe { self.device.allocate_memory(&info, None) }?;
        // The driver now owns the descriptor.
        let _ = given.into_raw_fd();
        // SAFETY: memory and buffer belong together and nothing is bound yet.
        match unsafe { self.device.bind_buffer_memory(buffer, memory, 0) } {
            Ok(()) => Ok((memory, fd)),
            Err(e) => {
                // SAFETY: imported above; the caller destroys the buffer and nothing else knows it.
                unsafe { self.device.free_memory(memory, None) };
                Err(e)
            }
        }
    }
}

/// A timeline semaphore: a queue of wgpu and another interface wait for each other's values.
#[derive(Debug)]
pub(crate) struct SharedTimeline {
    gpu: Gpu,
    raw: vk::Semaphore,
    fd: OwnedFd,
}

impl SharedTimeline {
    /// Makes an exportable semaphore with the value 0.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) if the device has none.
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        const HANDLE: vk::ExternalSemaphoreHandleTypeFlags = vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;
        const OP: &str = "an exported semaphore";
        gpu.probe()?;
        let driver = Driver::of(gpu, OP)?;
        driver.needs(
            OP,
            khr::external_semaphore_fd::NAME,
            "its driver exports no semaphores, or the program that opened it left it out: open it by Gpu::request",
        )?;
        let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut timeline);
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let info = vk::PhysicalDeviceExternalSemaphoreInfo::default().handle_type(HANDLE).push_next(&mut kind);
        let mut able = vk::ExternalSemaphoreProperties::default();
        // SAFETY: Vulkan 1.1 has the calls; the structures live here.
        unsafe {
            driver.instance.get_physical_device_features2(driver.physical, &mut features);
            driver.instance.get_physical_device_external_semaphore_properties(driver.physical, &info, &mut able);
        }
        let exportable = able.external_semaphore_features.contains(vk::ExternalSemaphoreFeatureFlags::EXPORTABLE);
        // wgpu enables timeline semaphores wherever the driver has them.
        if timeline.timeline_semaphore == vk::FALSE || !exportable {
            return Err(err!(
                Unsupported,
                "{OP}: {} ({}) does not export timeline semaphores",
                gpu.profile().name,
                gpu.profile().driver
            ));
        }
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE).initial_value(0);
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(HANDLE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind).push_next(&mut export);
        // SAFETY: extension and feature are there, and the structures live here.
        let raw = unsafe { driver.device.create_semaphore(&info, None) }.map_err(|e| vulkan_error(OP, e))?;
        let get = vk::SemaphoreGetFdInfoKHR::default().semaphore(raw).handle_type(HANDLE);
        let exporter = khr::external_semaphore_fd::Device::new(&driver.instance, &driver.device);
        // SAFETY: made for export above.
        match unsafe { exporter.get_semaphore_fd(&get) } {
            // SAFETY: a new descriptor that is ours to close.
            Ok(fd) => Ok(Self { gpu: gpu.clone(), raw, fd: unsafe { OwnedFd::from_raw_fd(fd) } }),
            Err(e) => {
                // SAFETY: made above and used by nobody.
                unsafe { driver.device.destroy_semaphore(raw, None) };
                Err(vulkan_error(OP, e))
            }
        }
    }

    /// A descriptor for the interface that imports it, which then owns it.
    pub(crate) fn export(&self) -> Result<OwnedFd> {
        self.fd.try_clone().map_err(|e| err!(Io, "an exported semaphore: {e}"))
    }

    /// Makes the queue set `value` after all work submitted so far. Values must rise.
    pub(crate) fn signal(&self, value: u64) -> Result<()> {
        // SAFETY: the handle is not destroyed here.
        if let Some(queue) = unsafe { self.gpu.inner.queue.as_hal::<Vulkan>() } {
            queue.add_signal_semaphore(self.raw, Some(value));
        }
        // The signal goes with the next submission. A submission of another thread works too: it comes after all
        // earlier ones.
        self.gpu.scoped("signalling a shared semaphore", || self.gpu.inner.queue.submit([]))?;
        Ok(())
    }

    /// Makes all work submitted from now on wait for `value`, whose signal must already be submitted.
    pub(crate) fn wait(&self, value: u64) -> Result<()> {
        self.gpu.probe()?;
        // SAFETY: the handle is not destroyed here.
        if let Some(queue) = unsafe { self.gpu.inner.queue.as_hal::<Vulkan>() } {
            queue.add_wait_semaphore(self.raw, Some(value), vk::PipelineStageFlags::ALL_COMMANDS);
        }
        Ok(())
    }
}

impl Drop for SharedTimeline {
    fn drop(&mut self) {
        // Longer than any sane kernel. If the other side never signals, the driver keeps the semaphore.
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
        // SAFETY: the handle is not destroyed here.
        if let Some(queue) = unsafe { self.gpu.inner.queue.as_hal::<Vulkan>() } {
            while queue.remove_wait_semaphore(self.raw) || queue.remove_signal_semaphore(self.raw) {}
        }
        if self.gpu.wait_timeout(PATIENCE).is_ok()
            && let Ok(driver) = Driver::of(&self.gpu, "dropping a shared semaphore")
        {
            // SAFETY: no submission uses it, and none can follow: only `self` had it.
            unsafe { driver.device.destroy_semaphore(self.raw, None) };
        }
    }
}

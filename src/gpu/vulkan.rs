//! Vulkan below wgpu: the extensions that devices are opened with, their handles, and imported memory of the host.

#[cfg(feature = "shard")]
use super::HostWords;
use super::pool::Raw;
use super::{Buffer, Gpu, unique};
use crate::program::prelude::*;
use ash::{ext, khr, vk};
use std::ffi::CStr;
use std::sync::Arc;

pub(super) type Vulkan = wgpu::hal::api::Vulkan;

/// Opens `adapter` with each extension that tilework uses, wgpu does not, and the driver has. `None` if there is none,
/// the adapter is not Vulkan's, or fails to open.
pub(super) fn open(adapter: &wgpu::Adapter, desc: &wgpu::DeviceDescriptor<'_>) -> Option<(wgpu::Device, wgpu::Queue)> {
    let used = [
        (cfg!(feature = "cuda"), khr::external_semaphore_fd::NAME),
        (cfg!(feature = "shard"), ext::external_memory_host::NAME),
    ];
    // SAFETY: the handle is not destroyed here.
    let hal = unsafe { adapter.as_hal::<Vulkan>() }?;
    let capabilities = hal.physical_device_capabilities();
    let wanted = |(used, name)| (used && capabilities.supports_extension(name)).then_some(name);
    let names: Vec<&'static CStr> = used.into_iter().filter_map(wanted).collect();
    // The extensions build on Vulkan 1.1.
    if names.is_empty() || capabilities.properties().api_version < vk::API_VERSION_1_1 {
        return None;
    }
    let add = move |args: wgpu::hal::vulkan::CreateDeviceCallbackArgs<'_, '_, '_>| {
        for name in names {
            if !args.extensions.contains(&name) {
                args.extensions.push(name);
            }
        }
    };
    // SAFETY: features and limits are the adapter's own (see `Gpu::request`); the callback adds extensions that
    // the driver lists and removes nothing.
    let opened = unsafe {
        hal.open_with_callback(desc.required_features, &desc.required_limits, &desc.memory_hints, Some(Box::new(add)))
    };
    // SAFETY: opened from this adapter just now, with the features of `desc`.
    unsafe { adapter.create_device_from_hal::<Vulkan>(opened.ok()?, desc) }.ok()
}

pub(super) fn vulkan_error(doing: &str, result: vk::Result) -> Error {
    let (kind, remedy) = match result {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            (ErrorKind::OutOfMemory, "; free buffers, call Gpu::trim, or split the work")
        }
        vk::Result::ERROR_TOO_MANY_OBJECTS => {
            (ErrorKind::OutOfMemory, "; each shared buffer is an allocation of its own: share fewer, larger ones")
        }
        vk::Result::ERROR_DEVICE_LOST => (ErrorKind::DeviceLost, "; open a new Gpu"),
        _ => (ErrorKind::Validation, ""),
    };
    Error::new(kind, format!("{doing}: the Vulkan driver says {result}{remedy}"))
}

/// The Vulkan handles of a device, valid while `device` lives.
pub(super) struct Driver<'g> {
    pub(super) gpu: &'g Gpu,
    pub(super) physical: vk::PhysicalDevice,
    pub(super) instance: ash::Instance,
    pub(super) device: ash::Device,
    extensions: Vec<&'static CStr>,
}

impl<'g> Driver<'g> {
    pub(super) fn of(gpu: &'g Gpu, op: &str) -> Result<Self> {
        let profile = gpu.profile();
        // SAFETY: the handle is not destroyed here.
        let Some(hal) = (unsafe { gpu.inner.device.as_hal::<Vulkan>() }) else {
            return Err(err!(
                Unsupported,
                "{op}: {} is open through {}; memory is shared through Vulkan only: open it with backend: \
                 Some(Backend::Vulkan), or copy through the host",
                profile.name,
                profile.backend
            ));
        };
        let shared = hal.shared_instance();
        let driver = Self {
            gpu,
            physical: hal.raw_physical_device(),
            instance: shared.raw_instance().clone(),
            device: hal.raw_device().clone(),
            extensions: hal.enabled_device_extensions().to_vec(),
        };
        // SAFETY: a query about a handle that lives.
        let properties = unsafe { driver.instance.get_physical_device_properties(driver.physical) };
        if shared.instance_api_version().min(properties.api_version) < vk::API_VERSION_1_1 {
            return Err(err!(
                Unsupported,
                "{op}: {} has Vulkan 1.0, and sharing needs 1.1; update its driver, or copy through the host",
                profile.name
            ));
        }
        Ok(driver)
    }

    pub(super) fn needs(&self, op: &str, extension: &'static CStr, remedy: &str) -> Result<()> {
        if self.extensions.contains(&extension) {
            return Ok(());
        }
        Err(err!(
            Unsupported,
            "{op}: the device {} ({}) was opened without {}; {remedy}",
            self.gpu.profile().name,
            self.gpu.profile().driver,
            extension.to_string_lossy()
        ))
    }
}

pub(super) fn vulkan_usage(usage: wgpu::BufferUsages) -> vk::BufferUsageFlags {
    [
        (wgpu::BufferUsages::STORAGE, vk::BufferUsageFlags::STORAGE_BUFFER),
        (wgpu::BufferUsages::COPY_SRC, vk::BufferUsageFlags::TRANSFER_SRC),
        (wgpu::BufferUsages::COPY_DST, vk::BufferUsageFlags::TRANSFER_DST),
        (wgpu::BufferUsages::INDIRECT, vk::BufferUsageFlags::INDIRECT_BUFFER),
    ]
    .into_iter()
    .filter(|(ours, _)| usage.contains(*ours))
    .fold(vk::BufferUsageFlags::empty(), |all, (_, theirs)| all | theirs)
}

#[cfg(feature = "shard")]
impl Gpu {
    pub(crate) fn imports_host(&self) -> bool {
        Driver::of(self, "").is_ok_and(|driver| driver.needs("", ext::external_memory_host::NAME, "").is_ok())
    }

    /// Makes memory of the host a buffer of this device, which reads and writes it over the bus. The device keeps the
    /// memory until it has done all work with the buffer.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if the device does not import memory; those of allocating.
    pub(crate) fn import_host(&self, words: &Arc<HostWords>) -> Result<Buffer<u32>> {
        const OP: &str = "importing host memory";
        const HANDLE: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        self.probe()?;
        let driver = Driver::of(self, OP)?;
        driver.needs(OP, ext::external_memory_host::NAME, "its driver imports no memory")?;
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut host);
        // SAFETY: Vulkan 1.1 has the call; the structures live here.
        unsafe { driver.instance.get_physical_device_properties2(driver.physical, &mut properties) };
        if host.min_imported_host_pointer_alignment > HostWords::ALIGNMENT as u64 {
            let alignment = host.min_imported_host_pointer_alignment;
            return Err(err!(Unsupported, "{OP}: the driver wants addresses that are multiples of {alignment}"));
        }
        let (bytes, pointer) = (words.bytes() as u64, words.start());
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
            // SAFETY: the type is one that the driver imports from this memory, which `release` keeps.
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
        let (device, kept) = (driver.device.clone(), words.clone());
        let release = Box::new(move || {
            // SAFETY: no work uses them any more, and the device lives as long as its buffers.
            unsafe {
                device.destroy_buffer(buffer, None);
                device.free_memory(memory, None);
            }
            drop(kept); // not before the driver let go of it
        });
        // SAFETY: buffer and memory live until wgpu calls `release`.
        let hal = unsafe { wgpu::hal::vulkan::Buffer::from_raw_externally_owned(buffer, release) };
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

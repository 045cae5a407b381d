//! Devices that the caller owns, and the one [`Gpu`] of each device.

#[cfg(not(target_arch = "wasm32"))]
use super::drivers;
use super::{Gpu, GpuInner, GpuOptions, adapter, lock};
use crate::program::prelude::*;
#[cfg(not(target_arch = "wasm32"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};

struct KnownGpus {
    list: Vec<Weak<GpuInner>>,
    /// The number of `Gpu`s added so far.
    added: u64,
}

static KNOWN: Mutex<KnownGpus> = Mutex::new(KnownGpus { list: Vec::new(), added: 0 });

/// Adds a `Gpu` whose device is new, so that no other `Gpu` has it.
pub(super) fn add(gpu: &Gpu) {
    let mut known = lock(&KNOWN);
    known.list.retain(|gpu| gpu.strong_count() > 0);
    known.list.push(Arc::downgrade(&gpu.inner));
    known.added += 1;
}

/// Adds a `Gpu` unless another was added since `added` was read.
fn add_if_unchanged(gpu: &Gpu, added: u64) -> bool {
    let mut known = lock(&KNOWN);
    if known.added != added {
        return false;
    }
    known.list.push(Arc::downgrade(&gpu.inner));
    known.added += 1;
    true
}

/// The `Gpu` of this device, if there is one, and how many were added so far.
fn find(device: &wgpu::Device) -> (Option<Gpu>, u64) {
    let (all, added) = {
        let known = lock(&KNOWN);
        let all: Vec<Gpu> = known.list.iter().filter_map(Weak::upgrade).map(|inner| Gpu { inner }).collect();
        (all, known.added)
    };
    (all.into_iter().find(|gpu| is_same_device(&gpu.inner.device, device)), added)
}

/// Whether both are one device. In a browser wgpu gives each a number of its own.
#[cfg(target_arch = "wasm32")]
fn is_same_device(known: &wgpu::Device, device: &wgpu::Device) -> bool {
    known == device
}

/// Whether both are one device. wgpu compares ids, which devices of two instances may share. An error of a device,
/// however, reaches only the error scopes of that device.
#[cfg(not(target_arch = "wasm32"))]
fn is_same_device(known: &wgpu::Device, device: &wgpu::Device) -> bool {
    if known != device {
        return false;
    }
    let own_scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let known_scope = known.push_error_scope(wgpu::ErrorFilter::Validation);
    let invalid = wgpu::BufferDescriptor {
        label: Some("tilework probe"),
        size: 16,
        usage: wgpu::BufferUsages::empty(),
        mapped_at_creation: false,
    };
    drop(catch_unwind(AssertUnwindSafe(|| device.create_buffer(&invalid))));
    let caught = pollster::block_on(known_scope.pop()).is_some();
    drop(own_scope.pop());
    caught
}

/// Whether two sets of options agree in what applies to an open device.
fn is_same_use(a: &GpuOptions, b: &GpuOptions) -> bool {
    let of = |o: &GpuOptions| (o.checked, o.kept_pipelines, o.tuning, o.deterministic);
    #[cfg(feature = "disk-cache")]
    let same_cache = a.cache == b.cache;
    #[cfg(not(feature = "disk-cache"))]
    let same_cache = true;
    of(a) == of(b) && same_cache
}

impl Gpu {
    /// Uses a device and queue that the program already owns, with the features and limits that the device has.
    ///
    /// A device has one `Gpu`: if there already is one, this returns it, with the options that it has. Buffers,
    /// plans and compiled kernels of both are therefore the same.
    ///
    /// tilework leaves the device-lost callback and the error handler of the device alone; it finds a lost device
    /// by probing. Buffers of the program come in through [`Gpu::wrap`]. [`Gpu::device_descriptor`] describes the
    /// device with all features that tilework uses; a warning in the log names those that are missing.
    ///
    /// # Errors
    /// [`DeviceLost`](ErrorKind::DeviceLost) if the device is already lost;
    /// [`Unsupported`](ErrorKind::Unsupported) if it cannot run compute shaders.
    pub fn from_wgpu(device: wgpu::Device, queue: wgpu::Queue) -> Result<Self> {
        Self::wrap_device(device, queue, None)
    }

    /// As [`from_wgpu`](Self::from_wgpu), with the options for planning and files: `checked`, `cache`,
    /// `kept_pipelines`, `tuning` and `deterministic`. The options that choose a device and its limits are ignored.
    ///
    /// # Errors
    /// As [`from_wgpu`](Self::from_wgpu); [`InvalidArgument`](ErrorKind::InvalidArgument) if the device
    /// already has a `Gpu` with other options.
    pub fn from_wgpu_with(device: wgpu::Device, queue: wgpu::Queue, options: &GpuOptions) -> Result<Self> {
        Self::wrap_device(device, queue, Some(options))
    }

    fn wrap_device(device: wgpu::Device, queue: wgpu::Queue, options: Option<&GpuOptions>) -> Result<Self> {
        let (known, added) = find(&device);
        if let Some(gpu) = known {
            gpu.probe()?;
            if options.is_some_and(|asked| !is_same_use(asked, &gpu.inner.options)) {
                return Err(err!(
                    InvalidArgument,
                    "from_wgpu_with: the device {} already has a Gpu with other options for checked, cache, \
                     kept_pipelines, tuning or deterministic; use the same options, or drop everything of that Gpu first",
                    gpu.profile().name
                ));
            }
            return Ok(gpu);
        }
        let profile = callers_profile(&device)?;
        let gpu = Self::assemble(device, queue, profile, &options.cloned().unwrap_or_default());
        gpu.probe()?;
        if !add_if_unchanged(&gpu, added) {
            // Another thread has added one meanwhile, perhaps of this device.
            return Self::wrap_device(gpu.device().clone(), gpu.queue().clone(), options);
        }
        gpu.tell_opened();
        Ok(gpu)
    }

    /// Logs the device, its features and its cache directory.
    pub(super) fn tell_opened(&self) {
        let p = self.profile();
        let features = [
            (p.features.subgroups, "subgroups"),
            (p.features.f16, "f16"),
            (p.features.int64, "64-bit integers"),
            (p.features.timestamps, "timestamps"),
            (p.features.cooperative_matrix, "cooperative matrices"),
            (p.features.pipeline_cache, "pipeline cache"),
        ];
        let listed = |wanted: bool| {
            let names: Vec<_> = features.iter().filter(|(has, _)| *has == wanted).map(|(_, name)| *name).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        #[cfg(feature = "disk-cache")]
        let directory = self.cache().directory;
        #[cfg(not(feature = "disk-cache"))]
        let directory: Option<std::path::PathBuf> = None;
        let cache = directory.map_or("off".to_owned(), |path| format!("in {}", crate::error::shown(&path)));
        log::info!(
            target: "tilework",
            "opened {} ({}, {}); features: {}; cache: {cache}",
            p.name,
            p.backend,
            p.driver,
            listed(true)
        );
        if p.is_cpu() {
            log::warn!(target: "tilework", "{} is a software driver: the processor runs all kernels", p.name);
        }
        // Few adapters have the last two.
        if p.opened_by == OpenedBy::Caller && features[..4].iter().any(|(has, _)| !has) {
            log::warn!(
                target: "tilework",
                "the program opened {} without: {}; Gpu::device_descriptor asks for all of them that the adapter has",
                p.name,
                listed(false)
            );
        }
    }
}

fn callers_profile(device: &wgpu::Device) -> Result<DeviceProfile> {
    let (info, features) = (device.adapter_info(), device.features());
    #[cfg(target_arch = "wasm32")]
    let shapes = Vec::new();
    // Only an adapter knows the shapes, and a device does not give its adapter.
    #[cfg(not(target_arch = "wasm32"))]
    let shapes = if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        drivers::cooperative_shapes(&info)
    } else {
        Vec::new()
    };
    let profile = adapter::profile(&info, features, &device.limits(), &shapes);
    if profile.limits.max_invocations == 0 || profile.limits.max_storage_buffers == 0 {
        return Err(err!(
            Unsupported,
            "from_wgpu: the device {} was created with limits of 0 for compute; request it with \
             wgpu::Limits::default() or higher",
            profile.name
        ));
    }
    Ok(DeviceProfile { opened_by: OpenedBy::Caller, ..profile })
}

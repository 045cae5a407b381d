//! Choosing an adapter, describing it, and opening a device on it.

use super::{Gpu, Tuning, drivers, known};
use crate::program::prelude::*;
#[cfg(feature = "disk-cache")]
use crate::store::CacheDir;
use crate::store::KEPT;
use std::fmt;

/// The interface through which a device is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Vulkan.
    Vulkan,
    /// Metal.
    Metal,
    /// Direct3D 12.
    Dx12,
    /// OpenGL (ES).
    Gl,
}

impl Backend {
    pub(super) const ALL: [Self; 4] = [Self::Vulkan, Self::Metal, Self::Dx12, Self::Gl];
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::Vulkan => "vulkan",
            Backend::Metal => "metal",
            Backend::Dx12 => "dx12",
            Backend::Gl => "gl",
        })
    }
}

/// Which adapter to take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AdapterFilter {
    /// The best: a card before an integrated GPU before a software driver, OpenGL last. If no backend is chosen
    /// either, the environment variable `TILEWORK_ADAPTER` may name another: see [`Gpu::new`].
    #[default]
    Best,
    /// The best of the backend with this name: `vulkan`, `metal`, `dx12` or `gl`. Any other text: the best adapter
    /// whose name or driver contains it. Case does not matter.
    Name(String),
    /// The one at this index of [`Gpu::adapters`].
    Index(usize),
}

impl AdapterFilter {
    /// Returns whether the adapter at `index` of [`Gpu::adapters`] fits. Every adapter fits [`Best`](Self::Best).
    ///
    /// ```
    /// use tilework::{gpu::AdapterFilter, program::DeviceProfile};
    ///
    /// let h100 = DeviceProfile { backend: "vulkan".into(), ..DeviceProfile::h100() };
    /// let fits = |text: &str| AdapterFilter::Name(text.into()).fits(0, &h100);
    /// assert!(fits("h100") && fits("Vulkan") && !fits("gl"));
    /// ```
    pub fn fits(&self, index: usize, adapter: &DeviceProfile) -> bool {
        match self {
            Self::Best => true,
            Self::Index(wanted) => index == *wanted,
            Self::Name(text) => {
                let text = text.to_lowercase();
                if Backend::ALL.iter().any(|backend| backend.to_string() == text) {
                    return adapter.backend == text;
                }
                format!("{} {}", adapter.name, adapter.driver).to_lowercase().contains(&text)
            }
        }
    }
}

impl std::fmt::Display for AdapterFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Best => f.write_str("the options"),
            Self::Name(name) => write!(f, "\"{name}\""),
            Self::Index(index) => write!(f, "index {index}"),
        }
    }
}

/// How to open a device.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
/// use tilework::program::Determinism;
///
/// # pollster::block_on(async {
/// // The floor that every op must pass on: no optional feature, WebGPU's default limits.
/// let gpu = Gpu::request(GpuOptions { webgpu_defaults: true, ..Default::default() }).await?;
/// assert!(!gpu.profile().features.subgroups);
///
/// // The same bits in every run, whatever the op.
/// let gpu = Gpu::request(GpuOptions { deterministic: true, ..Default::default() }).await?;
/// let scan = Scan::new(Sum, 1 << 20).plan::<f32>(&gpu)?;
/// assert_eq!(scan.program().determinism, Determinism::SameBits);
/// # Ok::<(), tilework::Error>(()) })?;
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuOptions {
    /// Which adapter.
    pub adapter: AdapterFilter,
    /// Only adapters of this backend.
    pub backend: Option<Backend>,
    /// Run tilework's own kernels with runtime checks too. This is slower, and finds accesses out of bounds.
    pub checked: bool,
    /// Ask for WebGPU's default limits and no optional feature, whatever the adapter has.
    pub webgpu_defaults: bool,
    /// Where to keep compiled pipelines and the results of tuning.
    #[cfg(feature = "disk-cache")]
    pub cache: CacheDir,
    /// Maximum of compiled pipelines that stay in memory though no plan has them; 1024 by default. Above it, those
    /// that were unused longest are dropped. Planning their shape again compiles them again, or loads them from disk.
    ///
    /// Plans keep theirs, and [`Gpu::trim`] drops all others. With Mesa's software driver a pipeline takes about 1 MB.
    /// A program that plans more distinct kernels than this in turn, without keeping the plans, compiles in every turn:
    /// keep the plans, or set a higher number.
    pub kept_pipelines: usize,
    /// Whether planning uses times measured on the device.
    pub tuning: Tuning,
    /// Ask every op for the same bits in every run on this device. `auto` then skips variants whose rounding
    /// varies, even if tuning found one faster; selecting such a variant by name is an error. This equals
    /// `deterministic` on each op that has such variants. Reports say where it changed the choice.
    pub deterministic: bool,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self {
            adapter: AdapterFilter::default(),
            backend: None,
            checked: false,
            webgpu_defaults: false,
            #[cfg(feature = "disk-cache")]
            cache: CacheDir::default(),
            kept_pipelines: KEPT,
            tuning: Tuning::default(),
            deterministic: false,
        }
    }
}

const WANTED: wgpu::Features = wgpu::Features::SUBGROUP
    .union(wgpu::Features::SHADER_F16)
    .union(wgpu::Features::SHADER_INT64)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES)
    .union(wgpu::Features::PIPELINE_CACHE)
    .union(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);

/// Those for this adapter. Where device and host share memory, the host can map storage buffers: see `stream`.
fn wanted(info: &wgpu::AdapterInfo) -> wgpu::Features {
    match info.device_type {
        wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu => WANTED | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
        _ => WANTED,
    }
}

pub(super) fn profile_of(adapter: &wgpu::Adapter) -> DeviceProfile {
    let shapes = adapter.cooperative_matrix_properties();
    profile(&adapter.get_info(), adapter.features(), &adapter.limits(), &shapes)
}

pub(super) fn profile(
    info: &wgpu::AdapterInfo, features: wgpu::Features, limits: &wgpu::Limits,
    shapes: &[wgpu::CooperativeMatrixProperties],
) -> DeviceProfile {
    let subgroups = features.contains(wgpu::Features::SUBGROUP);
    let class = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => DeviceClass::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceClass::Integrated,
        wgpu::DeviceType::VirtualGpu => DeviceClass::Virtual,
        wgpu::DeviceType::Cpu => DeviceClass::Cpu,
        wgpu::DeviceType::Other => DeviceClass::Unknown,
    };
    DeviceProfile {
        // Browsers may hide it.
        name: if info.name.is_empty() { "an adapter without a name".into() } else { info.name.clone() },
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        backend: info.backend.to_string(),
        class,
        limits: Limits {
            max_buffer_size: limits.max_buffer_size,
            max_storage_binding: limits.max_storage_buffer_binding_size,
            max_uniform_binding: limits.max_uniform_buffer_binding_size,
            max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
            storage_alignment: limits.min_storage_buffer_offset_alignment,
            uniform_alignment: limits.min_uniform_buffer_offset_alignment,
            max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
            max_invocations: limits.max_compute_invocations_per_workgroup,
            max_workgroup_size: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            max_workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        },
        features: Features {
            subgroups,
            f16: features.contains(wgpu::Features::SHADER_F16),
            int64: features.contains(wgpu::Features::SHADER_INT64),
            timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
            cooperative_matrix: features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX),
            pipeline_cache: features.contains(wgpu::Features::PIPELINE_CACHE),
        },
        opened_by: OpenedBy::default(),
        quirks: Quirks::of(class, &info.backend.to_string()),
        subgroup_sizes: (info.subgroup_min_size, info.subgroup_max_size),
        cooperative: shapes
            .iter()
            .map(|s| CooperativeShape {
                m: s.m_size,
                n: s.n_size,
                k: s.k_size,
                factors: format!("{:?}", s.ab_type).to_lowercase(),
                result: format!("{:?}", s.cr_type).to_lowercase(),
            })
            .collect(),
        ceilings: None,
        choices: Choices::default(),
        deterministic: false,
    }
}

/// Opens `adapter`, if possible with what CUDA and shards need.
async fn open(
    adapter: &wgpu::Adapter, desc: &wgpu::DeviceDescriptor<'_>,
) -> std::result::Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    #[cfg(all(feature = "vulkan", any(feature = "cuda", feature = "shard"), target_os = "linux"))]
    if let Some(opened) = super::vulkan::open(adapter, desc) {
        return Ok(opened);
    }
    adapter.request_device(desc).await
}

impl Gpu {
    /// Returns all adapters of this machine that can run compute shaders, best first, those of OpenGL last.
    ///
    /// Lists are made once in a process. Opening a device by [`Gpu::new`] or [`Gpu::request`] does not need this
    /// list, and opens OpenGL only if no other adapter fits. A browser has no such list.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn adapters() -> Vec<DeviceProfile> {
        drivers::all().iter().map(profile_of).collect()
    }

    /// Returns the adapter that [`Gpu::request`] would open with these options, without opening it.
    ///
    /// # Errors
    /// Those of [`Gpu::request`] that concern the choice of an adapter.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn find_adapter(options: &GpuOptions) -> Result<DeviceProfile> {
        drivers::find(options).map(|adapter| profile_of(&adapter))
    }

    /// Opens the best adapter, with all the features and limits that it has: a card before an integrated GPU before
    /// a software driver, OpenGL last.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// println!("{}, {:?}", gpu.profile().name, gpu.profile().backend);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// The environment variable `TILEWORK_ADAPTER`, if it is set and not empty, names another: a backend (`vulkan`,
    /// `metal`, `dx12`, `gl`) or a part of an adapter's or driver's name, as in [`AdapterFilter::Name`]. It holds
    /// wherever a program leaves adapter and backend open. `WGPU_BACKEND=vulkan,gl` restricts the backends that are
    /// tried.
    ///
    /// # Errors
    /// [`NoAdapter`](ErrorKind::NoAdapter) if the machine has no adapter, or none that the variables allow;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if `WGPU_BACKEND` names no backend.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn new() -> Result<Self> {
        pollster::block_on(Self::request(GpuOptions::default()))
    }

    /// Opens an adapter by name, backend or index, with all the features and limits that it has.
    ///
    /// In a browser, with the feature `webgpu`, it opens the adapter that the page is offered.
    ///
    /// # Errors
    /// [`NoAdapter`](ErrorKind::NoAdapter) if no adapter fits (the text lists those of this machine);
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if `WGPU_BACKEND` names no backend;
    /// [`Validation`](ErrorKind::Validation) if the driver refuses to open it.
    pub async fn request(options: GpuOptions) -> Result<Self> {
        #[cfg(not(target_arch = "wasm32"))]
        let adapter = &drivers::find(&options)?;
        #[cfg(target_arch = "wasm32")]
        let adapter = &drivers::find(&options).await?;
        let info = adapter.get_info();
        let mut desc = Self::device_descriptor(adapter);
        let mut shapes = adapter.cooperative_matrix_properties();
        let mut opened_by = OpenedBy::Tilework;
        if options.webgpu_defaults {
            desc.required_features = wgpu::Features::empty();
            desc.required_limits = wgpu::Limits::default();
            desc.experimental_features = wgpu::ExperimentalFeatures::disabled();
            shapes = Vec::new();
            opened_by = OpenedBy::WebGpuDefaults;
        }
        let (device, queue) = open(adapter, &desc).await.map_err(|e| err!(Validation, "opening {}: {e}", info.name))?;
        let profile = profile(&info, desc.required_features, &desc.required_limits, &shapes);
        let profile = DeviceProfile { opened_by, ..profile };
        let gpu = Self::assemble(device, queue, profile, &options);
        known::add(&gpu);
        gpu.tell_opened();
        Ok(gpu)
    }

    /// Describes the device that [`Gpu::new`] would open on `adapter`: every feature that tilework uses and the
    /// adapter has, and all of the adapter's limits.
    ///
    /// A program that opens its own device passes this to wgpu, or merges the features and limits into its own
    /// descriptor. A device with fewer features works too; [`Gpu::from_wgpu`] logs the ones that are missing.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok::<(), Box<dyn std::error::Error>>(()); }
    /// use tilework::{prelude::*, wgpu};
    ///
    /// # pollster::block_on(async {
    /// # let desc = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    /// let instance = wgpu::Instance::new(desc);
    /// let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await?;
    /// let mut desc = Gpu::device_descriptor(&adapter);
    /// // Features of the program's own.
    /// desc.required_features |= adapter.features() & wgpu::Features::INDIRECT_FIRST_INSTANCE;
    /// let (device, queue) = adapter.request_device(&desc).await?;
    ///
    /// let gpu = Gpu::from_wgpu(device, queue)?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(gpu.reduce(&x, Sum)?.read()?, [6.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn device_descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
        let features = adapter.features() & wanted(&adapter.get_info());
        let experimental = if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
            // SAFETY: wgpu wants callers to know that experimental features may have bugs. tilework uses
            // cooperative matrices only, in kernels that the tests run on each driver.
            unsafe { wgpu::ExperimentalFeatures::enabled() }
        } else {
            wgpu::ExperimentalFeatures::disabled()
        };
        wgpu::DeviceDescriptor {
            label: Some("tilework"),
            required_features: features,
            required_limits: adapter.limits(),
            experimental_features: experimental,
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        }
    }
}

#[cfg(test)]
mod tests;

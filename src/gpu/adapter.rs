//! Adapters: finding them, describing them, opening them.

use super::once::Once;
use super::{Gpu, Tuning};
use crate::error::{Error, Result, err};
use crate::program::{Choices, CooperativeShape, DeviceClass, DeviceProfile, Features, Limits, Quirks};
#[cfg(feature = "disk-cache")]
use crate::store::CacheDir;
use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

/// The one wgpu instance of this process: objects of two instances would alias silently.
fn instance() -> wgpu::Instance {
    static INSTANCE: Once<wgpu::Instance> = Once::new();
    INSTANCE.get(|| {
        let mut desc = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
        // Validating indirect counts costs a dispatch each; our own counts are clamped by the kernel
        // that writes them.
        desc.flags.remove(wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL);
        wgpu::Instance::new(desc)
    })
}

/// An interface to the driver.
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
    const ALL: [Self; 4] = [Self::Vulkan, Self::Metal, Self::Dx12, Self::Gl];
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
    /// The best: a card before an integrated GPU before a software driver, OpenGL last.
    #[default]
    Best,
    /// The best of the backend of this name: `vulkan`, `metal`, `dx12` or `gl`. Any other text: the best whose name or
    /// driver contains it. Upper and lower case are alike.
    Name(String),
    /// The one at this place of [`Gpu::adapters`].
    Index(usize),
}

impl AdapterFilter {
    /// Whether the adapter fits that stands at `index` of [`Gpu::adapters`].
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
            Self::Best => f.write_str("what was asked for"),
            Self::Name(name) => write!(f, "\"{name}\""),
            Self::Index(index) => write!(f, "number {index}"),
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuOptions {
    /// Which adapter.
    pub adapter: AdapterFilter,
    /// Only adapters of this backend.
    pub backend: Option<Backend>,
    /// Run tilework's own kernels with runtime checks too. Slower; finds accesses out of bounds.
    pub checked: bool,
    /// Ask for WebGPU's default limits and no optional feature, whatever the adapter has.
    pub webgpu_defaults: bool,
    /// Where compiled pipelines and the results of tuning are kept.
    #[cfg(feature = "disk-cache")]
    pub cache: CacheDir,
    /// Whether planning takes what was measured on the device.
    pub tuning: Tuning,
    /// Ask every op for the same bits in every run on this device: `auto` leaves out variants whose rounding varies,
    /// also where tuning found one faster, and one that is asked for by name is an error. The same as `deterministic`
    /// of each op that has such variants. Reports say where it changed the choice.
    pub deterministic: bool,
}

/// The features we use where they are there.
const WANTED: wgpu::Features = wgpu::Features::SUBGROUP
    .union(wgpu::Features::SHADER_F16)
    .union(wgpu::Features::SHADER_INT64)
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES)
    .union(wgpu::Features::PIPELINE_CACHE)
    .union(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);

/// With storage that the host can map, where device and host share their memory: see `stream`.
fn wanted(info: &wgpu::AdapterInfo) -> wgpu::Features {
    match info.device_type {
        wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::Cpu => {
            WANTED | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS
        }
        _ => WANTED,
    }
}

/// Every adapter that can run compute shaders, best first. Asked for once: asking is slow, and some
/// drivers write to standard error each time.
fn adapters() -> Arc<[wgpu::Adapter]> {
    static ADAPTERS: Once<Arc<[wgpu::Adapter]>> = Once::new();
    ADAPTERS.get(|| {
        let mut found = pollster::block_on(instance().enumerate_adapters(wgpu::Backends::all()));
        let rank = |a: &wgpu::Adapter| {
            let info = a.get_info();
            let class = match info.device_type {
                wgpu::DeviceType::DiscreteGpu => 0,
                wgpu::DeviceType::IntegratedGpu => 1,
                wgpu::DeviceType::VirtualGpu => 2,
                wgpu::DeviceType::Cpu => 3,
                wgpu::DeviceType::Other => 4,
            };
            (class, info.backend == wgpu::Backend::Gl)
        };
        found.retain(|a| {
            a.limits().max_compute_invocations_per_workgroup > 0 && speaks_compute(&a.get_info())
        });
        found.sort_by_key(rank);
        found.into()
    })
}

/// Whether naga can write compute shaders for the adapter. NVIDIA opens desktop OpenGL as 3.3 with the
/// extension; naga needs the language of 4.3, and all pipelines would fail.
fn speaks_compute(info: &wgpu::AdapterInfo) -> bool {
    // OpenGL ES and WebGL begin with their names.
    let mut numbers = info.driver_info.split(['.', ' ']).map_while(|n| n.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next());
    info.backend != wgpu::Backend::Gl || version.0.is_none() || version >= (Some(4), Some(3))
}

/// The environment variable that tells wgpu which backends to look at.
const LIMITING: &str = "WGPU_BACKEND";

/// The error of a machine without adapters, where [`LIMITING`] has this value.
fn no_adapter(limit: Option<&OsStr>) -> Error {
    let Some(limit) = limit else {
        return err!(
            NoAdapter,
            "no adapter: this machine has no Vulkan, Metal, Direct3D 12 or OpenGL driver that can run compute \
             shaders; on Debian or Ubuntu `apt install mesa-vulkan-drivers` brings a software one"
        );
    };
    let limit = limit.to_string_lossy();
    let wrong = if wgpu::Backends::from_comma_list(&limit).is_empty() {
        "names no backend"
    } else {
        "names no backend that has an adapter here"
    };
    let names = Backend::ALL.map(|backend| backend.to_string()).join(", ");
    err!(
        NoAdapter,
        "no adapter: the environment variable {LIMITING} is `{limit}`, which {wrong}; it may list {names}, with commas \
         between; without it all are looked at"
    )
}

fn profile_of(adapter: &wgpu::Adapter) -> DeviceProfile {
    let shapes = adapter.cooperative_matrix_properties();
    profile(&adapter.get_info(), adapter.features(), &adapter.limits(), &shapes)
}

/// Describes a device or an adapter with these features and limits.
pub(super) fn profile(
    info: &wgpu::AdapterInfo,
    features: wgpu::Features,
    limits: &wgpu::Limits,
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
        name: info.name.clone(),
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

/// Opens `adapter`, where CUDA may stand beside it with semaphores that it can share.
async fn open(
    adapter: &wgpu::Adapter,
    desc: &wgpu::DeviceDescriptor<'_>,
) -> std::result::Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    if let Some(opened) = super::shared::open(adapter, desc) {
        return Ok(opened);
    }
    adapter.request_device(desc).await
}

impl Gpu {
    /// Every adapter of this machine that can run compute shaders, best first.
    pub fn adapters() -> Vec<DeviceProfile> {
        adapters().iter().map(profile_of).collect()
    }

    /// Opens the best adapter, with all the features and limits it has.
    ///
    /// # Errors
    /// [`NoAdapter`](crate::ErrorKind::NoAdapter) if the machine has none.
    pub fn new() -> Result<Self> {
        pollster::block_on(Self::request(GpuOptions::default()))
    }

    /// Opens an adapter by name, backend or index, with all the features and limits it has.
    ///
    /// # Errors
    /// [`NoAdapter`](crate::ErrorKind::NoAdapter) if none fits (the text lists those there are);
    /// [`Validation`](crate::ErrorKind::Validation) if the driver refuses to open it.
    pub async fn request(options: GpuOptions) -> Result<Self> {
        let all = adapters();
        let fits_backend = |a: &wgpu::Adapter| {
            options.backend.is_none_or(|b| a.get_info().backend.to_string() == b.to_string())
        };
        let fits =
            |(i, a): &(usize, &wgpu::Adapter)| fits_backend(a) && options.adapter.fits(*i, &profile_of(a));
        let Some((_, adapter)) = all.iter().enumerate().find(fits) else {
            let there: Vec<_> =
                all.iter().map(|a| format!("{} ({})", a.get_info().name, a.get_info().backend)).collect();
            return Err(if there.is_empty() {
                no_adapter(std::env::var_os(LIMITING).as_deref())
            } else {
                let backend = options.backend.map_or(String::new(), |b| format!(" on {b}"));
                err!(
                    NoAdapter,
                    "no adapter fits {}{backend}; there are: {}",
                    options.adapter,
                    there.join(", ")
                )
            });
        };
        let (features, limits) = if options.webgpu_defaults {
            (wgpu::Features::empty(), wgpu::Limits::default())
        } else {
            (adapter.features() & wanted(&adapter.get_info()), adapter.limits())
        };
        let experimental = if features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
            // SAFETY: wgpu asks to be told that experimental features may have bugs. We use
            // cooperative matrices only, in kernels of our own that the tests run on each driver.
            unsafe { wgpu::ExperimentalFeatures::enabled() }
        } else {
            wgpu::ExperimentalFeatures::disabled()
        };
        let name = adapter.get_info().name;
        let desc = wgpu::DeviceDescriptor {
            label: Some("tilework"),
            required_features: features,
            required_limits: limits.clone(),
            experimental_features: experimental,
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let (device, queue) =
            open(adapter, &desc).await.map_err(|e| err!(Validation, "opening {name}: {e}"))?;
        let shapes =
            if options.webgpu_defaults { Vec::new() } else { adapter.cooperative_matrix_properties() };
        let profile = profile(&adapter.get_info(), features, &limits, &shapes);
        Ok(Self::assemble(device, queue, profile, &options, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_chosen_by_its_name_and_an_adapter_by_a_part_of_its() {
        let card = |name: &str, driver: &str, backend: &str| {
            let (name, driver, backend) = (name.to_owned(), driver.to_owned(), backend.to_owned());
            DeviceProfile { name, driver, backend, ..DeviceProfile::h100() }
        };
        let all = [card("SwiftShader", "Google glitter", "vulkan"), card("llvmpipe", "Mesa", "gl")];
        let first = |text: &str| (0..2).find(|i| AdapterFilter::Name(text.to_owned()).fits(*i, &all[*i]));
        for (text, found) in [
            ("gl", Some(1)),
            ("GL", Some(1)),
            ("vulkan", Some(0)),
            ("metal", None),
            ("mesa", Some(1)),
            ("gle g", Some(0)),
            ("", Some(0)),
            ("card", None),
        ] {
            assert_eq!(first(text), found, "{text}");
        }
        assert!(AdapterFilter::Index(1).fits(1, &all[1]) && !AdapterFilter::Index(1).fits(0, &all[0]));
    }

    #[test]
    fn a_variable_that_hides_all_adapters_is_named() {
        let text = |limit: Option<&str>| no_adapter(limit.map(OsStr::new)).to_string();
        assert!(text(None).contains("mesa-vulkan-drivers"));
        for (limit, wrong) in [
            ("nonsense", "is `nonsense`, which names no backend; it may list vulkan, metal, dx12, gl"),
            ("", "is ``, which names no backend;"),
            ("metal", "is `metal`, which names no backend that has an adapter here; it may"),
        ] {
            let text = text(Some(limit));
            assert!(
                text.contains("WGPU_BACKEND") && text.contains(wrong) && !text.contains("mesa"),
                "{text}"
            );
        }
    }
}

//! The adapters of this machine. OpenGL is opened last, and only when something needs it.

use super::{AdapterFilter, Backend, GpuOptions};
use crate::error::{Error, Result, err};
use crate::store::{Once, in_own_thread};
use std::ffi::OsStr;
use std::sync::Arc;

/// The environment variable that names the adapter of programs that leave the choice open.
const ADAPTER: &str = "TILEWORK_ADAPTER";

/// The environment variable that tells wgpu which backends to open.
const BACKENDS: &str = "WGPU_BACKEND";

const COMPILED: wgpu::Backends = wgpu::Instance::enabled_backend_features();

/// A wgpu instance with these of the backends that [`BACKENDS`] allows.
///
/// wgpu numbers the objects of each instance from the start, so objects of two instances may compare equal. Ours
/// never meet: each buffer and recorder is checked against its [`Gpu`](super::Gpu) first.
fn instance(backends: wgpu::Backends) -> wgpu::Instance {
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    desc.backends &= backends;
    // Validating indirect counts costs a dispatch each; the kernel that writes a count of ours clamps it.
    desc.flags.remove(wgpu::InstanceFlags::VALIDATION_INDIRECT_CALL);
    wgpu::Instance::new(desc)
}

/// The adapters of these backends that can run compute shaders, best first.
fn adapters_of(backends: wgpu::Backends) -> Arc<[wgpu::Adapter]> {
    // wgpu panics if it was built without a backend for this system.
    if !COMPILED.intersects(backends) {
        return Arc::new([]);
    }
    let mut found = pollster::block_on(instance(backends).enumerate_adapters(backends));
    found.retain(|a| a.limits().max_compute_invocations_per_workgroup > 0 && speaks_compute(&a.get_info()));
    found.sort_by_key(|a| match a.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Cpu => 3,
        wgpu::DeviceType::Other => 4,
    });
    found.into()
}

/// The adapters of Vulkan, Metal and Direct3D 12, best first. Enumerated once, because it is slow.
fn without_gl() -> Arc<[wgpu::Adapter]> {
    static ADAPTERS: Once<Arc<[wgpu::Adapter]>> = Once::new();
    ADAPTERS.get(|| adapters_of(wgpu::Backends::all() - wgpu::Backends::GL))
}

/// The adapters of OpenGL. Opening it loads a second set of drivers, so that happens only if it is asked for, if all
/// adapters are listed, or if no other adapter fits.
///
/// EGL keeps a state for each thread that calls it. If such a thread ends while the process exits, libglvnd (1.6) frees
/// the state twice, and the process aborts. So a thread that ends first opens OpenGL, not the caller's. The caller's
/// own OpenGL context stays current.
fn of_gl() -> Arc<[wgpu::Adapter]> {
    static ADAPTERS: Once<Arc<[wgpu::Adapter]>> = Once::new();
    let open = || ADAPTERS.get(|| adapters_of(wgpu::Backends::GL));
    ADAPTERS.there().unwrap_or_else(|| in_own_thread(open))
}

/// All adapters, best first, those of OpenGL last.
pub(super) fn all() -> Vec<wgpu::Adapter> {
    without_gl().iter().chain(of_gl().iter()).cloned().collect()
}

pub(super) fn find(options: &GpuOptions) -> Result<wgpu::Adapter> {
    let by_user = match (&options.adapter, options.backend) {
        (AdapterFilter::Best, None) => std::env::var(ADAPTER).ok().filter(|name| !name.is_empty()),
        _ => None,
    };
    let filter = by_user.clone().map_or_else(|| options.adapter.clone(), AdapterFilter::Name);
    let fits = |(i, a): &(usize, &wgpu::Adapter)| {
        let on_backend = options.backend.is_none_or(|b| a.get_info().backend.to_string() == b.to_string());
        on_backend && filter.fits(*i, &super::adapter::profile_of(a))
    };
    let first = without_gl();
    if let Some((_, adapter)) = first.iter().enumerate().find(fits) {
        return Ok(adapter.clone());
    }
    let gl = of_gl();
    if let Some((_, adapter)) = (first.len()..).zip(gl.iter()).find(fits) {
        return Ok(adapter.clone());
    }
    let present: Vec<_> = (first.iter().chain(gl.iter()).map(wgpu::Adapter::get_info))
        .map(|info| format!("{} ({})", info.name, info.backend))
        .collect();
    if COMPILED.is_empty() {
        return Err(no_backend());
    }
    if present.is_empty() {
        return Err(no_adapter(std::env::var_os(BACKENDS).as_deref()));
    }
    let backend = options.backend.map_or(String::new(), |b| format!(" on {b}"));
    let source = by_user.map_or(String::new(), |_| format!(", the value of the environment variable {ADAPTER}"));
    Err(err!(NoAdapter, "no adapter fits {filter}{backend}{source}; this machine has: {}", present.join(", ")))
}

/// The shapes of cooperative matrices of the adapter with this description; none if it is not found.
pub(super) fn cooperative_shapes(info: &wgpu::AdapterInfo) -> Vec<wgpu::CooperativeMatrixProperties> {
    let all = without_gl();
    let adapter = all.iter().find(|a| a.get_info() == *info);
    adapter.map_or_else(Vec::new, wgpu::Adapter::cooperative_matrix_properties)
}

/// Whether naga can write compute shaders for the adapter. NVIDIA opens desktop OpenGL as 3.3 with an extension;
/// naga needs the language of 4.3, and all pipelines would fail.
fn speaks_compute(info: &wgpu::AdapterInfo) -> bool {
    // OpenGL ES and WebGL begin with their names.
    let mut numbers = info.driver_info.split(['.', ' ']).map_while(|n| n.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next());
    info.backend != wgpu::Backend::Gl || version.0.is_none() || version >= (Some(4), Some(3))
}

/// The error of a program that was built without a backend for this system.
fn no_backend() -> Error {
    err!(
        Unsupported,
        "no adapter: the program was built without a backend for this system; switch on one of tilework's features \
         vulkan (Linux, Windows, Android), metal (macOS, iOS), dx12 (Windows) or gles"
    )
}

/// The error of a machine without adapters, where [`BACKENDS`] has this value.
fn no_adapter(limit: Option<&OsStr>) -> Error {
    let Some(limit) = limit else {
        return err!(
            NoAdapter,
            "no adapter: this machine has no Vulkan, Metal, Direct3D 12 or OpenGL driver that can run compute shaders; \
             install the driver of your graphics card, or a software driver: Debian and Ubuntu `apt install \
             mesa-vulkan-drivers`, Fedora `dnf install mesa-vulkan-drivers`, Arch `pacman -S vulkan-swrast` (cards: \
             vulkan-radeon, vulkan-intel, nvidia-utils), Windows: the driver of the card's maker, macOS: Metal comes \
             with the system, so update it"
        );
    };
    let limit = limit.to_string_lossy();
    let names = Backend::ALL.map(|backend| backend.to_string()).join(", ");
    let remedy = format!("list some of {names}, separated by commas, or unset it to try all");
    if wgpu::Backends::from_comma_list(&limit).is_empty() {
        return err!(
            InvalidArgument,
            "the environment variable {BACKENDS} is `{limit}`, which names no backend; {remedy}"
        );
    }
    err!(
        NoAdapter,
        "no adapter: the environment variable {BACKENDS} allows only `{limit}`, which has no adapter on this machine; \
         {remedy}"
    )
}

#[cfg(test)]
mod tests;

//! A device without a driver: all checks, and no execution.

use std::sync::LazyLock;
use tilework::Gpu;

/// One device per process.
pub(crate) static GPU: LazyLock<Gpu> = LazyLock::new(|| {
    let (device, queue) = wgpu::Device::noop(&wgpu::DeviceDescriptor {
        required_features: wgpu::Features::SUBGROUP | wgpu::Features::SHADER_INT64,
        ..wgpu::DeviceDescriptor::default()
    });
    Gpu::from_wgpu(device, queue).expect("a device without a driver")
});

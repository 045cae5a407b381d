//! Opening devices, and devices with low limits or missing features.

use super::{Caller, refused};
use crate::support::{devices, gpu};
use tilework::ErrorKind::{NoAdapter, TooLarge, Unsupported};
use tilework::gpu::{AdapterFilter, Arg, Backend};
use tilework::{Gpu, GpuOptions, Plannable, Reduce, Sum};

fn request(adapter: AdapterFilter, backend: Option<Backend>) -> tilework::Result<Gpu> {
    pollster::block_on(Gpu::request(GpuOptions { adapter, backend, ..GpuOptions::default() }))
}

#[test]
fn adapters_are_found_by_name_index_and_backend() {
    if gpu().is_none() {
        return;
    }
    let all = Gpu::adapters();
    for (i, profile) in all.iter().enumerate() {
        assert_eq!(request(AdapterFilter::Index(i), None).unwrap().profile().name, profile.name);
        let shouted = profile.name.to_uppercase();
        assert_eq!(request(AdapterFilter::Name(shouted), None).unwrap().profile().name, profile.name);
    }
    assert_eq!(Gpu::new().unwrap().profile().name, all[0].name);
    for backend in [Backend::Vulkan, Backend::Metal, Backend::Dx12, Backend::Gl] {
        let there = all.iter().find(|p| p.backend == backend.to_string());
        match request(AdapterFilter::Best, Some(backend)) {
            Ok(gpu) => assert_eq!(Some(&gpu.profile().name), there.map(|p| &p.name)),
            Err(e) => {
                assert_eq!((e.kind(), there), (NoAdapter, None));
                assert!(e.to_string().contains(&all[0].name), "{e}");
            }
        }
    }
}

#[test]
fn a_missing_adapter_error_lists_the_available_ones() {
    if gpu().is_none() {
        return;
    }
    let first = Gpu::adapters()[0].name.clone();
    for filter in [
        AdapterFilter::Name("no such card".into()),
        AdapterFilter::Index(99),
        AdapterFilter::Index(usize::MAX),
    ] {
        refused(request(filter, None), NoAdapter, &["no adapter fits", "there are", &first]);
    }
}

#[test]
fn webgpu_defaults_have_no_optional_features() {
    for d in devices().iter().filter(|d| d.label.contains("WebGPU defaults")) {
        let p = d.gpu.profile();
        assert_eq!(p.features, tilework::program::Features::default());
        assert_eq!(p.limits.max_workgroup_bytes, 16 << 10);
        assert_eq!(p.limits.max_invocations, 256);
        let subgroup = Reduce::new(Sum, 100).variant("subgroup").plan::<f32>(&d.gpu);
        refused(subgroup, Unsupported, &["reduce", "subgroup", "auto"]);
        let half = "enable f16; @group(0) @binding(0) var<storage, read_write> x: array<f16>;
            @compute @workgroup_size(1) fn k() { x[0] = 1h; }";
        refused(d.gpu.kernel("half.wgsl", half, "k"), Unsupported, &["half.wgsl", "16"]);
    }
}

#[test]
fn a_device_with_tiny_limits_returns_errors() {
    let tiny = wgpu::Limits {
        max_buffer_size: 1002,
        max_storage_buffer_binding_size: 512,
        max_uniform_buffer_binding_size: 64,
        max_storage_buffers_per_shader_stage: 2,
        max_compute_workgroup_storage_size: 64,
        max_compute_invocations_per_workgroup: 16,
        max_compute_workgroup_size_x: 16,
        max_compute_workgroup_size_y: 4,
        max_compute_workgroup_size_z: 2,
        max_compute_workgroups_per_dimension: 8,
        ..wgpu::Limits::default()
    };
    let Some(caller) = Caller::new(tiny) else { return };
    let gpu = caller.gpu();
    let data: Vec<f32> = (0..250).map(|i| i as f32).collect();
    // Up to the limit, which is an odd number.
    let x = gpu.upload(&data).unwrap();
    assert_eq!(x.read().unwrap(), data);
    assert_eq!(pollster::block_on(x.read_async()).unwrap(), data);
    let bytes = gpu.upload(&[7u8; 999]).unwrap();
    assert_eq!(bytes.read().unwrap(), [7; 999]);
    refused(gpu.alloc::<f32>(251), TooLarge, &["251", "1002"]);
    refused(gpu.alloc::<u8>(1001), TooLarge, &["1002"]);
    // Our kernels need 256 threads.
    for variant in Reduce::variants() {
        refused(Reduce::new(Sum, 250).variant(variant.name).plan::<f32>(&gpu), Unsupported, &[]);
    }
    refused(gpu.reduce(&x, Sum), Unsupported, &["16"]);
    refused(gpu.ceilings(), Unsupported, &[]);
    let source = |size: u32, memory: u32| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
            var<workgroup> wg_x: array<f32, {memory}>;
            @compute @workgroup_size({size}) fn twice(@builtin(global_invocation_id) id: vec3<u32>) {{
                wg_x[0] = 2.0; x[id.x] *= wg_x[0];
            }}"
        )
    };
    refused(gpu.kernel("k.wgsl", &source(17, 4), "twice"), Unsupported, &["17 x 1 x 1", "16"]);
    refused(gpu.kernel("k.wgsl", &source(16, 17), "twice"), Unsupported, &["68 bytes", "64"]);
    let twice = gpu.kernel("k.wgsl", &source(16, 16), "twice").unwrap();
    let mut rec = gpu.recorder();
    refused(twice.record(&mut rec, &[Arg::from(&x)], [1, 1, 1]), TooLarge, &["1000 bytes", "512"]);
    let front = x.slice(..128).unwrap();
    refused(twice.record(&mut rec, &[front.into()], [9, 1, 1]), TooLarge, &["[9, 1, 1]", "8"]);
    twice.record(&mut rec, &[front.into()], [8, 1, 1]).unwrap();
    rec.submit().unwrap();
    assert_eq!(
        x.read().unwrap()[..129],
        (0..129).map(|i| (if i < 128 { 2 * i } else { i }) as f32).collect::<Vec<_>>()
    );
    assert_eq!(caller.errors(), 0);
}

#[test]
fn rejects_a_device_without_compute() {
    let limits = wgpu::Limits {
        max_compute_invocations_per_workgroup: 0,
        max_compute_workgroup_size_x: 0,
        max_compute_workgroup_size_y: 0,
        max_compute_workgroup_size_z: 0,
        max_compute_workgroups_per_dimension: 0,
        max_compute_workgroup_storage_size: 0,
        ..wgpu::Limits::default()
    };
    let Some(caller) = Caller::new(limits) else { return };
    let refusal = Gpu::from_wgpu(caller.device.clone(), caller.queue.clone());
    refused(refusal, Unsupported, &["from_wgpu", "wgpu::Limits::default()"]);
    assert_eq!(caller.errors(), 0);
}

#[test]
fn a_callers_device_runs_ops_with_its_own_features() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    assert!(!gpu.profile().features.subgroups);
    let x = gpu.upload(&vec![1.0f32; 100_000]).unwrap();
    assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [100_000.0]);
    // Two `Gpu`s on one device do not share buffers; the error says so.
    let second = caller.gpu();
    assert_ne!(gpu, second);
    refused(second.reduce(&x, Sum), tilework::ErrorKind::Buffer, &["another Gpu"]);
    assert_eq!(caller.errors(), 0);
}

//! Opening devices, and devices with low limits or missing features.

use super::{Caller, open, refused};
use crate::support::{devices, gpu};
use std::process::Command;
use tilework::ErrorKind::{InvalidArgument, NoAdapter, TooLarge, Unsupported};
use tilework::gpu::{AdapterFilter, Arg, Backend};
use tilework::program::{DeviceProfile, Features, Op, OpenedBy};
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
    // A variable may ask for another.
    if std::env::var_os("TILEWORK_ADAPTER").is_none() {
        assert_eq!(Gpu::new().unwrap().profile().name, all[0].name);
    }
    let found = Gpu::find_adapter(&GpuOptions { adapter: AdapterFilter::Index(0), ..GpuOptions::default() });
    assert_eq!(found.unwrap(), all[0]);
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
    for filter in
        [AdapterFilter::Name("no such card".into()), AdapterFilter::Index(99), AdapterFilter::Index(usize::MAX)]
    {
        refused(request(filter, None), NoAdapter, &["no adapter fits", "this machine has", &first]);
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
    assert_eq!(caller.errors(), 0);
}

#[test]
fn a_device_has_one_gpu() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let (first, second) = (caller.gpu(), caller.gpu());
    assert_eq!(first, second);
    let x = first.upload(&[1.0f32; 100]).unwrap();
    assert_eq!(second.reduce(&x, Sum).unwrap().read().unwrap(), [100.0]);
    // Another device of the same adapter is another Gpu, although wgpu may number both alike.
    let Some(other) = Caller::new(wgpu::Limits::default()) else { return };
    assert_ne!(first, other.gpu());
    refused(other.gpu().reduce(&x, Sum), tilework::ErrorKind::Buffer, &["another Gpu"]);
    let own = open(false).unwrap();
    assert_ne!(own, first);
    let again = Gpu::from_wgpu(own.device().clone(), own.queue().clone()).unwrap();
    assert_eq!(own, again);
    assert_eq!((caller.errors(), other.errors()), (0, 0));
}

#[test]
fn devices_of_two_instances_are_told_apart() {
    let Some(profile) = gpu().map(Gpu::profile) else { return };
    let open = || {
        let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
        desc.backends = wgpu::Backends::from_comma_list(&profile.backend);
        let instance = wgpu::Instance::new(desc);
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let adapter = adapters.into_iter().find(|a| a.get_info().name == profile.name).unwrap();
        pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap()
    };
    let (first, second) = (open(), open());
    assert_eq!(first.0, second.0, "wgpu numbers the devices of each instance from the start");
    let gpus = [first, second].map(|(device, queue)| Gpu::from_wgpu(device, queue).unwrap());
    assert_ne!(gpus[0], gpus[1]);
    for (gpu, n) in gpus.iter().zip([10, 20]) {
        let x = gpu.upload(&vec![1.0f32; n]).unwrap();
        assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [n as f32]);
    }
}

#[test]
fn the_first_gpu_of_a_device_chooses_the_options() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let with = |checked| {
        let options = GpuOptions { checked, ..GpuOptions::default() };
        Gpu::from_wgpu_with(caller.device.clone(), caller.queue.clone(), &options)
    };
    let gpu = with(true).unwrap();
    assert_eq!((with(true).unwrap(), caller.gpu()), (gpu.clone(), gpu.clone()));
    refused(with(false), InvalidArgument, &["from_wgpu_with", "other options", "checked"]);
    drop(gpu);
    with(false).unwrap();
}

#[test]
fn a_device_by_our_descriptor_equals_our_own() {
    let Some(own) = open(false) else { return };
    let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
    desc.backends = wgpu::Backends::from_comma_list(&own.profile().backend);
    let adapters = pollster::block_on(wgpu::Instance::new(desc).enumerate_adapters(wgpu::Backends::all()));
    let adapter = adapters.into_iter().find(|a| a.get_info().name == own.profile().name).unwrap();
    let opened = pollster::block_on(adapter.request_device(&Gpu::device_descriptor(&adapter)));
    let (device, queue) = opened.unwrap();
    let gpu = Gpu::from_wgpu(device, queue).unwrap();
    let expected = DeviceProfile { opened_by: OpenedBy::Caller, ..own.profile().clone() };
    assert_eq!(*gpu.profile(), expected);
}

#[test]
fn a_missing_feature_says_who_left_it_out() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let subgroup = |gpu: &Gpu| Reduce::new(Sum, 100).variant("subgroup").plan::<f32>(gpu);
    let result = subgroup(&caller.gpu());
    refused(result, Unsupported, &["SUBGROUP", "the program opened", "without", "Gpu::device_descriptor"]);
    refused(caller.gpu().alloc::<u64>(4), Unsupported, &["SHADER_INT64", "the program opened"]);
    let floor = super::open(true).unwrap();
    refused(subgroup(&floor), Unsupported, &["was opened without (GpuOptions::webgpu_defaults)"]);
    let adapter = DeviceProfile { features: Features::default(), ..floor.profile().clone() };
    let adapter = DeviceProfile { opened_by: OpenedBy::Tilework, ..adapter };
    let lowered = Op::<f32>::lower(&Reduce::new(Sum, 100).variant("subgroup"), &adapter);
    refused(lowered, Unsupported, &["SUBGROUP", "does not have"]);
}

/// Opens the default device in a process of its own, with this environment.
fn opened_with(variables: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", "runtime::devices::opens_the_default_device"]);
    command.env_remove("TILEWORK_RECORDING").env_remove("TILEWORK_ADAPTER");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{out}{err}");
    (out, err)
}

#[test]
#[ignore = "run by the tests below"]
fn opens_the_default_device() {
    let has_opened_gl = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if maps.contains("libEGL") { " after OpenGL" } else { "" }
    };
    match Gpu::new() {
        Ok(gpu) => println!("opened {} by {}{}", gpu.profile().name, gpu.profile().backend, has_opened_gl()),
        Err(e) => println!("refused as {:?}: {e}", e.kind()),
    }
}

#[test]
fn opening_a_device_prints_nothing() {
    let Some(gpu) = gpu().filter(|gpu| gpu.profile().backend != "gl") else { return };
    // Mesa's Vulkan layer for selecting devices complains without this variable.
    let (out, err) = opened_with(&[("XDG_RUNTIME_DIR", "/nowhere"), ("DISPLAY", "")]);
    assert!(out.contains("opened ") && !out.contains("by gl"), "{out}");
    // NVIDIA's Vulkan driver loads its OpenGL library by itself.
    assert!(!out.contains("OpenGL") || gpu.profile().name.contains("NVIDIA"), "{out}");
    assert_eq!(err, "", "on {}", gpu.profile().name);
}

#[test]
fn a_variable_names_the_adapter_and_wrong_ones_are_errors() {
    let Some(gpu) = gpu() else { return };
    let name = &gpu.profile().name;
    let (out, _) = opened_with(&[("TILEWORK_ADAPTER", &name.to_uppercase())]);
    assert!(out.contains(&format!("opened {name}")), "{out}");
    let (out, _) = opened_with(&[("TILEWORK_ADAPTER", &gpu.profile().backend)]);
    assert!(out.contains(&format!("by {}", gpu.profile().backend)), "{out}");
    let (out, _) = opened_with(&[("TILEWORK_ADAPTER", "no such card")]);
    for word in ["refused as NoAdapter", "\"no such card\"", "environment variable TILEWORK_ADAPTER", name] {
        assert!(out.contains(word), "`{word}` is not in: {out}");
    }
    let (out, _) = opened_with(&[("WGPU_BACKEND", "nonsense")]);
    assert!(out.contains("refused as InvalidArgument") && out.contains("`nonsense`"), "{out}");
}

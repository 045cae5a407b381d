//! Memory: what the pool keeps, what it returns, and running out.

use super::{Caller, open, refused};
use crate::support::coverage::all;
use crate::support::{alone, gpu};
use tilework::ErrorKind::OutOfMemory;
use tilework::program::{DeviceClass, DeviceProfile};
use tilework::{Gpu, Plannable, Reduce, Sum};

/// Resident bytes of this process.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * statm.split_whitespace().nth(1)?.parse::<u64>().ok()?)
}

#[test]
fn dropped_buffers_are_reused() {
    let Some(gpu) = open(false) else { return };
    assert_eq!(gpu.memory().pooled, 0);
    let x = gpu.alloc::<f32>(10_000).unwrap();
    let memory = x.raw().clone();
    let clone = x.clone();
    drop(x);
    assert_eq!(gpu.memory().pooled, 0, "a clone still uses it");
    drop(clone);
    assert_eq!(gpu.memory().pooled, memory.size());
    // Any length of the same size class, of any type.
    let y = gpu.alloc::<u8>(39_999).unwrap();
    assert_eq!(y.raw(), &memory);
    assert_eq!(gpu.memory().pooled, 0);
    let z = gpu.alloc::<u8>(39_999).unwrap();
    assert_ne!(z.raw(), &memory);
}

#[test]
fn memory_is_reported_by_label() {
    let Some(gpu) = open(false) else { return };
    let bytes = |label: &str| {
        let uses = gpu.memory().uses;
        uses.iter().find(|u| u.label == label).map_or((0, 0), |u| (u.live, u.peak))
    };
    let before = gpu.memory();
    let x = gpu.upload(&[1.0f32; 100_000]).unwrap();
    let y = gpu.alloc::<u8>(300_000).unwrap().labelled("images");
    let sizes = [x.raw().size(), y.raw().size()];
    assert_eq!((bytes("buffer"), bytes("images")), ((sizes[0], sizes[0] + sizes[1]), (sizes[1], sizes[1])));
    assert!(bytes("upload").0 >= 400_000, "{}", gpu.memory());
    let all = gpu.memory();
    assert_eq!(all.live, all.uses.iter().map(|u| u.live).sum::<u64>());
    assert!(all.peak >= all.live && all.live >= before.live + sizes[0] + sizes[1]);

    // A dropped buffer is pooled and loses its label.
    drop(y.clone());
    assert_eq!(gpu.memory().pooled, 0);
    drop((x, y));
    assert_eq!((gpu.memory().pooled, bytes("images")), (sizes[0] + sizes[1], (0, sizes[1])));
    let again = gpu.alloc::<u8>(300_000).unwrap();
    assert_eq!((bytes("buffer").0, bytes("images").0, again.raw().size()), (sizes[1], 0, sizes[1]));
    drop(again);
    gpu.wait().unwrap(); // staging comes back with the work
    gpu.trim();
    let trimmed = gpu.memory();
    assert_eq!((trimmed.live, trimmed.pooled), (before.live, 0), "{trimmed}");
    assert_eq!(trimmed.peak, all.peak);
    // A caller's buffer does not count.
    let desc = wgpu::BufferDescriptor {
        label: None,
        size: 4096,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    };
    let own = gpu.wrap::<u32>(gpu.device().create_buffer(&desc)).unwrap().labelled("own");
    assert_eq!((gpu.memory().live, bytes("own")), (before.live, (0, 0)));
    drop(own);
}

#[test]
fn trim_returns_all_unused_memory() {
    let Some(gpu) = open(false) else { return };
    let n = 1 << 20;
    let plan = Reduce::new(Sum, n).plan::<f32>(&gpu).unwrap();
    let allocated = || gpu.device().generate_allocator_report().map(|r| r.total_allocated_bytes);
    for _ in 0..3 {
        let buffers: Vec<_> = (0..4).map(|_| gpu.upload(&vec![1.0f32; n]).unwrap()).collect();
        let total = gpu.alloc::<f32>(1).unwrap();
        let mut rec = gpu.recorder();
        buffers.iter().for_each(|b| plan.record(&mut rec, b, &total).unwrap());
        rec.submit().unwrap();
        assert_eq!(total.read().unwrap(), [n as f32]);
        let kept = buffers[0].clone();
        drop(buffers);
        gpu.wait().unwrap();
        assert!(gpu.memory().pooled >= 12 << 20);
        let before = allocated();
        gpu.trim();
        gpu.wait().unwrap();
        assert_eq!(gpu.memory().pooled, 0);
        if let (Some(before), Some(after)) = (before, allocated()) {
            assert!(after + (12 << 20) <= before, "{before} bytes before, {after} after, and 12 MiB were pooled");
        }
        // Buffers in use stay.
        assert_eq!(gpu.reduce(&kept, Sum).unwrap().read().unwrap(), [n as f32]);
    }
}

#[test]
fn uploads_and_readbacks_reuse_their_staging() {
    let Some(gpu) = open(false) else { return };
    let x = gpu.alloc::<u32>(10_000).unwrap();
    let staged = || {
        let report = gpu.device().generate_allocator_report();
        report.map(|r| r.allocations.iter().filter(|a| a.name.contains("load")).count())
    };
    for i in 0..200u32 {
        let data = vec![i; 10_000];
        x.write(&data).unwrap();
        assert_eq!(x.read().unwrap(), data);
    }
    assert!(staged().is_none_or(|n| (1..=4).contains(&n)), "{:?} staging buffers", staged());
    // Longer than one staging buffer, in both directions.
    let long: Vec<u32> = (0..9_000_001).collect();
    let y = gpu.upload(&long).unwrap();
    assert!(y.read().unwrap() == long);
    assert!(pollster::block_on(y.read_async()).unwrap() == long);
    assert!(y.slice(8_388_600..8_388_620).unwrap().read().unwrap() == long[8_388_600..8_388_620]);
}

/// Records and submits a small op repeatedly. Growth is measured over the second half: a driver keeps
/// the memory of its busiest moment.
fn cycles(gpu: &Gpu, count: usize) -> (u64, u64) {
    let x = gpu.upload(&[1.0f32; 256]).unwrap();
    let total = gpu.alloc::<f32>(1).unwrap();
    let plan = Reduce::new(Sum, 256).plan::<f32>(gpu).unwrap();
    let mut before = 0;
    for i in 0..count {
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, &total).unwrap();
        rec.submit().unwrap();
        // A driver that falls behind keeps all queued work in memory.
        if i % 100 == 0 {
            gpu.wait().unwrap();
        }
        if i == count / 2 {
            gpu.wait().unwrap();
            before = resident().unwrap_or(0);
        }
    }
    gpu.wait().unwrap();
    assert_eq!(total.read().unwrap(), [256.0]);
    (before, resident().unwrap_or(0))
}

#[test]
fn memory_does_not_grow_over_cycles() {
    alone("runtime::memory::a_hundred_thousand_cycles", None);
}

#[test]
#[ignore = "run by `memory_does_not_grow_over_cycles`, alone"]
fn a_hundred_thousand_cycles() {
    let Some(gpu) = open(false) else { return };
    let report = || {
        let allocator = gpu.device().generate_allocator_report();
        (allocator.map(|r| (r.allocations.len(), r.total_allocated_bytes)), gpu.memory())
    };
    cycles(&gpu, 500);
    let allocated = report();
    // A leak shows in few cycles of a slow driver. A fast one has threads that take memory for a while.
    let few = gpu.profile().is_cpu() && (!all() || std::env::var_os("TILEWORK_ONE_WAY").is_some());
    let count = if few { 5_000 } else { 100_000 };
    let (before, after) = cycles(&gpu, count);
    eprintln!("{before} bytes resident, then {after}; allocations {allocated:?}, then {:?}", report());
    assert!(after < before + (8 << 20), "{before} bytes resident grew to {after}");
    assert_eq!(allocated, report());

    // All kinds of objects: plans, buffers, uniforms and callers' encoders.
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let kernel = gpu
        .kernel(
            "k.wgsl",
            "struct P { a: u32 } @group(0) @binding(0) var<uniform> p: P;
             @group(0) @binding(1) var<storage, read_write> x: array<u32>;
             @compute @workgroup_size(1) fn k() { x[0] = p.a; }",
            "k",
        )
        .unwrap();
    let round = |i: u32| {
        let x = gpu.upload(&vec![i; 1 + (i % 7) as usize * 100]).unwrap();
        let sum = gpu.reduce(&x, Sum).unwrap();
        let mut encoder = caller.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut rec = gpu.recorder_in(&mut encoder);
        kernel.record(&mut rec, &[tilework::gpu::Arg::uniform(&i), (&x).into()], [1, 1, 1]).unwrap();
        rec.finish();
        caller.queue.submit([encoder.finish()]);
        assert_eq!(pollster::block_on(sum.read_async()).unwrap(), [i.wrapping_mul(x.len() as u32)]);
        assert_eq!(x.slice(..1).unwrap().read().unwrap(), [i]);
    };
    // Long enough for the cache of parameters to evict.
    (0..1500).for_each(round);
    let before = (resident(), caller.device.generate_allocator_report().map(|r| r.allocations.len()));
    (1500..4000).for_each(round);
    let after = (resident(), caller.device.generate_allocator_report().map(|r| r.allocations.len()));
    eprintln!("resident and allocations: {before:?}, then {after:?}");
    if let (Some(before), Some(after)) = (before.0, after.0) {
        assert!(after < before + (8 << 20), "{before} bytes resident grew to {after}");
    }
    if let (Some(before), Some(after)) = (before.1, after.1) {
        assert!(after < before + 1100, "{before} allocations grew to {after}");
    }
    assert_eq!(caller.errors(), 0);
}

/// Allocates until memory runs out.
fn exhaust(gpu: &Gpu, most: usize) {
    let x = gpu.upload(&vec![1.0f32; 100_000]).unwrap();
    assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [100_000.0]);
    // Half a gigabyte at a time, which every driver allows; none of it is touched.
    let mut hoard = Vec::new();
    let full = loop {
        match gpu.alloc::<f32>(1 << 27) {
            Ok(buffer) => hoard.push(buffer),
            Err(e) => break e,
        }
        if hoard.len() >= 2 * most {
            // Since Mesa 25 llvmpipe maps memory on first use, so a limit on mapped memory has no effect. wgpu does not
            // ask OpenGL whether an allocation succeeded.
            let DeviceProfile { class, driver, backend, .. } = gpu.profile();
            let lazy = *class == DeviceClass::Cpu && driver.contains("llvmpipe") && !driver.contains("Mesa 22");
            assert!(lazy || backend == "gl", "{driver}: {most} GiB were allocated");
            return println!("{driver}: {most} GiB were allocated, and not to be had");
        }
    };
    refused(Err::<(), _>(full), OutOfMemory, &["allocating", "bytes", "Gpu::trim"]);
    // Existing buffers stay usable, and the new ones are released.
    assert_eq!(x.read().unwrap(), vec![1.0; 100_000]);
    drop(hoard);
    gpu.trim();
    let again = gpu.alloc::<f32>(1 << 27).unwrap();
    drop(again);
    assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [100_000.0]);
    gpu.probe().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn out_of_memory_is_a_recoverable_error() {
    if gpu().is_some_and(|g| g.profile().class == DeviceClass::Cpu) {
        alone("runtime::memory::out_of_memory_under_a_limit", Some(6 << 20));
    }
}

#[test]
#[ignore = "run by `out_of_memory_is_a_recoverable_error`, with little memory"]
fn out_of_memory_under_a_limit() {
    if let Some(gpu) = open(false) {
        exhaust(&gpu, 8);
    }
}

#[test]
fn a_full_card_is_a_recoverable_error() {
    // Only on a card: elsewhere memory is shared with the host.
    if let Some(gpu) = gpu().filter(|g| g.profile().class == DeviceClass::Discrete).and_then(|_| open(false)) {
        exhaust(&gpu, 1000);
    }
}

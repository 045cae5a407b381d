//! Memory shared and work ordered between wgpu and CUDA: errors anywhere, round trips on a card.

use crate::support::{self, devices};
use tilework::cuda::{Bridge, CudaGpu, CudaOptions, Order};
use tilework::gpu::Backend;
use tilework::prelude::*;
use tilework::{ErrorKind, Gpu, GpuOptions};

/// A wgpu device and a CUDA device on the same card.
fn card() -> Option<(Gpu, CudaGpu)> {
    support::cuda::cuda()?;
    let found = devices().iter().filter(|d| d.gpu.profile().backend == "vulkan").find_map(|d| {
        let cuda = CudaGpu::beside(&d.gpu, CudaOptions::default()).ok()?;
        Some((d.gpu.clone(), cuda))
    });
    if found.is_none() {
        eprintln!("skipped: wgpu has no card of CUDA open here");
    }
    found
}

/// Rounds in which CUDA sums in wgpu's memory and wgpu copies back; only the last is read.
fn rounds(gpu: &Gpu, cuda: &CudaGpu, bridge: &Bridge, n: usize, rounds: usize) {
    let (x, y) = (gpu.alloc_shared::<u32>(n).unwrap(), gpu.alloc_shared::<u32>(n).unwrap());
    let (x_cuda, y_cuda) = (bridge.open(&x).unwrap(), bridge.open(&y).unwrap());
    let mut expected: Vec<u32> = (0..n as u32).map(|i| i % 17).collect();
    x.write(&expected).unwrap();
    let scan = Scan::new(Sum, n).plan::<u32>(cuda).unwrap();
    for _ in 0..rounds {
        bridge.to_cuda().unwrap();
        scan.run(bridge.stream(), &x_cuda, &y_cuda).unwrap();
        bridge.to_wgpu().unwrap();
        let mut rec = gpu.recorder();
        rec.copy(&y, &x).unwrap();
        rec.submit().unwrap();
        let mut sum = 0u32;
        for value in &mut expected {
            sum = sum.wrapping_add(*value);
            *value = sum;
        }
    }
    assert!(x.read().unwrap() == expected, "{rounds} rounds of {n} by {}", bridge.order());

    // CUDA's view keeps the memory alive after wgpu releases it.
    drop((x, y));
    gpu.trim();
    assert!(y_cuda.read().unwrap() == expected);
    x_cuda.write(&expected).unwrap();
}

#[test]
fn both_sides_see_each_others_writes() {
    let Some((gpu, cuda)) = card() else { return };
    let stream = cuda.stream().unwrap();
    let bridge = Bridge::new(&gpu, &stream).unwrap();
    eprintln!("ordered by {}", bridge.order());
    let waits = Bridge::with_host_waits(&gpu, &stream, "to test it").unwrap();
    assert!(matches!(waits.order(), Order::HostWaits { why } if why == "to test it"));
    for (n, count) in [(1, 3), (1000, 200), (1 << 20, 30)] {
        rounds(&gpu, &cuda, &bridge, n, count);
        rounds(&gpu, &cuda, &waits, n, count.min(20));
    }
}

#[test]
fn waits_order_work_on_a_callers_device() {
    let Some((gpu, cuda)) = card() else { return };
    let Some(theirs) = crate::runtime::callers_gpu() else { return };
    if !theirs.identity().is_ok_and(|id| id.is_same(&gpu.identity().unwrap())) {
        eprintln!("skipped: the first adapter is not the card of CUDA");
        return;
    }
    let bridge = Bridge::new(&theirs, &cuda.stream().unwrap()).unwrap();
    assert!(
        matches!(bridge.order(), Order::HostWaits { why } if why.contains("VK_KHR_external_semaphore_fd")),
        "{}",
        bridge.order()
    );
    rounds(&theirs, &cuda, &bridge, 5000, 10);
}

#[test]
fn a_bridge_rejects_buffers_that_are_not_shared() {
    let Some((gpu, cuda)) = card() else { return };
    let bridge = Bridge::new(&gpu, &cuda.stream().unwrap()).unwrap();
    let plain = gpu.upload(&[1u32, 2, 3, 4]).unwrap();
    let e = bridge.open(&plain).unwrap_err();
    assert!(e.kind() == ErrorKind::Buffer && e.to_string().contains("alloc_shared"), "{e}");

    // Buffers that are not shared are copied if their lengths agree.
    let copy = cuda.alloc::<u32>(4).unwrap();
    copy.copy_from_wgpu(&plain).unwrap();
    assert_eq!(copy.read().unwrap(), [1, 2, 3, 4]);
    let back = gpu.alloc::<u32>(4).unwrap();
    copy.copy_to_wgpu(&back).unwrap();
    assert_eq!(back.read().unwrap(), [1, 2, 3, 4]);
    assert_eq!(copy.copy_from_wgpu(plain.slice(1..).unwrap()).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(copy.copy_to_wgpu(plain.slice(..1).unwrap()).unwrap_err().kind(), ErrorKind::Shape);

    for other in devices().iter().filter(|d| d.gpu != gpu) {
        if let Ok(strange) = other.gpu.alloc_shared::<u32>(4) {
            assert_eq!(bridge.open(&strange).unwrap_err().kind(), ErrorKind::Buffer);
        }
        if CudaGpu::beside(&other.gpu, CudaOptions::default()).is_err() {
            let e = Bridge::new(&other.gpu, &cuda.stream().unwrap()).unwrap_err();
            let wanted = [ErrorKind::InvalidArgument, ErrorKind::Unsupported];
            assert!(wanted.contains(&e.kind()) && e.to_string().contains(&other.gpu.profile().name), "{e}");
        }
    }
}

#[test]
fn beside_names_the_missing_requirement() {
    for device in devices() {
        let Err(e) = CudaGpu::beside(&device.gpu, CudaOptions::default()) else { continue };
        match CudaGpu::devices() {
            // CUDA's own error is passed on.
            Err(missing) if device.gpu.identity().is_ok() => assert_eq!(e, missing),
            _ => assert!(e.to_string().contains(&device.gpu.profile().name), "{e}"),
        }
    }
    let options = GpuOptions { backend: Some(Backend::Gl), ..Default::default() };
    let Ok(gl) = pollster::block_on(Gpu::request(options)) else {
        eprintln!("skipped: no OpenGL adapter that could refuse");
        return;
    };
    let e = CudaGpu::beside(&gl, CudaOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.to_string().contains("through gl"), "{e}");
}

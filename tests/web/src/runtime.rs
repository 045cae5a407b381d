//! Tests of the runtime in a page: reading, waiting, measuring, own devices and kernels, solvers, bad input.

use crate::by_name::matrix;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tilework::gpu::Arg;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::sparse::{Csr, Outcome, Target};
use tilework::{ErrorKind, wgpu};

/// A test on the page's device. It fails by an error or a panic.
type Test = fn(Gpu) -> Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// Lists the tests by name.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[(&str, Test)] = &[$((stringify!($name), |gpu| {
            Box::pin(async move { $name(&gpu).await.map_err(|e: tilework::Error| e.to_string()) })
        })),*];
    };
}

tests! {
    reads_without_blocking,
    writes_bytes_and_long_buffers,
    waits_warms_up_and_measures,
    runs_an_own_kernel,
    uses_the_pages_own_device,
    solves_and_ranks,
    converts_matrices,
    runs_variants_that_no_example_reaches,
    trains_a_network,
    frees_dropped_buffers,
    a_dropped_readback_harms_nothing,
    a_lost_device_is_reported,
    a_buffer_of_another_device_is_refused,
    an_invalid_shader_is_refused,
    text_of_users_is_checked_at_once,
    an_error_of_the_browser_comes_with_the_next_read,
    too_much_memory_is_an_error,
}

/// Fails unless the call failed like this.
#[track_caller]
fn refused<T>(result: tilework::Result<T>, kind: ErrorKind, text: &str) {
    let Err(e) = result else { panic!("nothing was refused; expected {kind:?}: {text}") };
    assert!(
        e.kind() == kind && e.to_string().contains(text),
        "{:?}: {e}; expected {kind:?}: {text}",
        e.kind()
    );
}

async fn reads_without_blocking(gpu: &Gpu) -> tilework::Result<()> {
    let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    let total = gpu.reduce(&x, Sum)?;
    assert_eq!(total.read_async().await?, [6.0]);
    assert_eq!(x.slice(1..)?.read_async().await?, [2.0, 3.0]);
    let before = x.slice(..)?.start_read()?;
    x.write(&[4.0, 5.0, 6.0])?;
    assert_eq!(before.wait_async().await?, [1.0, 2.0, 3.0]);
    assert_eq!(x.read_async().await?, [4.0, 5.0, 6.0]);
    assert!(gpu.alloc::<f32>(0)?.read_async().await?.is_empty());
    Ok(())
}

async fn writes_bytes_and_long_buffers(gpu: &Gpu) -> tilework::Result<()> {
    let bytes: Vec<u8> = (0..250).chain(0..249).collect();
    assert_eq!(gpu.upload(&bytes)?.read_async().await?, bytes);
    // More than one piece, which has 2^23 words.
    let long: Vec<u32> = (0..(1 << 24) + 3).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    assert!(gpu.upload(&long)?.read_async().await? == long, "16 Mi words differ");
    Ok(())
}

async fn waits_warms_up_and_measures(gpu: &Gpu) -> tilework::Result<()> {
    let sort = RadixSort::new(5000);
    gpu.warm_up_async([gpu.lower::<u32, _>(&sort)?]).await?;
    let keys: Vec<u32> = (0..5000).rev().collect();
    let (x, y) = (gpu.upload(&keys)?, gpu.alloc::<u32>(5000)?);
    let plan = sort.plan::<u32>(gpu)?;
    let measured = gpu.measure_async(3, |rec| plan.record(rec, &x, &y)).await?;
    assert_eq!(measured.seconds.len(), 3);
    gpu.wait_async().await?;
    assert!(y.read_async().await?.into_iter().eq(0..5000));
    assert!(plan.report().ceilings.is_none(), "a page cannot wait for ceilings");
    let ceilings = gpu.ceilings_async().await?;
    assert!(ceilings.copy_bytes_per_second > 0.0 && plan.report().ceilings == Some(ceilings));
    Ok(())
}

async fn runs_an_own_kernel(gpu: &Gpu) -> tilework::Result<()> {
    let text = "
        struct Params { a: u32 }
        @group(0) @binding(0) var<uniform> params: Params;
        @group(0) @binding(1) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn k(@builtin(global_invocation_id) id: vec3u) { x[id.x] += params.a; }";
    let kernel = gpu.kernel("k.wgsl", text, "k")?;
    let x = gpu.upload(&[1u32; 64])?;
    let mut rec = gpu.recorder();
    for a in [1u32, 2, 3] {
        kernel.record(&mut rec, &[Arg::uniform(&a), (&x).into()], [1, 1, 1])?;
    }
    rec.submit()?;
    assert_eq!(x.read_async().await?, [7; 64]);
    Ok(())
}

/// A device that the page opened.
async fn own_device() -> (wgpu::Device, wgpu::Queue) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await.unwrap();
    adapter.request_device(&Gpu::device_descriptor(&adapter)).await.unwrap()
}

async fn uses_the_pages_own_device(_: &Gpu) -> tilework::Result<()> {
    let (device, queue) = own_device().await;
    let gpu = Gpu::from_wgpu(device.clone(), queue.clone())?;
    assert_eq!(gpu, Gpu::from_wgpu(device.clone(), queue.clone())?);
    let theirs = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 12,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    queue.write_buffer(&theirs, 0, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    let (x, total) = (gpu.wrap::<u32>(theirs)?, gpu.alloc::<u32>(1)?);
    let mut encoder = device.create_command_encoder(&Default::default());
    let mut rec = gpu.recorder_in(&mut encoder);
    // The plan is gone before the page submits: its parameters must live until then.
    Reduce::new(Sum, 3).plan::<u32>(&gpu)?.record(&mut rec, &x, &total)?;
    rec.finish();
    gpu.trim();
    queue.submit([encoder.finish()]);
    assert_eq!(total.read_async().await?, [6]);
    Ok(())
}

async fn solves_and_ranks(gpu: &Gpu) -> tilework::Result<()> {
    // 2 on the diagonal and -1 beside it.
    let n = 100;
    let mut a = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    for i in 0..n {
        let entries = [(i.wrapping_sub(1), -1.0), (i, 2.0), (i + 1, -1.0)].into_iter().filter(|e| e.0 < n);
        let (cols, values): (Vec<u32>, Vec<f32>) = entries.map(|(j, value)| (j as u32, value)).unzip();
        a.col_idxs.extend(cols);
        a.values.extend(values);
        a.row_ptrs.push(a.col_idxs.len() as u32);
    }
    let (matrix, b, x) = (gpu.upload_matrix(&a)?, gpu.upload(&vec![1.0f32; n])?, gpu.alloc_zeroed::<f32>(n)?);
    let solver = gpu.conjugate_gradient(&ConjugateGradient::new(matrix.layout()).tolerance(1e-5))?;
    let mut steps = 0;
    let solution = solver.solve_async(&matrix, &b, &x, |_, _| steps += 1).await?;
    assert!(solution.outcome == Outcome::Converged && steps > 10, "{solution:?}");
    let x = x.read_async().await?;
    // The exact solution is i (n + 1 - i) / 2, for i from 1.
    let far = (1..=n).map(|i| (x[i - 1] - (i * (n + 1 - i)) as f32 / 2.0).abs()).fold(0.0, f32::max);
    assert!(far < 1.0, "off by {far}");
    assert_eq!(solver.progress_async().await?.1, Some(Outcome::Converged));
    Ok(())
}

async fn converts_matrices(gpu: &Gpu) -> tilework::Result<()> {
    let csr = matrix(65, 40);
    let there = gpu.upload_matrix(&csr)?;
    for target in [Target::Ell, Target::Hybrid { width: None }, Target::Jds, Target::Csc, Target::Coo] {
        let other = gpu.convert_matrix_async(&there, target).await?;
        assert_eq!(other.read_async().await?.to_csr()?, csr, "{target:?}");
    }
    assert_eq!(gpu.analyse_matrix_async(&there).await?, csr.analyse());
    let transposed = gpu.transpose_matrix_async(there).await?;
    assert_eq!(transposed.read_async().await?.to_csr()?, csr.transposed()?);
    let (suited, _) = gpu.suit_matrix_async(&gpu.upload_matrix(&csr)?).await?;
    assert_eq!(suited.read_async().await?.to_csr()?, csr);
    Ok(())
}

async fn runs_variants_that_no_example_reaches(gpu: &Gpu) -> tilework::Result<()> {
    use tilework::reference;
    use tilework::sparse::Coo;
    let near = |got: &[f32], exact: &[f64]| {
        got.len() == exact.len() && got.iter().zip(exact).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-4)
    };
    let image: Vec<f32> = (0..512).map(|i| (i * i % 7) as f32).collect();
    let (x, y) = (gpu.upload(&image[..256])?, gpu.alloc::<f32>(256)?);
    let (volume, z) = (gpu.upload(&image)?, gpu.alloc::<f32>(512)?);
    let smooth = Filter2d::new([16, 16], [3, 3], &[1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]);
    let (boxes, soft) =
        (Filter3d::new([8, 8, 8], [3, 3, 3], &[1.0; 27]), Gaussian::new([16, 16], 1.0).radius(2));
    let once = |record: &dyn Fn(&mut Recorder) -> tilework::Result<()>| {
        let mut rec = gpu.recorder();
        record(&mut rec)?;
        rec.submit()
    };
    let plan = smooth.clone().variant("separable").plan::<f32>(gpu)?;
    once(&|rec| plan.record(rec, &x, &y))?;
    assert!(near(&y.read_async().await?, &reference::filter2d(&smooth, &image[..256])));
    let plan = boxes.clone().variant("separable").plan::<f32>(gpu)?;
    once(&|rec| plan.record(rec, &volume, &z))?;
    assert!(near(&z.read_async().await?, &reference::filter3d(&boxes, &image)));
    let plan = soft.clone().variant("register").plan::<f32>(gpu)?;
    once(&|rec| plan.record(rec, &x, &y))?;
    assert!(near(&y.read_async().await?, &reference::gaussian(&soft, &image[..256])));

    // Eigenvalues 3 and 1.
    let csr = Csr {
        rows: 2,
        cols: 2,
        row_ptrs: vec![0, 2, 4],
        col_idxs: vec![0, 1, 0, 1],
        values: vec![2.0, 1.0, 1.0, 2.0],
    };
    let (a, x) = (gpu.upload_matrix(&csr)?, gpu.upload(&[1.0f32, 0.0])?);
    let (value, _) =
        gpu.power_iteration(&PowerIteration::new(a.layout()))?.run_async(&a, &x, |_, _| ()).await?;
    assert!((value - 3.0).abs() < 1e-4, "{value}");
    let links = Csr {
        rows: 3,
        cols: 3,
        row_ptrs: vec![0, 2, 3, 4],
        col_idxs: vec![1, 2, 2, 0],
        values: vec![1.0; 4],
    };
    let (t, ranks) = (gpu.upload_matrix(&links.transitions()?)?, gpu.alloc::<f32>(3)?);
    gpu.page_rank(&PageRank::new(t.layout()))?.run_async(&t, None, &ranks, |_, _| ()).await?;
    let exact = reference::page_rank(&links.transitions()?, 0.85, None, 200)?;
    assert!(near(&ranks.read_async().await?, &exact));

    // Row 0 has a free slot.
    let short = Csr {
        rows: 2,
        cols: 2,
        row_ptrs: vec![0, 1, 3],
        col_idxs: vec![0, 0, 1],
        values: vec![1.0, 2.0, 4.0],
    };
    let new = Coo { rows: 2, cols: 2, row_idxs: vec![0], col_idxs: vec![1], values: vec![3.0] };
    let (mut ell, new) = (gpu.upload_matrix(&short.to_ell()?)?, gpu.upload_matrix(&new)?);
    gpu.insert_entries_async(&mut ell, &new).await?;
    assert_eq!(ell.read_async().await?.to_csr()?.values, [1.0, 3.0, 2.0, 4.0]);
    Ok(())
}

async fn trains_a_network(gpu: &Gpu) -> tilework::Result<()> {
    use tilework::nn::{Adam, Sequential};
    let net = Sequential::new([2, 1, 1]).linear(8).activation(Activation::Relu).linear(2);
    let optimizer = Adam::for_network(0.01).into();
    let (x, labels) = (gpu.upload(&[1.0f32, 0.0, 0.0, 1.0])?, gpu.upload(&[0u32, 1])?);
    let parameters = gpu.upload(&net.initial(1)?)?;
    let state = gpu.alloc_zeroed::<f32>(net.state_len(&optimizer)?)?;
    let loss = gpu.alloc::<f32>(1)?;
    let step = net.train(2, optimizer).plan::<f32>(gpu)?;
    let mut rec = gpu.recorder();
    for _ in 0..100 {
        step.record(&mut rec, &x, &labels, &parameters, &state, &loss)?;
    }
    rec.submit()?;
    let loss = loss.read_async().await?[0];
    assert!(loss < 0.5, "{loss}");
    Ok(())
}

async fn frees_dropped_buffers(gpu: &Gpu) -> tilework::Result<()> {
    gpu.trim();
    let before = gpu.memory();
    for _ in 0..8 {
        let x = gpu.alloc_zeroed::<u32>(1 << 20)?;
        let total = gpu.reduce(&x, Sum)?;
        drop(x);
        gpu.trim();
        assert_eq!(total.read_async().await?, [0]);
    }
    gpu.trim();
    let after = gpu.memory();
    assert!(after.live <= before.live + (1 << 20) && after.pooled == 0, "{before} became {after}");
    Ok(())
}

async fn a_dropped_readback_harms_nothing(gpu: &Gpu) -> tilework::Result<()> {
    let x = gpu.upload(&[1u32, 2, 3])?;
    {
        let mut reading = Box::pin(x.read_async());
        let first = reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(first, Poll::Pending));
    }
    drop(x.slice(..)?.start_read()?);
    gpu.trim();
    gpu.wait_async().await?;
    assert_eq!(x.read_async().await?, [1, 2, 3]);
    Ok(())
}

async fn a_lost_device_is_reported(_: &Gpu) -> tilework::Result<()> {
    for ours in [true, false] {
        let gpu = if ours {
            Gpu::request(GpuOptions::default()).await?
        } else {
            let (device, queue) = own_device().await;
            Gpu::from_wgpu(device, queue)?
        };
        let x = gpu.upload(&[1.0f32; 300])?;
        let total = gpu.reduce(&x, Sum)?;
        assert_eq!(total.read_async().await?, [300.0]);
        gpu.device().destroy();
        refused(total.read_async().await, ErrorKind::DeviceLost, "open a new Gpu");
        refused(gpu.wait_async().await, ErrorKind::DeviceLost, "open a new Gpu");
        refused(gpu.upload(&[1.0f32]), ErrorKind::DeviceLost, "open a new Gpu");
        refused(gpu.reduce(&x, Sum), ErrorKind::DeviceLost, "open a new Gpu");
    }
    Ok(())
}

async fn a_buffer_of_another_device_is_refused(gpu: &Gpu) -> tilework::Result<()> {
    let other = Gpu::request(GpuOptions::default()).await?;
    let (x, y) = (other.upload(&[1.0f32; 3])?, gpu.alloc::<f32>(1)?);
    let plan = Reduce::new(Sum, 3).plan::<f32>(gpu)?;
    refused(plan.record(&mut gpu.recorder(), &x, &y), ErrorKind::Buffer, "another Gpu");
    // wgpu's own buffers do not tell their device: the browser does.
    let theirs = gpu.wrap::<f32>(other.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 12,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    }))?;
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &theirs, &y)?;
    rec.submit()?;
    refused(gpu.wait_async().await, ErrorKind::Validation, "binding buffers");
    gpu.wait_async().await
}

async fn an_invalid_shader_is_refused(gpu: &Gpu) -> tilework::Result<()> {
    refused(gpu.kernel("k.wgsl", "fn k( {", "k"), ErrorKind::Shader, "k.wgsl:1");
    let sort = Op::<u32>::lower(&RadixSort::new(100).variant("onesweep"), gpu.profile());
    refused(sort, ErrorKind::Unsupported, "subgroup");
    Ok(())
}

async fn text_of_users_is_checked_at_once(gpu: &Gpu) -> tilework::Result<()> {
    // Ops leave the library's text to the browser, but not such as this.
    let double = Map::new(MapFn::custom("fn map(x: T) -> T { return 2 * x; }"), 3);
    let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.alloc::<f32>(3)?);
    let mut rec = gpu.recorder();
    double.plan::<f32>(gpu)?.record(&mut rec, &x, &y)?;
    rec.submit()?;
    assert_eq!(y.read_async().await?, [2.0, 4.0, 6.0]);
    let wrong = Map::new(MapFn::custom("fn map(x: T) -> T { return 2 * z; }"), 3);
    refused(wrong.plan::<f32>(gpu), ErrorKind::Shader, "z");
    let op =
        CustomOp::new("fn op_identity() -> T { return T(0); }\nfn op_combine(a: T, b: T) -> T { return c; }");
    refused(Reduce::new(op, 3).plan::<f32>(gpu), ErrorKind::Shader, "c");
    gpu.wait_async().await
}

async fn an_error_of_the_browser_comes_with_the_next_read(gpu: &Gpu) -> tilework::Result<()> {
    // A barrier that not every thread reaches: naga takes it, Tint does not.
    let text = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn k(@builtin(local_invocation_index) i: u32) {
            if x[i] > 3u { workgroupBarrier(); }
        }";
    let _ = gpu.kernel("k.wgsl", text, "k")?;
    let x = gpu.upload(&[1u32])?;
    refused(x.read_async().await, ErrorKind::Validation, "compiling k.wgsl:k");
    assert_eq!(x.read_async().await?, [1]);
    Ok(())
}

async fn too_much_memory_is_an_error(gpu: &Gpu) -> tilework::Result<()> {
    let limit = gpu.profile().limits.max_buffer_size as usize;
    refused(gpu.alloc::<u8>(limit.saturating_add(4)), ErrorKind::TooLarge, "largest buffer");
    // Its own device: what a browser does when memory ends is its own affair, but it says so.
    let other = Gpu::request(GpuOptions::default()).await?;
    let mut kept = Vec::new();
    for _ in 0..4096 {
        kept.push(other.alloc::<u8>(limit)?);
        if let Err(e) = other.wait_async().await {
            assert!(matches!(e.kind(), ErrorKind::OutOfMemory | ErrorKind::DeviceLost), "{e}");
            drop(kept);
            assert_eq!(gpu.reduce(&gpu.upload(&[1u32, 2])?, Sum)?.read_async().await?, [3]);
            return Ok(());
        }
    }
    panic!("4096 buffers of {limit} bytes fit");
}

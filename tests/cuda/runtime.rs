//! Devices, memory, streams and launches of CUDA, and their errors.

use crate::support::Random;
use crate::support::cuda::cuda;
use tilework::cuda::{Arg, CacheDir, CudaBuffer, CudaFilter, CudaGpu, CudaOp, CudaOptions, CudaSlice, Launch, Nvrtc};
use tilework::prelude::*;
use tilework::{ErrorKind, Result};

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, words: &str) {
    let e = result.unwrap_err();
    assert!(e.kind() == kind && e.to_string().contains(words), "{e:?}");
}

#[test]
fn a_machine_without_cuda_names_the_missing_library() {
    match CudaGpu::new() {
        Ok(cuda) => {
            eprintln!("{cuda:?}, {:?}", cuda.profile());
            eprintln!("NVRTC: {:?}", cuda.nvrtc().map(Nvrtc::path));
        }
        Err(e) => {
            assert!([ErrorKind::NoAdapter, ErrorKind::Unsupported].contains(&e.kind()), "{e:?}");
            assert!(e.to_string().starts_with("cuda: "), "{e}");
            eprintln!("{e}");
        }
    }
}

#[test]
fn devices_are_found_by_index() {
    let Some(cuda) = cuda() else { return };
    let all = CudaGpu::devices().unwrap();
    assert_eq!(&all[0], cuda.profile());
    let open = |device| CudaGpu::open(CudaOptions { device, ..Default::default() });
    let by_bus = open(CudaFilter::PciBusId(all[0].pci_bus_id.clone())).unwrap();
    assert_eq!(by_bus.profile(), &all[0]);
    assert_eq!(open(CudaFilter::Ordinal(0)).unwrap().profile(), &all[0]);
    refused(open(CudaFilter::Ordinal(99)), ErrorKind::NoAdapter, "number 99");
    refused(open(CudaFilter::PciBusId("0000:ff:1f.0".into())), ErrorKind::NoAdapter, "0000:ff:1f.0");
    refused(open(CudaFilter::PciBusId("nonsense\0".into())), ErrorKind::NoAdapter, &all[0].name);
    let (free, total) = cuda.memory().unwrap();
    assert!(free <= total && total <= all[0].total_memory);
}

#[test]
fn uploads_read_back_unchanged() {
    let Some(cuda) = cuda() else { return };
    let data: Vec<u8> = Random::new(1).elements(100_001);
    let buffer = cuda.upload(&data).unwrap();
    assert_eq!(buffer.read().unwrap(), data);
    let part = buffer.slice(3..1000).unwrap();
    assert_eq!(part.slice(7..).unwrap().read().unwrap(), data[10..1000]);
    part.slice(..2).unwrap().write(&[1, 2]).unwrap();
    assert_eq!(buffer.slice(2..6).unwrap().read().unwrap(), [data[2], 1, 2, data[5]]);
    assert!(cuda.alloc::<half::bf16>(0).unwrap().read().unwrap().is_empty());
    refused(buffer.slice(5..100_002), ErrorKind::Shape, "100001 elements");
    refused(buffer.write(&[0]), ErrorKind::Shape, "1 elements given");
    // Memory of the caller's: the half of a buffer, by address.
    let words = cuda.upload(&[1u32, 2, 3, 4]).unwrap();
    let address = words.address() + 8;
    // SAFETY: two words lie there, and the owner keeps them alive.
    let half: CudaBuffer<u32> = unsafe { cuda.wrap(address, 2, words.clone()) }.unwrap();
    drop(words);
    assert_eq!(half.read().unwrap(), [3, 4]);
    // SAFETY: refused.
    let odd = unsafe { cuda.wrap::<u32>(address + 1, 1, ()) };
    refused(odd, ErrorKind::Buffer, "is not aligned");
}

#[test]
fn an_allocation_that_is_too_large_is_an_error() {
    let Some(cuda) = cuda() else { return };
    refused(cuda.alloc::<f32>(1 << 40), ErrorKind::OutOfMemory, "free buffers");
    refused(cuda.alloc::<f32>(usize::MAX), ErrorKind::TooLarge, "split the data");
    assert_eq!(cuda.upload(&[1.5f32]).unwrap().read().unwrap(), [1.5]);
}

#[test]
fn operands_are_checked_before_anything_runs() {
    let Some(cuda) = cuda() else { return };
    let stream = cuda.stream().unwrap();
    let plan = Scan::new(Sum, 8).plan::<u32>(cuda).unwrap();
    let (x, y) = (cuda.upload(&[1u32; 24]).unwrap(), cuda.alloc::<u32>(8).unwrap());
    let part = |at: usize| x.slice(at..at + 8).unwrap();
    refused(plan.run(&stream, &x, &y), ErrorKind::Shape, "input has 24 elements; the plan wants 8");
    refused(plan.run(&stream, part(1), &y), ErrorKind::Buffer, "multiples of 4 elements");
    refused(plan.run(&stream, part(0), part(4)), ErrorKind::Aliasing, "input and output overlap");
    let swapped = "scan: input was allocated and never written; are input and output swapped?";
    refused(plan.run(&stream, &y, part(0)), ErrorKind::Buffer, swapped);
    refused(stream.copy(&y, part(0)), ErrorKind::Buffer, "are the source and the target swapped?");
    // Disjoint parts of one buffer count as two operands.
    plan.run(&stream, part(0), part(8)).unwrap();
    plan.run(&stream, part(0), &y).unwrap();
    plan.run(&stream, &y, part(16)).unwrap();
    assert_eq!(part(8).read().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let other = CudaGpu::open(CudaOptions { cache: CacheDir::Off, ..Default::default() }).unwrap();
    let far = other.upload(&[1u32; 8]).unwrap();
    refused(plan.run(&stream, &far, &y), ErrorKind::Buffer, "input lives on another CudaGpu");
    refused(plan.run(&other.stream().unwrap(), part(0), &y), ErrorKind::Buffer, "the stream belongs to");
    refused(stream.copy(&far, &y), ErrorKind::Buffer, "copy through the host");
    refused(stream.copy(part(0), part(4)), ErrorKind::Aliasing, "overlap");
    let untyped = [CudaSlice::from(&y).untyped()];
    refused(plan.into_executable().run(&stream, &untyped), ErrorKind::Shape, "1 operands given; the plan wants 2");
}

#[test]
fn rejects_launches_that_do_not_fit() {
    let Some(cuda) = cuda() else { return };
    let program = CudaOp::<u32>::lower(&Scan::new(Sum, 1 << 24), cuda.profile()).unwrap();
    let with = |change: &dyn Fn(&mut Launch)| {
        let mut program = program.clone();
        change(&mut program.launches[0]);
        // SAFETY: refused, so nothing runs.
        unsafe { cuda.prepare(program) }
    };
    refused(with(&|l| l.grid = [100_000, 1, 1]), ErrorKind::TooLarge, "100000 blocks that wait for each other");
    refused(with(&|l| l.block = 1024), ErrorKind::TooLarge, "registers allow");
    refused(with(&|l| l.shared = 1 << 20), ErrorKind::TooLarge, "bytes of shared memory");
    refused(with(&|l| l.args[0] = Arg::Operand(7)), ErrorKind::InvalidArgument, "Operand(7)");
    refused(with(&|l| l.cluster = [5, 1, 1]), ErrorKind::InvalidArgument, "clusters");
}

#[test]
fn streams_copy_in_order_and_wait_for_events() {
    let Some(cuda) = cuda() else { return };
    let n = 1 << 20;
    let (first, second) = (cuda.stream().unwrap(), cuda.stream().unwrap());
    let data: Vec<u32> = Random::new(2).elements(n);
    let mut host = cuda.pinned::<u32>(n).unwrap();
    let mut back = cuda.pinned::<u32>(n).unwrap();
    host.get_mut().unwrap().copy_from_slice(&data);
    assert!(back.get().unwrap().iter().all(|x| *x == 0));
    let (x, y) = (cuda.alloc::<u32>(n).unwrap(), cuda.alloc::<u32>(n).unwrap());
    let scan = Scan::new(Sum, n).plan::<u32>(cuda).unwrap();
    for _ in 0..3 {
        first.upload(&host, &x).unwrap();
        scan.run(&first, &x, &y).unwrap();
        second.wait_for(&first.record().unwrap()).unwrap();
        second.download(&y, &back).unwrap();
        first.wait_for(&second.record().unwrap()).unwrap();
    }
    // `get` waits for the pending copy.
    let sum = data.iter().scan(0u32, |sum, x| {
        *sum = sum.wrapping_add(*x);
        Some(*sum)
    });
    assert!(back.get().unwrap().iter().copied().eq(sum));
    let (begin, end) = {
        let begin = first.record().unwrap();
        first.copy(&x, &y).unwrap();
        (begin, first.record().unwrap())
    };
    let seconds = end.seconds_since(&begin).unwrap();
    assert!(seconds > 0.0 && seconds < 1.0, "{seconds}");
    assert_eq!(y.read().unwrap(), data);
    let half = host.slice(..n / 2).unwrap();
    refused(first.upload(half, &x), ErrorKind::Shape, "slice the longer");
    // Dropped while a copy is pending.
    first.upload(half, x.slice(..n / 2).unwrap()).unwrap();
    drop((host, back, x, y));
    first.wait().unwrap();
}

#[test]
fn each_stream_has_its_own_scratch() {
    let Some(cuda) = cuda() else { return };
    let n = 3_000_000;
    let plan = Scan::new(Sum, n).plan::<u32>(cuda).unwrap();
    let works: Vec<_> = (1..=4u32)
        .map(|step| {
            let (x, y) = (cuda.upload(&vec![step; n]).unwrap(), cuda.alloc::<u32>(n).unwrap());
            (step, cuda.stream().unwrap(), x, y)
        })
        .collect();
    for _ in 0..10 {
        works.iter().for_each(|(_, stream, x, y)| plan.run(stream, x, y).unwrap());
    }
    for (step, stream, _, y) in &works {
        stream.wait().unwrap();
        assert!(y.read().unwrap().iter().zip(1u32..).all(|(y, i)| *y == i * step), "{step}");
        stream.trim();
    }
}

#[test]
fn measured_times_are_device_times() {
    let Some(cuda) = cuda() else { return };
    let stream = cuda.stream().unwrap();
    for n in [1usize << 16, 1 << 20, 1 << 24, 1 << 27] {
        let (x, y) = (cuda.alloc::<f32>(n).unwrap(), cuda.alloc::<f32>(n).unwrap());
        stream.clear(&x).unwrap();
        let plan = Scan::new(Sum, n).plan::<f32>(cuda).unwrap();
        let time = stream.measure(20, |stream| plan.run(stream, &x, &y)).unwrap();
        let rate = 8e-9 * n as f64 / time.median();
        eprintln!("scan of {n} f32: {:.1} us, {rate:.0} GB/s", time.median() * 1e6);
        assert!(time.seconds.len() == 20 && time.min() > 0.0 && time.max() < 1.0);
    }
}

#[test]
fn compiled_kernels_are_cached() {
    let Some(_) = cuda() else { return };
    let folder = std::env::temp_dir().join(format!("tilework-cuda-{}", std::process::id()));
    let open = || {
        let cache = CacheDir::At(folder.clone());
        let cuda = CudaGpu::open(CudaOptions { cache, ..Default::default() }).unwrap();
        let (x, y) = (cuda.upload(&[3u32, 4]).unwrap(), cuda.alloc(2).unwrap());
        Scan::new(Sum, 2).plan::<u32>(&cuda).unwrap().run(&cuda.stream().unwrap(), &x, &y).unwrap();
        assert_eq!(y.read().unwrap(), [3, 7]);
    };
    let homes = || std::fs::read_dir(&folder).unwrap().map(|home| home.unwrap().path());
    let in_home = |home| std::fs::read_dir(home).unwrap().map(|e| e.unwrap().path());
    let files = || homes().flat_map(in_home).collect::<Vec<_>>();
    open();
    let kept = files();
    assert_eq!(kept.len(), 1);
    let whole = std::fs::read(&kept[0]).unwrap();
    open();
    for bad in [&whole[..whole.len() - 1], b"tilework and no more"] {
        std::fs::write(&kept[0], bad).unwrap();
        open();
        assert_eq!((files(), std::fs::read(&kept[0]).unwrap().len()), (kept.clone(), whole.len()));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn modules_that_no_plan_has_are_unloaded() {
    let Some(_) = cuda() else { return };
    let options = CudaOptions { cache: CacheDir::Off, kept_modules: 2, ..Default::default() };
    let cuda = CudaGpu::open(options).unwrap();
    let (x, y, z) = (cuda.upload(&[3.0f32, 4.0]).unwrap(), cuda.upload(&[5.0f32, 2.0]).unwrap(), cuda.alloc(2));
    let (stream, z) = (cuda.stream().unwrap(), z.unwrap());
    let plan = |function: ZipFn| Zip::new(function, 2).plan::<f32>(&cuda).unwrap();
    let living = plan(ZipFn::Add);
    let cases =
        [(ZipFn::Sub, [-2.0, 2.0]), (ZipFn::Mul, [15.0, 8.0]), (ZipFn::Min, [3.0, 2.0]), (ZipFn::Max, [5.0, 4.0])];
    for (function, wanted) in cases.iter().chain(&cases) {
        plan(function.clone()).run(&stream, &x, &y, &z).unwrap();
        assert!(cuda.cache().in_memory <= 3);
        assert_eq!(z.read().unwrap(), wanted);
    }
    // Work that was launched ends before its module goes.
    plan(ZipFn::Mul).run(&stream, &x, &y, &z).unwrap();
    cuda.trim();
    assert_eq!((z.read().unwrap(), cuda.cache().in_memory), (vec![15.0, 8.0], 1));
    living.run(&stream, &x, &y, &z).unwrap();
    assert_eq!(z.read().unwrap(), [8.0, 6.0]);
}

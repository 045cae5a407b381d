//! Buffers and slices: ranges, lengths, bits, limits, and a caller's own buffers.

use super::{Caller, open, refused};
use crate::support::{Device, Random, devices, gpu};
use half::f16;
use std::ops::Bound::{Excluded, Included, Unbounded};
use tilework::ErrorKind::{Aliasing, Buffer as Wrong, InvalidArgument, OutOfMemory, Shape, TooLarge, Unsupported};
use tilework::{Element, Gpu, Plannable, Reduce, Slice, Sum, Zip, ZipFn};

fn raw(gpu: &Gpu, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    gpu.device().create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
}

#[test]
fn rejects_a_slice_out_of_range() {
    let Some(gpu) = gpu() else { return };
    let x = gpu.upload(&[0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let max = usize::MAX;
    refused(x.slice(..11), Shape, &["slice: the range 0..11 is not within 10 elements of u32"]);
    refused(x.slice(..=10), Shape, &["0..=10 is"]);
    refused(x.slice(..=max), Shape, &[]);
    refused(x.slice(..max), Shape, &[]);
    refused(x.slice(11..), Shape, &["11.. is"]);
    refused(x.slice(max..), Shape, &[]);
    refused(x.slice(max..max), Shape, &[]);
    refused(x.slice(max..=max), Shape, &[]);
    refused(x.slice((Excluded(max), Unbounded)), Shape, &[]);
    refused(x.slice((Excluded(9), Excluded(9))), Shape, &[]);
    refused(x.slice((Excluded(10), Unbounded)), Shape, &[]);
    #[expect(clippy::reversed_empty_ranges)]
    {
        refused(x.slice(5..3), Shape, &["5..3 is"]);
    }
    let part = x.slice(2..6).unwrap();
    refused(part.slice(..5), Shape, &["4 elements"]);
    refused(part.slice(5..), Shape, &[]);
    assert_eq!(part.slice(..).unwrap().read().unwrap(), [2, 3, 4, 5]);
    assert_eq!(part.slice(1..=2).unwrap().read().unwrap(), [3, 4]);
    assert_eq!(x.slice((Excluded(0), Included(3))).unwrap().read().unwrap(), [1, 2, 3]);
    assert_eq!(x.slice(10..).unwrap().len(), 0);
    assert_eq!(x.slice(4..4).unwrap().read().unwrap(), [0u32; 0]);
}

#[test]
fn empty_buffers_upload_read_and_copy() {
    for d in devices() {
        let gpu = &d.gpu;
        let nothing = gpu.alloc::<f32>(0).unwrap();
        assert!(nothing.is_empty() && nothing.read().unwrap().is_empty());
        assert!(gpu.upload::<u8>(&[]).unwrap().read().unwrap().is_empty());
        assert!(pollster::block_on(nothing.read_async()).unwrap().is_empty());
        assert!(gpu.alloc_zeroed::<f16>(0).unwrap().read().unwrap().is_empty());
        nothing.write(&[]).unwrap();
        refused(nothing.write(&[1.0]), Shape, &["1 elements", "slice of 0"]);
        let bytes = gpu.upload(&[1u8, 2, 3, 4, 5]).unwrap();
        bytes.slice(3..3).unwrap().write(&[]).unwrap();
        let mut rec = gpu.recorder();
        rec.clear(&nothing).unwrap();
        rec.copy(&nothing, &gpu.alloc(0).unwrap()).unwrap();
        rec.clear(bytes.slice(1..1).unwrap()).unwrap();
        rec.submit().unwrap();
        gpu.recorder().submit().unwrap();
        assert_eq!(bytes.read().unwrap(), [1, 2, 3, 4, 5], "{}", d.label);
    }
}

#[test]
fn empty_slices_reduce_to_the_identity() {
    for d in devices() {
        let gpu = &d.gpu;
        let x = gpu.upload(&[7.0f32; 64]).unwrap();
        let total = gpu.upload(&[7.0f32; 64]).unwrap();
        let plan = Reduce::new(Sum, 0).plan::<f32>(gpu).unwrap();
        // The last slice starts at the very end of the buffer.
        for at in [0, 1, 3, 64] {
            total.slice(..1).unwrap().write(&[9.0]).unwrap();
            let mut rec = gpu.recorder();
            plan.record(&mut rec, x.slice(at..at).unwrap(), total.slice(..1).unwrap()).unwrap();
            rec.submit().unwrap();
            assert_eq!(total.slice(..2).unwrap().read().unwrap(), [0.0, 7.0], "{} at {at}", d.label);
        }
        // In the buffer that is written: wgpu must not report an error.
        let mut rec = gpu.recorder();
        match plan.record(&mut rec, total.slice(..0).unwrap(), total.slice(..1).unwrap()) {
            Ok(()) => {}
            Err(e) => assert_eq!(e.kind(), Aliasing),
        }
        rec.submit().unwrap();
    }
}

#[test]
fn every_bit_pattern_survives_upload_and_readback() {
    for d in devices() {
        let gpu = &d.gpu;
        let mut random = Random::new(1);
        let special = [
            0x7fc0_0000u32,
            0xffc0_0000,
            0x7f80_0001,
            0xff80_0001,
            0x7fff_ffff,
            0xffff_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x8000_0000,
            0,
            1,
            0x8000_0001,
            0x007f_ffff,
        ];
        let bits: Vec<u32> = special.into_iter().chain((0..1000).map(|_| random.next() as u32)).collect();
        let floats: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
        let got = gpu.upload(&floats).unwrap().read().unwrap();
        assert_eq!(got.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), bits, "{}", d.label);
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let got = pollster::block_on(gpu.upload(&halves).unwrap().read_async()).unwrap();
        assert!(got.iter().map(|x| x.to_bits()).eq(0..=u16::MAX), "{}", d.label);
        // A copy on the device keeps bits too.
        let (from, to) = (gpu.upload(&floats).unwrap(), gpu.alloc::<f32>(floats.len()).unwrap());
        let mut rec = gpu.recorder();
        rec.copy(&from, &to).unwrap();
        rec.submit().unwrap();
        assert_eq!(to.read().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>(), bits, "{}", d.label);
    }
}

#[test]
fn odd_lengths_of_small_elements_round_trip() {
    fn check<T: Element>(gpu: &Gpu, element: impl Fn(usize) -> T) {
        for n in (1..=9).chain([255, 256, 257, 1023, 70_001]) {
            let data: Vec<T> = (0..n).map(&element).collect();
            let x = gpu.upload(&data).unwrap();
            assert_eq!(x.read().unwrap(), data, "{n} elements of {}", T::DTYPE);
            assert_eq!(pollster::block_on(x.read_async()).unwrap(), data);
            assert_eq!(gpu.alloc_zeroed::<T>(n).unwrap().read().unwrap(), vec![T::default(); n]);
        }
    }
    for d in devices() {
        check(&d.gpu, |i| i as u8);
        check(&d.gpu, |i| i as i8);
        check(&d.gpu, |i| f16::from_f32((i % 2000) as f32));
    }
}

#[test]
fn rejects_a_slice_that_shares_a_word_and_keeps_neighbours() {
    let Some(gpu) = gpu() else { return };
    let data: Vec<u8> = (0..11).collect();
    let x = gpu.upload(&data).unwrap();
    assert_eq!(x.slice(4..7).unwrap().read().unwrap(), [4, 5, 6]);
    refused(x.slice(1..5).unwrap().read(), Wrong, &["read", "1..5", "u8", "4-byte words", "multiple of 4"]);
    refused(pollster::block_on(x.slice(2..4).unwrap().read_async()), Wrong, &[]);
    refused(x.slice(4..7).unwrap().write(&[0, 0, 0]), Wrong, &["write", "4..7"]);
    refused(x.slice(3..7).unwrap().write(&[0, 0, 0, 0]), Wrong, &[]);
    assert_eq!(x.read().unwrap(), data);
    x.slice(4..8).unwrap().write(&[40, 50, 60, 70]).unwrap();
    x.slice(8..).unwrap().write(&[80, 90, 100]).unwrap();
    assert_eq!(x.read().unwrap(), [0, 1, 2, 3, 40, 50, 60, 70, 80, 90, 100]);

    let y = gpu.upload(&data).unwrap();
    let mut rec = gpu.recorder();
    refused(rec.clear(y.slice(4..7).unwrap()), Wrong, &["clear"]);
    refused(rec.clear(y.slice(1..4).unwrap()), Wrong, &[]);
    refused(rec.copy(x.slice(0..3).unwrap(), y.slice(0..3).unwrap()), Wrong, &["copy"]);
    refused(rec.copy(x.slice(1..5).unwrap(), y.slice(0..4).unwrap()), Wrong, &[]);
    rec.copy(x.slice(4..8).unwrap(), y.slice(0..4).unwrap()).unwrap();
    rec.copy(x.slice(8..).unwrap(), y.slice(8..).unwrap()).unwrap();
    rec.clear(y.slice(4..8).unwrap()).unwrap();
    rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), [40, 50, 60, 70, 0, 0, 0, 0, 80, 90, 100]);

    let halves: Vec<f16> = (0..7).map(|i| f16::from_f32(i as f32)).collect();
    let h = gpu.upload(&halves).unwrap();
    refused(h.slice(0..1).unwrap().write(&halves[..1]), Wrong, &["multiple of 2"]);
    let mut rec = gpu.recorder();
    rec.clear(h.slice(6..).unwrap()).unwrap();
    rec.submit().unwrap();
    assert_eq!(h.slice(4..).unwrap().read().unwrap(), [halves[4], halves[5], f16::ZERO]);
}

#[test]
fn fill_sets_every_element_and_no_other() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(d: &Device, value: T) {
        let (gpu, label) = (&d.gpu, format!("{}, {}", d.label, T::DTYPE));
        for n in [1, 3, 4, 1023, 2500, 70_000] {
            let x = gpu.upload(&vec![T::default(); n]).unwrap();
            let mut rec = gpu.recorder();
            rec.fill(&x, value).unwrap();
            rec.submit().unwrap();
            assert!(x.read().unwrap() == vec![value; n], "{label}: {n}");
        }
        // A slice in the middle, and one to the end.
        let x = gpu.upload(&[T::default(); 1000]).unwrap();
        for (range, end) in [(256..512, 512), (768..1000, 1000)] {
            let mut rec = gpu.recorder();
            rec.fill(x.slice(range.clone()).unwrap(), value).unwrap();
            rec.submit().unwrap();
            let got = x.read().unwrap();
            assert!(got[range].iter().all(|v| *v == value), "{label}: to {end}");
            assert!(got[512..768].iter().chain(&got[..256]).all(|v| *v == T::default()), "{label}: to {end}");
        }
    }
    for d in devices() {
        check(d, 0xa5u8);
        check(d, -7i8);
        check(d, f16::from_f32(-1.5));
        check(d, 1e-30f32);
        check(d, -5i32);
        check(d, u32::MAX);
        if d.gpu.profile().features.int64 {
            check(d, 0x0123_4567_89ab_cdefu64);
        }
    }
    let Some(gpu) = gpu() else { return };
    let x = gpu.upload(&[1u8; 2000]).unwrap();
    let mut rec = gpu.recorder();
    refused(rec.fill(x.slice(0..255).unwrap(), 3), Wrong, &["fill", "255 elements of u8", "4-byte word"]);
    refused(rec.fill(x.slice(4..8).unwrap(), 3), Wrong, &["fill", "byte 4", "alignment"]);
    // Multiples are of the caller's elements.
    let alignment = gpu.profile().limits.storage_alignment;
    let multiples = |size: u32| format!("multiples of {} elements", alignment / size);
    refused(rec.fill(x.slice(4..8).unwrap(), 3), Wrong, &[&multiples(1)]);
    let halves = gpu.upload(&[f16::ZERO; 64]).unwrap();
    refused(rec.fill(halves.slice(2..8).unwrap(), f16::ONE), Wrong, &[&multiples(2)]);
    refused(rec.clear(halves.slice(1..8).unwrap()), Wrong, &["clear", "1..8 of 64", "multiple of 2"]);
    let other = gpu.upload(&[f16::ZERO; 7]).unwrap();
    refused(rec.copy(halves.slice(1..8).unwrap(), &other), Wrong, &["copy", "1..8 of 64", "multiple of 2"]);
    rec.fill(x.slice(7..7).unwrap(), 3).unwrap();
    rec.submit().unwrap();
    assert_eq!(x.read().unwrap(), [1; 2000]);
    let profile = gpu.profile_work(|rec| rec.fill(&x, 9)).unwrap();
    assert_eq!((profile.ops[0].op.as_str(), profile.ops[0].cost.unwrap().bytes), ("fill", 2000.0));
    assert_eq!(x.read().unwrap(), [9; 2000]);
}

#[test]
fn an_output_that_shares_a_word_keeps_its_neighbours() {
    let Some(gpu) = gpu() else { return };
    let x = gpu.upload(&[3u8; 12]).unwrap();
    let out = gpu.upload(&[9u8; 8]).unwrap();
    let plan = Reduce::rows(tilework::Max, 3, 4).plan::<u8>(gpu).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, out.slice(0..3).unwrap()).unwrap();
    rec.submit().unwrap();
    assert_eq!(out.read().unwrap(), [3, 3, 3, 9, 9, 9, 9, 9]);
}

#[test]
fn rejects_a_buffer_above_the_limit_and_keeps_working() {
    for d in devices() {
        let gpu = &d.gpu;
        let x = gpu.upload(&[1.0f32, 2.0]).unwrap();
        let limit = gpu.profile().limits.max_buffer_size;
        let above = usize::try_from(limit / 4 + 1).unwrap();
        let result = gpu.alloc::<f32>(above);
        refused(result, TooLarge, &["alloc", &above.to_string(), &limit.to_string(), "split"]);
        refused(gpu.alloc_zeroed::<f32>(above), TooLarge, &[]);
        refused(gpu.alloc::<u8>(usize::MAX), TooLarge, &[]);
        refused(gpu.alloc::<f32>(usize::MAX), TooLarge, &[]);
        refused(gpu.alloc::<f16>(usize::MAX / 2 + 1), TooLarge, &[]);
        // The largest possible buffer. Its memory is never touched.
        match gpu.alloc::<f32>(usize::try_from(limit / 4).unwrap()) {
            Ok(largest) => assert_eq!(largest.len() as u64, limit / 4),
            Err(e) => assert_eq!(e.kind(), OutOfMemory, "{e}"),
        }
        gpu.trim();
        assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [3.0], "{}", d.label);
    }
}

#[test]
fn u64_requires_device_support() {
    for d in devices() {
        let gpu = &d.gpu;
        let data = [0, 1, u64::MAX, 1 << 32];
        let foreign = || raw(gpu, 20, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
        if gpu.profile().features.int64 {
            assert_eq!(gpu.upload(&data).unwrap().read().unwrap(), data);
            assert_eq!(gpu.wrap::<u64>(foreign()).unwrap().len(), 2);
        } else {
            refused(gpu.alloc::<u64>(1), Unsupported, &["alloc", "64-bit", "two u32"]);
            refused(gpu.upload(&data), Unsupported, &[]);
            refused(gpu.wrap::<u64>(foreign()), Unsupported, &["wrap"]);
        }
    }
}

#[test]
fn rejects_a_write_of_another_length() {
    let Some(gpu) = gpu() else { return };
    let x = gpu.upload(&[1u32, 2, 3]).unwrap();
    refused(x.write(&[1, 2]), Shape, &["write", "2 elements", "slice of 3"]);
    refused(x.slice(1..).unwrap().write(&[1, 2, 3]), Shape, &[]);
    assert_eq!(x.read().unwrap(), [1, 2, 3]);
}

#[test]
fn a_callers_buffer_is_checked_for_size_and_usage() {
    use wgpu::BufferUsages as U;
    let Some(gpu) = gpu() else { return };
    refused(gpu.wrap::<f32>(raw(gpu, 64, U::COPY_SRC | U::COPY_DST)), Wrong, &["wrap", "STORAGE"]);
    refused(gpu.wrap::<f32>(raw(gpu, 6, U::STORAGE)), Wrong, &["6 bytes", "multiples of 4"]);
    refused(gpu.wrap::<f32>(raw(gpu, 0, U::STORAGE)), Wrong, &["0 bytes"]);

    let storage_only = gpu.wrap::<f32>(raw(gpu, 64, U::STORAGE)).unwrap();
    let full = gpu.upload(&[1.0f32; 16]).unwrap();
    refused(storage_only.read(), Wrong, &["read", "COPY_SRC"]);
    refused(pollster::block_on(storage_only.read_async()), Wrong, &["COPY_SRC"]);
    refused(storage_only.write(&[0.0; 16]), Wrong, &["write", "COPY_DST"]);
    let mut rec = gpu.recorder();
    refused(rec.clear(&storage_only), Wrong, &["clear", "COPY_DST"]);
    refused(rec.copy(&storage_only, &full), Wrong, &["copy", "COPY_SRC"]);
    refused(rec.copy(&full, &storage_only), Wrong, &["copy", "COPY_DST"]);
    // It is usable by kernels.
    let plan = Reduce::new(Sum, 16).plan::<f32>(gpu).unwrap();
    let total = gpu.wrap::<f32>(raw(gpu, 4, U::STORAGE | U::COPY_SRC)).unwrap();
    plan.record(&mut rec, &full, &total).unwrap();
    plan.record(&mut rec, &storage_only, gpu.alloc::<f32>(1).as_ref().unwrap()).unwrap();
    rec.submit().unwrap();
    assert_eq!(total.read().unwrap(), [16.0]);
}

#[test]
fn a_buffer_wrapped_twice_cannot_be_input_and_output() {
    use wgpu::BufferUsages as U;
    let Some(gpu) = gpu() else { return };
    let shared = raw(gpu, 4096, U::STORAGE | U::COPY_SRC | U::COPY_DST);
    let (a, b) = (gpu.wrap::<f32>(shared.clone()).unwrap(), gpu.wrap::<f32>(shared).unwrap());
    let plan = Reduce::new(Sum, 64).plan::<f32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    let front = a.slice(..64).unwrap();
    let result = plan.record(&mut rec, front, b.slice(..1).unwrap());
    refused(result, Aliasing, &["input and output", "one wgpu buffer", "two buffers"]);
    refused(rec.copy(front, b.slice(512..576).unwrap()), Aliasing, &["copy"]);
    rec.submit().unwrap();
}

#[test]
fn memory_of_the_pool_is_not_wrapped() {
    let Some(gpu) = gpu() else { return };
    let ours = gpu.upload(&[1.0f32; 64]).unwrap();
    refused(gpu.wrap::<u32>(ours.raw().clone()), Wrong, &["wrap", "pool", "clone that Buffer", "bitcast"]);
    let gpu = open(false).unwrap();
    let ours = gpu.upload(&[1.0f32; 64]).unwrap();
    let raw = ours.raw().clone();
    drop(ours);
    refused(gpu.wrap::<u32>(raw.clone()), Wrong, &["wrap", "pool"]);
    // Once the pool has given it back, only the caller holds it.
    gpu.wait().unwrap();
    gpu.trim();
    assert_eq!(gpu.wrap::<f32>(raw).unwrap().read().unwrap()[..64], [1.0; 64]);
}

#[test]
fn bitcast_reads_the_same_bits_as_another_type() {
    use half::{bf16, f16};
    for d in devices() {
        let gpu = &d.gpu;
        let x = gpu.upload(&[1.0f32, -0.0, f32::INFINITY, 2.5]).unwrap();
        let bits = x.bitcast::<u32>().unwrap();
        assert_eq!(bits.read().unwrap(), [0x3f80_0000, 0x8000_0000, 0x7f80_0000, 0x4020_0000]);
        // Both are one memory, also to the checks.
        assert_eq!(bits.raw(), x.raw());
        let copy = Zip::new(ZipFn::Add, 4).plan::<u32>(gpu).unwrap();
        let aliased = copy.record(&mut gpu.recorder(), &bits, &bits, &x.bitcast::<u32>().unwrap());
        refused(aliased, Aliasing, &["zip"]);
        drop(x);
        let part = Slice::from(&bits).slice(1..3).unwrap().bitcast::<f32>().unwrap();
        assert_eq!(part.read().unwrap(), [-0.0, f32::INFINITY]);
        let bytes = gpu.upload(&[-1i8, 1, 2]).unwrap();
        assert_eq!(bytes.bitcast::<u8>().unwrap().read().unwrap(), [255, 1, 2]);
        refused(bits.bitcast::<f16>(), InvalidArgument, &["bitcast", "u32 has 4 bytes", "f16 has 2"]);
        refused(Slice::from(&bits).bitcast::<u8>(), InvalidArgument, &["bitcast"]);
        let halves = gpu.upload(&[f16::ONE; 2]).unwrap();
        refused(halves.bitcast::<bf16>(), Unsupported, &["bitcast", "bf16"]);
        // Written or not, it is the same memory.
        let fresh = gpu.alloc::<f32>(4).unwrap();
        let view = fresh.bitcast::<i32>().unwrap();
        view.write(&[7; 4]).unwrap();
        assert_eq!(gpu.reduce(&fresh.bitcast::<i32>().unwrap(), Sum).unwrap().read().unwrap(), [28]);
    }
}

#[test]
fn a_callers_buffer_is_released_when_dropped() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let plan = Reduce::new(Sum, 1 << 20).plan::<f32>(&gpu).unwrap();
    let total = gpu.alloc::<f32>(1).unwrap();
    let named = |caller: &Caller| {
        let report = caller.device.generate_allocator_report();
        report.map(|r| r.allocations.iter().filter(|a| a.name.contains("the caller's")).count())
    };
    let desc = wgpu::BufferDescriptor {
        label: Some("the caller's"),
        size: 4 << 20,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    };
    let x = gpu.wrap::<f32>(caller.device.create_buffer(&desc)).unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &total).unwrap();
    rec.submit().unwrap();
    let before = named(&caller);
    drop(x);
    gpu.wait().unwrap();
    gpu.wait().unwrap();
    if before.is_some() {
        assert_eq!((before, named(&caller)), (Some(1), Some(0)), "the plan keeps a dropped buffer alive");
    }
    assert_eq!(caller.errors(), 0);
}

#[test]
fn bf16_is_rejected_outside_cuda() {
    use half::bf16;
    use tilework::program::{DeviceProfile, Op};
    use tilework::{Axpy, Filter2d, Histogram, Map, MapFn, RadixSort, TopK, Zip, ZipFn};

    let profile = DeviceProfile::h100();
    let lowered = [
        Op::<bf16>::lower(&Map::new(MapFn::Abs, 8), &profile),
        Op::<bf16>::lower(&Zip::new(ZipFn::Add, 8), &profile),
        Op::<bf16>::lower(&Axpy::new(8, 1.0), &profile),
        Op::<bf16>::lower(&Histogram::new(8, 2).range(0.0, 1.0), &profile),
        Op::<bf16>::lower(&RadixSort::new(8), &profile),
        Op::<bf16>::lower(&TopK::new(8, 2), &profile),
        Op::<bf16>::lower(&Filter2d::new([8, 8], [1, 1], &[1.0]), &profile),
    ];
    for program in lowered {
        refused(program, Unsupported, &["bf16"]);
    }
    let Some(gpu) = gpu() else { return };
    refused(gpu.alloc::<bf16>(8), Unsupported, &["WGSL has no bf16", "CudaGpu"]);
    refused(gpu.upload(&[bf16::ONE]), Unsupported, &["WGSL has no bf16"]);
}

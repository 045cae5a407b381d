//! Reading a buffer that was never written is an error, which finds swapped inputs and outputs.

use super::{open, refused};
use crate::support::{devices, gpu};
use tilework::ErrorKind::{Buffer as Wrong, Shape};
use tilework::gpu::Arg;
use tilework::{Axpy, Buffer, Gpu, Map, MapFn, Plannable, Reduce, Scan, Slice, Sum, Zip, ZipFn};

const NEVER: &str = "was allocated and never written";

/// A written buffer and an unwritten one, of `n` elements each.
fn pair(gpu: &Gpu, n: usize) -> (Buffer<u32>, Buffer<u32>) {
    (gpu.upload(&vec![1u32; n]).unwrap(), gpu.alloc(n).unwrap())
}

/// Asserts that a scan rejects the buffer as unwritten.
#[track_caller]
fn is_refused(buffer: &Buffer<u32>) {
    let gpu = buffer.gpu();
    let scan = Scan::new(Sum, buffer.len()).plan::<u32>(gpu).unwrap();
    let output = gpu.alloc::<u32>(buffer.len()).unwrap();
    let result = scan.record(&mut gpu.recorder(), buffer, &output);
    refused(result, Wrong, &["scan: input", NEVER, "write it first"]);
}

#[track_caller]
fn is_taken(buffer: &Buffer<u32>) {
    let gpu = buffer.gpu();
    let scan = Scan::new(Sum, buffer.len()).plan::<u32>(gpu).unwrap();
    scan.record(&mut gpu.recorder(), buffer, &gpu.alloc::<u32>(buffer.len()).unwrap()).unwrap();
}

#[test]
fn rejects_swapped_operands_and_keeps_the_input() {
    for d in devices() {
        let gpu = &d.gpu;
        let (input, output) = pair(gpu, 100);
        let scan = Scan::new(Sum, 100).plan::<u32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        let swapped = "scan: input was allocated and never written; are input and output swapped? Write it first, or \
                       use alloc_zeroed";
        refused(scan.record(&mut rec, &output, &input), Wrong, &[swapped]);
        rec.submit().unwrap();
        assert_eq!(input.read().unwrap(), [1; 100], "{}", d.label);
        is_refused(&output);

        let (x, y) = (gpu.upload(&[4.0f32; 7]).unwrap(), gpu.alloc::<f32>(7).unwrap());
        let map = Map::new(MapFn::Neg, 7).plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        refused(map.record(&mut rec, &y, &x), Wrong, &["map: x", NEVER, "are x and y swapped?"]);
        map.record(&mut rec, &x, &y).unwrap();
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap(), [-4.0; 7], "{}", d.label);
        let zip = Zip::new(ZipFn::Add, 7).plan::<f32>(gpu).unwrap();
        let z = gpu.alloc::<f32>(7).unwrap();
        refused(zip.record(&mut gpu.recorder(), &x, &z, &y), Wrong, &["zip", NEVER, "swapped?"]);
    }
}

#[test]
fn inputs_of_custom_kernels_must_be_written() {
    let Some(gpu) = gpu() else { return };
    let copy = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(64)
        fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&input) { output[id.x] = input[id.x]; }
        }";
    let copy = gpu.kernel("copy.wgsl", copy, "copy").unwrap();
    let (full, empty) = pair(gpu, 64);
    let mut rec = gpu.recorder();
    let swapped = copy.record(&mut rec, &[Arg::from(&empty), Arg::from(&full)], [1, 1, 1]);
    refused(swapped, Wrong, &["copy.wgsl:copy: input", NEVER, "are input and output swapped?"]);
    is_refused(&empty);
    let two = gpu.alloc::<u32>(1).unwrap();
    let args = [Arg::from(&full), Arg::from(&empty)];
    refused(copy.record_counted(&mut rec, &args, &two, 64, 64), Wrong, &["copy.wgsl:copy", NEVER]);
    is_refused(&empty);
    copy.record(&mut rec, &args, [1, 1, 1]).unwrap();
    rec.submit().unwrap();
    assert_eq!((full.read().unwrap(), empty.read().unwrap()), (vec![1; 64], vec![1; 64]));
    is_taken(&empty);
}

#[test]
fn every_way_to_write_marks_a_buffer_written() {
    let Some(gpu) = gpu() else { return };
    let n = 256;
    let wrote = |write: &dyn Fn(&Buffer<u32>)| {
        let buffer = gpu.alloc::<u32>(n).unwrap();
        is_refused(&buffer);
        write(&buffer);
        is_taken(&buffer);
    };
    let source = gpu.upload(&vec![1u32; n]).unwrap();
    wrote(&|b| b.write(&vec![1; n]).unwrap());
    // Writing a part marks the whole buffer, whichever part the op reads.
    wrote(&|b| b.slice(..4).unwrap().write(&[1; 4]).unwrap());
    wrote(&|b| gpu.recorder().copy(&source, b).unwrap());
    wrote(&|b| gpu.recorder().clear(b).unwrap());
    wrote(&|b| gpu.recorder().fill(b, 7).unwrap());
    wrote(&|b| drop(b.raw().clone()));
    is_taken(&gpu.alloc_zeroed::<u32>(n).unwrap());
    let own = gpu.device().create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4 * n as u64,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    is_taken(&gpu.wrap::<u32>(own).unwrap());
    // Reading back to the host is allowed and does not mark the buffer as written.
    let buffer = gpu.alloc::<u32>(n).unwrap();
    assert_eq!(buffer.read().unwrap().len(), n);
    is_refused(&buffer);
    let result = gpu.recorder().copy(&buffer, &source);
    refused(result, Wrong, &["copy", NEVER, "are the source and the target swapped?"]);
    gpu.recorder().copy(Slice::from(&buffer).slice(..0).unwrap(), source.slice(..0).unwrap()).unwrap();
    // An operand updated in place need not have been written before.
    let (x, y) = (gpu.upload(&[1.0f32; 8]).unwrap(), gpu.alloc::<f32>(8).unwrap());
    Axpy::new(8, 2.0).plan::<f32>(gpu).unwrap().record(&mut gpu.recorder(), &x, &y).unwrap();
}

#[test]
fn earlier_records_count_as_writes_and_rejected_ones_do_not() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = pair(gpu, 64);
    let z = gpu.alloc::<u32>(64).unwrap();
    let scan = Scan::new(Sum, 64).plan::<u32>(gpu).unwrap();
    let mut rec = gpu.recorder();
    refused(scan.record(&mut rec, &y, &z), Wrong, &[NEVER]);
    refused(scan.record(&mut rec, x.slice(..63).unwrap(), &y), Shape, &[]);
    is_refused(&y);
    is_refused(&z);
    scan.record(&mut rec, &x, &y).unwrap();
    scan.record(&mut rec, &y, &z).unwrap();
    rec.submit().unwrap();
    assert_eq!(z.read().unwrap()[..4], [1, 3, 6, 10]);
    let profile = gpu.profile_work(|rec| {
        let w = gpu.alloc::<u32>(64)?;
        scan.record(rec, &z, &w)?;
        scan.record(rec, &w, &y)
    });
    profile.unwrap();
}

#[test]
fn reused_memory_counts_as_unwritten() {
    let Some(gpu) = open(false) else { return };
    let reduce = Reduce::new(Sum, 5000).plan::<u32>(&gpu).unwrap();
    let total = gpu.alloc::<u32>(1).unwrap();
    let record = |input: &Buffer<u32>| {
        let mut rec = gpu.recorder();
        reduce.record(&mut rec, input, &total)?;
        rec.submit()
    };
    let first = gpu.upload(&vec![1u32; 5000]).unwrap();
    record(&first).unwrap();
    record(&first).unwrap();
    let raw = first.raw().clone();
    drop(first);
    gpu.wait().unwrap();
    let again = gpu.alloc::<u32>(5000).unwrap();
    // The plan has bound this memory before.
    refused(record(&again), Wrong, &["reduce: input", NEVER]);
    refused(record(&again), Wrong, &[NEVER]);
    assert_eq!(again.raw(), &raw, "the pool had the memory");
    again.write(&vec![2; 5000]).unwrap();
    record(&again).unwrap();
    assert_eq!(total.read().unwrap(), [10_000]);
}

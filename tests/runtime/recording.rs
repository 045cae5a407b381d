//! Recording: rejected operands, lifetimes, and parameters that are not overwritten.

use super::{Caller, open, refused};
use crate::support::{Sample, devices, gpu};
use half::f16;
use tilework::ErrorKind::{Aliasing, Buffer as Wrong, Shape};
use tilework::program::Op;
use tilework::{Buffer, Gpu, Map, MapFn, Min, Plannable, Predicate, Reduce, Reverse, Select, Sum};

fn ones(gpu: &Gpu, n: usize) -> Buffer<f32> {
    gpu.upload(&vec![1.0; n]).unwrap()
}

#[test]
fn rejects_wrong_operand_sizes() {
    for d in devices() {
        let gpu = &d.gpu;
        let (x, y) = (ones(gpu, 100), gpu.upload(&[5.0f32; 2]).unwrap());
        let plan = Reduce::rows(Sum, 2, 50).plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        let short = x.slice(..99).unwrap();
        refused(plan.record(&mut rec, short, &y), Shape, &["reduce", "input", "99 elements", "100"]);
        refused(plan.record(&mut rec, &x, y.slice(..1).unwrap()), Shape, &["output", "1 elements", "2"]);
        refused(plan.record(&mut rec, x.slice(..0).unwrap(), &y), Shape, &[]);
        refused(gpu.reduce_rows(&x, Sum, 3), Shape, &["100 elements", "3 equal rows"]);
        refused(gpu.reduce_rows(&x, Sum, 0), Shape, &[]);
        refused(Reduce::rows(Min, 2, 0).plan::<f32>(gpu), Shape, &["min", "0 elements"]);
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap(), [5.0, 5.0], "a refused op was recorded on {}", d.label);
    }
}

#[test]
fn rejects_untyped_operands_of_another_type_or_number() {
    use tilework::program::Op;
    let Some(gpu) = gpu() else { return };
    let executable = gpu.prepare(Op::<f32>::lower(&Reduce::new(Sum, 4), gpu.profile()).unwrap()).unwrap();
    let (x, i, y) = (ones(gpu, 4), gpu.upload(&[1i32; 4]).unwrap(), gpu.alloc::<f32>(1).unwrap());
    fn raw(b: &tilework::Buffer<f32>) -> tilework::gpu::RawSlice<'_> {
        tilework::Slice::from(b).untyped()
    }
    let mut rec = gpu.recorder();
    let ints = tilework::Slice::from(&i).untyped();
    refused(executable.record(&mut rec, &[ints, raw(&y)]), Shape, &["input holds i32", "f32"]);
    refused(executable.record(&mut rec, &[raw(&x)]), Shape, &["1 operands", "2"]);
    refused(executable.record(&mut rec, &[raw(&x), raw(&y), raw(&y)]), Shape, &["3 operands"]);
    refused(executable.record(&mut rec, &[]), Shape, &[]);
    executable.record(&mut rec, &[raw(&x), raw(&y)]).unwrap();
    rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), [4.0]);
}

#[test]
fn rejects_one_buffer_as_input_and_output() {
    for d in devices() {
        let gpu = &d.gpu;
        let x = ones(gpu, 1024);
        let plan = Reduce::new(Sum, 256).plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        let at = |from, to| x.slice(from..to).unwrap();
        // The same place, and overlapping.
        for (input, output) in [(at(0, 256), at(0, 1)), (at(0, 256), at(192, 193))] {
            let result = plan.record(&mut rec, input, output);
            refused(result, Aliasing, &["reduce", "input", "output", "two buffers"]);
        }
        refused(rec.copy(at(0, 64), at(32, 96)), Aliasing, &["copy", "through a third"]);
        refused(rec.copy(at(0, 64), at(512, 576)), Aliasing, &[]);
        rec.submit().unwrap();
        assert_eq!(x.read().unwrap(), vec![1.0; 1024], "{}", d.label);
    }
}

#[test]
fn slices_begin_at_any_element() {
    fn of<T: Sample>(gpu: &Gpu, what: &str)
    where
        Map: Op<T>,
    {
        let before: Vec<T> = (0..700).map(|i| T::from_f64(f64::from(i % 100))).collect();
        for (from, to, n) in [(1, 0, 8), (0, 3, 9), (63, 65, 5), (3, 2, 1), (5, 130, 300), (64, 1, 600), (2, 99, 0)] {
            let (x, y) = (gpu.upload(&before).unwrap(), gpu.upload(&before).unwrap());
            let double = MapFn::custom("fn map(x: T) -> T { return x + x; }");
            let plan = Map::new(double, n).plan::<T>(gpu).unwrap();
            let mut rec = gpu.recorder();
            let place = y.slice(to..to + n).unwrap();
            plan.record(&mut rec, x.slice(from..from + n).unwrap(), place).unwrap();
            rec.submit().unwrap();
            let mut want = before.clone();
            for i in 0..n {
                want[to + i] = T::from_f64(2.0 * before[from + i].to_f64());
            }
            assert!(y.read().unwrap() == want, "{what}: {n} {} from {from} to {to}", T::DTYPE);
            assert!(x.read().unwrap() == before, "{what}: the input");
        }
    }
    for d in devices() {
        of::<f32>(&d.gpu, &d.label);
        of::<f16>(&d.gpu, &d.label);
        of::<u32>(&d.gpu, &d.label);
        // Bytes, four in a word.
        let bytes: Vec<u8> = (0..250).collect();
        let (x, y) = (d.gpu.upload(&bytes).unwrap(), d.gpu.upload(&bytes).unwrap());
        for (from, to, n) in [(1, 2, 3), (7, 5, 101), (3, 3, 1), (0, 1, 40)] {
            y.write(&bytes).unwrap();
            let mut rec = d.gpu.recorder();
            let plan = Reverse::new(n).plan::<u8>(&d.gpu).unwrap();
            plan.record(&mut rec, x.slice(from..from + n).unwrap(), y.slice(to..to + n).unwrap()).unwrap();
            rec.submit().unwrap();
            let mut want = bytes.clone();
            (0..n).for_each(|i| want[to + i] = bytes[from + n - 1 - i]);
            assert_eq!(y.read().unwrap(), want, "{}: {n} bytes from {from} to {to}", d.label);
        }
    }
}

/// Blocks of one buffer, apart: input and output, two outputs, and a result that is written in part.
#[test]
fn slices_of_one_buffer_are_inputs_and_outputs() {
    for d in devices() {
        let gpu = &d.gpu;
        let x = gpu.upload(&(0..300).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let plan = Reduce::new(Sum, 8).plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        let at = |from, to| x.slice(from..to).unwrap();
        plan.record(&mut rec, at(0, 8), at(256, 257)).unwrap();
        plan.record(&mut rec, at(1, 9), at(9, 10)).unwrap();
        let shift = Map::new(MapFn::Neg, 64).plan::<f32>(gpu).unwrap();
        shift.record(&mut rec, at(64, 128), at(131, 195)).unwrap();
        rec.submit().unwrap();
        let mut want: Vec<f32> = (0..300).map(|i| i as f32).collect();
        (want[256], want[9]) = (28.0, 36.0);
        (0..64).for_each(|i| want[131 + i] = -((64 + i) as f32));
        assert_eq!(x.read().unwrap(), want, "{}", d.label);
        // What a selection does not write stays.
        let y = gpu.upload(&[5u32, 0, 6, 0, 7, 7, 7, 7, 7]).unwrap();
        let plan = Select::by(4, Predicate::NonZero).plan::<u32>(gpu).unwrap();
        let part = |from, to| y.slice(from..to).unwrap();
        let mut rec = gpu.recorder();
        plan.record_by(&mut rec, part(0, 4), part(4, 8), part(8, 9)).unwrap();
        rec.submit().unwrap();
        assert_eq!(y.read().unwrap(), [5, 0, 6, 0, 5, 6, 7, 7, 2], "{}", d.label);
    }
}

#[test]
fn rejects_buffers_and_recorders_of_another_gpu() {
    let (Some(here), Some(there)) = (gpu(), open(false)) else { return };
    let plan = Reduce::new(Sum, 4).plan::<f32>(here).unwrap();
    let (x, y) = (ones(here, 4), here.alloc::<f32>(1).unwrap());
    let (other_x, other_y) = (ones(&there, 4), there.alloc::<f32>(1).unwrap());
    let mut rec = here.recorder();
    refused(plan.record(&mut rec, &other_x, &y), Wrong, &["input", "another Gpu", "upload it there"]);
    refused(plan.record(&mut rec, &x, &other_y), Wrong, &["output", "another Gpu"]);
    refused(rec.copy(&other_x, &x), Wrong, &["copy", "another Gpu"]);
    refused(rec.copy(&x, &other_x), Wrong, &["copy", "another Gpu"]);
    refused(rec.clear(&other_x), Wrong, &["clear", "another Gpu"]);
    refused(rec.fill(&other_x, 1.0), Wrong, &["fill", "another Gpu"]);
    refused(there.reduce(&x, Sum), Wrong, &["another Gpu"]);
    let mut other_rec = there.recorder();
    refused(plan.record(&mut other_rec, &x, &y), Wrong, &["recorder", "another Gpu"]);
    plan.record(&mut rec, &x, &y).unwrap();
    rec.submit().unwrap();
    other_rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), [4.0]);
}

#[test]
fn an_error_leaves_the_callers_encoder_valid() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let (x, total) = (ones(&gpu, 1024), gpu.alloc::<f32>(1).unwrap());
    let plan = Reduce::new(Sum, 256).plan::<f32>(&gpu).unwrap();
    let kernel = gpu
        .kernel(
            "k.wgsl",
            "@group(0) @binding(0) var<storage, read_write> x: array<u32, 4>;
        @compute @workgroup_size(1) fn k() { x[0] = 1u; }",
            "k",
        )
        .unwrap();
    let mut encoder = caller.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    // The caller's work before and after ours.
    encoder.clear_buffer(total.raw(), 0, Some(4));
    let mut rec = gpu.recorder_in(&mut encoder);
    let front = || x.slice(..256).unwrap();
    refused(plan.record(&mut rec, &x, &total), Shape, &[]);
    refused(plan.record(&mut rec, front(), x.slice(192..193).unwrap()), Aliasing, &[]);
    refused(rec.copy(&x, &total), Shape, &[]);
    refused(kernel.record(&mut rec, &[], [1, 1, 1]), Shape, &[]);
    refused(kernel.record(&mut rec, &[(&total).into()], [1, 1, 1]), Shape, &[]);
    plan.record(&mut rec, front(), &total).unwrap();
    refused(rec.clear(gpu.upload(&[1u8; 8]).unwrap().slice(1..2).unwrap()), Wrong, &[]);
    rec.finish();
    let copy = gpu.alloc::<f32>(1).unwrap();
    encoder.copy_buffer_to_buffer(total.raw(), 0, copy.raw(), 0, 4);
    caller.queue.submit([encoder.finish()]);
    assert_eq!(copy.read().unwrap(), [256.0]);
    assert_eq!(caller.errors(), 0);
}

/// Records a sum of ones whose buffer is dropped before submission, and uploads other data meanwhile.
fn memory_is_kept(gpu: &Gpu, record_and_submit: impl FnOnce(Buffer<f32>, &Buffer<f32>, &mut dyn FnMut())) {
    const N: usize = 5000;
    let total = gpu.alloc::<f32>(1).unwrap();
    gpu.trim();
    let mut others = Vec::new();
    let mut between = || others.extend((0..4).map(|_| gpu.upload(&vec![100.0f32; N]).unwrap()));
    record_and_submit(ones(gpu, N), &total, &mut between);
    assert_eq!(total.read().unwrap(), [N as f32]);
    assert!(others.iter().all(|o| o.read().unwrap() == vec![100.0; N]));
    // The work is done: now the memory is reused.
    gpu.wait().unwrap();
    gpu.wait().unwrap();
    assert!(gpu.memory().pooled >= 4 * N as u64, "{} bytes are pooled", gpu.memory().pooled);
}

#[test]
fn buffers_dropped_before_submission_are_not_reused() {
    let Some(gpu) = open(false) else { return };
    let plan = Reduce::new(Sum, 5000).plan::<f32>(&gpu).unwrap();
    memory_is_kept(&gpu, |x, total, between| {
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, total).unwrap();
        drop(x);
        between();
        rec.submit().unwrap();
    });
}

#[test]
fn buffers_dropped_before_the_caller_submits_are_not_reused() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let plan = Reduce::new(Sum, 5000).plan::<f32>(&gpu).unwrap();
    for finished in [true, false] {
        memory_is_kept(&gpu, |x, total, between| {
            let mut encoder = caller.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut rec = gpu.recorder_in(&mut encoder);
            plan.record(&mut rec, &x, total).unwrap();
            // Dropping the recorder, as an early return does, must work as well.
            if finished {
                rec.finish();
            } else {
                drop(rec);
            }
            drop(x);
            between();
            let commands = encoder.finish();
            between();
            caller.queue.submit([commands]);
        });
    }
    assert_eq!(caller.errors(), 0);
}

#[test]
fn an_encoder_never_submitted_returns_its_memory() {
    let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
    let gpu = caller.gpu();
    let plan = Reduce::new(Sum, 5000).plan::<f32>(&gpu).unwrap();
    let (x, total) = (ones(&gpu, 5000), gpu.alloc::<f32>(1).unwrap());
    let before = gpu.memory().pooled;
    let mut encoder = caller.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut rec = gpu.recorder_in(&mut encoder);
    plan.record(&mut rec, &x, &total).unwrap();
    rec.finish();
    drop(x);
    assert_eq!(gpu.memory().pooled, before);
    drop(encoder);
    assert!(gpu.memory().pooled >= before + 20_000);
    assert_eq!(caller.errors(), 0);
}

#[test]
fn a_recorder_dropped_without_submission_does_nothing() {
    for d in devices() {
        let gpu = &d.gpu;
        let (x, total) = (ones(gpu, 1000), gpu.upload(&[7.0f32]).unwrap());
        let plan = Reduce::new(Sum, 1000).plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, &total).unwrap();
        rec.clear(&x).unwrap();
        plan.record(&mut rec, &x, &total).unwrap();
        drop(rec);
        gpu.wait().unwrap();
        assert_eq!(total.read().unwrap(), [7.0], "{}", d.label);
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &x, &total).unwrap();
        rec.submit().unwrap();
        assert_eq!(total.read().unwrap(), [1000.0], "{}", d.label);
    }
}

#[test]
fn one_plan_recorded_with_many_buffers_keeps_them_apart() {
    for d in devices() {
        let gpu = &d.gpu;
        // More sets of buffers than a plan caches, sharing scratch.
        let n = 3000;
        let plan = Reduce::new(Sum, n).variant("coarsened").plan::<f32>(gpu).unwrap();
        let inputs: Vec<_> = (0..20).map(|i| gpu.upload(&vec![i as f32; n]).unwrap()).collect();
        let totals = gpu.alloc_zeroed::<f32>(64 * inputs.len()).unwrap();
        for round in 0..3 {
            let mut rec = gpu.recorder();
            for i in 0..inputs.len() {
                let i = (i * 7 + round) % inputs.len();
                plan.record(&mut rec, &inputs[i], totals.slice(64 * i..64 * i + 1).unwrap()).unwrap();
            }
            rec.submit().unwrap();
            let got: Vec<f32> = totals.read().unwrap().into_iter().step_by(64).collect();
            let want: Vec<f32> = (0..inputs.len()).map(|i| (i * n) as f32).collect();
            assert_eq!(got, want, "{}", d.label);
        }
    }
}

#[test]
fn plans_keep_their_parameters_within_one_submission() {
    for d in devices() {
        let gpu = &d.gpu;
        let x = ones(gpu, 4096);
        let lengths = [1, 2, 3, 255, 256, 257, 1000, 4096];
        let totals = gpu.alloc::<f32>(64 * lengths.len()).unwrap();
        let mut rec = gpu.recorder();
        for (i, n) in lengths.into_iter().enumerate() {
            // The plan is dropped before its work runs.
            let plan = Reduce::new(Sum, n).plan::<f32>(gpu).unwrap();
            plan.record(&mut rec, x.slice(..n).unwrap(), totals.slice(64 * i..64 * i + 1).unwrap()).unwrap();
        }
        rec.submit().unwrap();
        let got: Vec<f32> = totals.read().unwrap().into_iter().step_by(64).collect();
        assert_eq!(got, lengths.map(|n| n as f32), "{}", d.label);
    }
}

#[test]
fn ops_see_earlier_writes() {
    for d in devices() {
        let gpu = &d.gpu;
        let (x, y) = (ones(gpu, 4096), gpu.alloc::<f32>(64).unwrap());
        let (z, w) = (gpu.alloc::<f32>(1).unwrap(), gpu.alloc::<f32>(64).unwrap());
        let rows = Reduce::rows(Sum, 64, 64).plan::<f32>(gpu).unwrap();
        let all = Reduce::new(Sum, 64).plan::<f32>(gpu).unwrap();
        let mut rec = gpu.recorder();
        rows.record(&mut rec, &x, &y).unwrap();
        all.record(&mut rec, &y, &z).unwrap();
        rec.copy(&y, &w).unwrap();
        rec.clear(&y).unwrap();
        rec.submit().unwrap();
        assert_eq!(z.read().unwrap(), [4096.0], "{}", d.label);
        assert_eq!((w.read().unwrap(), y.read().unwrap()), (vec![64.0; 64], vec![0.0; 64]), "{}", d.label);
    }
}

#[test]
fn rejects_a_copy_of_other_lengths() {
    let Some(gpu) = gpu() else { return };
    let (x, y) = (ones(gpu, 8), ones(gpu, 9));
    refused(gpu.recorder().copy(&x, &y), Shape, &["copy", "8 elements into 9"]);
}

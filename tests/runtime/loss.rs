//! A lost device: every call reports it, and none panics or hangs.

use super::{Caller, in_time, open, refused};
use std::future::Future;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tilework::ErrorKind::DeviceLost;
use tilework::gpu::Arg;
use tilework::program::Op;
use tilework::{Gpu, Plannable, Reduce, Sum};

const KERNEL: &str = "
    struct Params { a: u32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(1) fn k() { x[0] = f32(params.a); }";

/// The number of calls. Each runs on its own lost device: a call that detects the loss would hide it from
/// the next ones.
const CALLS: usize = 26;

/// Creates every kind of object, loses the device, and makes one call.
fn call_on_lost(gpu: &Gpu, lose: impl FnOnce(), call: usize) {
    let x = gpu.upload(&[1.0f32; 300]).unwrap();
    let (y, nothing) = (gpu.alloc::<f32>(1).unwrap(), gpu.alloc::<f32>(0).unwrap());
    let plan = Reduce::new(Sum, 300).plan::<f32>(gpu).unwrap();
    let other = Reduce::new(Sum, 299).plan::<f32>(gpu).unwrap();
    let lowered = Op::<f32>::lower(&Reduce::new(Sum, 300), gpu.profile()).unwrap();
    let kernel = gpu.kernel("k.wgsl", KERNEL, "k").unwrap();
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &y).unwrap();
    rec.submit().unwrap();
    y.read().unwrap();
    // The pool holds the buffers requested below.
    drop(gpu.upload(&[1.0f32; 300]).unwrap());
    let (fresh, mut begun) = (gpu.recorder(), gpu.recorder());
    plan.record(&mut begun, &x, &y).unwrap();
    let desc =
        wgpu::BufferDescriptor { label: None, size: 16, usage: wgpu::BufferUsages::STORAGE, mapped_at_creation: false };
    let theirs = gpu.device().create_buffer(&desc);
    let mut encoder = gpu.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    lose();
    let lost = |result: tilework::Result<()>| refused(result, DeviceLost, &["lost", "open a new Gpu"]);
    match call {
        0 => lost(gpu.upload(&[1.0f32; 300]).map(drop)),
        1 => lost(gpu.alloc::<f32>(300).map(drop)),
        2 => lost(gpu.alloc::<f32>(1 << 20).map(drop)),
        3 => lost(gpu.alloc_zeroed::<f32>(3).map(drop)),
        4 => lost(Reduce::new(Sum, 300).plan::<f32>(gpu).map(drop)),
        5 => lost(Reduce::new(Sum, 301).plan::<i32>(gpu).map(drop)),
        6 => lost(plan.record(&mut gpu.recorder(), &x, &y)),
        7 => {
            let mut fresh = fresh;
            lost(plan.record(&mut fresh, &x, &y));
            lost(fresh.submit());
        }
        8 => {
            // A recorder with an open pass may not notice until it is submitted.
            if let Err(e) = other.record(&mut begun, x.slice(..299).unwrap(), &y) {
                assert_eq!(e.kind(), DeviceLost);
            }
            lost(begun.submit());
        }
        9 => lost(begun.submit()),
        10 => lost(gpu.recorder().submit()),
        11 => lost(begun.copy(&x, &x)),
        12 => lost(begun.clear(&x)),
        13 => lost(x.read().map(drop)),
        14 => lost(nothing.read().map(drop)),
        15 => lost(pollster::block_on(x.read_async()).map(drop)),
        16 => lost(x.write(&[0.0; 300])),
        17 => lost(nothing.write(&[])),
        18 => lost(gpu.wait()),
        19 => lost(gpu.wait_timeout(Duration::from_millis(1))),
        20 => lost(gpu.probe()),
        21 => lost(gpu.kernel("k.wgsl", KERNEL, "k").map(drop)),
        22 => lost(kernel.record(&mut gpu.recorder(), &[Arg::uniform(&7u32), (&y).into()], [1, 1, 1])),
        23 => {
            lost(gpu.time(|rec| plan.record(rec, &x, &y)).map(drop));
            lost(gpu.time(|_| Ok(())).map(drop));
            lost(gpu.measure(2, |rec| plan.record(rec, &x, &y)).map(drop));
        }
        24 => {
            lost(gpu.prepare(lowered.clone()).map(drop));
            lost(gpu.warm_up([&lowered]));
            lost(gpu.wrap::<f32>(theirs).map(drop));
            lost(gpu.ceilings().map(drop));
            lost(gpu.reduce(&x, Sum).map(drop));
            lost(Gpu::from_wgpu(gpu.device().clone(), gpu.queue().clone()).map(drop));
        }
        _ => {
            assert!(plan.report().to_string().contains("predicted"));
            gpu.trim();
            let mut rec = gpu.recorder_in(&mut encoder);
            lost(plan.record(&mut rec, &x, &y));
            rec.finish();
            lost(gpu.probe());
        }
    }
}

#[test]
fn every_call_on_our_destroyed_device_reports_its_loss() {
    for call in 0..CALLS {
        let Some(gpu) = open(false) else { return };
        in_time(move || call_on_lost(&gpu, || gpu.device().destroy(), call));
    }
}

#[test]
fn every_call_on_a_callers_destroyed_device_reports_its_loss() {
    for call in 0..CALLS {
        let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
        let (gpu, device) = (caller.gpu(), caller.device.clone());
        in_time(move || call_on_lost(&gpu, || device.destroy(), call));
        // wgpu reports a destroyed device when it is polled after the last work is done; the caller's callback
        // stays in place.
        for _ in 0..500 {
            let _ = caller.device.poll(wgpu::PollType::Poll);
            if caller.losses.load(Ordering::SeqCst) > 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(caller.losses.load(Ordering::SeqCst), 1, "call {call}: the caller's callback was replaced");
        assert_eq!(caller.errors(), 0, "call {call}: the caller's handler saw an error");
    }
}

#[test]
fn destroying_a_busy_device_ends_every_wait() {
    for ours in [true, false] {
        let Some(caller) = Caller::new(wgpu::Limits::default()) else { return };
        let Some(gpu) = (if ours { open(true) } else { Some(caller.gpu()) }) else { return };
        in_time(move || {
            let x = gpu.upload(&vec![1.0f32; 1 << 20]).unwrap();
            let y = gpu.alloc::<f32>(1).unwrap();
            let plan = Reduce::new(Sum, 1 << 20).plan::<f32>(&gpu).unwrap();
            let mut rec = gpu.recorder();
            (0..50).for_each(|_| plan.record(&mut rec, &x, &y).unwrap());
            rec.submit().unwrap();
            let mut begun = Box::pin(y.read_async());
            let polled = begun.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            gpu.device().destroy();
            // Submitted work may still finish.
            let finished = match polled {
                Poll::Ready(result) => result,
                Poll::Pending => pollster::block_on(begun.as_mut()),
            };
            drop(begun);
            match finished {
                Ok(total) => assert_eq!(total, [(1 << 20) as f32]),
                Err(e) => assert_eq!(e.kind(), DeviceLost),
            }
            refused(gpu.wait(), DeviceLost, &[]);
            refused(y.read(), DeviceLost, &[]);
            drop((x, y, plan));
            drop(gpu);
        });
    }
}

#[test]
fn a_lost_device_does_not_affect_others() {
    let (Some(lost), Some(well)) = (open(false), open(false)) else { return };
    lost.device().destroy();
    refused(lost.probe(), DeviceLost, &[&lost.profile().name]);
    let x = well.upload(&[1.0f32; 300]).unwrap();
    assert_eq!(well.reduce(&x, Sum).unwrap().read().unwrap(), [300.0]);
}

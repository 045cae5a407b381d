//! Timing on the device and on the host, and timeouts.

use super::{in_time, refused};
use crate::support::devices;
use std::time::{Duration, Instant};
use tilework::ErrorKind::{Shape, Timeout};
use tilework::gpu::Clock;
use tilework::{Plannable, Reduce, Sum};

#[test]
fn times_use_the_device_clock_if_there_is_one() {
    for d in devices() {
        let gpu = &d.gpu;
        let (x, y) = (gpu.upload(&vec![1.0f32; 1 << 20]).unwrap(), gpu.alloc::<f32>(1).unwrap());
        let plan = Reduce::new(Sum, 1 << 20).plan::<f32>(gpu).unwrap();
        gpu.wait().unwrap();
        let began = Instant::now();
        let time = gpu.time(|rec| plan.record(rec, &x, &y)).unwrap();
        let wall = began.elapsed().as_secs_f64();
        let clock = if gpu.profile().features.timestamps { Clock::Device } else { Clock::Wall };
        assert_eq!(time.clock, clock, "{}", d.label);
        assert!(time.seconds > 0.0 && time.seconds <= wall, "{}: {time:?} of {wall} s", d.label);
        assert_eq!(y.read().unwrap(), [(1 << 20) as f32], "timed work was not done on {}", d.label);
    }
    assert_eq!((Clock::Device.to_string(), Clock::Wall.to_string()), ("device".into(), "wall clock".into()));
}

#[test]
fn copies_and_clears_run_and_are_timed() {
    for d in devices() {
        let gpu = &d.gpu;
        let n = 1 << 20;
        let (x, y) = (gpu.upload(&vec![2u32; n]).unwrap(), gpu.alloc_zeroed::<u32>(n).unwrap());
        let time = gpu.time(|rec| rec.copy(&x, &y)).unwrap();
        assert!(time.seconds > 0.0, "{}: {time:?}", d.label);
        assert_eq!(y.read().unwrap(), vec![2; n], "{}", d.label);
        let time = gpu.time(|rec| rec.clear(&y)).unwrap();
        assert!(time.seconds > 0.0, "{}: {time:?}", d.label);
        assert_eq!(y.read().unwrap(), vec![0; n], "{}", d.label);
    }
}

#[test]
fn many_passes_give_one_time() {
    for d in devices() {
        let gpu = &d.gpu;
        let n = 1 << 16;
        let (x, y, z) =
            (gpu.upload(&vec![1.0f32; n]).unwrap(), gpu.alloc::<f32>(1).unwrap(), gpu.alloc::<f32>(n).unwrap());
        let plan = Reduce::new(Sum, n).plan::<f32>(gpu).unwrap();
        let m = gpu
            .measure(7, |rec| {
                plan.record(rec, &x, &y)?;
                rec.copy(&x, &z)?;
                plan.record(rec, &z, &y)?;
                rec.clear(&z)
            })
            .unwrap();
        assert_eq!(m.seconds.len(), 7, "{}", d.label);
        assert!(m.min() > 0.0 && m.min() <= m.median() && m.median() <= m.max(), "{}: {m:?}", d.label);
        // More passes than a query set holds.
        let many =
            gpu.time(|rec| (0..100).try_for_each(|_| plan.record(rec, &x, &y).and_then(|()| rec.clear(&z)))).unwrap();
        assert!(many.seconds > 5.0 * m.min(), "{}: {} s for 100, {} s for one", d.label, many.seconds, m.min());
    }
}

#[test]
fn empty_work_can_be_timed() {
    for d in devices() {
        let gpu = &d.gpu;
        gpu.time(|_| Ok(())).unwrap();
        assert_eq!(gpu.measure(3, |_| Ok(())).unwrap().seconds.len(), 3);
        assert_eq!(gpu.measure(0, |_| Ok(())).unwrap().seconds.len(), 1);
        assert_eq!(gpu.measure(usize::MAX, |_| Ok(())).unwrap().seconds.len(), 2048);
        let x = gpu.alloc::<f32>(3).unwrap();
        refused(gpu.time(|rec| rec.copy(&x, &gpu.alloc::<f32>(2)?)), Shape, &[]);
        refused(gpu.measure(3, |rec| rec.copy(&x, &gpu.alloc::<f32>(2)?)), Shape, &[]);
    }
}

#[test]
fn a_wait_ends_at_its_timeout() {
    // Its own device, without other work.
    let Some(gpu) = super::open(false) else { return };
    // OpenGL on a CPU runs the work during submission.
    let at_once = gpu.profile().backend == "gl" && gpu.profile().is_cpu();
    in_time(move || {
        let spin = "
            @group(0) @binding(0) var<storage, read_write> x: array<u32>;
            @compute @workgroup_size(64) fn spin(@builtin(global_invocation_id) id: vec3<u32>) {
                var a = id.x;
                for (var i = 0u; i < 200000u; i++) { a = a * 1664525u + 1013904223u; }
                x[id.x & 63u] = a;
            }";
        let kernel = gpu.kernel("spin.wgsl", spin, "spin").unwrap();
        let x = gpu.alloc::<u32>(64).unwrap();
        let mut rec = gpu.recorder();
        let workgroups = if gpu.profile().is_cpu() { 64 } else { 60_000 };
        kernel.record(&mut rec, &[(&x).into()], [workgroups, 1, 1]).unwrap();
        rec.submit().unwrap();
        let began = Instant::now();
        if !at_once {
            refused(gpu.wait_timeout(Duration::from_micros(50)), Timeout, &["wait again"]);
            refused(gpu.wait_timeout(Duration::ZERO), Timeout, &[]);
        }
        assert!(at_once || began.elapsed() < Duration::from_secs(1));
        // The work continues, and the device stays usable.
        gpu.wait_timeout(Duration::MAX).unwrap();
        gpu.wait_timeout(Duration::ZERO).unwrap();
        assert_eq!(x.read().unwrap().len(), 64);
    });
}

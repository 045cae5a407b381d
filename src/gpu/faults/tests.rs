use super::{Ordering, err};
use crate::gpu::{AdapterFilter, Arg, CacheDir};
use crate::prelude::*;
use crate::program::Op;
use crate::stream::Pipeline;
use crate::tune::TuningOptions;
use crate::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Fails the calls with these numbers, counted from now.
fn fail(gpu: &Gpu, calls: Range<u64>) {
    let faults = &gpu.inner.faults;
    // In this order, so that no call fails in between.
    faults.fails[1].store(0, Ordering::Relaxed);
    faults.calls.store(0, Ordering::Relaxed);
    faults.fails[0].store(calls.start, Ordering::Relaxed);
    faults.fails[1].store(calls.end, Ordering::Relaxed);
}

fn calls(gpu: &Gpu) -> u64 {
    gpu.inner.faults.calls.load(Ordering::Relaxed)
}

/// A new device on the first adapter, without anything cached.
fn open() -> Option<Gpu> {
    let adapters = Gpu::adapters();
    let Some(first) = adapters.first() else {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "no adapter, and REQUIRE_GPU is set");
        return None;
    };
    // As in all tests, a variable names the adapter.
    let name = std::env::var("TILEWORK_ADAPTER").unwrap_or_else(|_| first.name.clone());
    let options = GpuOptions { adapter: AdapterFilter::Name(name), cache: CacheDir::Off, ..GpuOptions::default() };
    Some(pollster::block_on(Gpu::request(options)).unwrap())
}

/// Work that succeeds with correct results or returns an error.
type Work = fn(&Gpu) -> Result<()>;

fn ones(n: usize) -> Vec<u32> {
    vec![1; n]
}

fn up_and_down(gpu: &Gpu) -> Result<()> {
    let x = gpu.upload(&ones(5000))?;
    x.write(&[2; 5000])?;
    assert_eq!(x.read()?, [2; 5000]);
    assert_eq!(pollster::block_on(x.slice(..7)?.read_async())?, [2; 7]);
    assert_eq!(gpu.alloc_zeroed::<u32>(3)?.read()?, [0; 3]);
    Ok(())
}

fn several_dispatches(gpu: &Gpu) -> Result<()> {
    let x = gpu.upload(&ones(70_000))?;
    assert_eq!(gpu.reduce(&x, Sum)?.read()?, [70_000]);
    let scanned = gpu.inclusive_scan(&x, Sum)?.read()?;
    assert!(scanned.iter().zip(1..).all(|(got, wanted)| *got == wanted));
    let keys = gpu.upload(&(0..5000).rev().collect::<Vec<u32>>())?;
    assert!(gpu.sort(&keys)?.read()?.into_iter().eq(0..5000));
    Ok(())
}

fn kernel_of_the_caller(gpu: &Gpu) -> Result<()> {
    let text = "
        struct Params { a: u32 }
        @group(0) @binding(0) var<uniform> params: Params;
        @group(0) @binding(1) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(64) fn k(@builtin(global_invocation_id) id: vec3u) { x[id.x] += params.a; }";
    let kernel = gpu.kernel("k.wgsl", text, "k")?;
    let x = gpu.upload(&ones(64))?;
    let mut rec = gpu.recorder();
    for a in [1u32, 2, 3] {
        kernel.record(&mut rec, &[Arg::uniform(&a), (&x).into()], [1, 1, 1])?;
    }
    rec.submit()?;
    assert_eq!(x.read()?, [7; 64]);
    Ok(())
}

fn many_ops_in_one_submission(gpu: &Gpu) -> Result<()> {
    let n = 100;
    let a = gpu.upload(&vec![1.0f32; n * n])?;
    let (b, c) = (gpu.alloc::<f32>(n * n)?, gpu.alloc::<f32>(n * n)?);
    let (product, flip) = (Gemm::new(n, n, n).plan::<f32>(gpu)?, Transpose::new(n, n).plan::<f32>(gpu)?);
    gpu.warm_up([Op::<f32>::lower(&Reduce::new(Max, n * n), gpu.profile())?])?;
    let mut rec = gpu.recorder();
    product.record(&mut rec, &a, &a, &b)?;
    flip.record(&mut rec, &b, &c)?;
    rec.copy(&c, &a)?;
    rec.clear(&b)?;
    product.record(&mut rec, &a, &a, &b)?;
    rec.submit()?;
    assert!(b.read()?.iter().all(|x| *x == (n * n * n) as f32));
    Ok(())
}

fn clocks(gpu: &Gpu) -> Result<()> {
    let x = gpu.upload(&ones(1000))?;
    let y = gpu.alloc::<u32>(1)?;
    let plan = Reduce::new(Sum, 1000).plan::<u32>(gpu)?;
    gpu.time(|rec| plan.record(rec, &x, &y))?;
    gpu.measure(2, |rec| plan.record(rec, &x, &y))?;
    let profile = gpu.profile_work(|rec| plan.record(rec, &x, &y))?;
    assert_eq!((y.read()?, profile.chrome_trace().is_empty()), (vec![1000], false));
    Ok(())
}

fn stream(gpu: &Gpu) -> Result<()> {
    let mut pipeline = Pipeline::new(gpu, 2);
    let (x, y) = (pipeline.input::<u32>(1000), pipeline.output::<u32>(1));
    let (mut left, mut sum) = (5, 0);
    pipeline.run(
        |chunk| {
            left -= 1;
            chunk.write(x, &[1; 1000])?;
            Ok(left > 0)
        },
        |rec, chunk| {
            let (x, y) = (chunk.input(x)?, chunk.output(y, 1)?);
            Ok(Reduce::new(Sum, x.len()).plan::<u32>(gpu)?.record(rec, x, y)?)
        },
        |chunk| {
            sum += chunk.read(y)?[0];
            Ok(())
        },
    )?;
    assert_eq!(sum, 4000);
    assert_eq!(gpu.streamed().chunk(3000).reduce(&ones(20_000)[..], Sum)?, 20_000);
    Ok(())
}

fn search(gpu: &Gpu) -> Result<()> {
    // A search works without the roofline too.
    gpu.ceilings()?;
    let options = TuningOptions { budget: Duration::from_millis(20), ..TuningOptions::default() };
    let report = crate::tune::tune::<u32, _>(gpu, &Reduce::new(Sum, 3000), &options)?;
    let told = report.to_string();
    // The report lists a candidate that fails, and the search goes on.
    if told.contains("fails in this test") { Err(err!(OutOfMemory, "{told}")) } else { Ok(()) }
}

/// Bytes in use while no work is under way, by label.
fn kept(gpu: &Gpu) -> BTreeMap<String, u64> {
    gpu.wait().unwrap();
    gpu.trim_memory();
    gpu.memory().uses.into_iter().filter(|u| u.live > 0).map(|u| (u.label, u.live)).collect()
}

/// Runs `work` with each of its calls to wgpu failing in turn, once and from then on; in the default run with every
/// second of them, by one of the two. Its last `closing` calls only clean up.
fn every_place_may_fail(work: Work, closing: u64) {
    let Some(sound) = open() else { return };
    fail(&sound, 0..0);
    work(&sound).unwrap();
    let all = calls(&sound);
    assert!(all > 3, "{all} calls are no work");
    let usual = kept(&sound);
    let complete = std::env::var_os("TILEWORK_TESTS").is_some();
    let mut refused = 0;
    for place in (0..all).step_by(if complete { 1 } else { 2 }) {
        let ways = [place + 1, u64::MAX];
        let one = (place / 2 % 2) as usize;
        for &last in if complete { &ways[..] } else { &ways[one..=one] } {
            let gpu = open().unwrap();
            fail(&gpu, place..last);
            match work(&gpu) {
                Ok(()) => {
                    let spared = last < u64::MAX || calls(&gpu) <= place + closing;
                    assert!(spared, "call {place} of {all}: nothing was refused");
                }
                Err(e) => {
                    refused += 1;
                    assert_eq!(e.kind(), ErrorKind::OutOfMemory, "{place}: {e}");
                    assert!(e.to_string().contains("fails in this test"), "{place}: {e}");
                }
            }
            // Nothing leaks, and the device still works.
            fail(&gpu, 0..0);
            let left = kept(&gpu);
            let within = left.iter().all(|(label, bytes)| usual.get(label).is_some_and(|most| bytes <= most));
            assert!(within, "call {place} leaves {left:?} behind instead of {usual:?}");
            work(&gpu).unwrap_or_else(|e| panic!("after a failure of call {place}: {e}"));
            assert_eq!(kept(&gpu), usual, "after a failure of call {place}");
        }
    }
    assert!(refused >= if complete { all } else { all / 4 }, "{refused} of {all} calls were refused");
    work(&sound).unwrap();
}

#[test]
fn copies_survive_a_failure_anywhere() {
    every_place_may_fail(up_and_down, 0);
}

#[test]
fn ops_survive_a_failure_anywhere() {
    every_place_may_fail(several_dispatches, 0);
}

#[test]
fn a_callers_kernel_survives_a_failure_anywhere() {
    every_place_may_fail(kernel_of_the_caller, 0);
}

#[test]
fn submissions_survive_a_failure_anywhere() {
    every_place_may_fail(many_ops_in_one_submission, 0);
}

#[test]
fn clocks_survive_a_failure_anywhere() {
    every_place_may_fail(clocks, 0);
}

#[test]
fn streams_survive_a_failure_anywhere() {
    every_place_may_fail(stream, 6);
}

#[test]
fn searches_survive_a_failure_anywhere() {
    every_place_may_fail(search, 0);
}

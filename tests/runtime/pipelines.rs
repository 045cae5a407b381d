//! Pipelines that no plan has: how many stay in memory, and that dropping them harms nothing.

use super::in_time;
use crate::support::gpu;
use tilework::elementwise::{Map, MapFn};
use tilework::gpu::{AdapterFilter, CacheDir};
use tilework::prelude::*;

/// A new device that keeps this many pipelines unused; `None` without an adapter.
fn open(kept_pipelines: usize) -> Option<Gpu> {
    let adapter = AdapterFilter::Name(gpu()?.profile().name.clone());
    let options = GpuOptions { adapter, kept_pipelines, cache: CacheDir::Off, ..Default::default() };
    Some(pollster::block_on(Gpu::request(options)).unwrap())
}

/// A plan that adds `i`, with a kernel of its own.
fn adds(gpu: &Gpu, i: usize) -> Plan<Map, f32> {
    Map::new(MapFn::custom(&format!("fn map(x: T) -> T {{ return x + {i}.0; }}")), 3).plan(gpu).unwrap()
}

/// Runs the plan.
fn check(gpu: &Gpu, plan: &Plan<Map, f32>, i: usize) {
    let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0]).unwrap(), gpu.alloc::<f32>(3).unwrap());
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &y).unwrap();
    rec.submit().unwrap();
    assert_eq!(y.read().unwrap(), [1.0, 2.0, 3.0].map(|x| x + i as f32));
}

#[test]
fn unused_pipelines_stay_within_the_bound() {
    for kept in [0, 4] {
        let Some(gpu) = open(kept) else { return };
        let in_memory = || gpu.cache().in_memory as usize;
        let held = adds(&gpu, 100);
        for i in 0..3 * kept + 2 {
            let plan = adds(&gpu, i);
            assert_eq!(in_memory(), 2 + i.min(kept));
            check(&gpu, &plan, i);
            check(&gpu, &held, 100);
            drop(plan);
            assert_eq!(in_memory(), 1 + kept.min(i + 1));
        }
        let before = gpu.cache();
        assert_eq!(before.compiled - before.in_memory, before.dropped);
        // A plan that is there keeps its pipeline; the last unused one is found; the first is compiled anew.
        check(&gpu, &adds(&gpu, 100), 100);
        if kept > 0 {
            check(&gpu, &adds(&gpu, 3 * kept + 1), 3 * kept + 1);
        }
        assert_eq!(gpu.cache().compiled, before.compiled);
        check(&gpu, &adds(&gpu, 0), 0);
        assert_eq!(gpu.cache().compiled, before.compiled + 1);
    }
}

#[test]
fn trim_drops_the_pipelines_of_dead_plans() {
    let Some(gpu) = open(1000) else { return };
    let living = adds(&gpu, 1);
    (2..5).for_each(|i| drop(adds(&gpu, i)));
    // What is recorded and submitted runs.
    let (x, y) = (gpu.upload(&[1.0f32, 2.0, 3.0]).unwrap(), gpu.alloc::<f32>(3).unwrap());
    let (mut submitted, mut recorded) = (gpu.recorder(), gpu.recorder());
    adds(&gpu, 5).record(&mut submitted, &x, &y).unwrap();
    adds(&gpu, 6).record(&mut recorded, &y, &x).unwrap();
    assert_eq!(gpu.cache().in_memory, 6);
    submitted.submit().unwrap();
    gpu.trim();
    assert_eq!((gpu.cache().in_memory, gpu.cache().dropped), (1, 5));
    recorded.submit().unwrap();
    assert_eq!(x.read().unwrap(), [12.0, 13.0, 14.0]);
    check(&gpu, &living, 1);
    check(&gpu, &adds(&gpu, 3), 3);
    assert_eq!(gpu.cache().compiled, 7);
    drop(living);
    gpu.trim();
    assert_eq!(gpu.cache().in_memory, 0);
}

#[test]
fn pipelines_are_dropped_while_threads_plan_the_same() {
    let Some(gpu) = open(0) else { return };
    in_time(move || {
        let held = adds(&gpu, 0);
        std::thread::scope(|scope| {
            for t in 0..3 {
                let gpu = &gpu;
                scope.spawn(move || {
                    for round in 0..8 {
                        let i = (round + t) % 3;
                        check(gpu, &adds(gpu, i), i);
                        if round % 4 == t {
                            gpu.trim();
                        }
                    }
                });
            }
        });
        // The one of the living plan was compiled once, the others at most once a round.
        let cache = gpu.cache();
        assert!((3..=17).contains(&cache.compiled), "{cache:?}");
        assert_eq!((cache.in_memory, cache.dropped), (1, cache.compiled - 1));
        check(&gpu, &held, 0);
    });
}

#[test]
fn invalid_kernels_leave_nothing_in_memory() {
    let Some(gpu) = open(1000) else { return };
    for i in 0..3 {
        let plan = Map::new(MapFn::custom(&format!("fn map(x: T) -> T {{ return x + {i}.0 * nothing; }}")), 3)
            .plan::<f32>(&gpu);
        assert_eq!(plan.unwrap_err().kind(), tilework::ErrorKind::Shader);
    }
    assert_eq!(gpu.cache().in_memory, 0);
}

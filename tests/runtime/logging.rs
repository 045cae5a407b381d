//! What a program's logger hears. Each test has a process of its own, since a process has one logger.

use super::Caller;
use crate::support::{alone, gpu};
use std::sync::Mutex;
use tilework::gpu::{Arg, CacheDir};
use tilework::prelude::*;

/// Keeps the messages of tilework.
struct Listener {
    heard: Mutex<Vec<(log::Level, String)>>,
}

static LISTENER: Listener = Listener { heard: Mutex::new(Vec::new()) };

impl log::Log for Listener {
    fn enabled(&self, about: &log::Metadata<'_>) -> bool {
        about.target() == "tilework"
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.heard.lock().unwrap().push((record.level(), record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

impl Listener {
    fn listen() -> &'static Self {
        log::set_logger(&LISTENER).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        &LISTENER
    }

    /// The messages since the last call.
    fn take(&self) -> Vec<(log::Level, String)> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

/// Asserts that one message of the level has all of these words.
#[track_caller]
fn heard(messages: &[(log::Level, String)], level: log::Level, words: &[&str]) {
    let fits = |(l, text): &&(log::Level, String)| *l == level && words.iter().all(|word| text.contains(word));
    assert_eq!(messages.iter().filter(fits).count(), 1, "{level} with {words:?} in {messages:#?}");
}

#[test]
fn devices_are_logged() {
    alone("runtime::logging::hears_of_devices", None);
}

#[test]
#[ignore = "run by the test before it"]
fn hears_of_devices() {
    let Some(known) = gpu() else { return };
    let listener = Listener::listen();
    let (name, index) = (&known.profile().name, tilework::gpu::AdapterFilter::Index(0));
    let options = GpuOptions { adapter: index.clone(), cache: CacheDir::Off, ..GpuOptions::default() };
    let gpu = pollster::block_on(Gpu::request(options)).unwrap();
    let messages = listener.take();
    heard(&messages, log::Level::Info, &["opened", name, "features:", "cache: off"]);
    let software = messages.iter().any(|(level, text)| *level == log::Level::Warn && text.contains("software"));
    assert_eq!(software, gpu.profile().is_cpu(), "{messages:#?}");
    let folder = std::env::temp_dir().join(format!("tilework-log-{}", std::process::id()));
    let cache = CacheDir::At(folder.clone());
    drop(pollster::block_on(Gpu::request(GpuOptions { adapter: index, cache, ..GpuOptions::default() })).unwrap());
    heard(&listener.take(), log::Level::Info, &["opened", "cache: in", &folder.to_string_lossy()]);
    let caller = Caller::new(wgpu::Limits::default()).unwrap();
    let first = caller.gpu();
    let messages = listener.take();
    heard(&messages, log::Level::Info, &["opened", name]);
    let missing = ["without", "subgroups", "f16", "64-bit integers", "timestamps", "Gpu::device_descriptor"];
    heard(&messages, log::Level::Warn, &missing);
    assert_eq!((caller.gpu(), listener.take().len()), (first, 0), "it is the same Gpu");
}

#[test]
fn compilations_and_records_are_logged() {
    alone("runtime::logging::hears_of_work", None);
}

#[test]
#[ignore = "run by the test before it"]
fn hears_of_work() {
    let Some(known) = gpu() else { return };
    let cache = CacheDir::Off;
    let gpu = pollster::block_on(Gpu::request(GpuOptions { cache, ..GpuOptions::default() })).unwrap();
    let on = format!("on {} ({})", known.profile().name, known.profile().backend);
    let listener = Listener::listen();
    let (x, y) = (gpu.upload(&[1.0f32; 1000]).unwrap(), gpu.alloc::<f32>(1000).unwrap());
    let total = gpu.alloc::<f32>(1).unwrap();
    let plan = Reduce::new(Sum, 1000).plan::<f32>(&gpu).unwrap();
    heard(&listener.take(), log::Level::Debug, &["reduce", "compiled in", " ms"]);
    let double = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(64) fn double(@builtin(local_invocation_index) i: u32) { data[i] *= 2.0; }";
    let kernel = gpu.kernel("double.wgsl", double, "double").unwrap();
    heard(&listener.take(), log::Level::Debug, &["double.wgsl:double", "compiled in"]);
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &x, &total).unwrap();
    kernel.record(&mut rec, &[Arg::from(&x)], [2, 1, 1]).unwrap();
    rec.copy(&x, &y).unwrap();
    rec.clear(&x).unwrap();
    rec.submit().unwrap();
    let messages = listener.take();
    let trace = log::Level::Trace;
    heard(&messages, trace, &["reduce/", "input f32[1000], output f32[1]", "dispatches: ", &on]);
    heard(&messages, trace, &["kernel double.wgsl:double: data f32[1000]", "workgroups: [2, 1, 1]", &on]);
    heard(&messages, trace, &["copy: 1000 elements of f32, 4000 bytes", &on]);
    heard(&messages, trace, &["clear: 1000 elements of f32, 4000 bytes", &on]);
    assert_eq!(messages.len(), 4, "{messages:#?}");

    // Work that never runs.
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &y, &total).unwrap();
    rec.clear(&x).unwrap();
    listener.take();
    drop(rec);
    heard(&listener.take(), log::Level::Warn, &["dropped with 2 recorded ops", "submit()"]);
    // Empty recorders, those in an encoder of the caller's, and timed ones lose nothing.
    drop(gpu.recorder());
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    let mut rec = gpu.recorder_in(&mut encoder);
    plan.record(&mut rec, &y, &total).unwrap();
    drop(rec);
    drop(encoder);
    gpu.time(|rec| plan.record(rec, &y, &total)).unwrap();
    gpu.profile_work(|rec| plan.record(rec, &y, &total)).unwrap();
    let messages = listener.take();
    assert!(messages.iter().all(|(level, _)| *level > log::Level::Warn), "{messages:#?}");
}

//! A logger that calls the library. Each test has its own process, since a process has one logger.

use super::in_time;
use crate::support::gpu;
use std::cell::Cell;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tilework::prelude::*;

/// Called with the target of each message.
type Work = Box<dyn Fn(&str) + Send + Sync>;

/// Calls `work` from within each message, but not recursively.
struct Caller {
    work: OnceLock<Work>,
    calls: AtomicUsize,
}

static CALLER: Caller = Caller { work: OnceLock::new(), calls: AtomicUsize::new(0) };

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl log::Log for Caller {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let Some(work) = self.work.get() else { return };
        if !INSIDE.replace(true) {
            self.calls.fetch_add(1, Ordering::SeqCst);
            work(record.target());
            INSIDE.set(false);
        }
    }

    fn flush(&self) {}
}

/// Runs an ignored test of this file in its own process, which must succeed within two minutes.
#[track_caller]
fn alone(name: &str) {
    let path = format!("runtime::reentry::{name}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "--ignored", "--nocapture", &path]).env_remove("TILEWORK_RECORDING");
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{name} hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{name}: {status}");
}

#[test]
fn a_logger_may_record_the_plan_that_is_being_recorded() {
    alone("records_from_the_logger");
}

#[test]
#[ignore = "run by the test before it"]
fn records_from_the_logger() {
    let Some(gpu) = gpu() else { return };
    log::set_logger(&CALLER).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    in_time(move || {
        let x = gpu.upload(&[1.0f32, 2.0, 3.0]).unwrap();
        let plan = Reduce::new(Sum, 3).plan::<f32>(gpu).unwrap();
        let again = Reduce::new(Sum, 3).plan::<f32>(gpu).unwrap();
        let (of_logger, y) = (gpu.alloc::<f32>(1).unwrap(), x.clone());
        let work = move |target: &str| {
            if target == "tilework" {
                let mut rec = gpu.recorder();
                again.record(&mut rec, &y, &of_logger).unwrap();
                rec.submit().unwrap();
                assert_eq!(of_logger.read().unwrap(), [6.0]);
                gpu.trim();
                assert_eq!(gpu.reduce(&y, Max).unwrap().read().unwrap(), [3.0]);
            }
        };
        assert!(CALLER.work.set(Box::new(work)).is_ok());
        let total = gpu.alloc::<f32>(1).unwrap();
        for _ in 0..3 {
            let mut rec = gpu.recorder();
            plan.record(&mut rec, &x, &total).unwrap();
            plan.record(&mut rec, &x, &total).unwrap();
            rec.submit().unwrap();
            assert_eq!(total.read().unwrap(), [6.0]);
        }
    });
    assert!(CALLER.calls.load(Ordering::SeqCst) >= 6);
}

#[test]
fn a_logger_may_list_adapters_during_listing() {
    alone("lists_adapters_from_the_logger");
}

#[test]
#[ignore = "run by the test before it"]
fn lists_adapters_from_the_logger() {
    log::set_logger(&CALLER).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    // `wgpu_hal` may log from within a driver's callback, where Vulkan forbids Vulkan calls: Mesa's heap was
    // sometimes corrupted.
    static GL: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let work = |target: &str| {
        if !target.starts_with("wgpu_hal") {
            drop(Gpu::adapters());
        } else if target.starts_with("wgpu_hal::gles") {
            // EGL's state of a caller's thread is freed twice if the thread ends while the process exits.
            let own = std::thread::current().name() == Some("tilework drivers");
            GL[usize::from(own)].fetch_add(1, Ordering::SeqCst);
        }
    };
    assert!(CALLER.work.set(Box::new(work)).is_ok());
    let names = || Gpu::adapters().into_iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(in_time(names), names());
    let [callers, own] = GL.each_ref().map(|count| count.load(Ordering::SeqCst));
    let has_gl = Gpu::adapters().iter().any(|p| p.backend == "gl");
    assert!(callers == 0 && (own > 0 || !has_gl), "{callers} messages of OpenGL from the caller's thread");
    assert!(CALLER.calls.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_logger_may_plan_the_kernel_that_is_being_compiled() {
    alone("plans_from_the_logger");
}

#[test]
#[ignore = "run by the test before it"]
fn plans_from_the_logger() {
    let Some(gpu) = gpu() else { return };
    log::set_logger(&CALLER).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    in_time(move || {
        let x = gpu.upload(&[1.0f32, 2.0, 3.0]).unwrap();
        let y = x.clone();
        // wgpu may hold its own locks while it logs.
        let work = move |target: &str| {
            if target.starts_with("naga") || target == "tilework" {
                Reduce::new(Sum, 3).plan::<f32>(gpu).unwrap();
                assert_eq!(gpu.reduce(&y, Sum).unwrap().read().unwrap(), [6.0]);
            }
        };
        assert!(CALLER.work.set(Box::new(work)).is_ok());
        assert_eq!(gpu.reduce(&x, Sum).unwrap().read().unwrap(), [6.0]);
    });
    assert!(CALLER.calls.load(Ordering::SeqCst) > 0);
}

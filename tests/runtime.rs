//! The runtime: its rules, and the invalid input it rejects.

mod buffers;
mod cache;
mod determinism;
mod devices;
mod kernels;
mod large_ops;
mod logging;
mod loss;
mod memory;
mod pipelines;
mod profiling;
mod programs;
mod recording;
mod reentry;
#[cfg(target_os = "linux")]
mod scarce;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod shared;
mod sources;
mod streaming;
mod threads;
mod timing;
mod tuning;
mod users_text;
mod waiting;
mod written;

use crate::support;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;
use tilework::gpu::AdapterFilter;
use tilework::{Error, ErrorKind, Gpu, GpuOptions};

/// Asserts that a call failed with this kind and a text that contains all these words.
#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: ErrorKind, words: &[&str]) {
    let Err(e) = result else { panic!("succeeded, expected {kind:?}") };
    assert_eq!(e.kind(), kind, "{e}");
    for word in words {
        assert!(e.to_string().contains(word), "`{word}` is missing in: {e}");
    }
}

/// A new device on the first adapter, for tests that break it or count its memory.
fn open(webgpu_defaults: bool) -> Option<Gpu> {
    let name = support::gpu()?.profile().name.clone();
    let options = GpuOptions { adapter: AdapterFilter::Name(name), webgpu_defaults, ..GpuOptions::default() };
    Some(pollster::block_on(Gpu::request(options)).expect("the adapter opens a second device"))
}

/// A program that owns its device and handles its errors and loss.
struct Caller {
    device: wgpu::Device,
    queue: wgpu::Queue,
    /// Errors that reached its handler.
    errors: Arc<AtomicUsize>,
    /// Calls of its device-lost callback.
    losses: Arc<AtomicUsize>,
}

impl Caller {
    fn new(limits: wgpu::Limits) -> Option<Self> {
        Self::with(limits, wgpu::Features::empty())
    }

    /// With the features of these that the adapter supports.
    fn with(limits: wgpu::Limits, features: wgpu::Features) -> Option<Self> {
        static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
        let profile = support::gpu()?.profile();
        let instance = INSTANCE.get_or_init(|| {
            let mut desc = wgpu::InstanceDescriptor::new_without_display_handle();
            desc.backends = wgpu::Backends::from_comma_list(&profile.backend);
            wgpu::Instance::new(desc)
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let adapter = adapters.into_iter().find(|a| a.get_info().name == profile.name)?;
        let desc = wgpu::DeviceDescriptor {
            required_limits: limits,
            required_features: features & adapter.features(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&desc)).expect("a caller's device");
        let (errors, losses) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen, lost) = (errors.clone(), losses.clone());
        device.on_uncaptured_error(Arc::new(move |e| {
            eprintln!("the caller's handler got: {e}");
            seen.fetch_add(1, Ordering::SeqCst);
        }));
        device.set_device_lost_callback(move |_, _| {
            lost.fetch_add(1, Ordering::SeqCst);
        });
        Some(Self { device, queue, errors, losses })
    }

    fn gpu(&self) -> Gpu {
        Gpu::from_wgpu(self.device.clone(), self.queue.clone()).expect("a caller's device")
    }

    fn errors(&self) -> usize {
        self.errors.load(Ordering::SeqCst)
    }
}

/// A second device on the first adapter, opened like a program's own.
pub(crate) fn callers_gpu() -> Option<Gpu> {
    Caller::new(wgpu::Limits::default()).map(|caller| caller.gpu())
}

/// A device on the first adapter whose storage bindings hold at most so many bytes.
pub(crate) fn gpu_with_bindings(max_storage_buffer_binding_size: u64) -> Option<Gpu> {
    let limits = wgpu::Limits { max_storage_buffer_binding_size, ..wgpu::Limits::default() };
    Caller::new(limits).map(|caller| caller.gpu())
}

/// Fails instead of hanging if `work` takes too long.
fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || sender.send(work()).is_ok());
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(worker.join().expect_err("a worker that sent nothing has panicked"))
        }
    }
}

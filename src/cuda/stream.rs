use super::buffer::CudaMemory;
use super::device::{CudaGpu, lock};
use crate::program::prelude::*;
use crate::program::{batch, warm_up};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A queue of device work. Work on one stream runs in order; work on several streams may overlap.
///
/// Clones are cheap and share the stream. Dropping the last one waits for its work.
#[derive(Clone)]
pub struct CudaStream {
    inner: Arc<StreamInner>,
}

struct StreamInner {
    gpu: CudaGpu,
    handle: sys::CUstream,
    /// Scratch for the stream's programs, which run one after another. Locked while a program is enqueued.
    scratch: Mutex<Vec<Option<CudaMemory>>>,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for StreamInner {}
// SAFETY: as above; the driver locks what it must.
unsafe impl Sync for StreamInner {}

impl fmt::Debug for CudaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaStream({:?} of {:?})", self.inner.handle, self.inner.gpu)
    }
}

impl PartialEq for CudaStream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
impl Eq for CudaStream {}

impl Drop for StreamInner {
    fn drop(&mut self) {
        // SAFETY: created by `stream`, destroyed once, its work done.
        let _ = self.gpu.call("stream", || unsafe { sys::cuStreamSynchronize(self.handle) });
        // SAFETY: as above.
        let _ = self.gpu.call("stream", || unsafe { sys::cuStreamDestroy_v2(self.handle) });
    }
}

impl CudaGpu {
    /// Creates a stream that does not synchronise with others. Fails if memory runs out or the device is lost.
    pub fn stream(&self) -> Result<CudaStream> {
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is valid.
        self.call("stream", || unsafe { sys::cuStreamCreate(&mut handle, flags) })?;
        Ok(CudaStream { inner: Arc::new(StreamInner { gpu: self.clone(), handle, scratch: Mutex::default() }) })
    }
}

impl CudaStream {
    /// Returns the `CudaGpu` of the stream.
    pub fn gpu(&self) -> &CudaGpu {
        &self.inner.gpu
    }

    /// Returns the driver's handle, `CUstream`, for other libraries.
    pub fn raw(&self) -> *mut c_void {
        self.inner.handle.cast()
    }

    pub(super) fn handle(&self) -> sys::CUstream {
        self.inner.handle
    }

    /// Waits for all work on the stream.
    ///
    /// # Errors
    /// Device lost, possibly by a kernel on the stream.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.gpu().call("stream: wait", || unsafe { sys::cuStreamSynchronize(self.inner.handle) })
    }

    /// Records an event that completes when all work so far is done. Fails if memory runs out or the device is lost.
    pub fn record(&self) -> Result<CudaEvent> {
        let event = self.event()?;
        event.record_on(self)?;
        Ok(event)
    }

    /// Makes later work on this stream wait for an event of any stream.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) for an event of another `CudaGpu`; device lost.
    pub fn wait_for(&self, event: &CudaEvent) -> Result<()> {
        if event.gpu != *self.gpu() {
            return Err(err!(
                Buffer,
                "wait_for: the event belongs to {:?}, the stream to {:?}; wait for the event on the host",
                event.gpu,
                self.gpu()
            ));
        }
        // SAFETY: stream and event are alive; the driver keeps what it needs of the event.
        self.gpu().call("stream: wait_for", || unsafe { sys::cuStreamWaitEvent(self.inner.handle, event.handle, 0) })
    }

    /// Waits for all device work and frees the stream's scratch.
    pub fn trim(&self) {
        lock(&self.inner.scratch).clear();
    }

    /// Creates an event that is not yet recorded.
    pub(super) fn event(&self) -> Result<CudaEvent> {
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUevent_flags_enum::CU_EVENT_DEFAULT as u32;
        // SAFETY: the pointer is valid.
        self.gpu().call("event", || unsafe { sys::cuEventCreate(&mut handle, flags) })?;
        Ok(CudaEvent { gpu: self.gpu().clone(), handle })
    }

    /// Zeroes bytes. The caller has checked the range.
    pub(super) fn clear_bytes(&self, address: u64, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise; freeing memory waits for all work.
        self.gpu().call("clear", || unsafe { sys::cuMemsetD8Async(address, 0, bytes as usize, self.inner.handle) })
    }

    /// Calls `f` with the addresses of scratch areas of these sizes, which are locked meanwhile.
    pub(super) fn with_scratch(&self, sizes: &[u64], f: impl FnOnce(&[u64]) -> Result<()>) -> Result<()> {
        let mut areas = lock(&self.inner.scratch);
        if areas.len() < sizes.len() {
            areas.resize_with(sizes.len(), || None);
        }
        let mut addresses = Vec::with_capacity(sizes.len());
        for (area, &bytes) in areas.iter_mut().zip(sizes) {
            let memory = match area.take().filter(|memory| memory.bytes >= bytes) {
                Some(memory) => memory,
                None => CudaMemory::new(self.gpu(), bytes.checked_next_power_of_two().unwrap_or(bytes).max(4096))?,
            };
            addresses.push(memory.address);
            *area = Some(memory);
        }
        f(&addresses)
    }
}

/// A point in a stream's work: see [`CudaStream::record`].
pub struct CudaEvent {
    gpu: CudaGpu,
    handle: sys::CUevent,
}

// SAFETY: the driver's handles may be used from every thread.
unsafe impl Send for CudaEvent {}
// SAFETY: as above; the driver locks what it must.
unsafe impl Sync for CudaEvent {}

impl fmt::Debug for CudaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaEvent({:?})", self.handle)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: created by `event`, destroyed once.
        let _ = self.gpu.call("event", || unsafe { sys::cuEventDestroy_v2(self.handle) });
    }
}

impl CudaEvent {
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(super) fn handle(&self) -> sys::CUevent {
        self.handle
    }

    pub(super) fn record_on(&self, stream: &CudaStream) -> Result<()> {
        // SAFETY: both are alive.
        self.gpu.call("event", || unsafe { sys::cuEventRecord(self.handle, stream.handle()) })
    }

    /// Waits until the event completes. Fails if the device is lost.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the event is alive.
        self.gpu.call("event: wait", || unsafe { sys::cuEventSynchronize(self.handle) })
    }

    /// Returns whether the event is complete. Fails if the device is lost.
    pub fn is_done(&self) -> Result<bool> {
        let mut done = true;
        self.gpu.call("event: is_done", || {
            // SAFETY: the event is alive.
            let code = unsafe { sys::cuEventQuery(self.handle) };
            if code == sys::CUresult::CUDA_ERROR_NOT_READY {
                done = false;
                return sys::CUresult::CUDA_SUCCESS;
            }
            code
        })?;
        Ok(done)
    }

    /// Waits for both events and returns the seconds from `earlier` to this one, by the device clock.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) for events of two devices; device lost.
    pub fn seconds_since(&self, earlier: &CudaEvent) -> Result<f64> {
        if self.gpu != earlier.gpu {
            let (first, last) = (&earlier.gpu, &self.gpu);
            return Err(err!(Buffer, "seconds_since: the events belong to {first:?} and {last:?}; use one device"));
        }
        earlier.wait()?;
        self.wait()?;
        let mut milliseconds = 0.0;
        // SAFETY: the pointer is valid and both events are alive.
        self.gpu.call("event: time", || unsafe {
            sys::cuEventElapsedTime(&mut milliseconds, earlier.handle, self.handle)
        })?;
        Ok(f64::from(milliseconds) * 1e-3)
    }
}

impl CudaStream {
    /// Times `runs` runs of `work` on the stream, each between two events. It first warms up by running `work` for half
    /// a second (a tenth right after another measurement).
    ///
    /// # Errors
    /// As `work`; device lost.
    pub fn measure(&self, runs: usize, mut work: impl FnMut(&CudaStream) -> Result<()>) -> Result<Measurement> {
        let start = Instant::now();
        let warm_up = warm_up(*lock(&self.gpu().inner.measured), start);
        let mut times = 1;
        loop {
            let begin = Instant::now();
            for _ in 0..times {
                work(self)?;
            }
            self.wait()?;
            if start.elapsed() >= warm_up {
                break;
            }
            times = batch(begin.elapsed(), times);
        }
        let runs = runs.max(1);
        let mut events = with_room("measure", runs)?;
        for _ in 0..runs {
            let begin = self.record()?;
            work(self)?;
            events.push((begin, self.record()?));
        }
        let seconds = events.iter().map(|(begin, end)| end.seconds_since(begin));
        let mut seconds = seconds.collect::<Result<Vec<_>>>()?;
        seconds.sort_by(f64::total_cmp);
        *lock(&self.gpu().inner.measured) = Some(Instant::now());
        Ok(Measurement { seconds, clock: Clock::Device })
    }
}

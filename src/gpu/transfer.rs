//! Uploads and readback, through pooled staging buffers.

use super::buffer::StoredElements;
use super::fence::Notice;
use super::pool::{Direction, Raw};
use super::{Buffer, Gpu, Slice, Waiting, lock};
use crate::program::prelude::*;
use futures_intrusive::channel::shared::{OneshotReceiver, oneshot_channel};
#[cfg(not(target_arch = "wasm32"))]
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{Condvar, Mutex};
#[cfg(not(target_arch = "wasm32"))]
use std::time::{Duration, Instant};

/// Maximum of bytes in one staging buffer; longer transfers take several.
const CHUNK: u64 = 32 << 20;

impl Gpu {
    /// Copies `data` into a new buffer.
    ///
    /// # Errors
    /// Those of [`Gpu::alloc`].
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }
}

/// The error for copying a slice that shares a word with its neighbours.
pub(super) fn word_error<T: Element>(op: &str, slice: &Slice<'_, T>) -> crate::Error {
    err!(
        Buffer,
        "{op}: the slice {}..{} of {} elements of {} does not cover whole 4-byte words; start at a multiple of {} and \
         end at one, or at the end of the buffer",
        slice.start,
        slice.start + slice.len,
        slice.buffer.len,
        T::DTYPE,
        4usize.div_ceil(T::DTYPE.size())
    )
}

impl<T: Element> Buffer<T> {
    /// Writes `data` over the whole buffer, before work that is submitted later.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; [`Buffer`](ErrorKind::Buffer) if the wgpu
    /// buffer lacks `COPY_DST`; out of memory; device lost.
    pub fn write(&self, data: &[T]) -> Result<()> {
        Slice::from(self).write(data)
    }

    /// Waits for submitted work and copies the elements to the host.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if the wgpu buffer lacks `COPY_SRC`; out of memory; device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self) -> Result<Vec<T>> {
        Slice::from(self).read()
    }

    /// As [`read`](Self::read), without blocking the thread: the only way in a browser.
    ///
    /// The first poll of the future submits the copy. The future resolves when the data has arrived or the device
    /// is lost. Any executor works: a helper thread of the `Gpu` drives the device meanwhile.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_async(&self) -> Result<Vec<T>> {
        Slice::from(self).read_async().await
    }
}

impl<T: Element> Slice<'_, T> {
    /// Writes `data` over the slice, before work that is submitted later.
    ///
    /// # Errors
    /// As [`Buffer::write`]; [`Buffer`](ErrorKind::Buffer) also if the slice shares a 4-byte word with its
    /// neighbours.
    pub fn write(&self, data: &[T]) -> Result<()> {
        let gpu = &self.buffer.gpu;
        if data.len() != self.len {
            return Err(err!(Shape, "write: {} elements given for a slice of {}", data.len(), self.len));
        }
        if data.is_empty() {
            return gpu.probe();
        }
        let (start, _) = self.copy_range().ok_or_else(|| word_error("write", self))?;
        check_usage("write", self.buffer, wgpu::BufferUsages::COPY_DST)?;
        let bytes: &[u8] = bytemuck::cast_slice(data);
        gpu.poll_once()?;
        for (i, chunk) in bytes.chunks(CHUNK as usize).enumerate() {
            gpu.send(chunk, &self.buffer.memory.raw.buffer, start + i as u64 * CHUNK)?;
        }
        self.buffer.memory.written.set();
        Ok(())
    }

    /// As [`write`](Self::write) of a few elements, which travel with the next submission: one submission less.
    #[cfg(feature = "shard")]
    pub(crate) fn write_with_next(&self, data: &[T]) -> Result<()> {
        let gpu = &self.buffer.gpu;
        let (start, _) = self.copy_range().ok_or_else(|| word_error("write", self))?;
        if data.len() != self.len || !(data.len() * T::DTYPE.size()).is_multiple_of(4) {
            return Err(err!(Shape, "write: {} elements given for a slice of {}", data.len(), self.len));
        }
        let raw = &self.buffer.memory.raw.buffer;
        gpu.scoped("uploading", || gpu.inner.queue.write_buffer(raw, start, bytemuck::cast_slice(data)))?;
        self.buffer.memory.written.set();
        Ok(())
    }

    /// Waits for submitted work and copies the elements to the host.
    ///
    /// # Errors
    /// As [`Buffer::read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read(&self) -> Result<Vec<T>> {
        Waiting::block(|waiting| self.read_by(waiting))
    }

    /// Submits the copy to the host and returns at once. Work submitted later does not delay it, unlike
    /// [`read`](Self::read).
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let before = x.slice(..)?.start_read()?;
    /// x.write(&[3.0, 4.0])?;
    /// assert_eq!(before.wait()?, [1.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub fn start_read(&self) -> Result<Readback<T>> {
        let raw = &self.buffer.memory.raw.buffer;
        let start = |part| Pending::start(&self.buffer.gpu, raw, part);
        let parts = self.parts(CHUNK)?.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Readback { parts, len: self.len, element: PhantomData })
    }

    /// As [`Buffer::read_async`].
    ///
    /// # Errors
    /// As [`Buffer::read`].
    pub async fn read_async(&self) -> Result<Vec<T>> {
        self.read_by(Waiting::Yielding).await
    }

    /// Waits for submitted work and copies the elements to the host.
    pub(crate) async fn read_by(&self, waiting: Waiting) -> Result<Vec<T>> {
        let gpu = &self.buffer.gpu;
        let mut out: Vec<T> = with_room("read", self.len)?;
        for part in self.parts(CHUNK)? {
            Pending::start(gpu, &self.buffer.memory.raw.buffer, part)?.wait_by(waiting, &mut out).await?;
        }
        Ok(out)
    }

    /// The slice in pieces of at most `chunk` bytes for one staging buffer each: byte offset and size.
    fn parts(&self, chunk: u64) -> Result<Vec<(u64, u64)>> {
        self.buffer.gpu.probe()?;
        if self.len == 0 {
            return Ok(Vec::new());
        }
        check_usage("read", self.buffer, wgpu::BufferUsages::COPY_SRC)?;
        let start = self.offset();
        if !start.is_multiple_of(4) {
            return Err(word_error("read", self));
        }
        let bytes = (self.len * T::DTYPE.size()) as u64;
        Ok((0..bytes.div_ceil(chunk)).map(|i| (start + i * chunk, chunk.min(bytes - i * chunk))).collect())
    }
}

fn check_usage(op: &str, buffer: &StoredElements, needed: wgpu::BufferUsages) -> Result<()> {
    let usage = buffer.memory.raw.buffer.usage();
    if usage.contains(needed) {
        return Ok(());
    }
    Err(err!(Buffer, "{op}: the buffer has usage {usage:?} and needs {needed:?}; create it with that"))
}

impl Gpu {
    /// Copies `bytes` (padded to whole words) to `offset` of `target` through the browser's staging.
    #[cfg(target_arch = "wasm32")]
    fn send(&self, bytes: &[u8], target: &wgpu::Buffer, offset: u64) -> Result<()> {
        let (words, rest) = bytes.split_at(bytes.len() / 4 * 4);
        self.scoped("uploading", || {
            self.inner.queue.write_buffer(target, offset, words);
            if !rest.is_empty() {
                let mut word = [0; 4];
                word[..rest.len()].copy_from_slice(rest);
                self.inner.queue.write_buffer(target, offset + words.len() as u64, &word);
            }
        })
    }

    /// Copies `bytes` (padded to whole words) to `offset` of `target` through a staging buffer.
    #[cfg(not(target_arch = "wasm32"))]
    fn send(&self, bytes: &[u8], target: &wgpu::Buffer, offset: u64) -> Result<()> {
        let size = (bytes.len() as u64).next_multiple_of(4);
        if *lock(&self.inner.staging.in_flight) > self.inner.staging.kept() {
            self.wait()?;
        }
        let raw = self.staging(Direction::Up, size)?;
        self.scoped("uploading", || {
            let mut view =
                raw.buffer.slice(..size).get_mapped_range_mut().map_err(|e| err!(DeviceLost, "uploading: {e}"))?;
            view.slice(..bytes.len()).copy_from_slice(bytes);
            drop(view);
            raw.buffer.unmap();
            let mut encoder = self.inner.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(&raw.buffer, 0, target, offset, size);
            self.inner.queue.submit([encoder.finish()]);
            self.recycle_upload(raw);
            Ok(())
        })?
    }

    /// Maps an upload buffer again after the GPU has read it, and puts it into the pool.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn recycle_upload(&self, raw: Raw) {
        *lock(&self.inner.staging.in_flight) += raw.size;
        let home: Weak<_> = Arc::downgrade(&self.inner);
        let buffer = raw.buffer.clone();
        buffer.slice(..).map_async(wgpu::MapMode::Write, move |mapped| {
            if let Some(gpu) = home.upgrade() {
                *lock(&gpu.staging.in_flight) -= raw.size;
                if mapped.is_ok() {
                    gpu.staging.put(Direction::Up, raw);
                }
            }
        });
    }
}

/// A readback under way.
struct Pending {
    gpu: Gpu,
    raw: Raw,
    bytes: u64,
    submission: wgpu::SubmissionIndex,
    /// Resolves when the buffer is mapped, or never will be.
    mapped: OneshotReceiver<bool>,
    settled: Arc<AtomicBool>,
}

impl Pending {
    fn start(gpu: &Gpu, source: &wgpu::Buffer, (offset, bytes): (u64, u64)) -> Result<Self> {
        let size = bytes.next_multiple_of(4);
        let raw = gpu.staging(Direction::Down, size)?;
        let (sender, mapped) = oneshot_channel();
        let notice: Notice = Arc::new(sender);
        gpu.inner.health.watch(&notice);
        let settled = Arc::new(AtomicBool::new(false));
        let seen = settled.clone();
        let submission = gpu.scoped("reading back", || {
            let mut encoder = gpu.inner.device.create_command_encoder(&Default::default());
            encoder.copy_buffer_to_buffer(source, offset, &raw.buffer, 0, size);
            let submission = gpu.inner.queue.submit([encoder.finish()]);
            raw.buffer.slice(..size).map_async(wgpu::MapMode::Read, move |result| {
                // The receiver may know already that the device is lost.
                let _ = notice.send(result.is_ok());
                seen.store(true, Ordering::Release);
            });
            submission
        })?;
        Ok(Self { gpu: gpu.clone(), raw, bytes, submission, mapped, settled })
    }

    /// Waits for the copy and appends the data.
    async fn wait_by<T: Element>(self, waiting: Waiting, out: &mut Vec<T>) -> Result<()> {
        match waiting {
            #[cfg(not(target_arch = "wasm32"))]
            Waiting::Blocking => self.block()?,
            Waiting::Yielding => {
                drive(&self.gpu, &self.submission)?;
                self.mapped.receive().await;
                self.gpu.settled().await?;
            }
        }
        self.finish(out)
    }

    /// Waits for the copy by blocking the thread.
    #[cfg(not(target_arch = "wasm32"))]
    fn block(&self) -> Result<()> {
        /// How long a thread stays awake for a readback.
        const AWAKE: Duration = Duration::from_millis(1);
        if self.gpu.inner.staging.is_eager() {
            let end = Instant::now() + AWAKE;
            while !self.settled.load(Ordering::Acquire) && Instant::now() < end {
                self.gpu.poll_once()?;
            }
            if self.settled.load(Ordering::Acquire) {
                return self.gpu.probe();
            }
        }
        self.gpu.wait_for(Some(self.submission.clone()))
    }

    fn view(&self) -> Result<wgpu::BufferView> {
        self.raw
            .buffer
            .slice(..self.bytes.next_multiple_of(4))
            .get_mapped_range()
            .map_err(|e| err!(DeviceLost, "reading back: the staging buffer could not be mapped ({e}); open a new Gpu"))
    }

    /// Appends the data. The buffer must be mapped.
    fn finish<T: Element>(self, out: &mut Vec<T>) -> Result<()> {
        self.gpu.scoped("reading back", || {
            let view = self.view()?;
            let count = (self.bytes as usize) / T::DTYPE.size();
            let at = out.len();
            out.resize(at + count, T::default());
            bytemuck::cast_slice_mut::<T, u8>(&mut out[at..]).copy_from_slice(&view[..self.bytes as usize]);
            drop(view);
            self.raw.buffer.unmap();
            Ok(())
        })??;
        self.gpu.inner.staging.put(Direction::Down, self.raw);
        Ok(())
    }
}

/// Elements on their way to the host: made by [`Slice::start_read`].
#[must_use = "the elements come by `wait`"]
pub struct Readback<T> {
    parts: Vec<Pending>,
    len: usize,
    element: PhantomData<T>,
}

impl<T> fmt::Debug for Readback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Readback({} elements)", self.len)
    }
}

impl<T: Element> Readback<T> {
    /// Waits for the copy, but not for work submitted after it.
    ///
    /// # Errors
    /// [`OutOfMemory`](ErrorKind::OutOfMemory) if the host has no room for the elements; device lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(self) -> Result<Vec<T>> {
        Waiting::block(|waiting| self.wait_by(waiting))
    }

    /// As [`wait`](Self::wait), without blocking the thread.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_async(self) -> Result<Vec<T>> {
        self.wait_by(Waiting::Yielding).await
    }

    pub(crate) async fn wait_by(self, waiting: Waiting) -> Result<Vec<T>> {
        let mut out = with_room("read", self.len)?;
        for part in self.parts {
            part.wait_by(waiting, &mut out).await?;
        }
        Ok(out)
    }
}

/// Elements on their way to slices of other ranks: see [`Slice::start_move`] and [`Slice::start_copy`].
#[cfg(feature = "shard")]
pub(crate) struct Moving {
    /// Staging buffers, which the receivers read. A lock each: they take turns.
    parts: Vec<Mutex<Option<Pending>>>,
    /// A copy on the device, in their place.
    copy: Option<StoredElements>,
    bytes: u64,
}

/// Bytes of a piece on its way to another device.
#[cfg(feature = "shard")]
const MOVED: u64 = 8 << 20;

#[cfg(feature = "shard")]
impl<T: Element> Slice<'_, T> {
    /// Submits the copy to staging buffers and returns at once. Any number of devices can then take the elements,
    /// without another copy on the host.
    pub(crate) fn start_move(&self) -> Result<Moving> {
        let raw = &self.buffer.memory.raw.buffer;
        let start = |part| Ok(Mutex::new(Some(Pending::start(&self.buffer.gpu, raw, part)?)));
        let parts = self.parts(MOVED)?.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Moving { parts, copy: None, bytes: (self.len * T::DTYPE.size()) as u64 })
    }

    /// As [`start_move`](Self::start_move), for receivers on this device: submits a copy that stays there. `None` if
    /// there is no memory for it, the elements are no whole words, or nothing was written yet.
    pub(crate) fn start_copy(&self) -> Result<Option<Moving>> {
        if self.copy_range().is_none() || !self.buffer.memory.written.get() {
            return Ok(None);
        }
        let copy = match self.buffer.gpu.alloc::<T>(self.len) {
            Err(e) if e.kind() == ErrorKind::OutOfMemory => return Ok(None),
            copy => copy?,
        };
        let mut rec = self.buffer.gpu.recorder();
        rec.copy(*self, &copy)?;
        rec.submit()?;
        let bytes = (self.len * T::DTYPE.size()) as u64;
        Ok(Some(Moving { parts: Vec::new(), copy: Some(copy.stored.clone()), bytes }))
    }
}

#[cfg(feature = "shard")]
impl Moving {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Waits for the elements and passes them on in pieces, in order.
    pub(crate) fn for_each_piece(&self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(StoredElements { gpu, memory, .. }) = &self.copy {
            return each(&Buffer::<u8>::new(gpu, memory.clone(), self.bytes as usize).read()?);
        }
        (0..self.parts.len()).try_for_each(|i| self.piece(i, &mut each))
    }

    /// Waits for a piece and passes it on.
    fn piece(&self, i: usize, each: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        let part = lock(&self.parts[i]);
        let Some(pending) = part.as_ref() else { return Ok(()) };
        pending.block()?;
        let view = pending.gpu.scoped("moving", || pending.view())??;
        each(&view[..pending.bytes as usize])
    }

    /// Waits for the elements and writes them over a slice of another device, before work that is submitted later
    /// there.
    pub(crate) fn write_to<T: Element>(&self, to: &Slice<'_, T>) -> Result<()> {
        /// Threads that copy pieces: one does not reach the rate of a card's link.
        const COPIERS: usize = 8;
        if let Some(StoredElements { gpu, memory, len }) = &self.copy {
            let copy = Buffer::<T>::new(gpu, memory.clone(), *len);
            if to.buffer.gpu != *gpu || to.copy_range().is_none() {
                return to.write(&copy.read()?);
            }
            let mut rec = gpu.recorder();
            rec.copy(&copy, *to)?;
            return rec.submit();
        }
        let each = MOVED as usize / T::DTYPE.size();
        let write = |i: usize| {
            self.piece(i, |bytes| {
                let begin = i * each;
                // Staging memory is aligned for every type.
                to.slice(begin..begin + bytes.len() / T::DTYPE.size())?.write(bytemuck::cast_slice(bytes))
            })
        };
        let write_from = |first: usize, step: usize| (first..self.parts.len()).step_by(step).try_for_each(write);
        let copiers = self.parts.len().min(COPIERS);
        if copiers < 2 {
            return write_from(0, 1);
        }
        std::thread::scope(|scope| {
            let spawn = |first: usize| {
                let builder = std::thread::Builder::new().name("tilework copier".into());
                builder.spawn_scoped(scope, move || write_from(first, copiers))
            };
            let threads: Vec<_> = (1..copiers).map(|first| (first, spawn(first))).collect();
            let mut result = write_from(0, copiers);
            for (first, thread) in threads {
                let written = match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|_| Err(err!(Callback, "moving: a copier panicked"))),
                    Err(_) => write_from(first, copiers),
                };
                result = result.and(written);
            }
            result
        })
    }
}

#[cfg(feature = "shard")]
impl Drop for Moving {
    fn drop(&mut self) {
        for part in &self.parts {
            let Some(Pending { gpu, raw, .. }) = lock(part).take() else { continue };
            // A lost device keeps nothing.
            if gpu.scoped("moving", || raw.buffer.unmap()).is_ok() {
                gpu.inner.staging.put(Direction::Down, raw);
            }
        }
    }
}

/// Makes the callbacks of `submission` run when it is done. A browser runs them by itself.
#[cfg(target_arch = "wasm32")]
pub(super) fn drive(_: &Gpu, _: &wgpu::SubmissionIndex) -> Result<()> {
    Ok(())
}

/// Makes the callbacks of `submission` run when it is done: by the poller, or now if no thread can start.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn drive(gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> Result<()> {
    if gpu.inner.poller.drive(gpu, submission) { Ok(()) } else { gpu.wait_for(Some(submission.clone())) }
}

/// Drives the device from a thread of its own while a readback is awaited.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub(super) struct Poller {
    shared: Arc<(Mutex<PollerState>, Condvar)>,
}

#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
struct PollerState {
    awaited: VecDeque<wgpu::SubmissionIndex>,
    running: bool,
    closed: bool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Poller {
    fn drop(&mut self) {
        lock(&self.shared.0).closed = true;
        self.shared.1.notify_all();
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Poller {
    /// Runs the callbacks of `submission` as soon as it is done. Returns false if no thread can start; the caller
    /// must then wait itself.
    fn drive(&self, gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> bool {
        let mut state = lock(&self.shared.0);
        if !state.running {
            let (shared, home) = (self.shared.clone(), Arc::downgrade(&gpu.inner));
            let thread = std::thread::Builder::new().name("tilework poller".into());
            state.running = thread.spawn(move || run_poller(&shared, &home)).is_ok();
        }
        if state.running {
            state.awaited.push_back(submission.clone());
            self.shared.1.notify_all();
        }
        state.running
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn run_poller(shared: &(Mutex<PollerState>, Condvar), home: &Weak<super::GpuInner>) {
    loop {
        let mut state = lock(&shared.0);
        while state.awaited.is_empty() && !state.closed {
            state = shared.1.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let submission = state.awaited.pop_front();
        if state.closed {
            return;
        }
        drop(state);
        let Some(inner) = home.upgrade() else { return };
        // The error is a lost device; all pending readbacks learn of it.
        if (Gpu { inner }).wait_for(submission).is_err() {
            let mut state = lock(&shared.0);
            state.running = false;
            state.awaited.clear();
            return;
        }
    }
}

use super::device::{CudaGpu, lock};
use super::stream::{CudaEvent, CudaStream};
use crate::program::prelude::*;
use crate::program::{Use, Written, check_read};
use cudarc::driver::sys;
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex};

pub(super) struct CudaMemory {
    gpu: CudaGpu,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// Keeps the memory alive if it is not ours to free.
    owner: Option<Box<dyn Any + Send + Sync>>,
    written: Written,
}

impl CudaMemory {
    /// Allocates memory with undefined contents. An empty allocation has an address too.
    pub(super) fn new(gpu: &CudaGpu, bytes: u64) -> Result<Self> {
        let mut address = 0;
        // Kernels copy chunks of 16 bytes, and the hardware drops the part of the last chunk beyond the end. The size
        // is rounded up for compute-sanitizer, which checks the whole chunk.
        let size = bytes.max(1).saturating_add(15) as usize / 16 * 16;
        gpu.call(&format!("alloc: {bytes} bytes on {}", gpu.profile().name), || {
            // SAFETY: the pointer is valid.
            unsafe { sys::cuMemAlloc_v2(&mut address, size) }
        })?;
        Ok(Self { gpu: gpu.clone(), address, bytes, owner: None, written: Written::default() })
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // Enqueued work may still use the memory. A lost device has no work.
        let waited = self.gpu.wait();
        if self.owner.is_none() && waited.is_ok() {
            // SAFETY: allocated by `new`, freed once; nothing is running.
            let _ = self.gpu.call("free", || unsafe { sys::cuMemFree_v2(self.address) });
        }
    }
}

/// Elements of type `T` in CUDA device memory, tagged with their [`CudaGpu`].
///
/// Clones are cheap and share the memory. Dropping the last one waits for all device work and frees the memory, so keep
/// buffers for reuse. If one stream writes and another reads, order them with [`CudaStream::record`] and
/// [`CudaStream::wait_for`].
#[derive(Clone)]
pub struct CudaBuffer<T: Element> {
    gpu: CudaGpu,
    memory: Arc<CudaMemory>,
    len: usize,
    element: PhantomData<T>,
}

/// A range of a [`CudaBuffer`]. Ops require slices that start at a multiple of 16 bytes.
#[derive(Clone, Copy)]
pub struct CudaSlice<'a, T: Element> {
    buffer: &'a CudaBuffer<T>,
    start: usize,
    len: usize,
}

/// A [`CudaSlice`] with the element type as a value.
#[derive(Clone, Copy)]
pub struct RawCudaSlice<'a> {
    pub(super) gpu: &'a CudaGpu,
    pub(super) dtype: DType,
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) written: &'a Written,
}

impl fmt::Debug for RawCudaSlice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawCudaSlice<{}>({} elements at {:#x})", self.dtype, self.len, self.address)
    }
}

/// Rejects reads of memory that was never written.
pub(super) fn check_written(op: &str, uses: &[Use<'_>]) -> Result<()> {
    check_read(op, uses, "CudaStream::clear")
}

impl<'a> RawCudaSlice<'a> {
    pub(super) fn used(&self, name: &'a str, access: Access) -> Use<'a> {
        Use { name, access, written: self.written, dtype: self.dtype, len: self.len }
    }

    fn bytes(&self) -> u64 {
        (self.len * self.dtype.size()) as u64
    }

    /// Returns whether the two share a byte.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.address < other.address + other.bytes() && other.address < self.address + self.bytes()
    }
}

impl<T: Element> fmt::Debug for CudaBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaBuffer<{}>({} elements on {})", T::DTYPE, self.len, self.gpu.profile().name)
    }
}

impl<T: Element> fmt::Debug for CudaSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaSlice<{}>({}..{})", T::DTYPE, self.start, self.start + self.len)
    }
}

impl<'a, T: Element> From<&'a CudaBuffer<T>> for CudaSlice<'a, T> {
    fn from(buffer: &'a CudaBuffer<T>) -> Self {
        CudaSlice { buffer, start: 0, len: buffer.len }
    }
}

macro_rules! lengths {
    () => {
        /// Returns the number of elements.
        pub fn len(&self) -> usize {
            self.len
        }

        /// Returns whether there are no elements.
        pub fn is_empty(&self) -> bool {
            self.len == 0
        }
    };
}

fn bytes_of<T: Element>(n: usize) -> Result<u64> {
    let bytes = n.checked_mul(T::DTYPE.size()).filter(|b| isize::try_from(*b).is_ok());
    bytes
        .map(|b| b as u64)
        .ok_or_else(|| err!(TooLarge, "alloc: {n} elements of {} exceed the address space; split the data", T::DTYPE))
}

impl CudaGpu {
    /// Allocates `n` elements with undefined contents. Ops refuse to read the buffer before something was written to
    /// it: see [`Gpu::alloc`](crate::Gpu::alloc).
    ///
    /// # Errors
    /// [`OutOfMemory`](ErrorKind::OutOfMemory), after which everything else stays usable;
    /// [`TooLarge`](ErrorKind::TooLarge) above the address space; device lost.
    pub fn alloc<T: Element>(&self, n: usize) -> Result<CudaBuffer<T>> {
        let memory = Arc::new(CudaMemory::new(self, bytes_of::<T>(n)?)?);
        Ok(CudaBuffer { gpu: self.clone(), memory, len: n, element: PhantomData })
    }

    /// Copies `data` into a new buffer. Fails like [`CudaGpu::alloc`].
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<CudaBuffer<T>> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// Wraps memory of another CUDA library or another API. `owner` keeps it alive; it is dropped with the last clone
    /// of the buffer, after a wait for all device work.
    ///
    /// # Safety
    /// Memory at `address` holds `len` elements of type `T`, accessible to this device, until `owner` is dropped.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if `address` is not a multiple of the element size.
    pub unsafe fn wrap<T: Element>(
        &self, address: u64, len: usize, owner: impl Any + Send + Sync,
    ) -> Result<CudaBuffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        if !address.is_multiple_of(T::DTYPE.size() as u64) {
            return Err(err!(Buffer, "wrap: {address:#x} is not aligned for {}", T::DTYPE));
        }
        let (owner, written) = (Some(Box::new(owner) as _), Written::already());
        let memory = CudaMemory { gpu: self.clone(), address, bytes, owner, written };
        Ok(CudaBuffer { gpu: self.clone(), memory: Arc::new(memory), len, element: PhantomData })
    }

    /// Allocates `n` zeroed elements of host memory that the device can copy from and to asynchronously. Fails like
    /// [`CudaGpu::alloc`].
    pub fn pinned<T: Element>(&self, n: usize) -> Result<PinnedBuffer<T>> {
        let bytes = bytes_of::<T>(n)?;
        let mut at: *mut c_void = std::ptr::null_mut();
        self.call(&format!("pinned: {bytes} bytes of host memory"), || {
            // SAFETY: the pointer is valid.
            unsafe { sys::cuMemHostAlloc(&mut at, bytes.max(1) as usize, 0) }
        })?;
        // SAFETY: that many bytes were allocated just now.
        unsafe { at.cast::<u8>().write_bytes(0, bytes as usize) };
        Ok(PinnedBuffer { gpu: self.clone(), at: at.cast(), len: n, pending: Mutex::default() })
    }
}

impl<T: Element> CudaBuffer<T> {
    lengths!();

    /// Returns the `CudaGpu` of the buffer.
    pub fn gpu(&self) -> &CudaGpu {
        &self.gpu
    }

    /// Returns the device address, `CUdeviceptr`, for other libraries. The buffer counts as written from then on.
    pub fn address(&self) -> u64 {
        self.memory.written.set();
        self.memory.address
    }

    /// Returns the elements of `range`.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the range exceeds the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<CudaSlice<'_, T>> {
        CudaSlice::from(self).slice(range)
    }

    /// As [`CudaSlice::write`], for the whole buffer.
    pub fn write(&self, data: &[T]) -> Result<()> {
        CudaSlice::from(self).write(data)
    }

    /// As [`CudaSlice::read`], for the whole buffer. Fails if the device is lost.
    pub fn read(&self) -> Result<Vec<T>> {
        CudaSlice::from(self).read()
    }
}

impl<'a, T: Element> CudaSlice<'a, T> {
    lengths!();

    /// Returns the elements of `range`, relative to this slice.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the range exceeds the slice.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<CudaSlice<'a, T>> {
        let (start, len) = within(range, self.len, T::DTYPE)?;
        Ok(CudaSlice { buffer: self.buffer, start: self.start + start, len })
    }

    /// Returns the slice without its type.
    pub fn untyped(&self) -> RawCudaSlice<'a> {
        let address = self.buffer.memory.address + (self.start * T::DTYPE.size()) as u64;
        let CudaBuffer { gpu, memory, .. } = self.buffer;
        RawCudaSlice { gpu, dtype: T::DTYPE, address, len: self.len, written: &memory.written }
    }

    /// Waits for all device work, then writes `data` over the slice, and waits for the copy.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; device lost.
    pub fn write(&self, data: &[T]) -> Result<()> {
        if data.len() != self.len {
            return Err(err!(Shape, "write: {} elements given, the slice has {}", data.len(), self.len));
        }
        let (to, gpu) = (self.untyped(), &self.buffer.gpu);
        gpu.wait()?;
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: both sides have that many bytes.
        gpu.call("write", || unsafe { sys::cuMemcpyHtoD_v2(to.address, data.as_ptr().cast(), to.bytes() as usize) })?;
        // The driver may return once the data is staged, on a stream that ours do not wait for.
        // SAFETY: the null stream always exists.
        gpu.call("write", || unsafe { sys::cuStreamSynchronize(std::ptr::null_mut()) })?;
        to.written.set();
        Ok(())
    }

    /// Waits for all device work and copies the elements to the host. Fails if the device is lost.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = filled("read", self.len, T::default())?;
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// As [`read`](Self::read), into existing memory.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; device lost.
    pub fn read_into(&self, data: &mut [T]) -> Result<()> {
        if data.len() != self.len {
            return Err(err!(Shape, "read: room for {} elements, the slice has {}", data.len(), self.len));
        }
        let (from, gpu) = (self.untyped(), &self.buffer.gpu);
        gpu.wait()?;
        if data.is_empty() {
            return Ok(());
        }
        gpu.call("read", || {
            // SAFETY: both sides have that many bytes, and any bytes make a `T`.
            unsafe { sys::cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), from.address, from.bytes() as usize) }
        })
    }
}

/// Host memory that the device copies from and to asynchronously, while kernels run: see [`CudaStream::upload`].
///
/// [`get`](Self::get) and [`get_mut`](Self::get_mut) wait for pending copies.
pub struct PinnedBuffer<T: Element> {
    gpu: CudaGpu,
    at: *mut T,
    len: usize,
    pending: Mutex<Vec<(CudaStream, CudaEvent)>>,
}

// SAFETY: it owns its memory, as a Vec does, and what the device does with it is guarded by `pending`.
unsafe impl<T: Element> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for PinnedBuffer<T> {}

impl<T: Element> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer<{}>({} elements)", T::DTYPE, self.len)
    }
}

impl<T: Element> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        // If the wait fails the device is lost and copies nothing more.
        let _ = self.settle();
        // SAFETY: allocated by `pinned`, freed once; no copy is under way.
        let _ = self.gpu.call("free", || unsafe { sys::cuMemFreeHost(self.at.cast()) });
    }
}

impl<T: Element> PinnedBuffer<T> {
    lengths!();

    /// Waits for pending copies.
    fn settle(&self) -> Result<()> {
        for (_, event) in lock(&self.pending).drain(..) {
            event.wait()?;
        }
        Ok(())
    }

    /// Waits for pending copies and returns the elements. It borrows mutably so that no copy starts meanwhile. Fails if
    /// the device is lost.
    pub fn get(&mut self) -> Result<&[T]> {
        self.get_mut().map(|elements| &*elements)
    }

    /// Waits for pending copies and returns the elements for writing. Fails if the device is lost.
    pub fn get_mut(&mut self) -> Result<&mut [T]> {
        self.settle()?;
        // SAFETY: the memory is ours, holds that many elements, and no copy is under way nor can begin.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.at, self.len) })
    }

    /// Returns the elements of `range`, for copies.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the range exceeds the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<PinnedSlice<'_, T>> {
        let (start, len) = within(range, self.len, T::DTYPE)?;
        Ok(PinnedSlice { buffer: self, start, len })
    }
}

/// A range of a [`PinnedBuffer`].
#[derive(Debug, Clone, Copy)]
pub struct PinnedSlice<'a, T: Element> {
    buffer: &'a PinnedBuffer<T>,
    start: usize,
    len: usize,
}

impl<'a, T: Element> From<&'a PinnedBuffer<T>> for PinnedSlice<'a, T> {
    fn from(buffer: &'a PinnedBuffer<T>) -> Self {
        PinnedSlice { buffer, start: 0, len: buffer.len }
    }
}

#[derive(Clone, Copy)]
enum Transfer {
    ToDevice,
    ToHost,
}

impl CudaStream {
    /// Enqueues a copy from pinned memory to the device. Returns at once.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the lengths differ; [`Buffer`](ErrorKind::Buffer) if either side
    /// belongs to another `CudaGpu`; device lost.
    pub fn upload<'a, T: Element>(
        &self, from: impl Into<PinnedSlice<'a, T>>, to: impl Into<CudaSlice<'a, T>>,
    ) -> Result<()> {
        self.transfer("upload", from.into(), to.into(), Transfer::ToDevice)
    }

    /// Enqueues a copy from the device to pinned memory. Returns at once. Fails like [`CudaStream::upload`].
    pub fn download<'a, T: Element>(
        &self, from: impl Into<CudaSlice<'a, T>>, to: impl Into<PinnedSlice<'a, T>>,
    ) -> Result<()> {
        self.transfer("download", to.into(), from.into(), Transfer::ToHost)
    }

    fn transfer<T: Element>(
        &self, doing: &str, host: PinnedSlice<'_, T>, device: CudaSlice<'_, T>, way: Transfer,
    ) -> Result<()> {
        if host.len != device.len {
            return Err(err!(
                Shape,
                "{doing}: {} elements on the host, {} on the device; slice the longer",
                host.len,
                device.len
            ));
        }
        let place = device.untyped();
        for (what, gpu) in [("the host's memory", &host.buffer.gpu), ("the device's memory", place.gpu)] {
            if gpu != self.gpu() {
                return Err(err!(Buffer, "{doing}: {what} belongs to {gpu:?}, the stream to {:?}", self.gpu()));
            }
        }
        let mut pending = lock(&host.buffer.pending);
        // SAFETY: the slice lies within the buffer.
        let at: *mut c_void = unsafe { host.buffer.at.add(host.start) }.cast();
        let bytes = place.bytes() as usize;
        if bytes == 0 {
            return Ok(());
        }
        let event = self.event()?;
        // SAFETY: both sides have that many bytes. The host side is not touched or freed before `event`, and freeing
        // the device side waits for all work.
        let code = self.gpu().call(doing, || unsafe {
            match way {
                Transfer::ToDevice => sys::cuMemcpyHtoDAsync_v2(place.address, at, bytes, self.handle()),
                Transfer::ToHost => sys::cuMemcpyDtoHAsync_v2(at, place.address, bytes, self.handle()),
            }
        });
        // A copy without an event could not be awaited later: wait for it now.
        let recorded = code.and_then(|()| event.record_on(self));
        if recorded.is_err() {
            let _ = self.wait();
        }
        recorded?;
        pending.retain(|(stream, _)| stream != self);
        pending.push((self.clone(), event));
        if matches!(way, Transfer::ToDevice) {
            place.written.set();
        }
        Ok(())
    }

    /// Enqueues a copy between slices. Returns at once.
    ///
    /// # Errors
    /// - [`Shape`](ErrorKind::Shape): the lengths differ.
    /// - [`Aliasing`](ErrorKind::Aliasing): the slices overlap.
    /// - [`Buffer`](ErrorKind::Buffer): a slice of another `CudaGpu`, or a source that was never written.
    /// - Device lost.
    pub fn copy<'a, T: Element>(
        &self, from: impl Into<CudaSlice<'a, T>>, to: impl Into<CudaSlice<'a, T>>,
    ) -> Result<()> {
        let (from, to) = (from.into().untyped(), to.into().untyped());
        if from.len != to.len {
            return Err(err!(Shape, "copy: {} elements to {}; slice the longer", from.len, to.len));
        }
        if from.gpu != self.gpu() || to.gpu != self.gpu() {
            return Err(err!(
                Buffer,
                "copy: from {:?} to {:?} on a stream of {:?}; copy through the host",
                from.gpu,
                to.gpu,
                self.gpu()
            ));
        }
        if from.overlaps(&to) {
            return Err(err!(Aliasing, "copy: {from:?} and {to:?} overlap; use two buffers"));
        }
        let (source, target) = (from.used("the source", Access::Read), to.used("the target", Access::Write));
        check_written("copy", &[source, target])?;
        let bytes = from.bytes() as usize;
        // SAFETY: both sides have that many bytes; freeing them waits for all work.
        let copy = || unsafe { sys::cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, self.handle()) };
        self.gpu().call("copy", copy)?;
        to.written.set();
        Ok(())
    }

    /// Enqueues zeroing a slice. Returns at once.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if it belongs to another `CudaGpu`; device lost.
    pub fn clear<'a, T: Element>(&self, what: impl Into<CudaSlice<'a, T>>) -> Result<()> {
        let what = what.into().untyped();
        if what.gpu != self.gpu() {
            let (buffer, stream) = (what.gpu, self.gpu());
            return Err(err!(Buffer, "clear: the buffer belongs to {buffer:?}, the stream to {stream:?}"));
        }
        self.clear_bytes(what.address, what.bytes())?;
        what.written.set();
        Ok(())
    }
}

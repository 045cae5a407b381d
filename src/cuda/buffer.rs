//! Typed memory of a device and of the host, and slices of it.

use super::device::{CudaGpu, lock};
use super::stream::{CudaEvent, CudaStream};
use crate::element::{DType, Element};
use crate::error::{Result, err, filled};
use crate::program::{Access, Use, Written, check_read};
use crate::shape::within;
use cudarc::driver::sys;
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex};

/// Memory of a device.
pub(super) struct CudaMemory {
    gpu: CudaGpu,
    pub(super) address: u64,
    pub(super) bytes: u64,
    /// What keeps the memory alive, if it is not ours to free.
    owner: Option<Box<dyn Any + Send + Sync>>,
    written: Written,
}

impl CudaMemory {
    /// New memory, which holds anything. No bytes have an address too.
    pub(super) fn new(gpu: &CudaGpu, bytes: u64) -> Result<Self> {
        let mut address = 0;
        // Kernels copy pieces of 16 bytes, of the last of which the hardware drops what lies behind the end: memory is there,
        // so that compute-sanitizer, which counts the whole piece, has nothing to say.
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
        // Work that was given to a stream may use the memory still. A lost device has no work.
        let waited = self.gpu.wait();
        if self.owner.is_none() && waited.is_ok() {
            // SAFETY: allocated by `new`, freed once; nothing is running.
            let _ = self.gpu.call("free", || unsafe { sys::cuMemFree_v2(self.address) });
        }
    }
}

/// Elements of type `T` in a CUDA device's memory, tagged with their [`CudaGpu`].
///
/// Cheap to clone; clones are the same memory. Dropping the last clone waits for all work of the device and frees the
/// memory, so programs keep their buffers. What one stream writes and another reads is the caller's to order:
/// [`CudaStream::record`], [`CudaStream::wait_for`].
#[derive(Clone)]
pub struct CudaBuffer<T: Element> {
    gpu: CudaGpu,
    memory: Arc<CudaMemory>,
    len: usize,
    element: PhantomData<T>,
}

/// A range of a [`CudaBuffer`]. Ops take slices that start at a multiple of 16 bytes.
#[derive(Clone, Copy)]
pub struct CudaSlice<'a, T: Element> {
    buffer: &'a CudaBuffer<T>,
    start: usize,
    len: usize,
}

/// A [`CudaSlice`] whose element type is a value.
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

/// Refuses to read memory that nothing was written to.
pub(super) fn check_written(op: &str, uses: &[Use<'_>]) -> Result<()> {
    check_read(op, uses, "CudaStream::clear")
}

impl<'a> RawCudaSlice<'a> {
    /// The slice as what an op calls `name`.
    pub(super) fn used(&self, name: &'a str, access: Access) -> Use<'a> {
        Use { name, access, written: self.written, dtype: self.dtype, len: self.len }
    }

    fn bytes(&self) -> u64 {
        (self.len * self.dtype.size()) as u64
    }

    /// Whether some byte is in both.
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

/// Bytes of `n` elements.
fn bytes_of<T: Element>(n: usize) -> Result<u64> {
    let bytes = n.checked_mul(T::DTYPE.size()).filter(|b| isize::try_from(*b).is_ok());
    bytes.map(|b| b as u64).ok_or_else(|| {
        err!(
            TooLarge,
            "alloc: {n} elements of {} are more than this machine can address; split the data",
            T::DTYPE
        )
    })
}

impl CudaGpu {
    /// Allocates `n` elements, which hold anything. An op that is only to read from them is refused before something has
    /// been written to any part: see [`Gpu::alloc`](crate::Gpu::alloc).
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory), after which everything else stays usable;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) above what can be addressed; device lost.
    pub fn alloc<T: Element>(&self, n: usize) -> Result<CudaBuffer<T>> {
        let memory = Arc::new(CudaMemory::new(self, bytes_of::<T>(n)?)?);
        Ok(CudaBuffer { gpu: self.clone(), memory, len: n, element: PhantomData })
    }

    /// Copies `data` into a new buffer.
    ///
    /// # Errors
    /// As [`CudaGpu::alloc`].
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<CudaBuffer<T>> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// Takes memory of the caller's: of another library of CUDA, or of another API. It is kept alive by `owner`, which is
    /// dropped with the last clone of the buffer, after a wait for all work of the device.
    ///
    /// # Safety
    /// At `address` there are `len` elements of type `T` in memory that this device reaches, at least until `owner` is
    /// dropped.
    ///
    /// # Errors
    /// [`Buffer`](crate::ErrorKind::Buffer) if `address` is no multiple of an element's size.
    pub unsafe fn wrap<T: Element>(
        &self,
        address: u64,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<CudaBuffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        if !address.is_multiple_of(T::DTYPE.size() as u64) {
            return Err(err!(Buffer, "wrap: {address:#x} is no address of elements of {}", T::DTYPE));
        }
        let (owner, written) = (Some(Box::new(owner) as _), Written::already());
        let memory = CudaMemory { gpu: self.clone(), address, bytes, owner, written };
        Ok(CudaBuffer { gpu: self.clone(), memory: Arc::new(memory), len, element: PhantomData })
    }

    /// Allocates `n` elements of host memory that the device copies to and from by itself. They are all zero.
    ///
    /// # Errors
    /// As [`CudaGpu::alloc`].
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
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `CudaGpu` that the buffer lives on.
    pub fn gpu(&self) -> &CudaGpu {
        &self.gpu
    }

    /// Address of the first element on the device, `CUdeviceptr`, for other libraries. The buffer counts as written to
    /// from then on.
    pub fn address(&self) -> u64 {
        self.memory.written.set();
        self.memory.address
    }

    /// The elements of `range`.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the range is not within the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<CudaSlice<'_, T>> {
        CudaSlice::from(self).slice(range)
    }

    /// As [`CudaSlice::write`], for the whole buffer.
    ///
    /// # Errors
    /// As [`CudaSlice::write`].
    pub fn write(&self, data: &[T]) -> Result<()> {
        CudaSlice::from(self).write(data)
    }

    /// As [`CudaSlice::read`], for the whole buffer.
    ///
    /// # Errors
    /// Device lost.
    pub fn read(&self) -> Result<Vec<T>> {
        CudaSlice::from(self).read()
    }
}

impl<'a, T: Element> CudaSlice<'a, T> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of `range`, counted from the start of this slice.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the range is not within the slice.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<CudaSlice<'a, T>> {
        let (start, len) = within(range, self.len, T::DTYPE)?;
        Ok(CudaSlice { buffer: self.buffer, start: self.start + start, len })
    }

    /// The slice without its type.
    pub fn untyped(&self) -> RawCudaSlice<'a> {
        let address = self.buffer.memory.address + (self.start * T::DTYPE.size()) as u64;
        let CudaBuffer { gpu, memory, .. } = self.buffer;
        RawCudaSlice { gpu, dtype: T::DTYPE, address, len: self.len, written: &memory.written }
    }

    /// Waits for all work of the device, then writes `data` over the slice, and waits until it is there.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; device lost.
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
        gpu.call("write", || unsafe {
            sys::cuMemcpyHtoD_v2(to.address, data.as_ptr().cast(), to.bytes() as usize)
        })?;
        // The driver may return once the data is staged, and our streams do not wait for the one that it uses.
        // SAFETY: the null stream is always there.
        gpu.call("write", || unsafe { sys::cuStreamSynchronize(std::ptr::null_mut()) })?;
        to.written.set();
        Ok(())
    }

    /// Waits for all work of the device, and copies the elements to the host.
    ///
    /// # Errors
    /// Device lost.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = filled("read", self.len, T::default())?;
        self.read_into(&mut data)?;
        Ok(data)
    }

    /// As [`read`](Self::read), into memory that is there already.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; device lost.
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

/// Host memory that the device copies to and from by itself, so that copies run beside kernels: see
/// [`CudaStream::upload`].
///
/// While copies are under way the host may not touch it: [`get`](Self::get) and [`get_mut`](Self::get_mut) wait for them.
pub struct PinnedBuffer<T: Element> {
    gpu: CudaGpu,
    at: *mut T,
    len: usize,
    /// The last copy of each stream.
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
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Waits for the copies that are under way.
    fn settle(&self) -> Result<()> {
        for (_, event) in lock(&self.pending).drain(..) {
            event.wait()?;
        }
        Ok(())
    }

    /// Waits for copies that are under way, and gives the elements. It takes the buffer mutably so that none begins
    /// meanwhile.
    ///
    /// # Errors
    /// Device lost.
    pub fn get(&mut self) -> Result<&[T]> {
        self.get_mut().map(|elements| &*elements)
    }

    /// Waits for copies that are under way, and gives the elements, to be changed.
    ///
    /// # Errors
    /// Device lost.
    pub fn get_mut(&mut self) -> Result<&mut [T]> {
        self.settle()?;
        // SAFETY: the memory is ours, holds that many elements, and no copy is under way nor can begin.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.at, self.len) })
    }

    /// The elements of `range`, for copies.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the range is not within the buffer.
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

/// Which way a copy goes.
#[derive(Clone, Copy)]
enum Transfer {
    ToDevice,
    ToHost,
}

impl CudaStream {
    /// Begins to copy pinned memory to the device, after what the stream was given before. Returns at once.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; [`Buffer`](crate::ErrorKind::Buffer) if one of them
    /// lives on another `CudaGpu`; device lost.
    pub fn upload<'a, T: Element>(
        &self,
        from: impl Into<PinnedSlice<'a, T>>,
        to: impl Into<CudaSlice<'a, T>>,
    ) -> Result<()> {
        self.transfer("upload", from.into(), to.into(), Transfer::ToDevice)
    }

    /// Begins to copy from the device to pinned memory, after what the stream was given before. Returns at once.
    ///
    /// # Errors
    /// As [`CudaStream::upload`].
    pub fn download<'a, T: Element>(
        &self,
        from: impl Into<CudaSlice<'a, T>>,
        to: impl Into<PinnedSlice<'a, T>>,
    ) -> Result<()> {
        self.transfer("download", to.into(), from.into(), Transfer::ToHost)
    }

    fn transfer<T: Element>(
        &self,
        doing: &str,
        host: PinnedSlice<'_, T>,
        device: CudaSlice<'_, T>,
        way: Transfer,
    ) -> Result<()> {
        if host.len != device.len {
            return Err(err!(
                Shape,
                "{doing}: {} elements on the host and {} on the device; slice the longer",
                host.len,
                device.len
            ));
        }
        let place = device.untyped();
        for (what, gpu) in [("the host's memory", &host.buffer.gpu), ("the device's memory", place.gpu)] {
            if gpu != self.gpu() {
                return Err(err!(Buffer, "{doing}: {what} is of {gpu:?}, the stream of {:?}", self.gpu()));
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
        // SAFETY: both sides have that many bytes. The host's are not touched and not freed before `event`, and freeing the
        // device's waits for all work.
        let code = self.gpu().call(doing, || unsafe {
            match way {
                Transfer::ToDevice => sys::cuMemcpyHtoDAsync_v2(place.address, at, bytes, self.handle()),
                Transfer::ToHost => sys::cuMemcpyDtoHAsync_v2(at, place.address, bytes, self.handle()),
            }
        });
        // Whatever was begun must be waited for, so nothing may fail between the copy and the event unseen.
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

    /// Begins to copy from one slice to another, after what the stream was given before. Returns at once.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; [`Aliasing`](crate::ErrorKind::Aliasing) if they overlap;
    /// [`Buffer`](crate::ErrorKind::Buffer) if one of them lives on another `CudaGpu`, or nothing was ever written to the
    /// source; device lost.
    pub fn copy<'a, T: Element>(
        &self,
        from: impl Into<CudaSlice<'a, T>>,
        to: impl Into<CudaSlice<'a, T>>,
    ) -> Result<()> {
        let (from, to) = (from.into().untyped(), to.into().untyped());
        if from.len != to.len {
            return Err(err!(Shape, "copy: {} elements to {}; slice the longer", from.len, to.len));
        }
        if from.gpu != self.gpu() || to.gpu != self.gpu() {
            return Err(err!(
                Buffer,
                "copy: from {:?} to {:?} by a stream of {:?}; go through the host",
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
        self.gpu().call("copy", || unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, self.handle())
        })?;
        to.written.set();
        Ok(())
    }

    /// Begins to set all bytes of a slice to zero.
    ///
    /// # Errors
    /// [`Buffer`](crate::ErrorKind::Buffer) if it lives on another `CudaGpu`; device lost.
    pub fn clear<'a, T: Element>(&self, what: impl Into<CudaSlice<'a, T>>) -> Result<()> {
        let what = what.into().untyped();
        if what.gpu != self.gpu() {
            return Err(err!(
                Buffer,
                "clear: the buffer is of {:?}, the stream of {:?}",
                what.gpu,
                self.gpu()
            ));
        }
        self.clear_bytes(what.address, what.bytes())?;
        what.written.set();
        Ok(())
    }
}

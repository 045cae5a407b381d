use super::pool::Memory;
use super::{Gpu, RawSlice};
use crate::program::prelude::*;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

/// Elements of type `T` in device memory: one wgpu buffer that belongs to one [`Gpu`].
///
/// Cheap to clone; clones share the memory. After the last clone is dropped, and work recorded with it is
/// submitted, the memory returns to the pool of its `Gpu`.
#[derive(Clone)]
pub struct Buffer<T: Element> {
    pub(super) stored: StoredElements,
    element: PhantomData<T>,
}

/// A [`Buffer`] without the type of its elements.
#[derive(Clone)]
pub(super) struct StoredElements {
    pub(super) gpu: Gpu,
    pub(super) memory: Arc<Memory>,
    pub(super) len: usize,
}

/// A range of a [`Buffer`].
///
/// A slice may begin at any element. Ops bind one where it lies if its byte offset is a multiple of the adapter's
/// storage alignment (16 to 256 bytes), and else move it through memory of its own, which takes a copy. The same holds
/// for slices of one buffer of which one is written; they must not overlap. Kernels of your own bind slices where they
/// lie.
#[derive(Clone, Copy)]
pub struct Slice<'a, T: Element> {
    pub(super) buffer: &'a StoredElements,
    pub(super) start: usize,
    pub(super) len: usize,
    /// Whether no elements follow the slice in the buffer.
    alone: bool,
    element: PhantomData<T>,
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer<{}>({} elements on {})", T::DTYPE, self.len(), self.gpu().profile().name)
    }
}

impl<T: Element> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice<{}>({}..{})", T::DTYPE, self.start, self.start + self.len)
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for Slice<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Slice { buffer: &buffer.stored, start: 0, len: buffer.len(), alone: true, element: PhantomData }
    }
}

impl<'a, T: Element> From<&Slice<'a, T>> for Slice<'a, T> {
    fn from(slice: &Slice<'a, T>) -> Self {
        *slice
    }
}

impl Gpu {
    fn check_element<T: Element>(&self, op: &str) -> Result<()> {
        if T::DTYPE == DType::Bf16 {
            return Err(err!(
                Unsupported,
                "{op}: WGSL has no bf16; use f16 or f32, or a CudaGpu (feature `cuda`) for bf16"
            ));
        }
        if T::DTYPE == DType::U64 && !self.profile().features.int64 {
            return Err(err!(
                Unsupported,
                "{op}: u64 needs 64-bit integers in shaders (feature SHADER_INT64), {}; use two u32",
                self.profile().lacks()
            ));
        }
        Ok(())
    }

    /// The size of `n` elements in bytes, if a buffer of this device can hold them.
    pub(super) fn bytes_of<T: Element>(&self, op: &str, n: usize) -> Result<u64> {
        self.check_element::<T>(op)?;
        let limit = self.profile().limits.max_buffer_size;
        let bytes = (n as u64).checked_mul(T::DTYPE.size() as u64).filter(|b| *b <= limit);
        bytes.ok_or_else(|| {
            err!(
                TooLarge,
                "{op}: {n} elements of {} are more than the {limit} bytes of the largest buffer of {}; split the data",
                T::DTYPE,
                self.profile().name
            )
        })
    }

    /// Allocates `n` elements. Their contents are undefined, because memory is reused. See [`Gpu::alloc_zeroed`].
    ///
    /// An op or kernel that only reads a buffer rejects one that nothing has written to. This finds swapped inputs
    /// and outputs. Any write to any part counts, recorded outputs included. Reading such a buffer back to the host
    /// is allowed.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (input, output) = (gpu.upload(&[1u32, 2, 3])?, gpu.alloc::<u32>(3)?);
    /// let scan = Scan::new(Sum, 3).plan::<u32>(&gpu)?;
    /// let swapped = scan.record(&mut gpu.recorder(), &output, &input);
    /// assert_eq!(swapped.unwrap_err().kind(), tilework::ErrorKind::Buffer);
    /// assert_eq!(input.read()?, [1, 2, 3]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// `n` may be 0. `u64` needs a device with 64-bit integers.
    ///
    /// # Errors
    /// [`TooLarge`](ErrorKind::TooLarge) above the device's largest buffer;
    /// [`OutOfMemory`](ErrorKind::OutOfMemory), after which everything else stays usable (not found on
    /// OpenGL, where wgpu does not check); [`Unsupported`](ErrorKind::Unsupported) for `u64` on a device
    /// without it, and for `bf16`.
    pub fn alloc<T: Element>(&self, n: usize) -> Result<Buffer<T>> {
        let bytes = self.bytes_of::<T>("alloc", n)?;
        Ok(Buffer::new(self, self.allocate(bytes)?, n))
    }

    /// Allocates `n` elements that are all zero.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// assert_eq!(gpu.alloc_zeroed::<u32>(3)?.read()?, [0, 0, 0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::alloc`].
    pub fn alloc_zeroed<T: Element>(&self, n: usize) -> Result<Buffer<T>> {
        let buffer = self.alloc(n)?;
        let mut rec = self.recorder();
        rec.clear(&buffer)?;
        rec.submit()?;
        Ok(buffer)
    }

    /// Copies `data` into a new buffer that can be bound as a uniform too: "constant memory", which lanes that read
    /// one place together get by one broadcast. It lasts, and a write of a part changes that part alone.
    ///
    /// [`Gpu::kernel`] binds it to `var<uniform>`, and so do variants that say it, such as `constant` of
    /// [`Filter2d`](crate::Filter2d). Kernels that bind it as storage may write to it. WGSL lays out arrays in a
    /// uniform by vec4s. Every other [`Buffer`] of this size can be bound as a uniform too, except those of
    /// [`wrap`](Self::wrap) without the usage `UNIFORM`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let scale = gpu.kernel("scale.wgsl", "
    ///     @group(0) @binding(0) var<uniform> factors: vec4<f32>;
    ///     @group(0) @binding(1) var<storage, read_write> data: array<vec4<f32>>;
    ///     @compute @workgroup_size(1)
    ///     fn scale(@builtin(workgroup_id) id: vec3<u32>) { data[id.x] *= factors; }", "scale")?;
    /// let (factors, x) = (gpu.uniform(&[1.0f32, 2.0, 3.0, 4.0])?, gpu.upload(&[1.0f32; 4])?);
    /// for _ in 0..2 {
    ///     let mut rec = gpu.recorder();
    ///     scale.record(&mut rec, &[Arg::from(&factors), Arg::from(&x)], [1, 1, 1])?;
    ///     rec.submit()?;
    ///     factors.slice(1..2)?.write(&[10.0])?;
    /// }
    /// assert_eq!(x.read()?, [1.0, 20.0, 9.0, 16.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`TooLarge`](ErrorKind::TooLarge) above the device's largest uniform, at least 64 KiB in WebGPU; those
    /// of [`Gpu::alloc`].
    pub fn uniform<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let (bytes, limit) = (size_of_val(data) as u64, self.profile().limits.max_uniform_binding);
        if bytes > limit {
            return Err(err!(
                TooLarge,
                "uniform: {} elements of {} have {bytes} bytes, {limit} is the largest uniform of {}; use a storage \
                 buffer",
                data.len(),
                T::DTYPE,
                self.profile().name
            ));
        }
        self.upload(data)
    }

    /// Wraps a wgpu buffer of the caller, without a copy. This device must have created it, with usage `STORAGE`;
    /// reading it back, copying and writing need `COPY_SRC` and `COPY_DST` as well. wgpu itself fails on a buffer
    /// of another device.
    ///
    /// The length is the number of whole elements that fit. tilework keeps nothing of the buffer once the last
    /// clone is dropped.
    ///
    /// # Errors
    /// [`Buffer`](ErrorKind::Buffer) if the usage lacks `STORAGE`, if the size is not a non-zero multiple of
    /// 4 bytes, or if the memory is tilework's own, from [`Buffer::raw`]: clone that [`Buffer`] instead;
    /// [`Unsupported`](ErrorKind::Unsupported) for `u64` on a device without it; device lost.
    pub fn wrap<T: Element>(&self, buffer: wgpu::Buffer) -> Result<Buffer<T>> {
        self.probe()?;
        self.check_element::<T>("wrap")?;
        let (size, usage) = (buffer.size(), buffer.usage());
        if !usage.contains(wgpu::BufferUsages::STORAGE) {
            return Err(err!(Buffer, "wrap: the buffer has usage {usage:?}; kernels need STORAGE"));
        }
        if size == 0 || size % 4 != 0 {
            return Err(err!(Buffer, "wrap: the buffer has {size} bytes; bindings are non-zero multiples of 4 bytes"));
        }
        if self.inner.meter.is_ours(&buffer) {
            return Err(err!(
                Buffer,
                "wrap: this memory belongs to the pool of {}, which reuses it when its Buffer is dropped; clone that \
                 Buffer, or Buffer::bitcast it to another type",
                self.profile().name
            ));
        }
        let len = (size / T::DTYPE.size() as u64) as usize;
        Ok(Buffer::new(self, self.adopt(buffer), len))
    }
}

/// Whether the bits of a `T` can be read as a `U` on this device.
fn check_bitcast<T: Element, U: Element>(gpu: &Gpu) -> Result<()> {
    let [from, to] = [T::DTYPE, U::DTYPE];
    if from.size() != to.size() {
        return Err(err!(
            InvalidArgument,
            "bitcast: {from} has {} bytes and {to} has {}; bitcast keeps the size of elements, \
             Cast converts them",
            from.size(),
            to.size()
        ));
    }
    gpu.check_element::<U>("bitcast")
}

impl<T: Element> Buffer<T> {
    /// Counts the memory under `label` in [`Gpu::memory`] until it returns to the pool.
    pub fn labelled(self, label: &str) -> Self {
        if let Some(charge) = &self.stored.memory.raw.charge {
            charge.label(label);
        }
        self
    }

    /// The first `n` elements of type `U` of this memory, which must hold as many.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(crate) fn front_as<U: Element>(&self, n: usize) -> Result<Buffer<U>> {
        let has = self.stored.memory.raw.size;
        if (n * U::DTYPE.size()) as u64 > has {
            return Err(err!(Shape, "{n} elements of {} do not fit {has} bytes", U::DTYPE));
        }
        Ok(Buffer::new(self.gpu(), self.stored.memory.clone(), n))
    }

    /// Buffers, and work that is not submitted, that use this memory.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(crate) fn owners(&self) -> usize {
        Arc::strong_count(&self.stored.memory)
    }

    pub(super) fn new(gpu: &Gpu, memory: Arc<Memory>, len: usize) -> Self {
        Self { stored: StoredElements { gpu: gpu.clone(), memory, len }, element: PhantomData }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.stored.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.stored.len == 0
    }

    /// Returns the `Gpu` that owns the buffer.
    pub fn gpu(&self) -> &Gpu {
        &self.stored.gpu
    }

    /// Returns the wgpu buffer, for the caller's own work. It may be larger than the elements need. Keep a clone of
    /// this `Buffer` until work on it is submitted, and do not call `destroy`: the pool reuses the memory. From now
    /// on the buffer counts as written.
    pub fn raw(&self) -> &wgpu::Buffer {
        self.stored.memory.written.set();
        &self.stored.memory.raw.buffer
    }

    /// Lets work that reads the buffer be recorded before what writes it: the caller submits in the right order.
    pub(crate) fn count_as_written(&self) {
        self.stored.memory.written.set();
    }

    /// Returns the same memory as elements of another type of the same size. Nothing is copied or converted.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, -0.0])?;
    /// let bits = x.bitcast::<u32>()?;
    /// assert_eq!(bits.read()?, [0x3f80_0000, 0x8000_0000]);
    /// // Both are the same memory.
    /// bits.write(&[0, 0x4000_0000])?;
    /// assert_eq!(x.read()?, [0.0, 2.0]);
    /// assert!(x.bitcast::<u8>().is_err());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if the types differ in size;
    /// [`Unsupported`](ErrorKind::Unsupported) for a type that the device does not have.
    pub fn bitcast<U: Element>(&self) -> Result<Buffer<U>> {
        check_bitcast::<T, U>(self.gpu())?;
        Ok(Buffer { stored: self.stored.clone(), element: PhantomData })
    }

    /// Returns the elements of `range`.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the range is not within the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        Slice::from(self).slice(range)
    }
}

impl<'a, T: Element> Slice<'a, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements of `range`, counted from the start of this slice.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the range is not within the slice.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'a, T>> {
        let (start, len) = within(range, self.len, T::DTYPE)?;
        let alone = self.alone && start + len == self.len;
        Ok(Slice { start: self.start + start, len, alone, ..*self })
    }

    /// Returns the same memory as elements of another type of the same size: see [`Buffer::bitcast`].
    ///
    /// # Errors
    /// As [`Buffer::bitcast`].
    pub fn bitcast<U: Element>(&self) -> Result<Slice<'a, U>> {
        check_bitcast::<T, U>(&self.buffer.gpu)?;
        let Slice { buffer, start, len, alone, .. } = *self;
        Ok(Slice { buffer, start, len, alone, element: PhantomData })
    }

    /// The slice as the last of its buffer, so that it owns a word that it fills only in part.
    pub(crate) fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// The byte offset of the slice if it lies in the memory of `buffer`.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(crate) fn offset_in<U: Element>(&self, buffer: &Buffer<U>) -> Option<u64> {
        Arc::ptr_eq(&self.buffer.memory, &buffer.stored.memory).then(|| self.offset())
    }

    /// Byte offset of the first element in the wgpu buffer.
    pub(crate) fn offset(&self) -> u64 {
        (self.start * T::DTYPE.size()) as u64
    }

    /// Returns the slice without its type.
    pub fn untyped(&self) -> RawSlice<'a> {
        RawSlice {
            gpu: &self.buffer.gpu,
            memory: &self.buffer.memory,
            dtype: T::DTYPE,
            offset: self.offset(),
            len: self.len,
            whole_words: (self.len * T::DTYPE.size()).is_multiple_of(4) || self.alone,
        }
    }

    /// The byte range that a copy of the slice covers, in whole words. `None` if such a word also holds elements
    /// outside the slice.
    pub(super) fn copy_range(&self) -> Option<(u64, u64)> {
        let (start, bytes) = (self.offset(), (self.len * T::DTYPE.size()) as u64);
        let at_end = self.alone && start + bytes.next_multiple_of(4) <= self.buffer.memory.raw.size;
        (start % 4 == 0 && (bytes % 4 == 0 || at_end)).then_some((start, bytes.next_multiple_of(4)))
    }
}

use super::pool::Memory;
use super::{Buffer, Gpu, Slice};
use crate::program::prelude::*;
use crate::program::{Use, check_read};
use std::sync::Arc;

/// A [`Slice`] with its element type as a value.
#[derive(Clone, Copy)]
pub struct RawSlice<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) memory: &'a Arc<Memory>,
    pub(super) dtype: DType,
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Whether the slice owns its last 4-byte word. Our kernels leave the rest of the word alone; a user's may not.
    pub(super) whole_words: bool,
}

impl std::fmt::Debug for RawSlice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawSlice<{}>({} elements at byte {})", self.dtype, self.len, self.offset)
    }
}

impl<'a> RawSlice<'a> {
    pub(super) fn used(&self, name: &'a str, access: Access) -> Use<'a> {
        Use { name, access, written: &self.memory.written, dtype: self.dtype, len: self.len }
    }

    pub(crate) fn of_words(words: &'a Buffer<u32>, dtype: DType, len: usize) -> Self {
        let whole = Slice::from(words).untyped();
        Self { dtype, len: len.min(words.len() * 4 / dtype.size()), ..whole }
    }
}

impl RawSlice<'_> {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.len * self.dtype.size()) as u64
    }

    /// Byte offset to bind; 0 for a slice without elements.
    pub(super) fn start(&self) -> u64 {
        if self.len == 0 { 0 } else { self.offset }
    }

    /// Rejects writing to a slice whose last word also holds elements outside it.
    pub(super) fn check_writable(&self, op: &str, name: &str) -> Result<()> {
        if self.whole_words {
            return Ok(());
        }
        Err(err!(
            Buffer,
            "{op}: {name}, {} elements of {}, is written and shares its last 4-byte word with the elements after it; \
             end the slice at a multiple of {} elements or at the end of the buffer",
            self.len,
            self.dtype,
            4 / self.dtype.size()
        ))
    }

    /// Whether both lie in one wgpu buffer: WebGPU tracks usage per buffer.
    pub(super) fn same_buffer(&self, other: &Self) -> bool {
        self.memory.raw.id == other.memory.raw.id || self.memory.raw.buffer == other.memory.raw.buffer
    }

    /// Checks owner, usage and alignment for binding the slice as storage.
    pub(super) fn check_bindable(&self, op: &str, name: &str, gpu: &Gpu) -> Result<()> {
        if self.gpu != gpu {
            return Err(err!(
                Buffer,
                "{op}: {name} belongs to another Gpu ({}) than the plan ({}); read it back and upload it there",
                self.gpu.profile().name,
                gpu.profile().name
            ));
        }
        let alignment = u64::from(gpu.profile().limits.storage_alignment);
        if !self.start().is_multiple_of(alignment) {
            return Err(err!(
                Buffer,
                "{op}: {name} starts at byte {}, which is not a multiple of {alignment}, the alignment of bindings on {}; \
                 slice at multiples of {} elements or copy it",
                self.offset,
                gpu.profile().name,
                alignment as usize / self.dtype.size()
            ));
        }
        Ok(())
    }
}

impl RawSlice<'_> {
    pub(super) fn uniform_bytes(&self) -> u64 {
        round_up(self.bytes(), 16).max(16)
    }

    /// Checks usage, alignment and room for binding the slice as a uniform.
    pub(super) fn check_uniform(&self, op: &str, name: &str) -> Result<()> {
        let (usage, limits) = (self.memory.raw.buffer.usage(), &self.gpu.profile().limits);
        if self.uniform_bytes() > limits.max_uniform_binding {
            return Err(err!(
                TooLarge,
                "{op}: {name} has {} bytes, {} is the largest uniform; use a storage buffer",
                self.bytes(),
                limits.max_uniform_binding
            ));
        }
        if !usage.contains(wgpu::BufferUsages::UNIFORM) {
            return Err(err!(
                Buffer,
                "{op}: {name} is bound as a uniform, and its buffer has usage {usage:?}; make it by Gpu::uniform, or \
                 with UNIFORM"
            ));
        }
        if !self.start().is_multiple_of(limits.uniform_alignment.into())
            || self.start() + self.uniform_bytes() > self.memory.raw.size
        {
            return Err(err!(
                Buffer,
                "{op}: {name} is bound as a uniform of {} bytes at byte {} of a buffer of {}; uniforms begin at \
                 multiples of {} bytes and are whole vec4s",
                self.uniform_bytes(),
                self.start(),
                self.memory.raw.size,
                limits.uniform_alignment
            ));
        }
        Ok(())
    }
}

/// Names and sizes of operands, for the log: `input f32[1000], output f32[1]`.
pub(super) fn described<'a>(operands: impl Iterator<Item = (&'a str, RawSlice<'a>)>) -> String {
    let each = operands.map(|(name, slice)| format!("{name} {}[{}]", slice.dtype, slice.len));
    each.collect::<Vec<_>>().join(", ")
}

/// Rejects reading memory that was never written.
pub(super) fn check_written(op: &str, uses: &[Use<'_>]) -> Result<()> {
    check_read(op, uses, "alloc_zeroed")
}

//! A part of a buffer whose element type is a value, and what it must fulfil to be bound.

use super::pool::Memory;
use super::{Buffer, Gpu, Slice};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{Access, Use, check_read};
use std::sync::Arc;

/// A [`Slice`](super::Slice) whose element type is a value.
#[derive(Clone, Copy)]
pub struct RawSlice<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) memory: &'a Arc<Memory>,
    pub(super) dtype: DType,
    pub(super) offset: u64,
    pub(super) len: usize,
    /// Whether its last 4-byte word is its own. Our kernels leave the rest of it; an own kernel may not.
    pub(super) whole_words: bool,
}

impl std::fmt::Debug for RawSlice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawSlice<{}>({} elements at byte {})", self.dtype, self.len, self.offset)
    }
}

impl<'a> RawSlice<'a> {
    /// The slice as what an op calls `name`.
    pub(super) fn used(&self, name: &'a str, access: Access) -> Use<'a> {
        Use { name, access, written: &self.memory.written, dtype: self.dtype, len: self.len }
    }

    /// Words of memory as `len` elements of a type.
    pub(crate) fn of_words(words: &'a Buffer<u32>, dtype: DType, len: usize) -> Self {
        let whole = Slice::from(words).untyped();
        Self { dtype, len: len.min(words.len() * 4 / dtype.size()), ..whole }
    }
}

impl RawSlice<'_> {
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.len * self.dtype.size()) as u64
    }

    /// Byte offset that is bound. What has no elements may lie anywhere.
    pub(super) fn start(&self) -> u64 {
        if self.len == 0 { 0 } else { self.offset }
    }

    /// Refuses a slice to be written whose last word a neighbour shares.
    pub(super) fn check_writable(&self, op: &str, name: &str) -> Result<()> {
        if self.whole_words {
            return Ok(());
        }
        Err(err!(
            Buffer,
            "{op}: {name}, {} elements of {}, is written and shares its last 4-byte word with the elements behind it; \
             end the slice at a multiple of {} elements or at the end of the buffer",
            self.len,
            self.dtype,
            4 / self.dtype.size()
        ))
    }

    /// Whether both lie in one wgpu buffer: usage is tracked per whole buffer.
    pub(super) fn same_buffer(&self, other: &Self) -> bool {
        self.memory.raw.id == other.memory.raw.id || self.memory.raw.buffer == other.memory.raw.buffer
    }

    /// Checks owner, usage and alignment for binding the slice as storage.
    pub(super) fn check_bindable(&self, op: &str, name: &str, gpu: &Gpu) -> Result<()> {
        if self.gpu != gpu {
            return Err(err!(
                Buffer,
                "{op}: {name} lives on another Gpu ({}) than the plan ({}); read it back and upload it there",
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

/// Names and sizes of operands, for the log: `input f32[1000], output f32[1]`.
pub(super) fn described<'a>(operands: impl Iterator<Item = (&'a str, RawSlice<'a>)>) -> String {
    let each = operands.map(|(name, slice)| format!("{name} {}[{}]", slice.dtype, slice.len));
    each.collect::<Vec<_>>().join(", ")
}

/// Refuses to read memory that nothing was written to.
pub(super) fn check_written(op: &str, uses: &[Use<'_>]) -> Result<()> {
    check_read(op, uses, "alloc_zeroed")
}

//! What fits a device: loop rounds, buffers, bindings, scratch, and the number of dispatches.
//!
//! An operand above the largest binding is bound in chunks of its rows (planes, images, heads, keys): [`BoundChunk`].
//! What cannot be cut is rejected by one of the checks. Each error names the operand, its size, the limit and a
//! remedy.

use super::{Binding, DeviceProfile, Operand, Program, Resource};
use crate::error::{Result, err};
use crate::shape::round_up;
use std::fmt::Arguments;
use std::ops::Range;

/// Rounds that all loops of a thread may take together on every driver that we know. Mesa's software driver silently
/// ends all loops after these; other drivers have no such limit.
pub(crate) const LOOP_ROUNDS: u32 = 65535;

/// Whether every driver that we know runs this many rounds. Kernels that do not ask the device stay within it.
pub(crate) const fn runs_everywhere(rounds: usize) -> bool {
    rounds < LOOP_ROUNDS as usize
}

impl DeviceProfile {
    /// Whether a thread runs all of `rounds` rounds. Rounds of nested loops add up: an inner loop's count each time.
    pub(crate) fn runs_rounds(&self, rounds: u64) -> bool {
        rounds <= self.max_rounds()
    }

    pub(crate) fn ends_loops(&self) -> bool {
        self.quirks.max_loop_rounds.is_some()
    }

    /// Maximum rounds of all loops of a thread together.
    pub(crate) fn max_rounds(&self) -> u64 {
        self.quirks.max_loop_rounds.map_or(u64::MAX, u64::from)
    }

    /// The power of two of steps, of at most `each` rounds each, that one thread may take, at most `max`. Without a
    /// limit of the driver, `max`.
    pub(crate) fn loop_steps(&self, each: u64, max: u64) -> u64 {
        let fit = |rounds: u32| 1 << (u64::from(rounds) / each.max(1)).max(1).ilog2();
        self.quirks.max_loop_rounds.map_or(max, |rounds| max.min(fit(rounds)))
    }
}

/// Alignment of bindings that every device accepts, in bytes.
const ALIGNMENT: u64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundSpan {
    /// First byte of the binding.
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Bytes of the binding that precede the part.
    pub(crate) before: u64,
}

impl BoundSpan {
    pub(crate) fn new(begin: u64, bytes: u64) -> Self {
        let before = begin % ALIGNMENT;
        Self { offset: begin - before, size: before + bytes, before }
    }

    /// As [`new`](Self::new), of elements of 3 words: whole elements precede the part, up to 767 bytes.
    pub(crate) fn of_threes(begin: u64, bytes: u64) -> Self {
        let before = begin % (3 * ALIGNMENT);
        Self { offset: begin - before, size: before + bytes, before }
    }

    pub(crate) fn of(self, resource: Resource) -> Binding {
        Binding { resource, offset: self.offset, size: self.size }
    }
}

/// Consecutive rows (planes, images, heads, keys) that fit one binding of each operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundChunk {
    /// Index of the first row.
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl BoundChunk {
    /// Splits `count` rows into chunks of `max`. The last may have fewer.
    pub(crate) fn full(count: u64, max: u64) -> impl Iterator<Item = Self> + Clone {
        let max = max.max(1);
        (0..count.div_ceil(max)).map(move |i| Self { first: i * max, count: max.min(count - i * max) })
    }

    /// Splits `count` rows into the fewest chunks of at most `max` rows, of about equal size.
    pub(crate) fn even(count: u64, max: u64) -> impl Iterator<Item = Self> + Clone {
        let chunks = count.div_ceil(max.max(1)).max(1);
        Self::full(count, count.div_ceil(chunks))
    }

    /// The chunk's part of an operand with rows of `bytes` bytes.
    pub(crate) fn span(self, bytes: u64) -> BoundSpan {
        BoundSpan::new(self.first * bytes, self.count * bytes)
    }

    pub(crate) fn of(self, resource: Resource, bytes: u64) -> Binding {
        self.span(bytes).of(resource)
    }
}

impl DeviceProfile {
    /// Bytes of the largest operand that can be bound whole.
    pub(crate) fn largest_binding(&self) -> u64 {
        self.limits.max_storage_binding.min(self.limits.max_buffer_size)
    }

    /// Bytes of the largest chunk. Its bytes have 32-bit indices.
    fn largest_chunk(&self) -> u64 {
        self.limits.max_storage_binding.min(u32::MAX.into())
    }

    /// Bytes of a chunk that fit wherever it starts: up to 255 bytes of its binding may precede it.
    pub(crate) fn chunk_room(&self) -> u64 {
        (self.largest_chunk() / ALIGNMENT * ALIGNMENT).saturating_sub(ALIGNMENT)
    }

    /// Whether one binding holds `count` rows of `bytes` bytes.
    pub(crate) fn binds_all(&self, count: u64, bytes: u64) -> bool {
        count.saturating_mul(bytes) <= self.largest_chunk()
    }

    /// Splits `count` rows of `bytes` bytes into the fewest chunks that bindings hold. A row must fit
    /// [`chunk_room`](Self::chunk_room), unless all rows fit one binding.
    pub(crate) fn chunks(&self, count: u64, bytes: u64) -> impl Iterator<Item = BoundChunk> + Clone {
        let max = if self.binds_all(count, bytes) { count } else { self.chunk_room() / bytes.max(1) };
        BoundChunk::even(count, max)
    }

    /// As [`chunks`](Self::chunks), but each starts at a multiple of 256 rows, so that rows of any size start
    /// aligned.
    pub(crate) fn aligned_chunks(&self, count: u64, bytes: u64) -> impl Iterator<Item = BoundChunk> + Clone {
        let step = if self.binds_all(count, bytes) { 1 } else { ALIGNMENT };
        self.chunks(count.div_ceil(step), step * bytes).map(move |blocks| {
            let first = blocks.first * step;
            BoundChunk { first, count: (blocks.count * step).min(count - first) }
        })
    }

    /// Fails unless each of `operands`, which are bound in chunks, fits a buffer.
    pub(crate) fn check_buffers(&self, op: &str, operands: &[Operand], remedy: &str) -> Result<()> {
        let limit = (self.limits.max_buffer_size, "buffer");
        operands.iter().try_for_each(|operand| self.check_operand(op, operand, limit, remedy))
    }

    /// Fails unless the device can bind each of `operands` whole and kernels can index its elements.
    pub(crate) fn check_bindings(&self, op: &str, operands: &[Operand], remedy: &str) -> Result<()> {
        let limit = self.largest_binding();
        let what = if limit == self.limits.max_buffer_size { "buffer" } else { "binding" };
        operands.iter().try_for_each(|operand| {
            self.check_operand(op, operand, (limit, what), remedy)?;
            self.check_count(op, operand, u32::MAX as usize, remedy)
        })
    }

    fn check_operand(&self, op: &str, operand: &Operand, (limit, what): (u64, &str), remedy: &str) -> Result<()> {
        // Buffers and bindings are whole words.
        let bytes = round_up(operand.bytes(), 4);
        if bytes <= limit {
            return Ok(());
        }
        let Operand { name, len, dtype, .. } = operand;
        Err(err!(
            TooLarge,
            "{op}: {name} of {len} {dtype} has {bytes} bytes; the largest {what} of {} has {limit}; {remedy}",
            self.name
        ))
    }

    /// Fails unless `operand` has at most `max` elements, the limit of the op's kernels.
    pub(crate) fn check_count(&self, op: &str, operand: &Operand, max: usize, remedy: &str) -> Result<()> {
        if operand.len <= max {
            return Ok(());
        }
        Err(err!(
            TooLarge,
            "{op}: {} has {} elements; the kernels count at most {max}; {remedy}",
            operand.name,
            operand.len
        ))
    }

    /// Fails unless a row of `bytes` bytes, named `what`, fits a chunk.
    pub(crate) fn check_row(&self, op: &str, what: Arguments<'_>, bytes: u64, remedy: &str) -> Result<()> {
        let room = self.chunk_room();
        if bytes <= room {
            return Ok(());
        }
        Err(err!(TooLarge, "{op}: {what} has {bytes} bytes; {} binds at most {room} of one; {remedy}", self.name))
    }

    /// Fails unless the device can bind `bytes` bytes of scratch for `what` and kernels can index its words.
    pub(crate) fn check_scratch(&self, op: &str, what: Arguments<'_>, bytes: u64, remedy: &str) -> Result<()> {
        let limit = self.largest_binding().min(4 * u64::from(u32::MAX));
        if bytes <= limit {
            return Ok(());
        }
        Err(err!(
            TooLarge,
            "{op}: {what} need {bytes} bytes of scratch; the largest binding of {} has {limit}; {remedy}",
            self.name
        ))
    }
}

/// Maximum dispatches of a program: minutes of work on the fastest devices, hours on slow ones, and tens of megabytes
/// of memory.
const MAX_DISPATCHES: u64 = 1 << 16;

impl Program {
    /// Splits `count` items of work into chunks of at most `each`, so that no dispatch takes long.
    pub(crate) fn chunks(&self, count: u64, each: u64) -> Result<impl Iterator<Item = Range<u64>> + use<>> {
        let each = each.max(1);
        self.check_dispatches(count.div_ceil(each))?;
        Ok((0..count).step_by(each as usize).map(move |first| first..count.min(first + each)))
    }

    /// Fails if `more` dispatches would exceed [`MAX_DISPATCHES`].
    pub(crate) fn check_dispatches(&self, more: u64) -> Result<()> {
        let dispatches = (self.dispatches.len() as u64).saturating_add(more);
        if dispatches > MAX_DISPATCHES {
            return Err(err!(
                TooLarge,
                "{}: `{}` takes {dispatches} dispatches of bounded time, above the limit of {MAX_DISPATCHES}; split \
                 the work into smaller calls",
                self.op,
                self.variant()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

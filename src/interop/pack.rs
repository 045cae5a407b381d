//! Uploads of values that are not in one slice.

use crate::gpu::{Buffer, Gpu};
use crate::program::prelude::*;

/// Elements collected for one write; a multiple of those in a word.
const PACKED_CHUNK: usize = 1 << 22;

/// Fills a buffer from the front.
pub(super) struct Packer<T: Element> {
    buffer: Buffer<T>,
    written: usize,
    chunk: Vec<T>,
}

impl<T: Element> Packer<T> {
    pub(super) fn new(gpu: &Gpu, len: usize) -> Result<Self> {
        let chunk = with_room("upload", len.min(PACKED_CHUNK))?;
        Ok(Self { buffer: gpu.alloc(len)?, written: 0, chunk })
    }

    pub(super) fn push(&mut self, value: T) -> Result<()> {
        self.chunk.push(value);
        if self.chunk.len() == PACKED_CHUNK { self.write() } else { Ok(()) }
    }

    pub(super) fn extend(&mut self, mut values: &[T]) -> Result<()> {
        while !values.is_empty() {
            let (now, later) = values.split_at(values.len().min(PACKED_CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            if self.chunk.len() == PACKED_CHUNK {
                self.write()?;
            }
            values = later;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let end = self.written + self.chunk.len();
        self.buffer.slice(self.written..end)?.write(&self.chunk)?;
        self.written = end;
        self.chunk.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Buffer<T>> {
        self.write()?;
        Ok(self.buffer)
    }
}

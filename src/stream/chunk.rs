use crate::gpu::{ReadView, Set, Slice, WriteView};
use crate::program::prelude::*;
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;

/// An input of a pipeline, from [`Pipeline::input`](super::Pipeline::input): elements uploaded with each chunk.
pub struct Input<T>(pub(super) OperandPlace, pub(super) PhantomData<fn() -> T>);

/// An output of a pipeline, from [`Pipeline::output`](super::Pipeline::output): elements downloaded with each chunk.
pub struct Output<T>(pub(super) OperandPlace, pub(super) PhantomData<fn() -> T>);

/// The pipeline, and the index among its inputs or outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperandPlace {
    pub(super) pipeline: u64,
    pub(super) index: usize,
}

macro_rules! handle {
    ($name:ident) => {
        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.index)
            }
        }
    };
}
handle!(Input);
handle!(Output);

impl OperandPlace {
    fn check(self, pipeline: u64, what: &str) -> Result<usize> {
        if self.pipeline == pipeline {
            return Ok(self.index);
        }
        Err(err!(
            InvalidArgument,
            "stream: {what} {} belongs to another pipeline; use one that this pipeline's `input` or `output` returned",
            self.index
        ))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) dtype: DType,
    pub(super) len: usize,
}

/// A chunk to fill.
pub struct Fill<'a> {
    pub(super) pipeline: u64,
    pub(super) number: usize,
    pub(super) views: &'a mut [WriteView],
    pub(super) rooms: &'a [Room],
    pub(super) lens: &'a mut [usize],
}

impl fmt::Debug for Fill<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fill(chunk {}, {:?} elements)", self.number, self.lens)
    }
}

impl Fill<'_> {
    /// Returns the chunk's number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the memory of an input, after the elements already put there.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for an input of another pipeline.
    pub fn space<T: Element>(&mut self, input: Input<T>) -> Result<Space<'_, T>> {
        let i = input.0.check(self.pipeline, "input")?;
        Ok(Space {
            view: &mut self.views[i],
            len: &mut self.lens[i],
            capacity: self.rooms[i].len,
            element: PhantomData,
        })
    }

    /// Sets an input to `data`.
    ///
    /// # Errors
    /// As [`Space::extend`] and [`space`](Self::space).
    pub fn write<T: Element>(&mut self, input: Input<T>, data: &[T]) -> Result<()> {
        let mut space = self.space(input)?;
        *space.len = 0;
        space.extend(data)
    }
}

/// The memory of one input of a chunk, filled from its start. It can only be written, because reading staging memory
/// may be slow.
pub struct Space<'a, T> {
    view: &'a mut WriteView,
    len: &'a mut usize,
    capacity: usize,
    element: PhantomData<T>,
}

impl<T> fmt::Debug for Space<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Space({} of {} elements)", self.len, self.capacity)
    }
}

impl<T: Element> Space<'_, T> {
    /// Returns the number of elements written.
    pub fn len(&self) -> usize {
        *self.len
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        *self.len == 0
    }

    /// Returns how many elements still fit.
    pub fn room(&self) -> usize {
        self.capacity - *self.len
    }

    /// Appends `data`.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if it does not fit; then nothing is appended.
    pub fn extend(&mut self, data: &[T]) -> Result<()> {
        if data.len() > self.room() {
            return Err(err!(
                Shape,
                "stream: {} elements of {} after {} others do not fit into a chunk of {}; fill at most `room()`",
                data.len(),
                T::DTYPE,
                self.len,
                self.capacity
            ));
        }
        if !data.is_empty() {
            self.view.write(*self.len * T::DTYPE.size(), bytemuck::cast_slice(data));
            *self.len += data.len();
        }
        Ok(())
    }

    /// Appends elements from a reader of native-endian bytes, until the chunk is full or the reader ends. Returns the
    /// number of elements read.
    ///
    /// # Errors
    /// The reader's; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if it ends within an element.
    pub fn read(&mut self, mut reader: impl Read) -> io::Result<usize> {
        /// Elements read at a time, so that they stay in the processor's cache.
        const PIECE: usize = 1 << 16;
        let before = *self.len;
        let mut piece = vec![T::default(); PIECE.min(self.room())];
        while self.room() > 0 {
            let wanted = piece.len().min(self.room());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut piece[..wanted]);
            let mut read = 0;
            while read < bytes.len() {
                match reader.read(&mut bytes[read..]) {
                    Ok(0) => break,
                    Ok(n) => read += n,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            let whole = read / T::DTYPE.size();
            if whole * T::DTYPE.size() != read {
                let text = format!("the last {} has only {} bytes", T::DTYPE, read % T::DTYPE.size());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            self.extend(&piece[..whole]).map_err(io::Error::other)?;
            if whole < wanted {
                break;
            }
        }
        Ok(*self.len - before)
    }
}

/// A chunk on the device, whose kernels are to be recorded.
pub struct Chunk<'a> {
    pub(super) pipeline: u64,
    pub(super) number: usize,
    pub(super) set: &'a Set,
    pub(super) lens: &'a [usize],
    /// Elements of each output to download.
    pub(super) outputs: &'a [Cell<usize>],
}

impl fmt::Debug for Chunk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({}, {:?} elements)", self.number, self.lens)
    }
}

fn foreign<T: Element>() -> crate::Error {
    err!(InvalidArgument, "stream: the pipeline has no such input or output of {}", T::DTYPE)
}

impl<'a> Chunk<'a> {
    /// Returns the chunk's number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the elements of an input that were filled in. The buffer may also be written: its contents belong to
    /// this chunk alone.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for an input of another pipeline.
    pub fn input<T: Element>(&self, input: Input<T>) -> Result<Slice<'a, T>> {
        let i = input.0.check(self.pipeline, "input")?;
        let buffer = self.set.inputs[i].buffer::<T>().ok_or_else(foreign::<T>)?;
        Ok(buffer.slice(..self.lens[i])?.alone())
    }

    /// Returns the first `len` elements of an output and downloads them after the kernels. Outputs that are not
    /// requested are not downloaded. Elements that kernels leave unwritten are undefined.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) above the output's length;
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for an output of another pipeline.
    pub fn output<T: Element>(&self, output: Output<T>, len: usize) -> Result<Slice<'a, T>> {
        let i = output.0.check(self.pipeline, "output")?;
        let buffer = self.set.outputs[i].buffer::<T>().ok_or_else(foreign::<T>)?;
        let slice = buffer.slice(..len)?;
        self.outputs[i].set(len);
        Ok(slice.alone())
    }
}

/// A chunk whose results are on the host.
pub struct Drained<'a> {
    pub(super) pipeline: u64,
    pub(super) number: usize,
    pub(super) views: &'a [ReadView],
    pub(super) lens: &'a [usize],
}

impl fmt::Debug for Drained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drained(chunk {}, {:?} elements)", self.number, self.lens)
    }
}

impl Drained<'_> {
    /// Returns the chunk's number, from 0. Chunks are drained in order.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the elements of an output that were requested when the chunk was recorded; empty if it was not
    /// requested.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) for an output of another pipeline.
    pub fn read<T: Element>(&self, output: Output<T>) -> Result<&[T]> {
        let i = output.0.check(self.pipeline, "output")?;
        let bytes = &self.views[i].bytes()[..self.lens[i] * T::DTYPE.size()];
        // An empty range may have any address, which need not be aligned to an element.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        bytemuck::try_cast_slice(bytes)
            .map_err(|e| err!(Buffer, "stream: elements of {} that the driver mapped: {e}", T::DTYPE))
    }
}

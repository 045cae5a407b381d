//! What the caller's functions see of a chunk.

use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::gpu::{ReadView, Set, Slice, WriteView};
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;

/// An input of a [`Pipeline`](super::Pipeline): elements that go to the device with each chunk.
pub struct Input<T>(pub(super) OperandPlace, pub(super) PhantomData<fn() -> T>);

/// An output of a [`Pipeline`](super::Pipeline): elements that come from the device with each chunk.
pub struct Output<T>(pub(super) OperandPlace, pub(super) PhantomData<fn() -> T>);

/// Which pipeline, and the how many-th of its inputs or outputs.
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
            "stream: {what} {} belongs to another pipeline; use what this one's `input` and `output` gave",
            self.index
        ))
    }
}

/// Elements that a chunk has room for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) dtype: DType,
    pub(super) len: usize,
}

/// A chunk to be filled.
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
    /// The chunk's number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The memory of an input, with what has been put there already: nothing, at first.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an input of another pipeline.
    pub fn space<T: Element>(&mut self, input: Input<T>) -> Result<Space<'_, T>> {
        let i = input.0.check(self.pipeline, "input")?;
        Ok(Space {
            view: &mut self.views[i],
            len: &mut self.lens[i],
            capacity: self.rooms[i].len,
            element: PhantomData,
        })
    }

    /// Puts `data`, and nothing else, into an input.
    ///
    /// # Errors
    /// As [`Space::extend`] and [`space`](Self::space).
    pub fn write<T: Element>(&mut self, input: Input<T>, data: &[T]) -> Result<()> {
        let mut space = self.space(input)?;
        *space.len = 0;
        space.extend(data)
    }
}

/// The memory of one input of a chunk, filled from its beginning. It can be written to only: reading staging memory may
/// be slow.
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
    /// Elements that are there already.
    pub fn len(&self) -> usize {
        *self.len
    }

    /// Whether nothing is there yet.
    pub fn is_empty(&self) -> bool {
        *self.len == 0
    }

    /// Elements that still fit.
    pub fn room(&self) -> usize {
        self.capacity - *self.len
    }

    /// Appends `data`.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if it does not fit; nothing is appended then.
    pub fn extend(&mut self, data: &[T]) -> Result<()> {
        if data.len() > self.room() {
            return Err(err!(
                Shape,
                "stream: {} elements of {} behind {} others do not fit into a chunk of {}; fill at most `room()`",
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

    /// Appends elements from a reader of their bytes, in the machine's own order, until the chunk is full or nothing is
    /// left. Gives the number of elements read.
    ///
    /// # Errors
    /// The reader's; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if it ends within an element.
    pub fn read(&mut self, mut reader: impl Read) -> io::Result<usize> {
        /// Elements read at a time: they pass through the processor's cache.
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
                let text = format!("the last {} has {} bytes only", T::DTYPE, read % T::DTYPE.size());
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

/// A chunk whose kernels are to be recorded: its buffers on the device.
pub struct Chunk<'a> {
    pub(super) pipeline: u64,
    pub(super) number: usize,
    pub(super) set: &'a Set,
    pub(super) lens: &'a [usize],
    /// Elements of each output that go to the host.
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
    /// The chunk's number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The elements of an input, as many as were filled in. The buffer may be written to as well: its contents are this
    /// chunk's alone.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an input of another pipeline.
    pub fn input<T: Element>(&self, input: Input<T>) -> Result<Slice<'a, T>> {
        let i = input.0.check(self.pipeline, "input")?;
        let buffer = self.set.inputs[i].buffer::<T>().ok_or_else(foreign::<T>)?;
        Ok(buffer.slice(..self.lens[i])?.alone())
    }

    /// The first `len` elements of an output, all of which go to the host behind the kernels. Of an output that is not
    /// asked for nothing does. What kernels leave unwritten is not defined.
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) above the output's length;
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an output of another pipeline.
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
    /// The chunk's number, from 0. Chunks are drained in order.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The elements of an output: as many as were asked for when the chunk was recorded, none if it was not asked for.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for an output of another pipeline.
    pub fn read<T: Element>(&self, output: Output<T>) -> Result<&[T]> {
        let i = output.0.check(self.pipeline, "output")?;
        let bytes = &self.views[i].bytes()[..self.lens[i] * T::DTYPE.size()];
        // No bytes lie at no address in particular, and that need not be an element's.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        bytemuck::try_cast_slice(bytes)
            .map_err(|e| err!(Buffer, "stream: elements of {} that the driver mapped: {e}", T::DTYPE))
    }
}

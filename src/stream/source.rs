use super::chunk::Space;
use super::pipeline::{Cancel, Outcome};
use crate::program::prelude::*;
use std::fmt;
use std::io::Read;

/// Supplies a stream's elements chunk by chunk: a slice, [`Reader`], [`Items`], or your own type.
pub trait Source<T: Element>: Send {
    /// Appends the next elements, one or more and at most [`Space::room`]; nothing if there are no more. Ops call it
    /// until a chunk is full, and not again after it appended nothing.
    ///
    /// # Errors
    /// Whatever stops the stream.
    fn next(&mut self, space: &mut Space<'_, T>) -> Outcome;

    /// Returns how many elements are left, if known. A source that ends earlier is an error.
    fn left(&self) -> Option<usize> {
        None
    }
}

impl<T: Element> Source<T> for &[T] {
    fn next(&mut self, space: &mut Space<'_, T>) -> Outcome {
        let (now, later) = self.split_at(space.room().min(self.len()));
        *self = later;
        Ok(space.extend(now)?)
    }

    fn left(&self) -> Option<usize> {
        Some(self.len())
    }
}

/// Fills whole chunks from a source, however few elements it appends at a time. Only the last may not be full.
pub(super) struct Feed<S> {
    source: S,
    op: &'static str,
    announced: Option<usize>,
    given: usize,
    ended: bool,
    cancel: Cancel,
}

impl<S> Feed<S> {
    /// Makes a feed from `source`, for an op that `cancel` stops.
    pub(super) fn new<T: Element>(op: &'static str, source: S, cancel: &Cancel) -> Self
    where
        S: Source<T>,
    {
        let announced = source.left();
        Self { source, op, announced, given: 0, ended: false, cancel: cancel.clone() }
    }

    pub(super) fn announced(&self) -> Option<usize> {
        self.announced
    }

    /// Fills `space`, unless the source ends or the op is cancelled.
    pub(super) fn fill<T: Element>(&mut self, space: &mut Space<'_, T>) -> Outcome
    where
        S: Source<T>,
    {
        while space.room() > 0 && !self.ended && !self.cancel.is_cancelled() {
            let before = space.len();
            self.source.next(space)?;
            self.given += space.len() - before;
            self.ended = space.len() == before;
        }
        match self.announced {
            Some(announced) if self.ended && self.given < announced => Err(err!(
                Shape,
                "{}: the source announced {announced} elements and ended after {}; `left` must return the exact number",
                self.op,
                self.given
            )
            .into()),
            _ => Ok(()),
        }
    }
}

/// Elements from a reader of native-endian bytes: a file, a socket, a decoder.
pub struct Reader<R>(pub R);

impl<R> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl<T: Element, R: Read + Send> Source<T> for Reader<R> {
    fn next(&mut self, space: &mut Space<'_, T>) -> Outcome {
        space.read(&mut self.0)?;
        Ok(())
    }
}

/// Elements from an iterator.
pub struct Items<I>(pub I);

impl<I> fmt::Debug for Items<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Items")
    }
}

impl<T: Element, I: Iterator<Item = T> + Send> Source<T> for Items<I> {
    fn next(&mut self, space: &mut Space<'_, T>) -> Outcome {
        /// Elements collected before they are copied.
        const PIECE: usize = 4096;
        let mut piece = Vec::with_capacity(PIECE.min(space.room()));
        while space.room() > 0 {
            let wanted = PIECE.min(space.room());
            piece.clear();
            piece.extend(self.0.by_ref().take(wanted));
            space.extend(&piece)?;
            if piece.len() < wanted {
                break;
            }
        }
        Ok(())
    }
}

//! Where the elements of a stream come from.

use super::chunk::Space;
use super::pipeline::Outcome;
use crate::element::Element;
use std::fmt;
use std::io::Read;

/// Gives a stream its elements, chunk by chunk: a slice, [`Reader`], [`Items`], or what you implement it for.
pub trait Source<T: Element>: Send {
    /// Appends the next elements: as many as there is room for, and fewer only at the end.
    ///
    /// # Errors
    /// Whatever stops the stream.
    fn next(&mut self, space: &mut Space<'_, T>) -> Outcome;

    /// How many elements are left, where that is known.
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

/// The elements that the bytes of a reader are, in the machine's own order: of a file, a socket, a decoder.
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

/// The elements of an iterator.
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

//! All-reduces of long device slices: along a ring, in chunks that travel while others are reduced on the devices.

use super::rank::{Rank, Started};
use super::schedule::part;
use super::transport::{Combine, Exchange, Header, Transport};
use crate::elementwise::{Zip, ZipFn};
use crate::gpu::{Buffer, Executable, Slice};
use crate::program::prelude::*;
use std::collections::VecDeque;
use std::ops::Range;

/// Shorter slices are reduced on the host.
const LONG_BYTES: usize = 4 << 20;
const CHUNK_BYTES: usize = 64 << 20;
/// Bytes at which every device can bind a slice.
const ALIGNED: usize = 256;

/// A step of the ring for a chunk: partial sums go round, then whole ones.
#[derive(Clone, Copy, PartialEq)]
enum RingStep {
    Reduce(usize),
    Gather(usize),
}

/// What an all-reduce needs on this rank.
struct Ring<'a, L: Transport, T: Element> {
    rank: &'a Rank<L>,
    slice: Slice<'a, T>,
    function: ZipFn,
    chunks: usize,
}

impl<L: Transport> Rank<L> {
    /// Whether a slice is reduced along a ring: short slices, and types without sums on devices, are left to the host.
    pub(super) fn reduces_on_devices<T: Element>(slice: &Slice<'_, T>) -> bool {
        let known = matches!(T::DTYPE, DType::F32 | DType::I32 | DType::U32);
        let bytes = slice.len() * T::DTYPE.size();
        known && bytes >= LONG_BYTES && slice.offset().is_multiple_of(ALIGNED as u64)
    }

    pub(super) fn reduce_on_devices<T: Element>(
        &self, header: &Header, slice: Slice<'_, T>, how: Combine,
    ) -> Result<()> {
        let bytes = slice.len() * T::DTYPE.size();
        let function = match how {
            Combine::Sum => ZipFn::Add,
            Combine::Prod => ZipFn::Mul,
            Combine::Min => ZipFn::Min,
            Combine::Max => ZipFn::Max,
        };
        if let Some(local) = self.transport().local()
            && self.size() == 2
            && !self.gpu().profile().is_cpu()
        {
            let begun = std::time::Instant::now();
            if local.reduce_both_ways(header, &slice, &function)? {
                self.add(1, bytes, begun);
                return self.note_link(begun);
            }
        }
        let chunks = bytes.div_ceil(self.size() * CHUNK_BYTES);
        Ring { rank: self, slice, function, chunks }.run()
    }
}

impl<L: Transport, T: Element> Ring<'_, L, T> {
    /// The elements of a chunk of the part that rank `i + size` or `i` ends with.
    fn chunk(&self, i: usize, chunk: usize) -> Range<usize> {
        let (n, size) = (self.slice.len(), self.rank.size());
        let unit = ALIGNED / T::DTYPE.size();
        let of = part(n.div_ceil(unit), size * self.chunks, i % size * self.chunks + chunk);
        n.min(of.start * unit)..n.min(of.end * unit)
    }

    fn plan(&self, n: usize) -> Result<Executable> {
        let (gpu, zip) = (self.rank.gpu(), Zip::new(self.function.clone(), n));
        gpu.prepare_lowered(match T::DTYPE {
            DType::I32 => gpu.lower::<i32, _>(&zip)?,
            DType::U32 => gpu.lower::<u32, _>(&zip)?,
            _ => gpu.lower::<f32, _>(&zip)?,
        })
    }

    fn run(&self) -> Result<()> {
        let (rank, size) = (self.rank, self.rank.size());
        let (own, gpu) = (rank.index(), rank.gpu());
        let (next, last) = ((own + 1) % size, (own + size - 1) % size);
        let longest = self.chunk(0, 0).len() + ALIGNED / T::DTYPE.size();
        let memory = |_| Ok([rank.alloc::<T>(longest)?, gpu.alloc(longest)?, gpu.alloc(longest)?]);
        let memory: Vec<[Buffer<T>; 3]> = (0..self.chunks).map(memory).collect::<Result<_>>()?;
        let mut under_way: VecDeque<(RingStep, usize, Started<'_, T>)> = VecDeque::new();
        let start = |step: RingStep, chunk: usize| -> Result<Started<'_, T>> {
            let [taken, even, odd] = &memory[chunk];
            let mut exchange = Exchange::default();
            let (send, receive) = match step {
                RingStep::Reduce(s) => {
                    let (sent, taking) = (self.chunk(own + size - s, chunk), self.chunk(own + 2 * size - s - 1, chunk));
                    // Sums of the step before.
                    let sums = if s % 2 == 0 { odd } else { even };
                    let send = if s == 1 { self.slice.slice(sent)? } else { sums.slice(..sent.len())? };
                    (send, taken.slice(..taking.len())?)
                }
                RingStep::Gather(s) => {
                    let (sent, taking) = (self.chunk(own + size + 1 - s, chunk), self.chunk(own + size - s, chunk));
                    (self.slice.slice(sent)?, self.slice.slice(taking)?)
                }
            };
            if !send.is_empty() {
                exchange.sends.push((vec![next], send));
            }
            if !receive.is_empty() {
                exchange.receives.push((last, receive));
            }
            rank.begin(exchange)
        };
        for chunk in 0..self.chunks {
            under_way.push_back((RingStep::Reduce(1), chunk, start(RingStep::Reduce(1), chunk)?));
        }
        while let Some((step, chunk, started)) = under_way.pop_front() {
            rank.finish(started)?;
            let following = match step {
                RingStep::Reduce(s) => {
                    let range = self.chunk(own + 2 * size - s - 1, chunk);
                    let [taken, even, odd] = &memory[chunk];
                    let sums = if s % 2 == 0 { even } else { odd };
                    if !range.is_empty() {
                        let (taken, sums) = (taken.slice(..range.len())?, sums.slice(..range.len())?);
                        let here = self.slice.slice(range.clone())?;
                        let mut rec = gpu.recorder();
                        let operands = [here.untyped(), taken.untyped(), sums.untyped()];
                        self.plan(range.len())?.record(&mut rec, &operands)?;
                        if s + 1 == size {
                            rec.copy(sums, here)?;
                        }
                        rec.submit()?;
                    }
                    if s + 1 < size { RingStep::Reduce(s + 1) } else { RingStep::Gather(1) }
                }
                RingStep::Gather(s) if s + 1 < size => RingStep::Gather(s + 1),
                RingStep::Gather(_) => continue,
            };
            under_way.push_back((following, chunk, start(following, chunk)?));
        }
        Ok(())
    }
}

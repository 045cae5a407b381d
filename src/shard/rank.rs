//! A rank: its device, its link to the others, and the calls that all ranks make together.

use super::schedule::{self, Step, part};
use super::timeline::WatchedLink;
use super::transport::{Call, Combine, Exchange, Header, Transport};
use crate::gpu::{Buffer, Gpu, Moving, Readback, Slice};
use crate::program::prelude::*;
use std::cell::Cell;
use std::ops::Range;
use std::time::Instant;

/// Elements of a piece in which device slices are reduced through the host.
const PIECE: usize = 8 << 20;

/// What a rank has sent, and how long it has waited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traffic {
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Seconds in calls that move data, waits for other ranks included.
    pub seconds: f64,
}

/// A rank of a group that works together: its number, its device, and its link to the others.
///
/// All ranks make the same calls in the same order, as with MPI and NCCL. Arrays whose parts the ranks hold are cut
/// into shards in the order of ranks, of any lengths. Each rank passes its own shard.
///
/// # Errors of its methods
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): ranks make different calls, or with different types or
///   sizes.
/// - [`Timeout`](ErrorKind::Timeout): a rank does not answer in time. [`Io`](ErrorKind::Io): a rank has
///   ended. [`Malformed`](ErrorKind::Malformed): a message was cut short.
/// - Those of the ops on the device.
///
/// After an error the group cannot be used again; the other ranks end with an error within their time-out.
#[derive(Debug)]
pub struct Rank<T: Transport> {
    transport: T,
    gpu: Gpu,
    calls: Cell<u64>,
    traffic: Cell<Traffic>,
    watched: WatchedLink,
}

/// An exchange of device slices that [`Rank::begin`] started; [`Rank::finish`] ends it.
#[derive(Debug)]
#[must_use = "the slices are filled once `Rank::finish` has ended the exchange"]
pub struct Started<'a, T: Element> {
    header: Header,
    exchange: Exchange<'a, T>,
    begun: Instant,
}

impl<L: Transport> Rank<L> {
    /// Creates a rank that works on a device.
    pub fn new(transport: L, gpu: &Gpu) -> Self {
        Self {
            transport,
            gpu: gpu.clone(),
            calls: Cell::new(0),
            traffic: Cell::default(),
            watched: WatchedLink::default(),
        }
    }

    /// Returns the number of this rank, from 0.
    pub fn index(&self) -> usize {
        self.transport.rank()
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// Returns the device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Returns the link.
    pub fn transport(&self) -> &L {
        &self.transport
    }

    pub(super) fn watched(&self) -> &WatchedLink {
        &self.watched
    }

    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(super) fn into_transport(self) -> L {
        self.transport
    }

    /// Returns what this rank has sent so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Waits for all submitted work of the device and of the link.
    ///
    /// # Errors
    /// [`DeviceLost`](ErrorKind::DeviceLost).
    pub fn wait(&self) -> Result<()> {
        self.transport.wait(&self.gpu)
    }

    /// Allocates device memory that the link reaches directly, if it can.
    ///
    /// # Errors
    /// As [`Gpu::alloc`].
    pub fn alloc<T: Element>(&self, n: usize) -> Result<Buffer<T>> {
        if n == 0 { self.gpu.alloc(0) } else { self.transport.alloc(&self.gpu, n) }
    }

    /// Uploads elements to such memory.
    ///
    /// # Errors
    /// As [`Gpu::upload`].
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.alloc(data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    fn header<T: Element>(&self, call: Call, total: usize) -> Header {
        self.calls.set(self.calls.get() + 1);
        Header { number: self.calls.get(), call, dtype: T::DTYPE, elements: 0, total }
    }

    /// Counts messages that this rank has sent.
    pub(super) fn add(&self, messages: usize, bytes: usize, start: Instant) {
        let mut traffic = self.traffic.get();
        traffic.messages += messages as u64;
        traffic.bytes += bytes as u64;
        traffic.seconds += start.elapsed().as_secs_f64();
        self.traffic.set(traffic);
    }

    /// Runs a schedule. Sends come from `sent`, or from `data` without it.
    fn execute<T: Element>(
        &self, header: &Header, steps: &[Step], sent: Option<&[T]>, data: &mut [T], how: Combine,
    ) -> Result<()> {
        let start = Instant::now();
        let (mut messages, mut bytes) = (0, 0);
        let outside = || err!(Shape, "{}: a schedule leaves its array", header.call);
        for step in steps {
            match step {
                Step::Send { to, range } => {
                    let from = sent.unwrap_or(data).get(range.clone()).ok_or_else(outside)?;
                    let header = Header { elements: range.len(), ..*header };
                    self.transport.send(*to, &header, bytemuck::cast_slice(from))?;
                    messages += 1;
                    bytes += header.bytes();
                }
                Step::Receive { from, range, combine } => {
                    let expected = Header { elements: range.len(), ..*header };
                    let into = data.get_mut(range.clone()).ok_or_else(outside)?;
                    self.transport.receive(*from, &mut |arrived, bytes| {
                        expected.check(self.index(), *from, arrived, bytes.len())?;
                        if *combine {
                            return how.apply(into, bytes);
                        }
                        bytemuck::cast_slice_mut::<T, u8>(into).copy_from_slice(bytes);
                        Ok(())
                    })?;
                }
            }
        }
        self.add(messages, bytes, start);
        self.note_link(start)
    }

    /// Waits until all ranks are here.
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn barrier(&self) -> Result<()> {
        let header = self.header::<u8>(Call::Barrier, 0);
        let steps = schedule::barrier(self.index(), self.size());
        self.execute::<u8>(&header, &steps, None, &mut [], Combine::Sum)
    }

    /// Copies the array of rank `root` to all ranks.
    ///
    /// # Errors
    /// See [`Rank`]; [`InvalidArgument`](ErrorKind::InvalidArgument) if there is no rank `root`.
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        if root >= self.size() {
            return Err(err!(InvalidArgument, "broadcast: there is no rank {root} among {}", self.size()));
        }
        let header = self.header::<T>(Call::Broadcast(root), data.len());
        let steps = schedule::broadcast(self.index(), self.size(), root, data.len(), T::DTYPE.size());
        self.execute(&header, &steps, None, data, Combine::Sum)
    }

    /// Combines the arrays of all ranks, element by element. All ranks get the same bits.
    ///
    /// Floats are combined in an order that depends on the number of ranks and the length.
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn all_reduce<T: Element>(&self, data: &mut [T], how: Combine) -> Result<()> {
        let header = self.header::<T>(Call::AllReduce(how), data.len());
        let steps = schedule::all_reduce(self.index(), self.size(), data.len(), T::DTYPE.size());
        self.execute(&header, &steps, None, data, how)
    }

    /// Combines the arrays of all ranks, and returns the elements of this rank's [`part`].
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn reduce_scatter<T: Element>(&self, data: &mut [T], how: Combine) -> Result<Vec<T>> {
        let header = self.header::<T>(Call::ReduceScatter(how), data.len());
        let parts: Vec<_> = (0..self.size()).map(|i| part(data.len(), self.size(), i)).collect();
        self.execute(&header, &schedule::reduce_scatter(self.index(), &parts), None, data, how)?;
        let own = data.get(parts[self.index()].clone()).unwrap_or_default();
        crate::error::copied("reduce-scatter", own)
    }

    /// Returns the arrays of all ranks one after another, and where each begins: one more number than ranks. Arrays may
    /// have different lengths.
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn all_gather<T: Element>(&self, own: &[T]) -> Result<(Vec<T>, Vec<usize>)> {
        let lens = self.gather_equal(&[own.len() as u64])?;
        let mut begins = with_room("all-gather", self.size() + 1)?;
        begins.push(0usize);
        for len in lens {
            let end = begins.last().copied().unwrap_or(0).checked_add(len as usize);
            begins.push(end.ok_or_else(|| err!(TooLarge, "all-gather: more elements than addresses"))?);
        }
        let parts: Vec<Range<usize>> = begins.windows(2).map(|w| w[0]..w[1]).collect();
        Ok((self.gather_parts(own, &parts)?, begins))
    }

    /// Returns the arrays of all ranks one after another, each in its part.
    pub(super) fn gather_parts<T: Element>(&self, own: &[T], parts: &[Range<usize>]) -> Result<Vec<T>> {
        let total = parts.last().map_or(0, |part| part.end);
        let header = self.header::<T>(Call::AllGather, total);
        let mut all = filled("all-gather", total, T::default())?;
        let place = parts.get(self.index()).cloned().and_then(|part| all.get_mut(part));
        let place = place.filter(|place| place.len() == own.len());
        place.ok_or_else(|| err!(Shape, "all-gather: a part does not have its length"))?.copy_from_slice(own);
        self.execute(&header, &schedule::all_gather(self.index(), parts), None, &mut all, Combine::Sum)?;
        Ok(all)
    }

    /// Returns the arrays of all ranks, which have the same length, one after another.
    pub(super) fn gather_equal<T: Element>(&self, own: &[T]) -> Result<Vec<T>> {
        let n = own.len();
        let parts: Vec<_> = (0..self.size()).map(|i| i * n..(i + 1) * n).collect();
        self.gather_parts(own, &parts)
    }

    /// Sends `counts[j]` elements of `data`, in order, to rank `j`. Returns what all ranks sent to this one, in the
    /// order of ranks, and how many elements came from each.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](ErrorKind::Shape) if there is not one count for each rank, or they do not add up
    /// to the length.
    pub fn all_to_all<T: Element>(&self, data: &[T], counts: &[usize]) -> Result<(Vec<T>, Vec<usize>)> {
        let sends = ranges("all-to-all", counts)?;
        if counts.len() != self.size() || sends.last().map_or(0, |r| r.end) != data.len() {
            return Err(err!(
                Shape,
                "all-to-all: {} counts for {} ranks, which add up to {} of {} elements",
                counts.len(),
                self.size(),
                sends.last().map_or(0, |r| r.end),
                data.len()
            ));
        }
        let taken = self.exchange_counts(counts)?;
        let receives = ranges("all-to-all", &taken)?;
        let mut all = filled("all-to-all", receives.last().map_or(0, |r| r.end), T::default())?;
        let own = self.index();
        all[receives[own].clone()].copy_from_slice(&data[sends[own].clone()]);
        let header = self.header::<T>(Call::AllToAll, 0);
        let steps = schedule::all_to_all(own, &sends, &receives);
        self.execute(&header, &steps, Some(data), &mut all, Combine::Sum)?;
        Ok((all, taken))
    }

    /// Tells each rank `counts[j]`, and returns the numbers that the ranks tell this one.
    pub(super) fn exchange_counts(&self, counts: &[usize]) -> Result<Vec<usize>> {
        let mine: Vec<u64> = counts.iter().map(|&n| n as u64).collect();
        let size = self.size();
        let all = self.gather_equal(&mine)?;
        Ok((0..size).map(|from| all[from * size + self.index()] as usize).collect())
    }

    /// Fails on all ranks if they do not pass the same numbers: `names` says what each number is.
    pub(super) fn agree(&self, what: &str, names: &[&str], numbers: &[u64]) -> Result<()> {
        let all = self.gather_equal(numbers)?;
        for (rank, theirs) in all.chunks_exact(numbers.len().max(1)).enumerate() {
            if let Some(at) = (0..numbers.len()).find(|&i| theirs[i] != all[i]) {
                return Err(err!(
                    InvalidArgument,
                    "{what}: {} is {} on rank 0 and {} on rank {rank}; all ranks must pass the same",
                    names.get(at).copied().unwrap_or("a number"),
                    all[at],
                    theirs[at]
                ));
            }
        }
        Ok(())
    }

    /// Starts an exchange of device slices.
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn begin<'a, T: Element>(&self, exchange: Exchange<'a, T>) -> Result<Started<'a, T>> {
        let start = Instant::now();
        let header = self.header::<T>(Call::Exchange, 0);
        self.transport.begin(&header, &exchange)?;
        let messages = exchange.sends.iter().map(|(to, _)| to.len()).sum();
        let bytes = exchange.sends.iter().map(|(to, s)| to.len() * s.len() * T::DTYPE.size()).sum();
        self.add(messages, bytes, start);
        Ok(Started { header, exchange, begun: start })
    }

    /// Ends an exchange: work submitted later sees the filled slices.
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn finish<T: Element>(&self, started: Started<'_, T>) -> Result<()> {
        let start = Instant::now();
        let Started { header, exchange, begun } = started;
        self.transport.finish(&header, &exchange)?;
        self.add(0, 0, start);
        self.note_link(begun)
    }

    /// Combines few elements that are on their way to the host.
    pub(super) fn all_reduce_few<T: Element>(&self, few: Readback<T>, how: Combine) -> Result<Vec<T>> {
        let mut data = few.wait()?;
        self.all_reduce(&mut data, how)?;
        Ok(data)
    }

    /// Combines device slices of all ranks in place, as [`all_reduce`](Self::all_reduce): by the link itself if it can,
    /// else through the host in pieces, of which the next is read while one is reduced.
    ///
    /// # Errors
    /// See [`Rank`].
    pub fn all_reduce_slice<'a, T: Element>(&self, slice: impl Into<Slice<'a, T>>, how: Combine) -> Result<()> {
        let started = self.begin_all_reduce(slice.into(), how)?;
        self.finish_all_reduce(started)
    }

    /// Starts what [`all_reduce_slice`](Self::all_reduce_slice) does: work that is submitted until
    /// [`finish_all_reduce`](Self::finish_all_reduce) runs meanwhile.
    pub(super) fn begin_all_reduce<'a, T: Element>(
        &self, slice: Slice<'a, T>, how: Combine,
    ) -> Result<StartedReduce<'a, T>> {
        let begun = Instant::now();
        let way = if self.size() == 1 {
            AllReduceWay::Alone
        } else {
            let header = self.header::<T>(Call::AllReduce(how), slice.len());
            if self.transport.begin_all_reduce(&header, &slice, how)? {
                // A ring sends each element twice, but for its own part.
                let bytes = 2 * slice.len() * T::DTYPE.size() / self.size() * (self.size() - 1);
                self.add(1, bytes, begun);
                AllReduceWay::Link(header)
            } else if Self::reduces_on_devices(&slice) {
                AllReduceWay::Devices(header)
            } else {
                let first = slice.slice(..slice.len().min(PIECE))?;
                AllReduceWay::Host(header, (!first.is_empty()).then(|| first.start_move()).transpose()?)
            }
        };
        Ok(StartedReduce { slice, how, begun, way })
    }

    /// Ends it: work submitted later sees the result.
    pub(super) fn finish_all_reduce<T: Element>(&self, started: StartedReduce<'_, T>) -> Result<()> {
        let StartedReduce { slice, how, begun, way } = started;
        let (header, mut moving) = match way {
            AllReduceWay::Alone => return Ok(()),
            AllReduceWay::Link(header) => {
                self.transport.finish_all_reduce(&header)?;
                return self.note_link(begun);
            }
            AllReduceWay::Devices(header) => return self.reduce_on_devices(&header, slice, how),
            AllReduceWay::Host(header, moving) => (header, moving),
        };
        let pieces: Vec<_> = (0..slice.len().div_ceil(PIECE))
            .map(|i| slice.slice(i * PIECE..slice.len().min((i + 1) * PIECE)))
            .collect::<Result<_>>()?;
        let mut data = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            let next = pieces.get(i + 1).map(Slice::start_move).transpose()?;
            data.clear();
            make_room("all-reduce", &mut data, piece.len())?;
            if let Some(moving) = moving {
                moving.for_each_piece(|bytes| {
                    data.extend_from_slice(bytemuck::cast_slice(bytes));
                    Ok(())
                })?;
            }
            let steps = schedule::all_reduce(self.index(), self.size(), data.len(), T::DTYPE.size());
            self.execute(&header, &steps, None, &mut data, how)?;
            piece.write(&data)?;
            moving = next;
        }
        Ok(())
    }
}

/// An all-reduce of a device slice that has begun.
#[must_use = "the slice is reduced once `finish_all_reduce` has ended it"]
pub(super) struct StartedReduce<'a, T: Element> {
    slice: Slice<'a, T>,
    how: Combine,
    begun: Instant,
    way: AllReduceWay,
}

enum AllReduceWay {
    /// There is one rank.
    Alone,
    /// By the link.
    Link(Header),
    /// Along a ring, in sums on the devices.
    Devices(Header),
    /// On the host; the first piece is on its way.
    Host(Header, Option<Moving>),
}

pub(super) fn ranges(doing: &str, counts: &[usize]) -> Result<Vec<Range<usize>>> {
    let mut begin = 0usize;
    let mut ranges = with_room(doing, counts.len())?;
    for count in counts {
        let end = begin.checked_add(*count).ok_or_else(|| err!(TooLarge, "{doing}: counts overflow"))?;
        ranges.push(begin..end);
        begin = end;
    }
    Ok(ranges)
}

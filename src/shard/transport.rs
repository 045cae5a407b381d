use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::prelude::*;
use std::fmt;
use std::time::Duration;

/// How elements of several ranks become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The sum; integers wrap.
    Sum,
    /// The product; integers wrap.
    Prod,
    /// The smaller one; NaN if either is NaN.
    Min,
    /// The larger one; NaN if either is NaN.
    Max,
}

/// A kind of call that all ranks make together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// Slices from rank to rank.
    Exchange,
    /// [`Rank::barrier`](super::Rank::barrier).
    Barrier,
    /// [`Rank::broadcast`](super::Rank::broadcast) from this rank.
    Broadcast(usize),
    /// [`Rank::all_reduce`](super::Rank::all_reduce).
    AllReduce(Combine),
    /// [`Rank::reduce_scatter`](super::Rank::reduce_scatter).
    ReduceScatter(Combine),
    /// [`Rank::all_gather`](super::Rank::all_gather).
    AllGather,
    /// [`Rank::all_to_all`](super::Rank::all_to_all).
    AllToAll,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange => f.write_str("exchange"),
            Self::Barrier => f.write_str("barrier"),
            Self::Broadcast(root) => write!(f, "broadcast from rank {root}"),
            Self::AllReduce(how) => write!(f, "all-reduce ({how:?})"),
            Self::ReduceScatter(how) => write!(f, "reduce-scatter ({how:?})"),
            Self::AllGather => f.write_str("all-gather"),
            Self::AllToAll => f.write_str("all-to-all"),
        }
    }
}

/// What a message holds. The receiver compares it with what it expects, so that ranks that make different calls fail
/// instead of mixing their data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The number of the call, counted alike on all ranks.
    pub number: u64,
    /// The call.
    pub call: Call,
    /// The type of the elements.
    pub dtype: DType,
    /// Elements of this message.
    pub elements: usize,
    /// Elements of the whole call, where all ranks must agree on them; else 0.
    pub total: usize,
}

impl Header {
    /// Returns the bytes that must follow.
    pub fn bytes(&self) -> usize {
        self.elements * self.dtype.size()
    }

    /// Checks a message that arrived from rank `from`, of `bytes` bytes, against this header.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if the ranks make different calls;
    /// [`Malformed`](ErrorKind::Malformed) if the message is cut short.
    pub fn check(&self, rank: usize, from: usize, arrived: &Header, bytes: usize) -> Result<()> {
        if self != arrived {
            return Err(err!(
                InvalidArgument,
                "{}: rank {rank} expects {self} from rank {from}, which sent {arrived}; all ranks must make the same \
                 calls, with the same types and sizes",
                self.call
            ));
        }
        if bytes != self.bytes() {
            return Err(err!(
                Malformed,
                "{}: rank {rank} got {bytes} of {} bytes from rank {from}; the link cut a message short",
                self.call,
                self.bytes()
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}: {} of {} {}", self.number, self.call, self.elements, self.dtype)?;
        if self.total > 0 { write!(f, " out of {}", self.total) } else { Ok(()) }
    }
}

/// Device slices that travel between ranks at the same time.
#[derive(Debug)]
pub struct Exchange<'a, T: Element> {
    /// Slices to send, each to these ranks.
    pub sends: Vec<(Vec<usize>, Slice<'a, T>)>,
    /// Slices to fill, each from this rank. Messages from one rank arrive in the order in which it sends them.
    pub receives: Vec<(usize, Slice<'a, T>)>,
}

impl<T: Element> Default for Exchange<'_, T> {
    fn default() -> Self {
        Self { sends: Vec::new(), receives: Vec::new() }
    }
}

/// A link between ranks. [`Rank`](super::Rank) builds its collective calls on it.
///
/// An implementation moves bytes between the host memories of two ranks. It may move device slices and reduce them by
/// itself; the default goes through the host.
///
/// # Errors
/// [`Timeout`](ErrorKind::Timeout) if a rank does not answer in time; [`Io`](ErrorKind::Io) if a rank
/// has ended or the link is broken.
pub trait Transport {
    /// Returns the name of the link.
    fn name(&self) -> &'static str;

    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Returns how long a call waits for another rank.
    fn timeout(&self) -> Duration;

    /// Sends a message. Returns when `bytes` may change; does not wait for the receiver.
    ///
    /// # Errors
    /// See [`Transport`].
    fn send(&self, to: usize, header: &Header, bytes: &[u8]) -> Result<()>;

    /// Waits for the next message from a rank and passes it to `take`.
    ///
    /// # Errors
    /// See [`Transport`]; those of `take`.
    fn receive(&self, from: usize, take: &mut dyn FnMut(&Header, &[u8]) -> Result<()>) -> Result<()>;

    /// Allocates device memory that the link can reach.
    ///
    /// # Errors
    /// As [`Gpu::alloc`].
    fn alloc<T: Element>(&self, gpu: &Gpu, n: usize) -> Result<Buffer<T>> {
        gpu.alloc(n)
    }

    /// Waits for all submitted work of the device and of the link.
    ///
    /// # Errors
    /// [`DeviceLost`](ErrorKind::DeviceLost).
    fn wait(&self, gpu: &Gpu) -> Result<()> {
        gpu.wait()
    }

    /// Starts an exchange of device slices, with the contents that work submitted so far leaves in them. The slices
    /// to fill must not be used before [`finish`](Self::finish).
    ///
    /// # Errors
    /// See [`Transport`].
    fn begin<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        for (to, slice) in &exchange.sends {
            let data = slice.read()?;
            for &to in to {
                self.send(to, &Header { elements: slice.len(), ..*header }, bytemuck::cast_slice(&data))?;
            }
        }
        Ok(())
    }

    /// Ends an exchange. Work submitted later sees the filled slices.
    ///
    /// # Errors
    /// See [`Transport`].
    fn finish<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        for (from, slice) in &exchange.receives {
            let expected = Header { elements: slice.len(), ..*header };
            self.receive(*from, &mut |arrived, bytes| {
                expected.check(self.rank(), *from, arrived, bytes.len())?;
                slice.write(&aligned("exchange", bytes)?)
            })?;
        }
        Ok(())
    }

    /// Returns the link if it is NCCL's: solvers then run on its stream.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    fn nccl(&self) -> Option<&super::Nccl> {
        None
    }

    /// Returns the link if it is [`Local`](super::Local): two devices then reduce long slices over memory that both
    /// reach.
    fn local(&self) -> Option<&super::Local> {
        None
    }

    /// Starts to reduce a device slice over all ranks, with the contents that work submitted so far leaves in it, if
    /// the link can do that by itself. Returns whether it did. The slice must not be used before
    /// [`finish_all_reduce`](Self::finish_all_reduce).
    ///
    /// # Errors
    /// See [`Transport`].
    fn begin_all_reduce<T: Element>(&self, _: &Header, _: &Slice<'_, T>, _: Combine) -> Result<bool> {
        Ok(false)
    }

    /// Ends a reduction that the link has begun. Work submitted later sees the result.
    ///
    /// # Errors
    /// See [`Transport`].
    fn finish_all_reduce(&self, _: &Header) -> Result<()> {
        Ok(())
    }
}

/// Copies bytes to elements; the bytes of a message may lie anywhere.
fn aligned<T: Element>(doing: &str, bytes: &[u8]) -> Result<Vec<T>> {
    let mut data = filled(doing, bytes.len() / T::DTYPE.size(), T::default())?;
    bytemuck::cast_slice_mut::<T, u8>(&mut data).copy_from_slice(bytes);
    Ok(data)
}

impl Combine {
    /// Combines elements of another rank into `into`, which has as many bytes. f16 is computed in f32 and rounded.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) for bf16.
    pub fn apply<T: Element>(self, into: &mut [T], from: &[u8]) -> Result<()> {
        /// Applies `f` to elements of `N`, of which `T` is another name.
        fn each<T: Element, N: bytemuck::Pod>(into: &mut [T], from: &[u8], f: impl Fn(N, N) -> N) {
            let into = bytemuck::cast_slice_mut::<T, N>(into);
            for (a, b) in into.iter_mut().zip(from.chunks_exact(size_of::<N>())) {
                *a = f(*a, bytemuck::pod_read_unaligned(b));
            }
        }
        macro_rules! integers {
            ($n:ty) => {
                match self {
                    Self::Sum => each::<T, $n>(into, from, <$n>::wrapping_add),
                    Self::Prod => each::<T, $n>(into, from, <$n>::wrapping_mul),
                    Self::Min => each::<T, $n>(into, from, Ord::min),
                    Self::Max => each::<T, $n>(into, from, Ord::max),
                }
            };
        }
        let float = match self {
            Self::Sum => |a: f32, b: f32| a + b,
            Self::Prod => |a: f32, b: f32| a * b,
            Self::Min => |a: f32, b: f32| if a.is_nan() || a <= b { a } else { b },
            Self::Max => |a: f32, b: f32| if a.is_nan() || a >= b { a } else { b },
        };
        match T::DTYPE {
            DType::F32 => each::<T, f32>(into, from, float),
            DType::F16 => {
                each::<T, half::f16>(into, from, |a, b| half::f16::from_f32(float(a.to_f32(), b.to_f32())));
            }
            DType::I32 => integers!(i32),
            DType::U32 => integers!(u32),
            DType::U8 => integers!(u8),
            DType::I8 => integers!(i8),
            DType::U64 => integers!(u64),
            DType::Bf16 => return Err(err!(Unsupported, "combine: no sums of bf16; use f16 or f32")),
        }
        Ok(())
    }
}

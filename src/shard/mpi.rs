//! Ranks that are processes, on one machine or several: the feature `mpi`.

use super::rank::Rank;
use super::transport::{Call, Combine, Header, Transport};
use crate::gpu::Gpu;
use crate::program::prelude::*;
use ::mpi::environment::Universe;
use ::mpi::ffi;
use ::mpi::topology::{Communicator, SimpleCommunicator};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// The tag of our messages.
const TAG: c_int = 0x7113;

/// Words of a header as it travels: number, call, its argument, type, elements, total, and bytes that follow.
const HEADER_WORDS: usize = 7;
const HEADER_BYTES: usize = 8 * HEADER_WORDS;

/// The longest message that MPI carries, which counts in `int`; longer ones travel in several.
const MAX_BYTES: usize = 1 << 30;

const TYPES: [DType; 8] =
    [DType::F32, DType::F16, DType::Bf16, DType::I32, DType::U32, DType::U8, DType::I8, DType::U64];
const WAYS: [Combine; 4] = [Combine::Sum, Combine::Prod, Combine::Min, Combine::Max];

/// A message that MPI still reads.
struct Sending {
    request: ffi::MPI_Request,
    /// Freed once the request is done.
    bytes: Vec<u8>,
}

/// A rank of the processes that `mpirun` started. [`run_mpi`] makes it.
///
/// Device slices go through the host's memory, and from there by whatever link MPI uses: shared memory, InfiniBand, or
/// a network.
pub struct Mpi {
    world: SimpleCommunicator,
    rank: usize,
    size: usize,
    timeout: Duration,
    sending: RefCell<VecDeque<Sending>>,
    /// Leaves MPI when it is dropped, after all else.
    _universe: Universe,
}

impl std::fmt::Debug for Mpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mpi(rank {} of {})", self.rank, self.size)
    }
}

/// Runs `work` as this process's rank of those that `mpirun` started, on its device. Without `mpirun` there is one
/// rank. A process can call it once.
///
/// ```no_run
/// use std::time::Duration;
/// use tilework::prelude::*;
/// use tilework::shard;
///
/// // mpirun -n 4 program
/// let gpu = Gpu::new()?;
/// let total = shard::run_mpi(&gpu, Duration::from_secs(60), |rank| {
///     rank.reduce(&rank.upload(&[1.0f32; 1000])?, Sum)
/// })?;
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) if MPI is running already; those of `work`.
pub fn run_mpi<R>(gpu: &Gpu, timeout: Duration, work: impl FnOnce(&Rank<Mpi>) -> Result<R>) -> Result<R> {
    work(&Rank::new(Mpi::new(timeout)?, gpu))
}

impl Mpi {
    /// Joins the processes that `mpirun` started.
    ///
    /// # Errors
    /// As [`run_mpi`].
    pub fn new(timeout: Duration) -> Result<Self> {
        let universe = ::mpi::initialize().ok_or_else(|| {
            err!(
                Unsupported,
                "mpi: MPI is running already in this process, or has ended; join it once, and keep that Mpi"
            )
        })?;
        let world = universe.world();
        // Errors come back, instead of ending the process.
        // SAFETY: MPI is running; the constants are MPI's own.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN) };
        check(code, "joining the processes")?;
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        Ok(Self { world, rank, size, timeout, sending: RefCell::default(), _universe: universe })
    }

    /// Returns the number of this rank among those of its machine, from 0: the device to open, if each has its own.
    pub fn place_on_machine(&self) -> usize {
        self.world.split_shared(self.rank as c_int).rank() as usize
    }

    fn peer(&self, rank: usize, doing: &str) -> Result<c_int> {
        if rank < self.size {
            return Ok(rank as c_int);
        }
        Err(err!(InvalidArgument, "{doing}: there is no rank {rank}; the group has {}", self.size))
    }

    /// Starts sending. MPI keeps the order of messages between two ranks.
    fn start(&self, to: c_int, bytes: Vec<u8>) -> Result<()> {
        let mut request = MaybeUninit::uninit();
        // SAFETY: the bytes live until the request is done, and nobody changes them; MPI is running.
        let code = unsafe {
            ffi::MPI_Isend(
                bytes.as_ptr().cast::<c_void>(),
                bytes.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to,
                TAG,
                ffi::RSMPI_COMM_WORLD,
                request.as_mut_ptr(),
            )
        };
        check(code, "sending")?;
        // SAFETY: MPI has set it.
        let request = unsafe { request.assume_init() };
        self.sending.borrow_mut().push_back(Sending { request, bytes });
        Ok(())
    }

    /// Frees messages that MPI has sent. Returns whether there are others.
    fn collect(&self) -> Result<bool> {
        let mut sending = self.sending.borrow_mut();
        let mut at = 0;
        while at < sending.len() {
            let mut done: c_int = 0;
            // SAFETY: a request of `start` that is not done yet; MPI is running.
            let code = unsafe { ffi::MPI_Test(&mut sending[at].request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
            if done != 0 || code != 0 {
                drop(sending.remove(at).map(|s| s.bytes));
            } else {
                at += 1;
            }
            check(code, "sending")?;
        }
        Ok(!sending.is_empty())
    }

    /// Waits for a message and returns its bytes.
    fn take(&self, from: usize, peer: c_int) -> Result<Vec<u8>> {
        /// How often a waiting rank asks before it gives its core away.
        const BUSY: u32 = 2000;
        let begin = Instant::now();
        for turn in 0u32.. {
            self.collect()?;
            let (mut there, mut status) = (0, MaybeUninit::uninit());
            // SAFETY: MPI is running; the pointers are valid.
            let code = unsafe { ffi::MPI_Iprobe(peer, TAG, ffi::RSMPI_COMM_WORLD, &mut there, status.as_mut_ptr()) };
            check(code, "waiting for a message")?;
            if there == 0 {
                if begin.elapsed() >= self.timeout {
                    break;
                }
                if turn >= BUSY {
                    std::thread::sleep(Duration::from_micros(50));
                } else {
                    std::thread::yield_now();
                }
                continue;
            }
            let mut len: c_int = 0;
            // SAFETY: the probe has set the status.
            let code = unsafe { ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut len) };
            check(code, "receiving")?;
            let mut bytes = filled("mpi: a message", len as usize, 0)?;
            // SAFETY: as many bytes as the message has; only this thread receives, so it is the same message.
            let code = unsafe {
                ffi::MPI_Recv(
                    bytes.as_mut_ptr().cast::<c_void>(),
                    len,
                    ffi::RSMPI_UINT8_T,
                    peer,
                    TAG,
                    ffi::RSMPI_COMM_WORLD,
                    ffi::RSMPI_STATUS_IGNORE,
                )
            };
            check(code, "receiving")?;
            return Ok(bytes);
        }
        Err(err!(
            Timeout,
            "rank {} waited {:?} for rank {from}; it is late, has ended or makes other calls",
            self.rank,
            self.timeout
        ))
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // Others may still take messages of a rank that has failed.
        let end = Instant::now() + self.timeout;
        while matches!(self.collect(), Ok(true)) && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(50));
        }
        // MPI may read what nobody has taken for as long as the process lives.
        self.sending.borrow_mut().drain(..).for_each(std::mem::forget);
    }
}

impl Transport for Mpi {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn send(&self, to: usize, header: &Header, bytes: &[u8]) -> Result<()> {
        let peer = self.peer(to, "send")?;
        self.collect()?;
        let words = encode(header, bytes.len());
        self.start(peer, bytemuck::cast_slice(&words).to_vec())?;
        for part in bytes.chunks(MAX_BYTES) {
            self.start(peer, crate::error::copied("mpi: a message", part)?)?;
        }
        Ok(())
    }

    fn receive(&self, from: usize, take: &mut dyn FnMut(&Header, &[u8]) -> Result<()>) -> Result<()> {
        let peer = self.peer(from, "receive")?;
        let (header, len) = decode(&self.take(from, peer)?)?;
        let mut all = Vec::new();
        if len <= MAX_BYTES {
            if len > 0 {
                all = self.take(from, peer)?;
            }
        } else {
            crate::error::make_room("mpi: a message", &mut all, len)?;
            for _ in 0..len.div_ceil(MAX_BYTES) {
                all.extend_from_slice(&self.take(from, peer)?);
            }
        }
        take(&header, &all)
    }
}

fn check(code: c_int, doing: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(err!(Io, "mpi: {doing}: MPI reports error {code}; a rank or its machine may have failed"))
}

fn encode(header: &Header, bytes: usize) -> [u64; HEADER_WORDS] {
    let way = |how: Combine| WAYS.iter().position(|w| *w == how).unwrap_or(0);
    let (call, argument) = match header.call {
        Call::Exchange => (0, 0),
        Call::Barrier => (1, 0),
        Call::Broadcast(root) => (2, root),
        Call::AllReduce(how) => (3, way(how)),
        Call::ReduceScatter(how) => (4, way(how)),
        Call::AllGather => (5, 0),
        Call::AllToAll => (6, 0),
    };
    let dtype = TYPES.iter().position(|t| *t == header.dtype).unwrap_or(TYPES.len());
    let Header { number, elements, total, .. } = *header;
    [number, call, argument as u64, dtype as u64, elements as u64, total as u64, bytes as u64]
}

fn decode(bytes: &[u8]) -> Result<(Header, usize)> {
    let broken = || err!(Malformed, "mpi: {} bytes that are no header; ranks run different programs", bytes.len());
    if bytes.len() != HEADER_BYTES {
        return Err(broken());
    }
    let words: Vec<u64> = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
    let at = |i: usize| words.get(i).copied().unwrap_or(0) as usize;
    let way = || WAYS.get(at(2)).copied().ok_or_else(broken);
    let call = match at(1) {
        0 => Call::Exchange,
        1 => Call::Barrier,
        2 => Call::Broadcast(at(2)),
        3 => Call::AllReduce(way()?),
        4 => Call::ReduceScatter(way()?),
        5 => Call::AllGather,
        6 => Call::AllToAll,
        _ => return Err(broken()),
    };
    let dtype = TYPES.get(at(3)).copied().ok_or_else(broken)?;
    Ok((Header { number: at(0) as u64, call, dtype, elements: at(4), total: at(5) }, at(6)))
}

#[cfg(test)]
mod tests;

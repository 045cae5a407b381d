//! Ranks that are threads of one process.

use super::Rank;
use super::regions::{Lease, Regions};
use super::transport::{Exchange, Header, Transport};
use crate::gpu::Submitted;
use crate::gpu::{Gpu, Moving};
use crate::program::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Staging memory that a device keeps for its shards, in each direction.
const STAGING: u64 = 2 << 30;

/// How long a thread stays awake for a message, if each rank has this many cores.
const AWAKE: Duration = Duration::from_millis(1);
const CORES: usize = 4;

/// How long threads of a group of this size stay awake: ranks that keep cores busy must not take them from those that
/// work.
pub(super) fn awake_for(size: usize) -> Duration {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores >= CORES * size { AWAKE } else { Duration::ZERO }
}

/// Waits for the next message. A thread that sleeps wakes late, so it first stays awake.
pub(super) fn next_awake<M>(
    receiver: &Receiver<M>, awake: Duration, timeout: Duration,
) -> std::result::Result<M, RecvTimeoutError> {
    let end = Instant::now() + awake.min(timeout);
    while !awake.is_zero() && Instant::now() < end {
        match receiver.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    receiver.recv_timeout(timeout)
}

pub(super) enum MessageBody {
    /// In host memory that goes back to the group.
    Host(Vec<u8>),
    /// In staging memory of the sender's device, or there if the receiver has the same.
    Device(Arc<Moving>),
    /// Regions of the sender; none if it has none.
    Regions(Vec<Arc<Lease>>),
    /// A step that the sender's device takes.
    Step(Submitted),
}

pub(super) struct Message {
    pub(super) header: Header,
    pub(super) body: MessageBody,
}

/// Host memory of messages that were received.
type Spare = Arc<Mutex<Vec<Vec<u8>>>>;

/// A rank of a group of threads. [`Local::group`] makes one for each thread, [`run`] the threads too.
///
/// Device slices are copied to mapped staging memory of the sender's device, from there by the receiver to mapped
/// staging memory of its own device, and then to its slice: one copy on the host. Staging memory is reused. Between
/// ranks of [`run`] that share a device they are copied on the device.
///
/// Under Linux with the feature `vulkan`, two cards sum slices of 4 MiB or more over 128 MiB of the host's memory that
/// both read and write by themselves, if their drivers have `VK_EXT_external_memory_host` and tilework opened them. The
/// group keeps the memory, and frees it when the cards have done their work.
pub struct Local {
    rank: usize,
    timeout: Duration,
    /// How long a thread stays awake for a message.
    awake: Duration,
    to: Vec<Sender<Message>>,
    from: Vec<Receiver<Message>>,
    spare: Spare,
    /// The devices of all ranks, if they are known.
    devices: Arc<[Gpu]>,
    pub(super) regions: Arc<Regions>,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Local(rank {} of {})", self.rank, self.to.len())
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Message({})", self.header)
    }
}

impl Local {
    /// Creates the ranks of a group. A call waits for another rank for at most `timeout`.
    ///
    /// # Errors
    /// [`OutOfMemory`](ErrorKind::OutOfMemory): each pair of ranks has a channel.
    pub fn group(size: usize, timeout: Duration) -> Result<Vec<Self>> {
        let spare = Spare::default();
        let regions = Arc::new(Regions::default());
        let mut ranks = Vec::new();
        make_room("shard: a group", &mut ranks, size)?;
        let awake = awake_for(size);
        for rank in 0..size {
            ranks.push(Self {
                rank,
                timeout,
                awake,
                to: Vec::new(),
                from: Vec::new(),
                spare: spare.clone(),
                devices: Arc::default(),
                regions: regions.clone(),
            });
        }
        for from in 0..size {
            for to in 0..size {
                let (sender, receiver) = channel();
                ranks[from].to.push(sender);
                ranks[to].from.push(receiver);
            }
        }
        Ok(ranks)
    }

    pub(super) fn post(&self, to: usize, message: Message) -> Result<()> {
        let call = message.header.call;
        let sender = self
            .to
            .get(to)
            .ok_or_else(|| err!(InvalidArgument, "{call}: there is no rank {to}; the group has {}", self.to.len()))?;
        sender.send(message).map_err(|_| {
            err!(Io, "{call}: rank {} cannot send to rank {to}, which has ended; see its error", self.rank)
        })
    }

    pub(super) fn next(&self, from: usize) -> Result<Message> {
        let receiver = self.from.get(from).ok_or_else(|| {
            err!(InvalidArgument, "receive: there is no rank {from}; the group has {}", self.from.len())
        })?;
        next_awake(receiver, self.awake, self.timeout).map_err(|e| match e {
            RecvTimeoutError::Timeout => err!(
                Timeout,
                "rank {} waited {:?} for rank {from}; it is late or makes other calls",
                self.rank,
                self.timeout
            ),
            RecvTimeoutError::Disconnected => {
                err!(Io, "rank {} waits for rank {from}, which has ended; see its error", self.rank)
            }
        })
    }

    pub(super) fn prepare(&self, gpu: &Gpu) {
        gpu.keep_staging(STAGING);
        if !self.awake.is_zero() {
            gpu.wait_eagerly();
        }
    }

    fn spare(&self) -> Vec<u8> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

impl Transport for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn send(&self, to: usize, header: &Header, bytes: &[u8]) -> Result<()> {
        let mut memory = self.spare();
        memory.clear();
        make_room("shard: a message", &mut memory, bytes.len())?;
        memory.extend_from_slice(bytes);
        self.post(to, Message { header: *header, body: MessageBody::Host(memory) })
    }

    fn receive(&self, from: usize, take: &mut dyn FnMut(&Header, &[u8]) -> Result<()>) -> Result<()> {
        let Message { header, body } = self.next(from)?;
        let memory = match body {
            MessageBody::Host(memory) => memory,
            MessageBody::Device(moving) => {
                let mut memory = self.spare();
                memory.clear();
                make_room("shard: a message", &mut memory, moving.bytes() as usize)?;
                moving.for_each_piece(|bytes| {
                    memory.extend_from_slice(bytes);
                    Ok(())
                })?;
                memory
            }
            MessageBody::Regions(_) | MessageBody::Step(_) => return Err(stray(&header)),
        };
        take(&header, &memory)?;
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        Ok(())
    }

    fn local(&self) -> Option<&Local> {
        Some(self)
    }

    fn begin<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        for (to, slice) in &exchange.sends {
            let header = Header { elements: slice.len(), ..*header };
            let post = |moving: Moving, to: &[usize]| {
                let moving = Arc::new(moving);
                to.iter()
                    .try_for_each(|&to| self.post(to, Message { header, body: MessageBody::Device(moving.clone()) }))
            };
            let (near, mut far): (Vec<usize>, Vec<usize>) =
                to.iter().partition(|&&to| self.devices.get(to) == Some(slice.gpu()));
            match if near.is_empty() { None } else { slice.start_copy()? } {
                Some(copy) => post(copy, &near)?,
                None => far.extend(near),
            }
            if !far.is_empty() {
                post(slice.start_move()?, &far)?;
            }
        }
        Ok(())
    }

    fn finish<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        for (from, slice) in &exchange.receives {
            let expected = Header { elements: slice.len(), ..*header };
            let Message { header: arrived, body } = self.next(*from)?;
            match body {
                MessageBody::Device(moving) => {
                    expected.check(self.rank, *from, &arrived, moving.bytes() as usize)?;
                    moving.write_to(slice)?;
                }
                MessageBody::Regions(_) | MessageBody::Step(_) => return Err(stray(&arrived)),
                MessageBody::Host(memory) => {
                    expected.check(self.rank, *from, &arrived, memory.len())?;
                    slice.write(
                        &memory.chunks_exact(T::DTYPE.size()).map(bytemuck::pod_read_unaligned).collect::<Vec<T>>(),
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// The error of a rank that makes another call.
pub(super) fn stray(arrived: &Header) -> crate::Error {
    err!(InvalidArgument, "{}: another rank is in {arrived}; all ranks must make the same calls", arrived.call)
}

/// Runs `work` on each of these devices at once, each in a thread with a [`Rank`] of its own, and returns the results
/// in the order of the devices. A device may be there several times.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use std::time::{Duration, Instant};
/// use tilework::prelude::*;
/// use tilework::shard;
///
/// let gpu = Gpu::new()?;
/// let gpus = [gpu.clone(), gpu]; // two ranks on one device
/// let totals = shard::run(&gpus, Duration::from_secs(10), |rank| {
///     let mine = vec![1.0f32 + rank.index() as f32; 1000];
///     Ok(rank.reduce(&rank.gpu().upload(&mine)?, Sum)?)
/// })?;
/// assert_eq!(totals, [3000.0, 3000.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Errors
/// The first error of a rank that is no consequence of another's: ranks that wait for one that has failed end with
/// [`Io`](ErrorKind::Io) or [`Timeout`](ErrorKind::Timeout).
pub fn run<R: Send>(
    gpus: &[Gpu], timeout: Duration, work: impl Fn(&Rank<Local>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    first_cause(run_each(gpus, timeout, work)?)
}

/// As [`run`], with the result of each rank.
///
/// # Errors
/// Those of starting threads.
pub fn run_each<R: Send>(
    gpus: &[Gpu], timeout: Duration, work: impl Fn(&Rank<Local>) -> Result<R> + Sync,
) -> Result<Vec<Result<R>>> {
    let work = &work;
    let ranks = Local::group(gpus.len(), timeout)?;
    let devices: Arc<[Gpu]> = gpus.into();
    let jobs = ranks.into_iter().zip(gpus).map(|(mut local, gpu)| {
        local.devices = devices.clone();
        move || {
            local.prepare(gpu);
            work(&Rank::new(local, gpu))
        }
    });
    in_threads(jobs)
}

pub(super) fn in_threads<R: Send, F: FnOnce() -> Result<R> + Send>(
    jobs: impl Iterator<Item = F>,
) -> Result<Vec<Result<R>>> {
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (rank, job) in jobs.enumerate() {
            let thread = std::thread::Builder::new().name(format!("tilework rank {rank}"));
            // Ranks that were started end when the channels of those that were not are dropped.
            threads.push(thread.spawn_scoped(scope, job).map_err(|e| err!(Io, "shard: rank {rank}: {e}"))?);
        }
        let joined = threads.into_iter().enumerate().map(|(rank, thread)| {
            thread.join().unwrap_or_else(|_| Err(err!(Callback, "shard: rank {rank} has panicked")))
        });
        Ok(joined.collect())
    })
}

/// All results, or the error that is the likeliest cause of the others.
pub(super) fn first_cause<R>(results: Vec<Result<R>>) -> Result<Vec<R>> {
    use crate::error::ErrorKind::{Io, Timeout};
    let consequence = |e: &crate::Error| match e.kind() {
        Io => 2,
        Timeout => 1,
        _ => 0,
    };
    let mut failed: Option<(usize, crate::Error)> = None;
    let mut done = Vec::new();
    for (rank, result) in results.into_iter().enumerate() {
        match result {
            Ok(value) => done.push(value),
            Err(e) if failed.as_ref().is_none_or(|(_, f)| consequence(&e) < consequence(f)) => {
                failed = Some((rank, e));
            }
            Err(_) => {}
        }
    }
    match failed {
        Some((rank, e)) => Err(e.context(&format!("rank {rank}"))),
        None => Ok(done),
    }
}

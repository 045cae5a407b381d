//! Ranks whose device slices travel by NCCL: the feature `nccl`. Linux only, as shared memory is.

mod library;
mod notes;
mod stream_cg;

use self::library::{Communicator, Library};
use self::notes::{CopyNote, NoteLinks};
pub(super) use self::stream_cg::{StreamMatrix, StreamWork};
use super::local::{Local, first_cause, in_threads};
use super::rank::Rank;
use super::schedule::{self, Step, TREE_BYTES};
use super::transport::{Combine, Exchange, Header, Transport};
use crate::cuda::{Bridge, CudaBuffer, CudaEvent, CudaGpu, CudaOptions, CudaStream};
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::prelude::*;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Slices of at most this many bytes travel through the host: handing over to CUDA and back takes longer, about 180 us
/// between two H200s.
const SHORT_BYTES: usize = 512 << 10;

fn by_length<'a, T: Element>(exchange: &Exchange<'a, T>) -> (Exchange<'a, T>, Exchange<'a, T>) {
    let is_short = |slice: &Slice<'_, T>| slice.len() * T::DTYPE.size() <= SHORT_BYTES;
    let (mut short, mut long) = (Exchange::default(), Exchange::default());
    for (to, slice) in &exchange.sends {
        let of = if is_short(slice) { &mut short } else { &mut long };
        of.sends.push((to.clone(), *slice));
    }
    for (from, slice) in &exchange.receives {
        let of = if is_short(slice) { &mut short } else { &mut long };
        of.receives.push((*from, *slice));
    }
    (short, long)
}

/// Memory that wgpu and CUDA share, kept for reuse: allocating it takes long.
struct SharedMemory {
    words: Buffer<u32>,
    cuda: CudaBuffer<u32>,
}

/// A rank of a group of threads whose device slices travel by NCCL, over NVLink where there is one. [`run_nccl`] makes
/// the group.
///
/// Messages between hosts, short slices, and the headers of all calls go through a [`Local`]: a call reaches NCCL only
/// when all ranks that take part have made it alike, so that a rank that is missing is found by its time-out. Device
/// slices must lie in memory of [`Rank::alloc`] or [`Rank::upload`].
pub struct Nccl {
    local: Local,
    communicator: Communicator,
    bridge: Bridge,
    shared: RefCell<Vec<SharedMemory>>,
    under_way: RefCell<HashMap<u64, ExchangeEnd>>,
    /// How devices reach each other's memory, if they do: copy engines then copy long slices, while kernels run.
    direct: Option<DirectLink>,
}

enum ExchangeEnd {
    /// A mark of the bridge's stream.
    Mark(Option<u64>),
    /// The last copy from this device.
    Copied(Arc<CudaEvent>),
}

/// Copies from device to device.
struct DirectLink {
    /// The driver's numbers of the devices of all ranks.
    devices: Vec<i32>,
    copies: CudaStream,
    /// From receivers: their memory is free.
    free: NoteLinks,
    /// From senders: the copy is done.
    done: NoteLinks,
}

impl std::fmt::Debug for Nccl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nccl(rank {} of {}, {:?})", self.rank(), self.size(), self.bridge)
    }
}

/// Runs `work` on each of these devices at once, as [`run`](super::run), with NCCL between them.
///
/// NCCL is the library `libnccl.so.2`, where the system's loader finds it, or the file or folder that the variable
/// `TILEWORK_NCCL` names. PyTorch's wheels have one, in `nvidia/nccl/lib`. The variable `NCCL_P2P_DIRECT_DISABLE` must
/// be 1: NCCL then copies between devices of one process as between processes, through memory that both reach.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): NCCL is not there, with the searched names and the remedy; the
///   variable is not set; a device that does not share memory with CUDA.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): two ranks on one device, which NCCL refuses.
/// - Those of [`run`](super::run) and of opening CUDA.
pub fn run_nccl<R: Send>(
    gpus: &[Gpu], timeout: Duration, work: impl Fn(&Rank<Nccl>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let work = &work;
    let ranks = Local::group(gpus.len(), timeout)?;
    let notes = || NoteLinks::group(gpus.len(), timeout);
    let links = ranks.into_iter().zip(notes()?.into_iter().zip(notes()?));
    let jobs = links.zip(gpus).map(|((local, notes), gpu)| {
        move || {
            local.prepare(gpu);
            work(&Rank::new(Nccl::new(local, notes, gpu)?, gpu))
        }
    });
    first_cause(in_threads(jobs)?)
}

impl Nccl {
    /// Joins the group of `local`. All ranks call it.
    fn new(local: Local, notes: (NoteLinks, NoteLinks), gpu: &Gpu) -> Result<Self> {
        // All ranks learn of a failure before any enters NCCL, which would wait for ever.
        let opened = Self::open(gpu);
        let local = {
            let rank = Rank::new(local, gpu);
            let failed: Vec<u8> = opened.as_ref().err().map(ToString::to_string).unwrap_or_default().into_bytes();
            let (texts, begins) = rank.all_gather(&failed)?;
            let first = begins.windows(2).position(|w| w[0] < w[1]);
            if let Some(other) = first {
                let text = String::from_utf8_lossy(&texts[begins[other]..begins[other + 1]]).into_owned();
                let kind = opened.as_ref().err().map_or(ErrorKind::Unsupported, Error::kind);
                return Err(Error::new(kind, format!("nccl: rank {other}: {text}")));
            }
            let bus = match &opened {
                Ok((_, cuda, _)) => cuda.profile().pci_bus_id.clone().into_bytes(),
                Err(_) => Vec::new(),
            };
            let (all, begins) = rank.all_gather(&bus)?;
            let of = |i: usize| &all[begins[i]..begins[i + 1]];
            let pairs = (0..rank.size()).flat_map(|i| (0..i).map(move |j| (j, i)));
            if let Some((a, b)) = pairs.into_iter().find(|&(a, b)| of(a) == of(b)) {
                return Err(err!(
                    InvalidArgument,
                    "nccl: ranks {a} and {b} are both on the device {}; NCCL takes one rank on each device, the link \
                     `Local` any number",
                    String::from_utf8_lossy(of(a))
                ));
            }
            rank.into_transport()
        };
        let (library, cuda, bridge) = opened?;
        let mut id = if local.rank() == 0 { library.unique_id()?.to_vec() } else { vec![0; library::ID_BYTES] };
        let rank = Rank::new(local, gpu);
        rank.broadcast(0, &mut id)?;
        let devices = rank.gather_equal(&[cuda.device()])?;
        // Memory is of one kind on all ranks.
        let reached = devices.len() > 1 && bridge.alloc_for::<u32>(1, &devices).is_ok();
        let direct = rank.gather_equal(&[u8::from(reached)])?.iter().all(|reached| *reached == 1);
        let local = rank.into_transport();
        let communicator = Communicator::new(library, &cuda, &id, local.rank(), local.size())?;
        let copies = cuda.stream()?;
        let (free, done) = notes;
        let direct = direct.then_some(DirectLink { devices, copies, free, done });
        let (shared, under_way) = (RefCell::default(), RefCell::default());
        Ok(Self { local, communicator, bridge, shared, under_way, direct })
    }

    fn open(gpu: &Gpu) -> Result<(Library, CudaGpu, Bridge)> {
        let library = Library::find()?;
        let cuda = CudaGpu::beside(gpu, CudaOptions::default())?;
        let bridge = Bridge::new(gpu, &cuda.stream()?)?;
        Ok((library, cuda, bridge))
    }

    /// Returns NCCL's version, as 22304 for 2.23.4.
    pub fn version(&self) -> i32 {
        self.communicator.version()
    }

    /// Returns how wgpu and CUDA wait for each other.
    pub fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    fn address<T: Element>(&self, slice: &Slice<'_, T>) -> Result<u64> {
        let shared = self.shared.borrow();
        let found = shared.iter().find_map(|s| Some(s.cuda.address() + slice.offset_in(&s.words)?));
        found.ok_or_else(|| {
            err!(
                Buffer,
                "nccl: {slice:?} of {} lies in memory that NCCL does not reach; allocate it by Rank::alloc or \
                 Rank::upload",
                T::DTYPE
            )
        })
    }

    /// Checks that all ranks make this call alike.
    fn meet(&self, header: &Header) -> Result<()> {
        for step in schedule::barrier(self.rank(), self.size()) {
            match step {
                Step::Send { to, .. } => self.local.send(to, header, &[])?,
                Step::Receive { from, .. } => self.expect(from, header)?,
            }
        }
        Ok(())
    }

    /// Takes a header without its elements from a rank, and compares it.
    fn expect(&self, from: usize, header: &Header) -> Result<()> {
        self.local.receive(from, &mut |arrived, bytes| {
            let arrived_bytes = if bytes.is_empty() { header.bytes() } else { bytes.len() };
            header.check(self.rank(), from, arrived, arrived_bytes)
        })
    }

    /// A buffer of shared memory that nobody uses, or a new one.
    fn shared_words(&self, gpu: &Gpu, words: usize) -> Result<Buffer<u32>> {
        // The list and the CUDA buffer own it.
        const AT_REST: usize = 2;
        let fits = |s: &SharedMemory| (words..=words + words / 2 + 64).contains(&s.words.len());
        let mut shared = self.shared.borrow_mut();
        let free = shared.iter().filter(|s| s.words.owners() == AT_REST && fits(s)).min_by_key(|s| s.words.len());
        if let Some(free) = free {
            return Ok(free.words.clone());
        }
        let new = match self.new_memory(gpu, words) {
            Err(e) if e.kind() == ErrorKind::OutOfMemory => {
                shared.retain(|s| s.words.owners() != AT_REST);
                gpu.trim_memory();
                self.new_memory(gpu, words)?
            }
            other => other?,
        };
        let words = new.words.clone();
        shared.push(new);
        Ok(words)
    }

    fn new_memory(&self, gpu: &Gpu, words: usize) -> Result<SharedMemory> {
        if let Some(direct) = &self.direct {
            let (words, cuda) = self.bridge.alloc_for::<u32>(words, &direct.devices)?;
            return Ok(SharedMemory { words, cuda });
        }
        let words = gpu.alloc_shared::<u32>(words)?;
        Ok(SharedMemory { cuda: self.bridge.open(&words)?, words })
    }

    /// Starts to copy long slices to the memory of other devices.
    fn begin_direct<T: Element>(&self, direct: &DirectLink, header: &Header, long: &Exchange<'_, T>) -> Result<()> {
        let of = |slice: &Slice<'_, T>| Header { elements: slice.len(), ..*header };
        if long.sends.is_empty() && long.receives.is_empty() {
            return Ok(());
        }
        self.bridge.to_cuda()?;
        let before = Arc::new(self.bridge.stream().record()?);
        for (from, slice) in &long.receives {
            let (address, event) = (self.address(slice)?, before.clone());
            direct.free.send(*from, CopyNote { header: of(slice), address, event })?;
        }
        direct.copies.wait_for(&before)?;
        let mut last = before;
        for (to, slice) in &long.sends {
            let (from, header) = (self.address(slice)?, of(slice));
            for &to in to {
                let free = direct.free.take(to, &header)?;
                header.check(self.rank(), to, &free.header, header.bytes())?;
                direct.copies.wait_for_peer(&free.event)?;
                // SAFETY: both slices have that many bytes, as the headers say, and both ranks keep them until their
                // exchanges have ended.
                unsafe { direct.copies.push(from, free.address, header.bytes()) }?;
                last = Arc::new(direct.copies.record()?);
                direct.done.send(to, CopyNote { header, address: 0, event: last.clone() })?;
            }
        }
        self.under_way.borrow_mut().insert(header.number, ExchangeEnd::Copied(last));
        Ok(())
    }

    /// Ends what `begin_direct` has begun. The host waits, not wgpu's queue, which learns of the end later: the guide
    /// `shards` has figures.
    fn finish_direct<T: Element>(
        &self, direct: &DirectLink, header: &Header, long: &Exchange<'_, T>, last: &CudaEvent,
    ) -> Result<()> {
        for (from, slice) in &long.receives {
            let expected = Header { elements: slice.len(), ..*header };
            let done = direct.done.take(*from, &expected)?;
            expected.check(self.rank(), *from, &done.header, expected.bytes())?;
            self.wait_until_done(&done.event)?;
        }
        self.wait_until_done(last)
    }

    fn wait_until_done(&self, event: &CudaEvent) -> Result<()> {
        let (begin, limit) = (Instant::now(), self.timeout());
        while !event.is_done()? {
            if begin.elapsed() > limit {
                return Err(err!(
                    Timeout,
                    "nccl: rank {} waited {limit:?} for another device; another rank is late or has failed",
                    self.rank()
                ));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // The group may end once its work is done.
        if let Some(direct) = &self.direct {
            let _ = direct.copies.wait();
        }
        let _ = self.bridge.stream().wait();
    }
}

impl Transport for Nccl {
    fn name(&self) -> &'static str {
        "nccl"
    }

    fn rank(&self) -> usize {
        self.local.rank()
    }

    fn size(&self) -> usize {
        self.local.size()
    }

    fn timeout(&self) -> Duration {
        self.local.timeout()
    }

    fn send(&self, to: usize, header: &Header, bytes: &[u8]) -> Result<()> {
        self.local.send(to, header, bytes)
    }

    fn receive(&self, from: usize, take: &mut dyn FnMut(&Header, &[u8]) -> Result<()>) -> Result<()> {
        self.local.receive(from, take)
    }

    fn alloc<T: Element>(&self, gpu: &Gpu, n: usize) -> Result<Buffer<T>> {
        let words = n.saturating_mul(T::DTYPE.size()).div_ceil(4).max(1);
        self.shared_words(gpu, words)?.front_as(n)
    }

    fn nccl(&self) -> Option<&Self> {
        Some(self)
    }

    fn wait(&self, gpu: &Gpu) -> Result<()> {
        // wgpu waits for the stream only in its next submission.
        if let Some(direct) = &self.direct {
            direct.copies.wait()?;
        }
        self.bridge.stream().wait()?;
        gpu.wait()
    }

    fn begin<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        let (short, long) = by_length(exchange);
        if let Some(direct) = &self.direct {
            self.local.begin(header, &short)?;
            return self.begin_direct(direct, header, &long);
        }
        // Headers of long slices come before short ones from the same rank.
        for (to, slice) in &long.sends {
            for &to in to {
                self.local.send(to, &Header { elements: slice.len(), ..*header }, &[])?;
            }
        }
        self.local.begin(header, &short)?;
        for (from, slice) in &long.receives {
            self.expect(*from, &Header { elements: slice.len(), ..*header })?;
        }
        let addressed = |slice: &Slice<'_, T>| Ok((self.address(slice)?, slice.len() * T::DTYPE.size()));
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (to, slice) in &long.sends {
            let (address, bytes) = addressed(slice)?;
            sends.extend(to.iter().map(|&to| (to, address, bytes)));
        }
        for (from, slice) in &long.receives {
            let (address, bytes) = addressed(slice)?;
            receives.push((*from, address, bytes));
        }
        if sends.is_empty() && receives.is_empty() {
            return Ok(());
        }
        self.bridge.to_cuda()?;
        self.communicator.exchange(self.bridge.stream(), &sends, &receives)?;
        self.under_way.borrow_mut().insert(header.number, ExchangeEnd::Mark(self.bridge.mark()?));
        Ok(())
    }

    fn finish<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        let (short, long) = by_length(exchange);
        self.local.finish(header, &short)?;
        let end = self.under_way.borrow_mut().remove(&header.number);
        match (end, &self.direct) {
            (Some(ExchangeEnd::Mark(mark)), _) => self.bridge.wait_for(mark),
            (Some(ExchangeEnd::Copied(last)), Some(direct)) => self.finish_direct(direct, header, &long, &last),
            _ => Ok(()),
        }
    }

    fn begin_all_reduce<T: Element>(&self, header: &Header, slice: &Slice<'_, T>, how: Combine) -> Result<bool> {
        if T::DTYPE == DType::Bf16 {
            return Err(err!(Unsupported, "nccl: no buffer of wgpu holds bf16"));
        }
        // All ranks have the same length, or the headers of the way through the host show that they do not.
        if slice.len() * T::DTYPE.size() <= TREE_BYTES {
            return Ok(false);
        }
        self.meet(&Header { elements: slice.len(), ..*header })?;
        let address = self.address(slice)?;
        self.bridge.to_cuda()?;
        self.communicator.all_reduce(self.bridge.stream(), address, slice.len(), T::DTYPE, how)?;
        self.under_way.borrow_mut().insert(header.number, ExchangeEnd::Mark(self.bridge.mark()?));
        Ok(true)
    }

    fn finish_all_reduce(&self, header: &Header) -> Result<()> {
        match self.under_way.borrow_mut().remove(&header.number) {
            Some(ExchangeEnd::Mark(mark)) => self.bridge.wait_for(mark),
            _ => Ok(()),
        }
    }
}

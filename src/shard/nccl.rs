//! Ranks whose device slices travel by NCCL: the feature `nccl`. Linux only, as shared memory is.

mod library;

use self::library::{Communicator, Library};
use super::local::{Local, first_cause, in_threads};
use super::rank::Rank;
use super::schedule::{self, Step, TREE_BYTES};
use super::transport::{Combine, Exchange, Header, Transport};
use crate::cuda::{Bridge, CudaBuffer, CudaGpu, CudaOptions};
use crate::element::{DType, Element};
use crate::error::{Error, ErrorKind, Result, err};
use crate::gpu::{Buffer, Gpu, Slice};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// Slices of at most this many bytes travel through the host: handing over to CUDA and back takes longer, about 180 us
/// between two H200s.
const SHORT_BYTES: usize = 512 << 10;

/// The slices of an exchange that are short, and the others.
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
    /// For each exchange under way, its number and the mark of the stream at its end.
    under_way: RefCell<HashMap<u64, Option<u64>>>,
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
/// - [`Unsupported`](crate::ErrorKind::Unsupported): NCCL is not there, with the searched names and the remedy; the
///   variable is not set; a device that does not share memory with CUDA.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): two ranks on one device, which NCCL refuses.
/// - Those of [`run`](super::run) and of opening CUDA.
pub fn run_nccl<R: Send>(
    gpus: &[Gpu],
    timeout: Duration,
    work: impl Fn(&Rank<Nccl>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let work = &work;
    let ranks = Local::group(gpus.len(), timeout)?;
    let jobs = ranks.into_iter().zip(gpus).map(|(local, gpu)| {
        move || {
            local.prepare(gpu);
            work(&Rank::new(Nccl::new(local, gpu)?, gpu))
        }
    });
    first_cause(in_threads(jobs)?)
}

impl Nccl {
    /// Joins the group of `local`. All ranks call it.
    fn new(local: Local, gpu: &Gpu) -> Result<Self> {
        // All ranks learn of a failure before any enters NCCL, which would wait for ever.
        let opened = Self::open(gpu);
        let local = {
            let rank = Rank::new(local, gpu);
            let failed: Vec<u8> =
                opened.as_ref().err().map(ToString::to_string).unwrap_or_default().into_bytes();
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
        let mut id =
            if local.rank() == 0 { library.unique_id()?.to_vec() } else { vec![0; library::ID_BYTES] };
        let rank = Rank::new(local, gpu);
        rank.broadcast(0, &mut id)?;
        let local = rank.into_transport();
        let communicator = Communicator::new(library, &cuda, &id, local.rank(), local.size())?;
        Ok(Self { local, communicator, bridge, shared: RefCell::default(), under_way: RefCell::default() })
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

    /// The CUDA address of a slice.
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
        let free =
            shared.iter().filter(|s| s.words.owners() == AT_REST && fits(s)).min_by_key(|s| s.words.len());
        if let Some(free) = free {
            return Ok(free.words.clone());
        }
        let new = match gpu.alloc_shared::<u32>(words) {
            Err(e) if e.kind() == ErrorKind::OutOfMemory => {
                shared.retain(|s| s.words.owners() != AT_REST);
                gpu.alloc_shared::<u32>(words)?
            }
            other => other?,
        };
        shared.push(SharedMemory { cuda: self.bridge.open(&new)?, words: new.clone() });
        Ok(new)
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // The group may end once its work is done.
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

    fn wait(&self, gpu: &Gpu) -> Result<()> {
        // wgpu waits for the stream only in its next submission.
        self.bridge.stream().wait()?;
        gpu.wait()
    }

    fn begin<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        let (short, long) = by_length(exchange);
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
        self.under_way.borrow_mut().insert(header.number, self.bridge.mark()?);
        Ok(())
    }

    fn finish<T: Element>(&self, header: &Header, exchange: &Exchange<'_, T>) -> Result<()> {
        let (short, _) = by_length(exchange);
        self.local.finish(header, &short)?;
        let mark = self.under_way.borrow_mut().remove(&header.number);
        mark.map_or(Ok(()), |mark| self.bridge.wait_for(mark))
    }

    fn all_reduce<T: Element>(&self, header: &Header, slice: &Slice<'_, T>, how: Combine) -> Result<bool> {
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
        self.bridge.to_wgpu()?;
        Ok(true)
    }
}

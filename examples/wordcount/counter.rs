//! Counts words on a device, piece by piece.

use super::common::chunks::read_ahead;
use super::common::{Failure, workgroups};
use super::words::Counts;
use tilework::gpu::OwnKernel;
use tilework::prelude::*;

/// Threads per workgroup.
const WORKGROUP_SIZE: usize = 256;
/// Bytes per group of `mark` and `list`.
const GROUP: usize = 32;
/// Minimum zeros after the text.
const MARGIN: usize = 4;
/// Bits of the hashes that words are sorted by. Different words that agree in these may interleave, which makes more
/// runs but no wrong count.
const SORTED_BITS: u32 = 24;

/// Counts words on a device.
///
/// Two kernels find where words begin, `Scan` counts them, and a third lists them. Each word is hashed, `RadixSort`
/// groups equal hashes, and each word is compared with the previous one byte by byte, so that runs of equal words are
/// exact. `Scan` numbers the runs, `ReduceByKey` counts the words of each run, and `Select` keeps one position of each;
/// the host looks up the words there and adds the pieces.
#[derive(Debug)]
pub(crate) struct Counter {
    gpu: Gpu,
    chunk: usize,
    fold: OwnKernel,
    mark: OwnKernel,
    list: OwnKernel,
    hash: OwnKernel,
    compare: OwnKernel,
    text: Buffer<u8>,
    folded: Buffer<u32>,
    masks: Buffer<u32>,
    counts: Buffer<u32>,
    ends: Buffer<u32>,
}

/// The runs of a submitted piece.
struct Runs {
    capacity: usize,
    number: Buffer<u32>,
    counts: Buffer<u32>,
    places: Buffer<u32>,
}

/// The words of a piece: positions and counts. A word may occur in several.
#[derive(Default)]
struct Found {
    piece: Vec<u8>,
    places: Vec<u32>,
    counts: Vec<u32>,
}

impl Found {
    /// Adds the words to `counts`, and returns the piece's buffer.
    fn add_to(self, counts: &mut Counts) -> Vec<u8> {
        for (place, count) in self.places.iter().zip(&self.counts) {
            counts.add(&self.piece[*place as usize..], u64::from(*count));
        }
        self.piece
    }
}

/// Returns the size of whole groups for `bytes` bytes and the margin.
fn padded(bytes: usize) -> usize {
    (bytes + MARGIN).next_multiple_of(GROUP)
}

impl Counter {
    /// Makes a counter for pieces of at most `chunk` bytes, or what the device can bind.
    pub(crate) fn new(gpu: &Gpu, chunk: u64) -> tilework::Result<Self> {
        let limits = &gpu.profile().limits;
        // Every second byte may begin a word, and each position takes four bytes.
        let most = limits.max_storage_binding.min(limits.max_buffer_size) / 2 - GROUP as u64;
        let chunk = chunk.clamp(1, most.min(u64::from(u32::MAX) / 2)) as usize;
        let kernel = |entry| gpu.kernel("words.wgsl", include_str!("words.wgsl"), entry);
        let groups = padded(chunk) / GROUP;
        Ok(Self {
            gpu: gpu.clone(),
            chunk,
            fold: kernel("fold")?,
            mark: kernel("mark")?,
            list: kernel("list")?,
            hash: kernel("hash")?,
            compare: kernel("compare")?,
            text: gpu.alloc(padded(chunk))?,
            folded: gpu.alloc(padded(chunk) / 4)?,
            masks: gpu.alloc(groups)?,
            counts: gpu.alloc(groups)?,
            ends: gpu.alloc(groups)?,
        })
    }

    /// Returns the adapter's name.
    pub(crate) fn adapter(&self) -> &str {
        &self.gpu.profile().name
    }

    /// Returns the maximum bytes of a piece.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Counts the words of the chunks that `next` returns. Calls `done` with the bytes of each chunk.
    pub(crate) fn count(
        &self, next: impl FnMut(&mut Vec<u8>) -> Result<bool, Failure> + Send, mut done: impl FnMut(u64),
    ) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        let mut last = Found::default();
        read_ahead(next, |piece| {
            let bytes = piece.len();
            if bytes > self.chunk {
                // It begins with an overlong word.
                counts.add_all(&piece);
                done(bytes as u64);
                return Ok(Some(piece));
            }
            let runs = self.submit(&piece)?;
            // The device is busy: process its previous results.
            let free = std::mem::take(&mut last).add_to(&mut counts);
            let (places, occurrences) = runs.map_or(Ok(Default::default()), Runs::read)?;
            last = Found { piece, places, counts: occurrences };
            done(bytes as u64);
            Ok(Some(free))
        })?;
        last.add_to(&mut counts);
        Ok(counts)
    }

    /// Starts counting a piece; returns `None` if it has no words.
    fn submit(&self, piece: &[u8]) -> tilework::Result<Option<Runs>> {
        let gpu = &self.gpu;
        let bytes = padded(piece.len());
        let groups = bytes / GROUP;
        self.upload(piece)?;
        let (text, folded) = (self.text.slice(..bytes)?, self.folded.slice(..bytes / 4)?);
        let masks = self.masks.slice(..groups)?;
        let (counts, ends) = (self.counts.slice(..groups)?, self.ends.slice(..groups)?);
        let sum = Scan::new(Sum, groups).plan::<u32>(gpu)?;
        let mut rec = gpu.recorder();
        launch(&self.fold, &mut rec, bytes / 4, &[Arg::from(text), Arg::from(folded)])?;
        let args = [Arg::from(folded), Arg::from(masks), Arg::from(counts)];
        launch(&self.mark, &mut rec, groups, &args)?;
        sum.record(&mut rec, counts, ends)?;
        rec.submit()?;

        let n = ends.slice(groups - 1..)?.read()?.first().map_or(0, |n| *n as usize);
        if n == 0 {
            return Ok(None);
        }
        let word = || gpu.alloc::<u32>(n);
        let (starts, hashes, heads, ones) = (word()?, word()?, word()?, word()?);
        let (sorted_starts, sorted_hashes) = (word()?, word()?);
        let runs = Runs { capacity: n, number: gpu.alloc(1)?, counts: word()?, places: word()? };
        let sort = RadixSort::new(n).bits(0..SORTED_BITS).with_values().plan::<u32>(gpu)?;
        let number = Scan::new(Sum, n).plan::<u32>(gpu)?;
        let add = ReduceByKey::new(Sum, n).plan::<u32>(gpu)?;
        let select = Select::new(n).plan::<u32>(gpu)?;
        let mut rec = gpu.recorder();
        let args = [Arg::from(masks), Arg::from(ends), Arg::from(&starts)];
        launch(&self.list, &mut rec, groups, &args)?;
        let args = [Arg::from(folded), Arg::from(&starts), Arg::from(&hashes)];
        launch(&self.hash, &mut rec, n, &args)?;
        sort.with_values(&starts, &sorted_starts).record(&mut rec, &hashes, &sorted_hashes)?;
        let sorted = [Arg::from(&sorted_starts), Arg::from(&sorted_hashes)];
        let args = [&[Arg::from(folded)], &sorted[..], &[Arg::from(&heads), Arg::from(&ones)]].concat();
        launch(&self.compare, &mut rec, n, &args)?;
        // The hashes are no longer needed: reuse their buffer for the runs' numbers.
        number.record(&mut rec, &heads, &hashes)?;
        add.record(&mut rec, &hashes, &ones, &starts, &runs.counts, &runs.number)?;
        select.record(&mut rec, &sorted_starts, &heads, &runs.places, &runs.number)?;
        rec.submit()?;
        Ok(Some(runs))
    }

    /// Uploads a piece, padded with zeros to whole groups.
    fn upload(&self, piece: &[u8]) -> tilework::Result<()> {
        let whole = piece.len() / 4 * 4;
        self.text.slice(..whole)?.write(&piece[..whole])?;
        let mut tail = piece[whole..].to_vec();
        tail.resize(padded(piece.len()) - whole, 0);
        self.text.slice(whole..padded(piece.len()))?.write(&tail)
    }
}

impl Runs {
    /// Waits for the positions and counts of words.
    fn read(self) -> tilework::Result<(Vec<u32>, Vec<u32>)> {
        let n = self.number.read()?.first().map_or(0, |n| *n as usize).min(self.capacity);
        Ok((self.places.slice(..n)?.read()?, self.counts.slice(..n)?.read()?))
    }
}

/// Records a kernel of `n` threads with the parameter `n`.
fn launch(kernel: &OwnKernel, rec: &mut Recorder, n: usize, args: &[Arg<'_>]) -> tilework::Result<()> {
    let params = n as u32;
    let args = [&[Arg::uniform(&params)], args].concat();
    kernel.record(rec, &args, workgroups(n, WORKGROUP_SIZE))
}

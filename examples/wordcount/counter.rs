//! Counts words on a device, a piece of the text at a time.

use super::common::chunks::read_ahead;
use super::common::{Failure, workgroups};
use super::words::Counts;
use tilework::gpu::OwnKernel;
use tilework::prelude::*;

/// Threads of a workgroup of the kernels.
const WORKGROUP_SIZE: usize = 256;
/// Bytes of a group of `mark` and `list`.
const GROUP: usize = 32;
/// Zeros behind the text, at the least.
const MARGIN: usize = 4;
/// Bits of the hashes that words are sorted by: two words that agree in these, and lie among each other therefore, make
/// more runs and no wrong count.
const SORTED_BITS: u32 = 24;

/// Counts words on a device.
///
/// Two kernels find where words begin, `Scan` says how many there are, and a third lists them. Each word is hashed,
/// `RadixSort` brings equal hashes together, and each word is compared with the one before it, byte by byte: runs
/// of equal words are exact, whatever the hashes. `Scan` numbers the runs, `ReduceByKey` adds up a one for each word
/// of a run, `Select` keeps a place of each; the host looks there for the word and adds the pieces up.
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

/// The runs of a piece that the device is at.
struct Runs {
    capacity: usize,
    number: Buffer<u32>,
    counts: Buffer<u32>,
    places: Buffer<u32>,
}

/// The words of a piece: places in it and how often each occurs. A word may occur in several.
#[derive(Default)]
struct Found {
    piece: Vec<u8>,
    places: Vec<u32>,
    counts: Vec<u32>,
}

impl Found {
    /// Adds the words up, and gives the buffer of the piece back.
    fn add_to(self, counts: &mut Counts) -> Vec<u8> {
        for (place, count) in self.places.iter().zip(&self.counts) {
            counts.add(&self.piece[*place as usize..], u64::from(*count));
        }
        self.piece
    }
}

/// Whole groups that hold `bytes` bytes and the margin.
fn padded(bytes: usize) -> usize {
    (bytes + MARGIN).next_multiple_of(GROUP)
}

impl Counter {
    /// For pieces of at most `chunk` bytes, and no more than the device can bind the words of.
    pub(crate) fn new(gpu: &Gpu, chunk: u64) -> tilework::Result<Self> {
        let limits = &gpu.profile().limits;
        // Every second byte may begin a word, whose place has four bytes.
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

    /// Name of the adapter.
    pub(crate) fn adapter(&self) -> &str {
        &self.gpu.profile().name
    }

    /// Bytes of the largest piece for the device.
    pub(crate) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Counts the words of the chunks that `next` returns. `done` gets the bytes of each chunk.
    pub(crate) fn count(
        &self,
        next: impl FnMut(&mut Vec<u8>) -> Result<bool, Failure> + Send,
        mut done: impl FnMut(u64),
    ) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        let mut last = Found::default();
        read_ahead(next, |piece| {
            let bytes = piece.len();
            if bytes > self.chunk {
                // It begins with a word as long as that.
                counts.add_all(&piece);
                done(bytes as u64);
                return Ok(Some(piece));
            }
            let runs = self.submit(&piece)?;
            // The device is busy now: time to see to what it found before.
            let free = std::mem::take(&mut last).add_to(&mut counts);
            let (places, occurrences) = runs.map_or(Ok(Default::default()), Runs::read)?;
            last = Found { piece, places, counts: occurrences };
            done(bytes as u64);
            Ok(Some(free))
        })?;
        last.add_to(&mut counts);
        Ok(counts)
    }

    /// Starts the search for words in a piece; nothing if it has none.
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
        // What was sorted is free again: it takes the numbers of the runs.
        number.record(&mut rec, &heads, &hashes)?;
        add.record(&mut rec, &hashes, &ones, &starts, &runs.counts, &runs.number)?;
        select.record(&mut rec, &sorted_starts, &heads, &runs.places, &runs.number)?;
        rec.submit()?;
        Ok(Some(runs))
    }

    /// Copies a piece to the device, with zeros behind it up to whole groups.
    fn upload(&self, piece: &[u8]) -> tilework::Result<()> {
        let whole = piece.len() / 4 * 4;
        self.text.slice(..whole)?.write(&piece[..whole])?;
        let mut tail = piece[whole..].to_vec();
        tail.resize(padded(piece.len()) - whole, 0);
        self.text.slice(whole..padded(piece.len()))?.write(&tail)
    }
}

impl Runs {
    /// Waits for the device: places of words, and how often they occur.
    fn read(self) -> tilework::Result<(Vec<u32>, Vec<u32>)> {
        let n = self.number.read()?.first().map_or(0, |n| *n as usize).min(self.capacity);
        Ok((self.places.slice(..n)?.read()?, self.counts.slice(..n)?.read()?))
    }
}

/// Records a kernel of `n` invocations: its parameter is their number.
fn launch(kernel: &OwnKernel, rec: &mut Recorder, n: usize, args: &[Arg<'_>]) -> tilework::Result<()> {
    let params = n as u32;
    let args = [&[Arg::uniform(&params)], args].concat();
    kernel.record(rec, &args, workgroups(n, WORKGROUP_SIZE))
}

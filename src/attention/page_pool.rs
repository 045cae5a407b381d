use super::kv_storage::Paging;
use crate::error::{Result, err, filled};
use std::collections::{BTreeMap, BTreeSet};

/// Gives the pages of a cache to sequences that grow, share pages and end.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::attention::{Attention, KvAppend, PagePool, Paging};
/// use tilework::prelude::*;
///
/// // One kv head of size 8; four pages of 16 tokens.
/// let (gpu, paging) = (Gpu::new()?, Paging { tokens: 16, pages: 4 });
/// let (k, v) = (gpu.alloc_zeroed::<f32>(4 * 16 * 8)?, gpu.alloc_zeroed::<f32>(4 * 16 * 8)?);
/// let mut pool = PagePool::new(paging)?;
/// let text = pool.insert();
///
/// // A token: make room, append its key and value, attend.
/// let [_, before] = pool.upload(&gpu, &[text], 32)?;
/// pool.append(text, 1)?;
/// let [table, lengths] = pool.upload(&gpu, &[text], 32)?;
/// let (q, new_v) = (gpu.upload(&[1.0f32; 8])?, gpu.upload(&[2.0f32; 8])?);
/// let output = gpu.alloc::<f32>(8)?;
/// let append = KvAppend::new([1, 1, 1, 8], 32).paged(paging).plan::<f32>(&gpu)?;
/// let attend = Attention::new([1, 1, 1, 8], [1, 32]).paged(paging).lengths().plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// append.with_table(&table).record(&mut rec, &q, &new_v, &before, &k, &v)?;
/// attend.with_table(&table).with_lengths(&lengths).record(&mut rec, &q, &k, &v, &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [2.0; 8]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Rules
/// A page belongs to one sequence, or to several after [`fork`](Self::fork). A sequence gets the free page of the
/// lowest number when its last one is full. Calls that copy pages on the device return the [`PageMoves`]; record them
/// for `k`, for `v` and for scales before the next use of the cache.
///
/// # Errors
/// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory): no page is left. Nothing has changed then: free a sequence and
///   call again.
/// - [`InvalidArgument`](crate::ErrorKind::InvalidArgument): a sequence that the pool does not have; pages of fewer
///   than 16 or more than 256 tokens.
/// - [`TooLarge`](crate::ErrorKind::TooLarge): 2^32 pages or tokens of a sequence, or more.
#[derive(Debug, Clone)]
pub struct PagePool {
    paging: Paging,
    free: BTreeSet<u32>,
    owners: Vec<u32>,
    sequences: BTreeMap<u64, PagedSequence>,
    next: u64,
}

/// A sequence of a [`PagePool`]. Its number is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(u64);

#[derive(Debug, Clone, Default)]
struct PagedSequence {
    pages: Vec<u32>,
    tokens: usize,
}

impl PagePool {
    /// Makes a pool of free pages.
    pub fn new(paging: Paging) -> Result<Self> {
        paging.check("page pool")?;
        let pages = u32::try_from(paging.pages)
            .map_err(|_| err!(TooLarge, "page pool: {} pages; tables number fewer than 2^32", paging.pages))?;
        Ok(Self {
            paging,
            free: (0..pages).collect(),
            owners: filled("page pool", paging.pages, 0)?,
            sequences: BTreeMap::new(),
            next: 0,
        })
    }

    /// Returns the layout of the cache.
    pub fn paging(&self) -> Paging {
        self.paging
    }

    /// Returns the number of free pages.
    pub fn free_pages(&self) -> usize {
        self.free.len()
    }

    /// Lists the sequences, oldest first.
    pub fn sequences(&self) -> impl Iterator<Item = SequenceId> + '_ {
        self.sequences.keys().map(|id| SequenceId(*id))
    }

    /// Adds a sequence without tokens.
    pub fn insert(&mut self) -> SequenceId {
        self.keep(PagedSequence::default())
    }

    /// Adds a sequence with the tokens of another, in the same pages.
    pub fn fork(&mut self, of: SequenceId) -> Result<SequenceId> {
        let copy = self.get(of)?.clone();
        for &page in &copy.pages {
            self.owners[page as usize] += 1;
        }
        Ok(self.keep(copy))
    }

    /// Makes room for `tokens` more tokens. If they begin in a page that another sequence has, too, the sequence gets
    /// a page of its own, and the result copies the old one there.
    pub fn append(&mut self, id: SequenceId, tokens: usize) -> Result<PageMoves> {
        let sequence = self.get(id)?;
        let end = sequence.tokens.checked_add(tokens).filter(|end| u32::try_from(*end).is_ok());
        let end = end.ok_or_else(|| {
            let before = sequence.tokens;
            err!(TooLarge, "page pool: {tokens} tokens after {before}; a sequence has fewer than 2^32")
        })?;
        let partial = !sequence.tokens.is_multiple_of(self.paging.tokens);
        let last = sequence.pages.last().copied().filter(|_| partial && tokens > 0);
        let shared = last.filter(|&page| self.owners[page as usize] > 1);
        let more = end.div_ceil(self.paging.tokens) - sequence.pages.len();
        let wanted = more + usize::from(shared.is_some());
        if wanted > self.free.len() {
            return Err(err!(
                OutOfMemory,
                "page pool: {tokens} tokens need {wanted} pages, {} of {} are free; free a sequence first",
                self.free.len(),
                self.paging.pages
            ));
        }
        let mut fresh = (0..wanted).filter_map(|_| self.free.pop_first()).collect::<Vec<_>>().into_iter();
        for &page in fresh.as_slice() {
            self.owners[page as usize] = 1;
        }
        let mut moves = Vec::new();
        let own = shared.and_then(|page| fresh.next().map(|own| [page, own]));
        if let Some([page, own]) = own {
            self.owners[page as usize] -= 1;
            moves.push([page, own]);
        }
        if let Some(sequence) = self.sequences.get_mut(&id.0) {
            if let (Some([_, own]), Some(last)) = (own, sequence.pages.last_mut()) {
                *last = own;
            }
            sequence.pages.extend(fresh);
            sequence.tokens = end;
        }
        Ok(PageMoves { moves, pages: self.paging.pages })
    }

    /// Keeps the first `tokens` tokens of a sequence and frees pages that hold none of them. Has no effect on a shorter
    /// sequence.
    pub fn truncate(&mut self, id: SequenceId, tokens: usize) -> Result<()> {
        self.get(id)?;
        let Some(sequence) = self.sequences.get_mut(&id.0) else { return Ok(()) };
        sequence.tokens = sequence.tokens.min(tokens);
        let keep = sequence.tokens.div_ceil(self.paging.tokens);
        let ended = sequence.pages.split_off(keep);
        self.release(&ended);
        Ok(())
    }

    /// Ends a sequence and frees the pages that no other has.
    pub fn free(&mut self, id: SequenceId) -> Result<()> {
        self.get(id)?;
        let ended = self.sequences.remove(&id.0).unwrap_or_default();
        self.release(&ended.pages);
        Ok(())
    }

    /// Renumbers pages so that the used ones come first; the result moves them there. Tables uploaded before are no
    /// longer valid.
    pub fn defragment(&mut self) -> PageMoves {
        let used = (self.paging.pages - self.free.len()) as u32;
        let from = (used..self.owners.len() as u32).filter(|page| !self.free.contains(page));
        let moves: Vec<[u32; 2]> = from.zip(self.free.iter().copied()).map(|(from, to)| [from, to]).collect();
        let places: BTreeMap<u32, u32> = moves.iter().map(|[from, to]| (*from, *to)).collect();
        for page in self.sequences.values_mut().flat_map(|sequence| &mut sequence.pages) {
            *page = places.get(page).copied().unwrap_or(*page);
        }
        for &[from, to] in &moves {
            self.owners.swap(from as usize, to as usize);
        }
        self.free = (used..self.owners.len() as u32).collect();
        PageMoves { moves, pages: self.paging.pages }
    }

    /// Returns the number of tokens of a sequence.
    pub fn tokens(&self, id: SequenceId) -> Result<usize> {
        Ok(self.get(id)?.tokens)
    }

    /// Lists the pages of a sequence in the order of its tokens.
    pub fn pages(&self, id: SequenceId) -> Result<&[u32]> {
        Ok(&self.get(id)?.pages)
    }

    fn keep(&mut self, sequence: PagedSequence) -> SequenceId {
        self.sequences.insert(self.next, sequence);
        self.next += 1;
        SequenceId(self.next - 1)
    }

    fn get(&self, id: SequenceId) -> Result<&PagedSequence> {
        let of = || err!(InvalidArgument, "page pool: sequence {} is not in the pool, or was freed", id.0);
        self.sequences.get(&id.0).ok_or_else(of)
    }

    fn release(&mut self, pages: &[u32]) {
        for &page in pages {
            let owners = &mut self.owners[page as usize];
            *owners -= 1;
            if *owners == 0 {
                self.free.insert(page);
            }
        }
    }
}

/// Copies of pages within a cache. No page is both a source and a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the pages are copied when the moves are recorded"]
pub struct PageMoves {
    moves: Vec<[u32; 2]>,
    pub(crate) pages: usize,
}

impl PageMoves {
    /// Lists sources and targets.
    pub fn list(&self) -> &[[u32; 2]] {
        &self.moves
    }
}

#[cfg(test)]
mod tests;

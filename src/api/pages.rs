use crate::attention::{PageMoves, PagePool, SequenceId};
use crate::gpu::{Buffer, Encoder, Gpu, Recorder, Slice};
use crate::program::prelude::*;

/// The most bytes of pages on their way.
const ROOM: usize = 32 << 20;

impl PagePool {
    /// Uploads the table of pages, (sequences, ceil(`keys` / tokens in a page)), and the lengths of sequences, as
    /// [`Attention`](crate::Attention) and [`KvAppend`](crate::KvAppend) over `keys` keys take them. Entries without a
    /// page are 2^32 - 1, which is none.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if a sequence has more than `keys` tokens; those of [`Gpu::alloc`].
    pub fn upload(&self, gpu: &Gpu, ids: &[SequenceId], keys: usize) -> Result<[Buffer<u32>; 2]> {
        let each = keys.div_ceil(self.paging().tokens);
        let mut table = filled("page pool: the table", ids.len().saturating_mul(each), u32::MAX)?;
        let mut lengths = with_room("page pool: the lengths", ids.len())?;
        for (i, id) in ids.iter().enumerate() {
            let (pages, tokens) = (self.pages(*id)?, self.tokens(*id)?);
            if tokens > keys {
                return Err(err!(Shape, "page pool: a sequence of {tokens} tokens in a table of {keys} keys"));
            }
            table[i * each..][..pages.len()].copy_from_slice(pages);
            lengths.push(tokens as u32);
        }
        Ok([gpu.upload(&table)?, gpu.upload(&lengths)?])
    }
}

impl PageMoves {
    /// Records the copies in a cache: `k`, `v`, or the scales of one of them. They pass through a buffer of at most 32
    /// MiB or one page.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the cache does not consist of as many pages as the pool; those of
    /// [`Gpu::alloc`] and [`Recorder::copy`].
    pub fn record<'a, T: Element, E: Encoder>(
        &self, gpu: &Gpu, rec: &mut Recorder<E>, cache: impl Into<Slice<'a, T>>,
    ) -> Result<()> {
        let cache = cache.into();
        let each = cache.len() / self.pages.max(1);
        if each * self.pages != cache.len() {
            return Err(err!(
                Shape,
                "page moves: a cache of {} elements does not consist of {} equal pages",
                cache.len(),
                self.pages
            ));
        }
        let batch = (ROOM / (each * T::DTYPE.size()).max(1)).clamp(1, self.list().len().max(1));
        let between = if self.list().is_empty() { return Ok(()) } else { gpu.alloc::<T>(batch * each)? };
        for moves in self.list().chunks(batch) {
            let runs = || moves.chunk_by(|[from, to], next| *next == [from + 1, to + 1]);
            for side in 0..2 {
                let mut at = 0;
                for run in runs() {
                    let len = run.len() * each;
                    let first = run[0][side] as usize * each;
                    let (outer, inner) = (cache.slice(first..first + len)?, between.slice(at..at + len)?);
                    if side == 0 { rec.copy(outer, inner) } else { rec.copy(inner, outer) }?;
                    at += len;
                }
            }
        }
        Ok(())
    }
}

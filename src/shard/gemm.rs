use super::rank::{Rank, Started};
use super::schedule::part;
use super::transport::{Exchange, Transport};
use crate::dense::Gemm;
use crate::gpu::{Buffer, Slice};
use crate::plan::Plannable;
use crate::program::prelude::*;
use std::ops::Range;

/// Bytes at which every device can bind a slice.
const ALIGNED: usize = 256;

/// Returns the grid of `p` ranks that holds blocks of a matrix: as square as possible, at least as many rows as
/// columns.
///
/// ```
/// use tilework::shard::grid;
/// assert_eq!([grid(1), grid(2), grid(4), grid(6), grid(7)], [[1, 1], [2, 1], [2, 2], [3, 2], [7, 1]]);
/// ```
pub fn grid(p: usize) -> [usize; 2] {
    let columns = (1..).take_while(|c: &usize| c * c <= p).filter(|c| p.is_multiple_of(*c)).last().unwrap_or(1);
    [p / columns, columns]
}

/// The blocks of `C = A B` on a [`grid`] of ranks, A m x k, B k x n: rank `i * columns + j` of the grid holds block
/// (i, j) of each matrix, row-major. Rows of A, B and C are cut into as many parts as the grid has rows, columns into
/// as many as it has columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    m: usize,
    n: usize,
    k: usize,
    grid: [usize; 2],
}

/// The rows and columns of a block.
pub type Block = [Range<usize>; 2];

impl Blocks {
    /// Cuts an m x k and a k x n matrix for `ranks` ranks.
    pub fn new(m: usize, n: usize, k: usize, ranks: usize) -> Self {
        Self { m, n, k, grid: grid(ranks) }
    }

    fn block(&self, [rows, columns]: [usize; 2], rank: usize) -> Block {
        let [i, j] = [rank / self.grid[1], rank % self.grid[1]];
        [part(rows, self.grid[0], i), part(columns, self.grid[1], j)]
    }

    /// Returns the rows and columns of A that a rank holds.
    pub fn a(&self, rank: usize) -> Block {
        self.block([self.m, self.k], rank)
    }

    /// Returns the rows and columns of B that a rank holds.
    pub fn b(&self, rank: usize) -> Block {
        self.block([self.k, self.n], rank)
    }

    /// Returns the rows and columns of C that a rank holds.
    pub fn c(&self, rank: usize) -> Block {
        self.block([self.m, self.n], rank)
    }

    /// The parts of k of which a rank multiplies blocks at once: the rank that holds the block of A, the one that holds
    /// that of B, and the range.
    fn panels(&self, rank: usize) -> Vec<(usize, usize, Range<usize>)> {
        let [rows, columns] = self.grid;
        let [i, j] = [rank / columns, rank % columns];
        let mut panels = Vec::new();
        for at in 0..columns {
            let of_a = part(self.k, columns, at);
            for row in 0..rows {
                let of_b = part(self.k, rows, row);
                let both = of_a.start.max(of_b.start)..of_a.end.min(of_b.end);
                if !both.is_empty() {
                    panels.push((i * columns + at, row * columns + j, both));
                }
            }
        }
        // Those that are there first.
        panels.sort_by_key(|(a, b, _)| usize::from(*a != rank) + usize::from(*b != rank));
        panels
    }
}

fn elements([rows, columns]: &Block) -> usize {
    rows.len() * columns.len()
}

impl<L: Transport> Rank<L> {
    /// Multiplies matrices whose [`Blocks`] the ranks hold, `C = A B`, and returns this rank's block of C. `a` and `b`
    /// are its blocks. Allocate them by [`alloc`](Self::alloc) or [`upload`](Self::upload), so that the link reaches
    /// them.
    ///
    /// A rank multiplies the blocks that it holds while those of other ranks are under way.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use std::time::Duration;
    /// use tilework::{prelude::*, shard};
    ///
    /// // Two ranks hold a row of [1 2; 3 4] and a row of the identity.
    /// let gpus = vec![Gpu::new()?; 2];
    /// let rows = shard::run(&gpus, Duration::from_secs(10), |rank| {
    ///     let (a, b) = if rank.index() == 0 { ([1.0f32, 2.0], [1.0, 0.0]) } else { ([3.0, 4.0], [0.0, 1.0]) };
    ///     let blocks = shard::Blocks::new(2, 2, 2, rank.size());
    ///     rank.gemm(&blocks, &rank.upload(&a)?, &rank.upload(&b)?)?.read()
    /// })?;
    /// assert_eq!(rows.concat(), [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Precision
    /// That of [`Gemm`], with sums of parts of k added in f32 (f16: rounded after each part).
    ///
    /// # Cost
    /// Each rank receives the other blocks of its row of A and of its column of B, once. Blocks above the largest
    /// binding are multiplied in bands of rows and of k; a block must fit a buffer.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](ErrorKind::Shape) for blocks of other sizes; those of [`Gemm`].
    ///
    /// # Algorithm
    /// SUMMA, R. A. van de Geijn and J. Watts, 1997.
    pub fn gemm<T: Element>(&self, blocks: &Blocks, a: &Buffer<T>, b: &Buffer<T>) -> Result<Buffer<T>>
    where
        Gemm: Op<T>,
    {
        let Blocks { m, n, k, grid: [rows, columns] } = *blocks;
        let (own, gpu) = (self.index(), self.gpu());
        if rows * columns != self.size() {
            return Err(err!(Shape, "sharded gemm: blocks of {} ranks on {}", rows * columns, self.size()));
        }
        self.agree("sharded gemm", &["m", "n", "k"], &[m as u64, n as u64, k as u64])?;
        for (name, buffer, block) in [("a", a, blocks.a(own)), ("b", b, blocks.b(own))] {
            if buffer.len() != elements(&block) {
                return Err(err!(
                    Shape,
                    "sharded gemm: {name} of rank {own} has {} elements; its block of rows {:?} and columns {:?} has {}",
                    buffer.len(),
                    block[0],
                    block[1],
                    elements(&block)
                ));
            }
        }
        let [i, j] = [own / columns, own % columns];
        let row_mates: Vec<_> = (0..columns).filter(|&at| at != j).map(|at| i * columns + at).collect();
        let column_mates: Vec<_> = (0..rows).filter(|&at| at != i).map(|at| at * columns + j).collect();
        let blocks_of_a = self.blocks(&row_mates, |rank| elements(&blocks.a(rank)))?;
        let blocks_of_b = self.blocks(&column_mates, |rank| elements(&blocks.b(rank)))?;
        let mut coming_a = Some(self.start(a, &row_mates, &blocks_of_a)?);
        let mut coming_b = Some(self.start(b, &column_mates, &blocks_of_b)?);
        let [c_rows, c_columns] = blocks.c(own).map(|range| range.len());
        let c = gpu.alloc::<T>(c_rows * c_columns)?;
        if k == 0 || c.is_empty() {
            self.end(&mut coming_a)?;
            self.end(&mut coming_b)?;
            if !c.is_empty() {
                let mut rec = gpu.recorder();
                rec.clear(&c)?;
                rec.submit()?;
            }
            return Ok(c);
        }
        for (step, (from_a, from_b, range)) in blocks.panels(own).into_iter().enumerate() {
            if from_a != own {
                self.end(&mut coming_a)?;
            }
            if from_b != own {
                self.end(&mut coming_b)?;
            }
            let block_of = |from: usize, mine: &Buffer<T>, others: &[(usize, Buffer<T>)]| {
                let other = others.iter().find(|(rank, _)| *rank == from);
                other.map_or_else(|| mine.clone(), |(_, buffer)| buffer.clone())
            };
            let (whole_a, whole_b) = (block_of(from_a, a, &blocks_of_a), block_of(from_b, b, &blocks_of_b));
            let (lda, at_a) = (blocks.a(from_a)[1].len(), range.start - blocks.a(from_a)[1].start);
            let at_b = (range.start - blocks.b(from_b)[0].start) * c_columns;
            let limit = gpu.profile().limits.max_storage_binding / T::DTYPE.size() as u64;
            let bands = bands(limit, c_rows, [lda, c_columns], T::DTYPE.size());
            // Columns of A in a band begin where they can be bound.
            let depths = bands_of(limit, range.len(), c_columns, ALIGNED / T::DTYPE.size());
            let mut rec = gpu.recorder();
            for depth in &depths {
                let from_b = at_b + depth.start * c_columns..at_b + depth.end * c_columns;
                let panel_b = self.bindable(&whole_b, from_b)?;
                for band in &bands {
                    let at = |row: usize| at_a + row * lda;
                    let panel_a =
                        self.bindable(&whole_a, at(band.start) + depth.start..at(band.end - 1) + depth.end)?;
                    let product = Gemm::new(band.len(), c_columns, depth.len()).lda(lda);
                    let product = if step > 0 || depth.start > 0 { product.beta(1.0) } else { product };
                    let into = c.slice(band.start * c_columns..band.end * c_columns)?;
                    product.plan::<T>(gpu)?.record(&mut rec, panel_a.slice()?, panel_b.slice()?, into)?;
                }
            }
            rec.submit()?;
        }
        self.end(&mut coming_a)?;
        self.end(&mut coming_b)?;
        Ok(c)
    }

    /// Memory for the blocks of other ranks.
    fn blocks<T: Element>(&self, mates: &[usize], len: impl Fn(usize) -> usize) -> Result<Vec<(usize, Buffer<T>)>> {
        mates.iter().map(|&rank| Ok((rank, self.alloc(len(rank))?))).collect()
    }

    /// Starts sending a block to these ranks, and taking theirs.
    fn start<'a, T: Element>(
        &self, own: &'a Buffer<T>, mates: &[usize], blocks: &'a [(usize, Buffer<T>)],
    ) -> Result<Started<'a, T>> {
        let mut exchange = Exchange::default();
        if !own.is_empty() && !mates.is_empty() {
            exchange.sends.push((mates.to_vec(), Slice::from(own)));
        }
        let there = blocks.iter().filter(|(_, block)| !block.is_empty());
        exchange.receives.extend(there.map(|(rank, block)| (*rank, Slice::from(block))));
        self.begin(exchange)
    }

    /// Ends an exchange, if that was not done.
    fn end<T: Element>(&self, coming: &mut Option<Started<'_, T>>) -> Result<()> {
        coming.take().map_or(Ok(()), |started| self.finish(started))
    }

    /// A slice that kernels can bind: that of the block, or a copy where it begins at an odd place.
    fn bindable<T: Element>(&self, block: &Buffer<T>, range: Range<usize>) -> Result<Bindable<T>> {
        if (range.start * T::DTYPE.size()).is_multiple_of(ALIGNED) {
            return Ok(Bindable { buffer: block.clone(), range });
        }
        // Copies move whole words.
        let start = range.start - range.start % 4usize.div_ceil(T::DTYPE.size());
        if start != range.start {
            let data = block.read()?;
            let copy = self.gpu().upload(&data[range])?;
            return Ok(Bindable { range: 0..copy.len(), buffer: copy });
        }
        let words = range.len().next_multiple_of(4usize.div_ceil(T::DTYPE.size()));
        let end = block.len().min(range.start + words);
        let copy = self.gpu().alloc::<T>(end - range.start)?;
        let mut rec = self.gpu().recorder();
        rec.copy(block.slice(range.start..end)?, &copy)?;
        rec.submit()?;
        Ok(Bindable { buffer: copy, range: 0..range.len() })
    }
}

/// Cuts `rows` rows of matrices with these leading dimensions into ranges of which a binding holds each, of `limit`
/// elements of `size` bytes. Each begins where every device can bind it.
fn bands(limit: u64, rows: usize, leading: [usize; 2], size: usize) -> Vec<Range<usize>> {
    let aligned = |step: &usize| leading.iter().all(|l| (step * l * size).is_multiple_of(ALIGNED));
    let step = (0..=ALIGNED.ilog2()).map(|power| 1 << power).find(aligned).unwrap_or(ALIGNED);
    bands_of(limit, rows, leading[0].max(leading[1]), step)
}

/// Cuts `rows` rows of `width` elements into ranges of nearly equal length, multiples of `step` but for the last, with
/// at most `limit` elements each. A limit below `step` rows is left to the op, whose error names it.
fn bands_of(limit: u64, rows: usize, width: usize, step: usize) -> Vec<Range<usize>> {
    let fitting = usize::try_from(limit / width.max(1) as u64).unwrap_or(usize::MAX);
    if rows <= fitting {
        return std::iter::once(0..rows).collect();
    }
    let most = (fitting / step * step).max(step);
    let each = rows.div_ceil(rows.div_ceil(most)).next_multiple_of(step);
    (0..rows.div_ceil(each)).map(|i| i * each..rows.min((i + 1) * each)).collect()
}

/// A range of a buffer that begins where kernels can bind it.
struct Bindable<T: Element> {
    buffer: Buffer<T>,
    range: Range<usize>,
}

impl<T: Element> Bindable<T> {
    fn slice(&self) -> Result<Slice<'_, T>> {
        self.buffer.slice(self.range.clone())
    }
}

#[cfg(test)]
mod tests;

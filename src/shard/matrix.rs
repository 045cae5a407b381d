use super::rank::{Rank, Started};
use super::transport::{Exchange, Transport};
use crate::api::DeviceMatrix;
use crate::gpu::{Buffer, Gpu, Recorder, Slice};
use crate::plan::{Plan, Plannable};
use crate::primitives::Gather;
use crate::program::prelude::*;
use crate::sparse::{Csr, Spmv};
use std::collections::HashMap;
use std::ops::Range;

/// Rows of f32 that begin where every device can bind them.
const ALIGNED: usize = 64;

/// Cuts rows into `parts` ranges with nearly equal numbers of entries and rows together. `row_ptrs` is that of a
/// [`Csr`].
///
/// ```
/// use tilework::shard::balanced_rows;
/// // Seven rows with twelve entries, six of them in the first: 2 + 7 and 5 + 5.
/// assert_eq!(balanced_rows(&[0, 6, 7, 8, 9, 10, 11, 12], 2), [0..2, 2..7]);
/// ```
pub fn balanced_rows(row_ptrs: &[u32], parts: usize) -> Vec<Range<usize>> {
    let rows = row_ptrs.len().saturating_sub(1);
    let first = row_ptrs.first().copied().unwrap_or(0);
    let work = |row: usize| row as u64 + u64::from(row_ptrs.get(row).map_or(0, |&at| at - first));
    let total = work(rows);
    let mut begins: Vec<usize> = (0..parts.max(1))
        .map(|part| {
            let wanted = (u128::from(total) * part as u128 / parts.max(1) as u128) as u64;
            let (mut low, mut high) = (0, rows);
            while low < high {
                let middle = low + (high - low) / 2;
                if work(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            // The nearer of both neighbours.
            if low > 0 && wanted - work(low - 1) < work(low).saturating_sub(wanted) { low - 1 } else { low }
        })
        .collect();
    begins.push(rows);
    begins.windows(2).map(|w| w[0]..w[1].max(w[0])).collect()
}

/// This rank's rows of a square sparse matrix, with the lists of elements that it exchanges with other ranks in a
/// product. [`Rank::matrix`] makes one.
///
/// Rows that need no element of another rank come first, the others last: a product multiplies the former while
/// elements are under way. Vectors on the device have this order; [`permute`](Self::permute) and
/// [`restore`](Self::restore) convert.
#[derive(Debug)]
pub struct ShardedMatrix {
    /// Rows of this rank, before its elements of other ranks.
    rows: usize,
    /// Rows and columns of the whole matrix.
    whole: usize,
    /// The place on the device of each row.
    places: Vec<u32>,
    pub(super) inner: ShardPart,
    pub(super) outer: ShardPart,
    /// For each rank, the elements that it gets: their range in `sent`.
    sends: Vec<Range<usize>>,
    /// For each rank, the elements that come: their range behind the rows.
    receives: Vec<Range<usize>>,
    gather: Option<(Plan<Gather, f32>, Buffer<u32>)>,
    sent: Buffer<f32>,
    entries: usize,
    /// The same rows on the link's stream, if solvers run there.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    pub(super) on_stream: Option<super::nccl::StreamMatrix>,
}

/// Some rows of a shard, one after another.
#[derive(Debug)]
pub(super) struct ShardPart {
    rows: Range<usize>,
    columns: usize,
    matrix: DeviceMatrix,
    product: Plan<Spmv, f32>,
}

impl ShardPart {
    fn new(gpu: &Gpu, rows: Range<usize>, matrix: &Csr) -> Result<Self> {
        let matrix_there = gpu.upload_matrix(matrix)?;
        let product = Spmv::new(matrix_there.layout()).deterministic().plan::<f32>(gpu)?;
        Ok(Self { rows, columns: matrix.cols, matrix: matrix_there, product })
    }

    pub(super) fn record(&self, rec: &mut Recorder, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.product.record(rec, &self.matrix, x.slice(..self.columns)?, y.slice(self.rows.clone())?)
    }
}

impl<L: Transport> Rank<L> {
    /// Uploads this rank's rows of a square sparse matrix. `rows.cols` is that of the whole matrix, and the rows of all
    /// ranks together are as many. [`balanced_rows`] cuts a matrix.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](ErrorKind::Shape) if the matrix is not square, or ranks disagree about its
    /// columns; those of [`Gpu::upload_matrix`].
    pub fn matrix(&self, rows: &Csr) -> Result<ShardedMatrix> {
        const OP: &str = "sharded matrix";
        rows.validate()?;
        let (gpu, size, own) = (self.gpu(), self.size(), self.index());
        let shapes = self.gather_equal(&[rows.rows as u64, rows.cols as u64])?;
        let mut begins = vec![0usize];
        for shape in shapes.chunks_exact(2) {
            begins.push(begins.last().copied().unwrap_or(0).saturating_add(shape[0] as usize));
        }
        let whole = begins[size];
        if let Some(rank) = shapes.chunks_exact(2).position(|shape| shape[1] as usize != whole) {
            return Err(err!(
                Shape,
                "{OP}: the rows of all ranks are {whole}, and those of rank {rank} have {} columns; the matrix must be \
                 square",
                shapes[2 * rank + 1]
            ));
        }
        let mine = begins[own]..begins[own + 1];
        let needed = foreign(OP, rows, &mine)?;
        // Ask each rank for its elements.
        let counts: Vec<usize> = (0..size)
            .map(|rank| {
                let below = |end: usize| needed.partition_point(|&c| (c as usize) < end);
                below(begins[rank + 1]) - below(begins[rank])
            })
            .collect();
        let (asked, asked_by) = self.all_to_all(&needed, &counts)?;
        let order = ShardOrder::new(OP, rows, &mine)?;
        let sent: Vec<u32> = asked.iter().map(|&c| order.places[c as usize - mine.start]).collect();
        let (inner, outer) = order.split(OP, rows, &mine, &needed)?;
        let gather = if sent.is_empty() {
            None
        } else {
            Some((Gather::new([rows.rows, 1], sent.len()).plan::<f32>(gpu)?, gpu.upload(&sent)?))
        };
        let (sends, receives) = (super::rank::ranges(OP, &asked_by)?, super::rank::ranges(OP, &counts)?);
        #[cfg(all(feature = "nccl", target_os = "linux"))]
        let on_stream = self.on_stream([&inner, &outer], &sent, &sends, &receives)?;
        Ok(ShardedMatrix {
            rows: rows.rows,
            whole,
            inner: ShardPart::new(gpu, 0..order.inner, &inner)?,
            outer: ShardPart::new(gpu, order.inner..rows.rows, &outer)?,
            places: order.places,
            sends,
            receives,
            gather,
            sent: self.alloc(sent.len())?,
            entries: rows.col_idxs.len(),
            #[cfg(all(feature = "nccl", target_os = "linux"))]
            on_stream,
        })
    }

    /// Uploads the rows to the link's stream, if solvers run there on all ranks.
    #[cfg(all(feature = "nccl", target_os = "linux"))]
    fn on_stream(
        &self, parts: [&Csr; 2], sent: &[u32], sends: &[Range<usize>], receives: &[Range<usize>],
    ) -> Result<Option<super::nccl::StreamMatrix>> {
        let Some(nccl) = self.transport().nccl() else { return Ok(None) };
        let own = nccl.stream_matrix(parts, sent, sends.to_vec(), receives.to_vec())?;
        let all = self.gather_equal(&[u8::from(own.is_some())])?;
        Ok(own.filter(|_| all.iter().all(|there| *there == 1)))
    }

    /// Multiplies a sharded matrix by a vector, `y = A x`. `x` has [`vector_len`](ShardedMatrix::vector_len) elements,
    /// this rank's first; those of other ranks behind them are filled. `y` has this rank's rows.
    ///
    /// Elements for other ranks leave first. While they are under way, the rank multiplies the rows that need none.
    ///
    /// # Errors
    /// See [`Rank`]; [`Shape`](ErrorKind::Shape) for vectors of other lengths.
    pub fn spmv(&self, a: &ShardedMatrix, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
        if x.len() != a.vector_len() || y.len() != a.rows {
            return Err(err!(
                Shape,
                "sharded spmv: x has {} elements and y {}; this rank's rows need {} and {}",
                x.len(),
                y.len(),
                a.vector_len(),
                a.rows
            ));
        }
        let coming = self.start_halo(a, x, self.gpu().recorder())?;
        self.multiply_inner(a, x, y)?;
        self.finish(coming)?;
        let mut rec = self.gpu().recorder();
        a.outer.record(&mut rec, x, y)?;
        rec.submit()
    }

    /// Submits `before`, and starts to send the elements of `x` that other ranks need and to take theirs.
    pub(super) fn start_halo<'a>(
        &self, a: &'a ShardedMatrix, x: &'a Buffer<f32>, mut before: Recorder,
    ) -> Result<Started<'a, f32>> {
        if let Some((plan, indices)) = &a.gather {
            plan.record(&mut before, x.slice(..a.rows)?, indices, &a.sent)?;
        }
        before.submit()?;
        let mut exchange = Exchange::default();
        for (rank, range) in a.sends.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
            exchange.sends.push((vec![rank], a.sent.slice(range.clone())?));
        }
        let halo = Slice::from(x).slice(a.rows..)?;
        for (rank, range) in a.receives.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
            exchange.receives.push((rank, halo.slice(range.clone())?));
        }
        self.begin(exchange)
    }

    /// Submits the product of the rows that need no elements of other ranks.
    pub(super) fn multiply_inner(&self, a: &ShardedMatrix, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
        let mut rec = self.gpu().recorder();
        a.inner.record(&mut rec, x, y)?;
        rec.submit()
    }
}

impl ShardedMatrix {
    /// Returns this rank's rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the rows of the whole matrix.
    pub fn whole_rows(&self) -> usize {
        self.whole
    }

    /// Returns this rank's entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the elements of a vector on this rank: its own, and behind them those that it needs of other ranks.
    pub fn vector_len(&self) -> usize {
        self.rows + self.halo()
    }

    /// Returns the number of elements that this rank needs of others in each product.
    pub fn halo(&self) -> usize {
        self.receives.last().map_or(0, |range| range.end)
    }

    /// Puts this rank's elements of a vector into the order of the device.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) for another number of elements.
    pub fn permute(&self, x: &[f32]) -> Result<Vec<f32>> {
        self.check(x)?;
        let mut there = filled("sharded matrix", x.len(), 0.0)?;
        for (place, x) in self.places.iter().zip(x) {
            there[*place as usize] = *x;
        }
        Ok(there)
    }

    /// Undoes [`permute`](Self::permute).
    ///
    /// # Errors
    /// As [`permute`](Self::permute).
    pub fn restore(&self, there: &[f32]) -> Result<Vec<f32>> {
        self.check(there)?;
        let mut x = with_room("sharded matrix", there.len())?;
        x.extend(self.places.iter().map(|place| there[*place as usize]));
        Ok(x)
    }

    fn check(&self, x: &[f32]) -> Result<()> {
        if x.len() == self.rows {
            return Ok(());
        }
        Err(err!(Shape, "sharded matrix: {} elements for {} rows of this rank", x.len(), self.rows))
    }
}

/// The columns of other ranks that these rows need, ascending.
fn foreign(op: &str, rows: &Csr, mine: &Range<usize>) -> Result<Vec<u32>> {
    let mut needed = Vec::new();
    for &column in rows.col_idxs.iter().filter(|&&c| !mine.contains(&(c as usize))) {
        make_room(op, &mut needed, 1)?;
        needed.push(column);
    }
    needed.sort_unstable();
    needed.dedup();
    Ok(needed)
}

/// The order of rows on the device.
struct ShardOrder {
    places: Vec<u32>,
    /// Rows that need nothing of other ranks, and begin those that may.
    inner: usize,
}

impl ShardOrder {
    fn new(op: &str, rows: &Csr, mine: &Range<usize>) -> Result<Self> {
        let mut outside = with_room(op, rows.rows)?;
        for row in rows.row_ptrs.windows(2) {
            let columns = &rows.col_idxs[row[0] as usize..row[1] as usize];
            outside.push(columns.iter().any(|&c| !mine.contains(&(c as usize))));
        }
        let alone = outside.iter().filter(|outside| !**outside).count();
        let (mut first, mut last) = (0, alone as u32);
        let mut places = with_room(op, rows.rows)?;
        for outside in outside {
            let next = if outside { &mut last } else { &mut first };
            places.push(*next);
            *next += 1;
        }
        Ok(Self { places, inner: if alone == rows.rows { alone } else { alone / ALIGNED * ALIGNED } })
    }

    /// The rows at the places before and after `inner`, with columns as on the device.
    fn split(&self, op: &str, rows: &Csr, mine: &Range<usize>, needed: &[u32]) -> Result<(Csr, Csr)> {
        let mut at = filled(op, rows.rows, 0usize)?;
        for (row, place) in self.places.iter().enumerate() {
            at[*place as usize] = row;
        }
        let behind: HashMap<u32, u32> = needed.iter().enumerate().map(|(i, c)| (*c, (rows.rows + i) as u32)).collect();
        let column = |c: u32| match mine.contains(&(c as usize)) {
            true => self.places[c as usize - mine.start],
            false => behind.get(&c).copied().unwrap_or(u32::MAX),
        };
        let part = |range: Range<usize>, cols: usize| -> Result<Csr> {
            let mut part = Csr { rows: range.len(), cols, row_ptrs: vec![0], ..Csr::default() };
            make_room(op, &mut part.row_ptrs, range.len())?;
            for &row in &at[range] {
                let entries = rows.row_ptrs[row] as usize..rows.row_ptrs[row + 1] as usize;
                make_room(op, &mut part.col_idxs, entries.len())?;
                make_room(op, &mut part.values, entries.len())?;
                part.col_idxs.extend(rows.col_idxs[entries.clone()].iter().map(|&c| column(c)));
                part.values.extend_from_slice(&rows.values[entries]);
                part.row_ptrs.push(part.col_idxs.len() as u32);
            }
            Ok(part)
        };
        Ok((part(0..self.inner, rows.rows)?, part(self.inner..rows.rows, rows.rows + needed.len())?))
    }
}

//! Dense matrices on a device.

use super::host::{HostDense, Order, Stored};
use super::pack::Packer;
use crate::gpu::{Buffer, Gpu, Slice, Waiting};
use crate::program::prelude::*;

/// How an upload copied a matrix: see [`interop`](super).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Copied {
    /// Not uploaded: computed on the device.
    Not,
    /// In one piece.
    Whole,
    /// Row by row, or column by column.
    Lines,
    /// Element by element.
    Elements,
}

/// A dense matrix on a device.
///
/// Cheap to clone; clones share the memory. [`Gpu::upload_dense`] makes it from a matrix of the host,
/// [`from_buffer`](Self::from_buffer) from the result of an op.
#[derive(Debug, Clone)]
pub struct DenseMatrix<T: Element> {
    buffer: Buffer<T>,
    shape: [usize; 2],
    order: Order,
    leading_dimension: usize,
    copied: Copied,
}

/// A host matrix type that [`DenseMatrix::read_as`] can return.
pub trait FromDense<T>: Sized {
    /// Builds the matrix from all elements, row-major or column-major as `order` says.
    ///
    /// # Errors
    /// Those of the type: its memory, or extents that it cannot hold.
    fn from_dense(shape: [usize; 2], order: Order, values: Vec<T>) -> Result<Self>;
}

/// The elements in row-major order.
impl<T: Element> FromDense<T> for Vec<T> {
    fn from_dense(shape: [usize; 2], order: Order, values: Vec<T>) -> Result<Self> {
        in_order(shape, order, Order::RowMajor, values)
    }
}

impl<T: Element> DenseMatrix<T> {
    /// Wraps consecutive rows, or columns if the order is column-major, in `buffer`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::interop::{DenseMatrix, Order};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let a = DenseMatrix::from_buffer(x, [3, 2], Order::ColumnMajor)?;
    /// assert_eq!(a.read_as::<Vec<f32>>()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the buffer has another number of elements.
    pub fn from_buffer(buffer: Buffer<T>, shape: [usize; 2], order: Order) -> Result<Self> {
        let want = elements("from_buffer", "the matrix", &shape)?;
        if buffer.len() != want {
            return Err(err!(
                Shape,
                "from_buffer: a matrix of {} x {} has {want} elements; the buffer has {}",
                shape[0],
                shape[1],
                buffer.len()
            ));
        }
        let [_, leading_dimension] = order.lines(shape);
        Ok(Self { buffer, shape, order, leading_dimension, copied: Copied::Not })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.shape[1]
    }

    /// Returns the storage order.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the elements from one row to the next, or from one column to the next if the order is column-major.
    pub fn leading_dimension(&self) -> usize {
        self.leading_dimension
    }

    /// Returns the elements, gaps included: an operand for any op.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// Returns how the upload copied the matrix.
    pub fn copied(&self) -> Copied {
        self.copied
    }

    /// Returns the transposed matrix in the same memory. No element moves.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let [rows, cols] = self.shape;
        Self { shape: [cols, rows], order: self.order.turned(), ..self.clone() }
    }

    /// Reads the matrix back, after all submitted work. If `M` uses the other [`Order`], the host rearranges the
    /// elements. Fails like [`Buffer::read`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_as<M: FromDense<T>>(&self) -> Result<M> {
        Waiting::block(|waiting| self.read_as_by(waiting))
    }

    /// As [`read_as`](Self::read_as), without blocking the thread. Fails like [`Buffer::read_async`].
    pub async fn read_as_async<M: FromDense<T>>(&self) -> Result<M> {
        self.read_as_by(Waiting::Yielding).await
    }

    async fn read_as_by<M: FromDense<T>>(&self, waiting: Waiting) -> Result<M> {
        let values = Slice::from(&self.buffer).read_by(waiting).await?;
        let [lines, len] = self.order.lines(self.shape);
        let gap = self.leading_dimension - len;
        let values = if gap == 0 || lines <= 1 || len == 0 {
            values
        } else {
            let mut packed = with_room("read_as", lines * len)?;
            values.chunks(self.leading_dimension).for_each(|line| packed.extend_from_slice(&line[..len]));
            packed
        };
        M::from_dense(self.shape, self.order, values)
    }
}

impl<'a, T: Element> From<&'a DenseMatrix<T>> for Slice<'a, T> {
    fn from(matrix: &'a DenseMatrix<T>) -> Self {
        Slice::from(&matrix.buffer)
    }
}

impl Gpu {
    /// Uploads a dense matrix: see [`interop`](crate::interop).
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if your own [`HostDense`] returns a slice of the wrong length; as
    /// [`Gpu::upload`].
    pub fn upload_dense<M: HostDense + ?Sized>(&self, matrix: &M) -> Result<DenseMatrix<M::Elem>> {
        let shape = matrix.shape();
        let [rows, cols] = shape;
        let len = elements("upload_dense", "the matrix", &shape)?;
        let (buffer, order, leading_dimension, copied) = match matrix.stored() {
            Some(stored) => {
                check_stored(shape, &stored)?;
                (self.upload(stored.values)?, stored.order, stored.leading_dimension, Copied::Whole)
            }
            None => {
                let first = if len == 0 { None } else { Some(matrix.row(0).is_some()) };
                let order = match first {
                    Some(false) if matrix.column(0).is_some() => Order::ColumnMajor,
                    _ => Order::RowMajor,
                };
                let by_lines = order == Order::ColumnMajor || first == Some(true);
                let mut packer = Packer::new(self, len)?;
                let [lines, line_len] = order.lines(shape);
                for i in 0..if by_lines { lines } else { 0 } {
                    let line = if order == Order::RowMajor { matrix.row(i) } else { matrix.column(i) };
                    packer.extend(
                        line.filter(|line| line.len() == line_len).ok_or_else(|| bad_line(order, i, line_len))?,
                    )?;
                }
                for row in 0..if by_lines || len == 0 { 0 } else { rows } {
                    for col in 0..cols {
                        packer.push(matrix.get(row, col))?;
                    }
                }
                let copied = if by_lines { Copied::Lines } else { Copied::Elements };
                (packer.finish()?, order, line_len, copied)
            }
        };
        log::debug!(
            target: "tilework",
            "upload_dense: {rows} x {cols} of {}, {order:?}, leading dimension {leading_dimension}, copied: {copied:?}",
            <M::Elem as Element>::DTYPE
        );
        Ok(DenseMatrix { buffer, shape, order, leading_dimension, copied })
    }
}

/// Rejects a slice that does not hold a matrix of this shape.
fn check_stored<T>(shape: [usize; 2], stored: &Stored<'_, T>) -> Result<()> {
    let [lines, len] = stored.order.lines(shape);
    let ld = stored.leading_dimension;
    let span = match lines {
        _ if len == 0 => Some(0),
        0 => Some(0),
        lines => (lines - 1).checked_mul(ld).and_then(|n| n.checked_add(len)),
    };
    if ld >= len && span == Some(stored.values.len()) {
        return Ok(());
    }
    Err(err!(
        Shape,
        "upload_dense: `stored` of a {} x {} matrix returned {} elements with leading dimension {ld}; it must return \
         {lines} lines of {len}, from the first element to the last",
        shape[0],
        shape[1],
        stored.values.len()
    ))
}

fn bad_line(order: Order, i: usize, len: usize) -> crate::Error {
    let name = if order == Order::RowMajor { "row" } else { "column" };
    err!(
        Shape,
        "upload_dense: `{name}({i})` must return {len} elements, because `{name}(0)` returned a slice; if they are not \
         adjacent, return None for every {name}"
    )
}

/// Rearranges elements of one order to the other.
pub(super) fn in_order<T: Copy>(shape: [usize; 2], from: Order, to: Order, values: Vec<T>) -> Result<Vec<T>> {
    /// Side of a block that fits the host's caches.
    const SQUARE: usize = 32;
    if from == to {
        return Ok(values);
    }
    let [lines, len] = from.lines(shape);
    let mut turned = with_room("read_as", values.len())?;
    turned.extend_from_slice(&values);
    for (first_line, first) in
        (0..lines).step_by(SQUARE).flat_map(|line| (0..len).step_by(SQUARE).map(move |i| (line, i)))
    {
        for i in first..len.min(first + SQUARE) {
            for line in first_line..lines.min(first_line + SQUARE) {
                turned[i * lines + line] = values[line * len + i];
            }
        }
    }
    Ok(turned)
}

//! Dense matrices in the host's memory.

use crate::program::prelude::*;

/// The storage order of a dense matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The elements of a row are adjacent, as in C.
    RowMajor,
    /// The elements of a column are adjacent, as in Fortran.
    ColumnMajor,
}

impl Order {
    /// Returns the order of the transposed matrix.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Self::RowMajor => Self::ColumnMajor,
            Self::ColumnMajor => Self::RowMajor,
        }
    }

    /// Returns the number of lines and the elements of one: rows and columns, or the reverse.
    pub(super) fn lines(self, [rows, cols]: [usize; 2]) -> [usize; 2] {
        match self {
            Self::RowMajor => [rows, cols],
            Self::ColumnMajor => [cols, rows],
        }
    }
}

/// A slice that holds a matrix.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a, T> {
    /// The elements from the first to the last, gaps included.
    pub values: &'a [T],
    /// The storage order.
    pub order: Order,
    /// Elements from one row to the next, or from one column to the next if the order is column-major.
    pub leading_dimension: usize,
}

/// A dense matrix in the host's memory, which [`Gpu::upload_dense`](crate::Gpu::upload_dense) takes.
///
/// Implement it for a matrix type of your own: [`shape`](Self::shape) and [`get`](Self::get) are enough, the others
/// make the upload faster.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::Gpu;
/// use tilework::interop::{Copied, HostDense};
///
/// struct Diagonal(Vec<f32>);
///
/// impl HostDense for Diagonal {
///     type Elem = f32;
///     fn shape(&self) -> [usize; 2] {
///         [self.0.len(); 2]
///     }
///     fn get(&self, row: usize, col: usize) -> f32 {
///         if row == col { self.0[row] } else { 0.0 }
///     }
/// }
///
/// let a = Gpu::new()?.upload_dense(&Diagonal(vec![1.0, 2.0]))?;
/// assert_eq!(a.copied(), Copied::Elements);
/// assert_eq!(a.read_as::<Vec<f32>>()?, [1.0, 0.0, 0.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
pub trait HostDense {
    /// Type of the elements.
    type Elem: Element;

    /// Returns rows and columns.
    fn shape(&self) -> [usize; 2];

    /// Returns the element of a row and a column, both within the shape.
    fn get(&self, row: usize, col: usize) -> Self::Elem;

    /// Returns the slice that holds the matrix, if there is one.
    fn stored(&self) -> Option<Stored<'_, Self::Elem>> {
        None
    }

    /// Returns the elements of a row, if they are adjacent.
    fn row(&self, _row: usize) -> Option<&[Self::Elem]> {
        None
    }

    /// Returns the elements of a column, if they are adjacent.
    fn column(&self, _col: usize) -> Option<&[Self::Elem]> {
        None
    }
}

/// A strided matrix in a slice: element (i, j) is at index `first + i * row stride + j * column stride`.
///
/// Strides may be 0 or negative. The constructors check that every element lies within the slice.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::Gpu;
/// use tilework::interop::HostView;
///
/// // Rows of 3 elements, of which the matrix has the first 2; then the same with its rows reversed.
/// let values = [1.0f32, 2.0, 9.0, 3.0, 4.0, 9.0];
/// let a = HostView::strided(&values, [2, 2], 0, [3, 1])?;
/// let reversed = HostView::strided(&values, [2, 2], 3, [-3, 1])?;
/// let gpu = Gpu::new()?;
/// let a = gpu.upload_dense(&a)?;
/// assert_eq!(a.leading_dimension(), 3);
/// assert_eq!(a.read_as::<Vec<f32>>()?, [1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(gpu.upload_dense(&reversed)?.read_as::<Vec<f32>>()?, [3.0, 4.0, 1.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HostView<'a, T> {
    values: &'a [T],
    shape: [usize; 2],
    first: usize,
    strides: [isize; 2],
}

impl<'a, T: Element> HostView<'a, T> {
    /// Views consecutive rows. Fails like [`strided`](Self::strided).
    pub fn row_major(values: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::strided(values, [rows, cols], 0, [isize::try_from(cols).unwrap_or(isize::MAX), 1])
    }

    /// Views consecutive columns. Fails like [`strided`](Self::strided).
    pub fn column_major(values: &'a [T], rows: usize, cols: usize) -> Result<Self> {
        Self::strided(values, [rows, cols], 0, [1, isize::try_from(rows).unwrap_or(isize::MAX)])
    }

    /// Views elements with any `strides`: the distance from one row, and one column, to the next.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if an element is outside the slice.
    pub fn strided(values: &'a [T], shape: [usize; 2], first: usize, strides: [isize; 2]) -> Result<Self> {
        let view = Self { values, shape, first, strides };
        match view.outside() {
            None => Ok(view),
            Some([row, col]) => Err(err!(
                Shape,
                "HostView: element ({row}, {col}) of a matrix of {} x {}, with the first element at {first} and \
                 strides {strides:?}, is outside the slice of {} elements; correct the shape or the strides",
                shape[0],
                shape[1],
                values.len()
            )),
        }
    }

    /// Returns the index of an element in the slice, unless it overflows.
    fn place(&self, row: usize, col: usize) -> Option<usize> {
        let along = |i: usize, stride: isize| isize::try_from(i).ok()?.checked_mul(stride);
        let offset = along(row, self.strides[0])?.checked_add(along(col, self.strides[1])?)?;
        self.first.checked_add_signed(offset)
    }

    /// Returns `len` elements from an index on.
    fn line(&self, place: Option<usize>, len: usize) -> Option<&'a [T]> {
        let start = place?;
        self.values.get(start..start.checked_add(len)?)
    }

    /// Returns the slice if its lines start `stride` apart, with gaps of at most the size of the matrix.
    fn with_gaps(&self, order: Order, stride: isize) -> Option<Stored<'a, T>> {
        let [lines, len] = order.lines(self.shape);
        if lines == 0 || len == 0 {
            return Some(Stored { values: &[], order, leading_dimension: len });
        }
        let leading_dimension = if lines == 1 { len } else { usize::try_from(stride).ok()? };
        if leading_dimension < len || leading_dimension > len.saturating_mul(2) {
            return None;
        }
        let span = (lines - 1).checked_mul(leading_dimension)?.checked_add(len)?;
        let values = self.line(Some(self.first), span)?;
        Some(Stored { values, order, leading_dimension })
    }

    /// Returns an element that is outside the slice, if any.
    fn outside(&self) -> Option<[usize; 2]> {
        let [rows, cols] = self.shape;
        if rows == 0 || cols == 0 {
            return None;
        }
        // Indices are linear in row and column, so the extremes are at the corners.
        let corners = [[0, 0], [0, cols - 1], [rows - 1, 0], [rows - 1, cols - 1]];
        corners.into_iter().find(|&[row, col]| self.place(row, col).is_none_or(|at| at >= self.values.len()))
    }
}

impl<T: Element> HostDense for HostView<'_, T> {
    type Elem = T;

    fn shape(&self) -> [usize; 2] {
        self.shape
    }

    fn get(&self, row: usize, col: usize) -> T {
        self.place(row, col).and_then(|at| self.values.get(at).copied()).unwrap_or_default()
    }

    fn stored(&self) -> Option<Stored<'_, T>> {
        let [row_stride, col_stride] = self.strides;
        let rows = || self.with_gaps(Order::RowMajor, row_stride);
        let columns = || self.with_gaps(Order::ColumnMajor, col_stride);
        let adjacent = |stride: isize, extent: usize| stride == 1 || extent <= 1;
        adjacent(col_stride, self.shape[1])
            .then(rows)
            .flatten()
            .or_else(|| adjacent(row_stride, self.shape[0]).then(columns).flatten())
    }

    fn row(&self, row: usize) -> Option<&[T]> {
        (self.strides[1] == 1).then(|| self.line(self.place(row, 0), self.shape[1])).flatten()
    }

    fn column(&self, col: usize) -> Option<&[T]> {
        (self.strides[0] == 1).then(|| self.line(self.place(0, col), self.shape[0])).flatten()
    }
}

//! Matrices of the crate `faer` (feature `faer`).
//!
//! They are column-major, often with gaps between the columns. The columns are uploaded without the gaps, and the
//! product of two such matrices is column-major again.
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use faer::{Mat, mat};
//! use tilework::Gpu;
//!
//! let gpu = Gpu::new()?;
//! let a = mat![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let c = gpu.matmul(&gpu.upload_dense(&a)?, &gpu.upload_dense(&a.transpose())?)?;
//! let c: Mat<f32> = c.read_as()?;
//! assert_eq!(c, mat![[14.0, 32.0], [32.0, 77.0]]);
//! # Ok::<(), tilework::Error>(())
//! ```

use super::host::{HostDense, Order};
use super::matrix::FromDense;
use crate::program::prelude::*;
use faer::{Mat, MatRef};

impl<T: Element> HostDense for MatRef<'_, T> {
    type Elem = T;

    fn shape(&self) -> [usize; 2] {
        [self.nrows(), self.ncols()]
    }

    fn get(&self, row: usize, col: usize) -> T {
        self[(row, col)]
    }

    fn row(&self, row: usize) -> Option<&[T]> {
        Some(MatRef::row(*self, row).try_as_row_major()?.as_slice())
    }

    fn column(&self, col: usize) -> Option<&[T]> {
        Some(self.col(col).try_as_col_major()?.as_slice())
    }
}

impl<T: Element> HostDense for Mat<T> {
    type Elem = T;

    fn shape(&self) -> [usize; 2] {
        [self.nrows(), self.ncols()]
    }

    fn get(&self, row: usize, col: usize) -> T {
        self[(row, col)]
    }

    fn column(&self, col: usize) -> Option<&[T]> {
        Some(self.col_as_slice(col))
    }
}

impl<T: Element> FromDense<T> for Mat<T> {
    fn from_dense([rows, cols]: [usize; 2], order: Order, values: Vec<T>) -> Result<Self> {
        Ok(match order {
            Order::RowMajor => Self::from_fn(rows, cols, |row, col| values[row * cols + col]),
            Order::ColumnMajor => Self::from_fn(rows, cols, |row, col| values[col * rows + row]),
        })
    }
}

//! Matrices of the crate `nalgebra` (feature `nalgebra`).
//!
//! They are column-major. Matrices and vectors of any size, fixed or dynamic, and views of them are taken; a `DMatrix`
//! is returned. The product of two column-major matrices is column-major, so that its elements become the `DMatrix` as
//! they are.
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use nalgebra::{DMatrix, Matrix3x2};
//! use tilework::Gpu;
//!
//! let gpu = Gpu::new()?;
//! let a = DMatrix::from_row_slice(2, 3, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! let b = Matrix3x2::new(1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0);
//! let c = gpu.matmul(&gpu.upload_dense(&a)?, &gpu.upload_dense(&b)?)?;
//! let c: DMatrix<f32> = c.read_as()?;
//! assert_eq!(c, DMatrix::from_row_slice(2, 2, &[14.0, 32.0, 32.0, 77.0]));
//! # Ok::<(), tilework::Error>(())
//! ```

use super::host::{HostDense, Order, Stored};
use super::matrix::{FromDense, in_order};
use crate::program::prelude::*;
use nalgebra::{DMatrix, Dim, Matrix, RawStorage};

impl<T: Element, R: Dim, C: Dim, S: RawStorage<T, R, C>> HostDense for Matrix<T, R, C, S> {
    type Elem = T;

    fn shape(&self) -> [usize; 2] {
        [self.nrows(), self.ncols()]
    }

    fn get(&self, row: usize, col: usize) -> T {
        self[(row, col)]
    }

    fn stored(&self) -> Option<Stored<'_, T>> {
        if !self.data.is_contiguous() {
            return None;
        }
        // SAFETY: the storage is contiguous.
        let values = unsafe { self.data.as_slice_unchecked() };
        Some(Stored { values, order: Order::ColumnMajor, leading_dimension: self.nrows() })
    }

    fn column(&self, col: usize) -> Option<&[T]> {
        let (row_stride, _) = self.strides();
        if row_stride != 1 || col >= self.ncols() {
            return None;
        }
        // SAFETY: the column is within the matrix, and its elements lie side by side, in this matrix alone.
        Some(unsafe { std::slice::from_raw_parts(self.data.get_address_unchecked(0, col), self.nrows()) })
    }
}

impl<T: Element> FromDense<T> for DMatrix<T> {
    fn from_dense(shape: [usize; 2], order: Order, values: Vec<T>) -> Result<Self> {
        Ok(Self::from_vec(shape[0], shape[1], in_order(shape, order, Order::ColumnMajor, values)?))
    }
}

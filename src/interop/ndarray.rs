//! Arrays of the crate `ndarray` (feature `ndarray`).
//!
//! A matrix is an array or view of two axes, in any order and with any strides. An array of one axis is a matrix of
//! one column. [`Gpu::upload_ndarray`] takes any number of axes, for images and batches.
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use ndarray::{Array2, array, s};
//! use tilework::Gpu;
//!
//! let gpu = Gpu::new()?;
//! let a = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
//! let right = a.slice(s![.., 1..]); // 2 3; 5 6
//! let c = gpu.matmul(&gpu.upload_dense(&a.t())?, &gpu.upload_dense(&right)?)?;
//! let c: Array2<f32> = c.read_as()?;
//! assert_eq!(c, a.t().dot(&right));
//! # Ok::<(), tilework::Error>(())
//! ```

use super::host::{HostDense, Order, Stored};
use super::matrix::{Copied, FromDense};
use super::pack::Packer;
use crate::gpu::{Buffer, Gpu};
use crate::program::prelude::*;
use ndarray::{Array, Array2, ArrayBase, Axis, Data, Dimension, IntoDimension, Ix1, Ix2, ShapeBuilder};

impl<S: Data> HostDense for ArrayBase<S, Ix2>
where
    S::Elem: Element,
{
    type Elem = S::Elem;

    fn shape(&self) -> [usize; 2] {
        [self.nrows(), self.ncols()]
    }

    fn get(&self, row: usize, col: usize) -> S::Elem {
        self[[row, col]]
    }

    fn stored(&self) -> Option<Stored<'_, S::Elem>> {
        let rows = |values| Stored { values, order: Order::RowMajor, leading_dimension: self.ncols() };
        let columns = |values| Stored { values, order: Order::ColumnMajor, leading_dimension: self.nrows() };
        self.as_slice().map(rows).or_else(|| self.t().to_slice().map(columns))
    }

    fn row(&self, row: usize) -> Option<&[S::Elem]> {
        self.index_axis(Axis(0), row).to_slice()
    }

    fn column(&self, col: usize) -> Option<&[S::Elem]> {
        self.index_axis(Axis(1), col).to_slice()
    }
}

impl<S: Data> HostDense for ArrayBase<S, Ix1>
where
    S::Elem: Element,
{
    type Elem = S::Elem;

    fn shape(&self) -> [usize; 2] {
        [self.len(), 1]
    }

    fn get(&self, row: usize, _: usize) -> S::Elem {
        self[row]
    }

    fn stored(&self) -> Option<Stored<'_, S::Elem>> {
        let values = self.as_slice()?;
        Some(Stored { values, order: Order::ColumnMajor, leading_dimension: values.len() })
    }
}

impl<T: Element> FromDense<T> for Array2<T> {
    fn from_dense([rows, cols]: [usize; 2], order: Order, values: Vec<T>) -> Result<Self> {
        Array2::from_shape_vec((rows, cols).set_f(order == Order::ColumnMajor), values).map_err(|e| wrong_shape(&e))
    }
}

impl Gpu {
    /// Copies an array of any number of axes into a new buffer, in C order. Any strides will do; an array in another
    /// order is copied element by element.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use ndarray::{Array4, Axis};
    /// use tilework::Gpu;
    ///
    /// let gpu = Gpu::new()?;
    /// let images = Array4::from_shape_fn((2, 3, 4, 5), |(n, c, h, w)| (n * 60 + c * 20 + h * 5 + w) as f32);
    /// let mut channels_last = images.view();
    /// channels_last.swap_axes(1, 3);
    /// let x = gpu.upload_ndarray(&channels_last)?;
    /// assert_eq!(x.read_ndarray((2, 5, 4, 3))?, channels_last);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Gpu::upload`].
    pub fn upload_ndarray<S: Data, D: Dimension>(&self, array: &ArrayBase<S, D>) -> Result<Buffer<S::Elem>>
    where
        S::Elem: Element,
    {
        if let Some(values) = array.as_slice() {
            return self.upload(values);
        }
        log::debug!(
            target: "tilework",
            "upload_ndarray: {:?}, strides {:?}, copied: {:?}",
            array.shape(),
            array.strides(),
            Copied::Elements
        );
        let mut packer = Packer::new(self, array.len())?;
        array.iter().try_for_each(|value| packer.push(*value))?;
        packer.finish()
    }
}

impl<T: Element> Buffer<T> {
    /// Reads the buffer as an array of this shape, in C order.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the shape has another number of elements; as [`read`](Self::read).
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_ndarray<D: IntoDimension>(&self, shape: D) -> Result<Array<T, D::Dim>> {
        let shape = shape.into_dimension();
        if shape.size_checked() != Some(self.len()) {
            return Err(err!(
                Shape,
                "read_ndarray: the shape {:?} does not have the {} elements of the buffer",
                shape.slice(),
                self.len()
            ));
        }
        Array::from_shape_vec(shape, self.read()?).map_err(|e| wrong_shape(&e))
    }
}

fn wrong_shape(e: &ndarray::ShapeError) -> Error {
    err!(Shape, "an array of ndarray: {e}")
}

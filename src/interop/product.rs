//! Products of dense matrices in any order.

use super::host::Order;
use super::matrix::DenseMatrix;
use crate::dense::Gemm;
use crate::gpu::Gpu;
use crate::plan::Plannable;
use crate::program::prelude::*;

impl Gemm {
    /// Multiplies two device matrices: takes extents, transposes and leading dimensions from them. C is row-major.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::interop::HostView;
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let a = gpu.upload_dense(&HostView::column_major(&[1.0f32, 3.0, 2.0, 4.0], 2, 2)?)?;
    /// let c = gpu.alloc::<f32>(4)?;
    /// let square = Gemm::of(&a, &a)?.activation(Activation::Relu).plan::<f32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// square.record(&mut rec, &a, &a, &c)?;
    /// rec.submit()?;
    /// assert_eq!(c.read()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the columns of `a` and the rows of `b` differ.
    pub fn of<T: Element>(a: &DenseMatrix<T>, b: &DenseMatrix<T>) -> Result<Self> {
        if a.cols() != b.rows() {
            return Err(err!(
                Shape,
                "gemm: a is {} x {}, b is {} x {}; the columns of a must equal the rows of b",
                a.rows(),
                a.cols(),
                b.rows(),
                b.cols()
            ));
        }
        let mut gemm = Self::new(a.rows(), b.cols(), a.cols());
        if a.order() == Order::ColumnMajor {
            gemm = gemm.trans_a();
        }
        if b.order() == Order::ColumnMajor {
            gemm = gemm.trans_b();
        }
        Ok(gemm.lda(a.leading_dimension()).ldb(b.leading_dimension()))
    }
}

impl Gpu {
    /// Multiplies two dense matrices into a new one: [`Gemm`].
    ///
    /// The result is column-major if both factors are, so that matrices of faer and nalgebra need no rearranging;
    /// otherwise it is row-major. See [`interop`](crate::interop) for an example.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if the columns of `a` and the rows of `b` differ; as [`Gemm`] and
    /// [`Gpu::alloc`].
    pub fn matmul<T: Element>(&self, a: &DenseMatrix<T>, b: &DenseMatrix<T>) -> Result<DenseMatrix<T>>
    where
        Gemm: Op<T>,
    {
        let gemm = Gemm::of(a, b)?;
        if a.order() == Order::ColumnMajor && b.order() == Order::ColumnMajor {
            // The rows of C' = B' A' are the columns of C.
            let (a, b) = (a.transposed(), b.transposed());
            return Ok(self.row_major_product(&Gemm::of(&b, &a)?, &b, &a)?.transposed());
        }
        self.row_major_product(&gemm, a, b)
    }

    fn row_major_product<T: Element>(
        &self, gemm: &Gemm, a: &DenseMatrix<T>, b: &DenseMatrix<T>,
    ) -> Result<DenseMatrix<T>>
    where
        Gemm: Op<T>,
    {
        let plan = gemm.plan::<T>(self)?;
        let shape = [a.rows(), b.cols()];
        // The plan has checked that this does not overflow.
        let c = self.alloc(shape[0] * shape[1])?;
        let mut rec = self.recorder();
        plan.record(&mut rec, a, b, &c)?;
        rec.submit()?;
        DenseMatrix::from_buffer(c, shape, Order::RowMajor)
    }
}

use crate::api::DeviceMatrix;
use crate::gpu::{Buffer, Gpu, RawSlice, Slice};
use crate::program::prelude::*;
use crate::sparse::{Spmm, Spmv};

impl Gpu {
    /// Multiplies a sparse matrix by the vector `x` into a new buffer: [`Spmv`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0, 0, 1], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 3, row_idxs, col_idxs, values })?;
    /// let x = gpu.upload(&[1.0f32, 10.0, 100.0])?;
    /// assert_eq!(gpu.spmv(&a, &x)?.read()?, [201.0, 30.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) unless `x` has an element for each column of A.
    pub fn spmv<'a>(&self, a: &DeviceMatrix, x: impl Into<Slice<'a, f32>>) -> Result<Buffer<f32>> {
        self.sparse_product(&Spmv::new(a.layout()), a, ("x", x.into().untyped()), "y")
    }

    /// Multiplies a sparse matrix by a dense one of `n` columns, row-major, into a new buffer: [`Spmm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::Gpu;
    /// use tilework::sparse::Coo;
    ///
    /// let gpu = Gpu::new()?;
    /// let (row_idxs, col_idxs, values) = (vec![0, 0, 1], vec![0, 2, 1], vec![1.0, 2.0, 3.0]);
    /// let a = gpu.upload_matrix(&Coo { rows: 2, cols: 3, row_idxs, col_idxs, values })?;
    /// let b = gpu.upload(&[1.0f32, 2.0, 10.0, 20.0, 100.0, 200.0])?; // 3 x 2
    /// assert_eq!(gpu.spmm(&a, &b, 2)?.read()?, [201.0, 402.0, 30.0, 60.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) unless `b` has `n` elements for each column of A.
    pub fn spmm<'a>(&self, a: &DeviceMatrix, b: impl Into<Slice<'a, f32>>, n: usize) -> Result<Buffer<f32>> {
        self.sparse_product(&Spmm::new(a.layout(), n), a, ("b", b.into().untyped()), "c")
    }

    /// Multiplies a matrix, whose arrays are the first operands, by a dense factor.
    fn sparse_product(
        &self, op: &impl Op<f32>, a: &DeviceMatrix, factor: (&'static str, RawSlice<'_>), output: &'static str,
    ) -> Result<Buffer<f32>> {
        let program = self.lower::<f32, _>(op)?;
        let mut given: Vec<_> =
            program.operands.iter().map(|list| list.name).zip(a.slices_for(self, &program)?).collect();
        given.push(factor);
        self.call_program(program, &given)?.output(output)
    }
}

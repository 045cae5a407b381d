use crate::dense::{Gemm, GemmBatched, GemmGrouped, Gemv, Symm, Syr2k, Syrk, Transpose, Trmm, Trsm};
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::prelude::*;

impl Gpu {
    /// Multiplies `a`, m x k, by `b`, k x n, both row-major, of `f32` or `f16`, into a new buffer: [`Gemm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2 x 2
    /// let b = gpu.upload(&[1.0f32, 0.0, 5.0, 0.0, 1.0, 6.0])?; // 2 x 3
    /// let c = gpu.gemm(&a, &b, 2, 3, 2)?;
    /// assert_eq!(c.read()?, [1.0, 2.0, 17.0, 3.0, 4.0, 39.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn gemm<'a, T: Element>(
        &self, a: impl Into<Slice<'a, T>>, b: impl Into<Slice<'a, T>>, m: usize, n: usize, k: usize,
    ) -> Result<Buffer<T>>
    where
        Gemm: Op<T>,
    {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<T, _>(&Gemm::new(m, n, k), &given)?.output("c")
    }

    /// Multiplies `batch` pairs of matrices, `c[i] = a[i] b[i]`, into a new buffer: [`GemmBatched`].
    ///
    /// Each `a[i]` is m x k and each `b[i]` k x n, row-major, stored one after another, of `f32` or `f16`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // two of 1 x 2
    /// let b = gpu.upload(&[10.0f32, 1.0, 0.5, 0.25])?; // two of 2 x 1
    /// assert_eq!(gpu.gemm_batched(&a, &b, 2, 1, 1, 2)?.read()?, [12.0, 2.5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn gemm_batched<'a, T: Element>(
        &self, a: impl Into<Slice<'a, T>>, b: impl Into<Slice<'a, T>>, batch: usize, m: usize, n: usize, k: usize,
    ) -> Result<Buffer<T>>
    where
        GemmBatched: Op<T>,
    {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<T, _>(&GemmBatched::new(batch, m, n, k), &given)?.output("c")
    }

    /// Multiplies pairs of matrices of different shapes `[m, n, k]`, which follow each other, into a new buffer:
    /// [`GemmGrouped`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[4.0f32, 5.0, 6.0])?);
    /// assert_eq!(gpu.gemm_grouped(&[[1, 1, 2], [1, 1, 1]], &a, &b)?.read()?, [14.0, 18.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn gemm_grouped<'a>(
        &self, shapes: &[[usize; 3]], a: impl Into<Slice<'a, f32>>, b: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<f32>> {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<f32, _>(&GemmGrouped::new(shapes), &given)?.output("c")
    }

    /// Multiplies `a`, m x k, row-major, of `f32` or `f16`, by `x`, k elements, into a new buffer: [`Gemv`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3
    /// let x = gpu.upload(&[1.0f32, 10.0, 100.0])?;
    /// assert_eq!(gpu.gemv(&a, &x, 2, 3)?.read()?, [321.0, 654.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn gemv<'a, T: Element>(
        &self, a: impl Into<Slice<'a, T>>, x: impl Into<Slice<'a, T>>, m: usize, k: usize,
    ) -> Result<Buffer<T>>
    where
        Gemv: Op<T>,
    {
        let given = [("a", a.into().untyped()), ("x", x.into().untyped())];
        self.call::<T, _>(&Gemv::new(m, k), &given)?.output("y")
    }

    /// Transposes `input`, m x n, into a new buffer: [`Transpose`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1u8, 2, 3, 4, 5, 6])?; // 2 x 3
    /// assert_eq!(gpu.transpose(&x, 2, 3)?.read()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn transpose<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, m: usize, n: usize) -> Result<Buffer<T>> {
        self.call::<T, _>(&Transpose::new(m, n), &[("input", input.into().untyped())])?.output("output")
    }

    /// Solves a triangular system; X takes the place of `b`: [`Trsm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[2.0f32, 0.0, 1.0, 4.0])?, gpu.upload(&[4.0f32, 10.0])?);
    /// gpu.trsm(&Trsm::new(2, 1), &a, &b)?;
    /// assert_eq!(b.read()?, [2.0, 2.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn trsm<'a>(&self, trsm: &Trsm, a: impl Into<Slice<'a, f32>>, b: impl Into<Slice<'a, f32>>) -> Result<()> {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<f32, _>(trsm, &given)?.run(&[])
    }

    /// Multiplies by a triangular matrix into a new buffer: [`Trmm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[2.0f32, 0.0, 1.0, 4.0])?, gpu.upload(&[2.0f32, 2.0])?);
    /// assert_eq!(gpu.trmm(&Trmm::new(2, 1), &a, &b)?.read()?, [4.0, 10.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn trmm<'a>(
        &self, trmm: &Trmm, a: impl Into<Slice<'a, f32>>, b: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<f32>> {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<f32, _>(trmm, &given)?.output("c")
    }

    /// Updates one triangle of `c` by the product of `a` and its transpose: [`Syrk`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (a, c) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[0.0f32; 4])?); // 2 x 1, 2 x 2
    /// gpu.syrk(&Syrk::new(2, 1), &a, &c)?;
    /// assert_eq!(c.read()?, [1.0, 0.0, 2.0, 4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn syrk<'a>(&self, syrk: &Syrk, a: impl Into<Slice<'a, f32>>, c: impl Into<Slice<'a, f32>>) -> Result<()> {
        let given = [("a", a.into().untyped()), ("c", c.into().untyped())];
        self.call::<f32, _>(syrk, &given)?.run(&[])
    }

    /// Updates one triangle of `c` by the products of `a` and `b` with each other's transpose: [`Syr2k`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?); // 2 x 1 each
    /// let c = gpu.upload(&[0.0f32; 4])?; // 2 x 2
    /// gpu.syr2k(&Syr2k::new(2, 1), &a, &b, &c)?;
    /// assert_eq!(c.read()?, [6.0, 0.0, 10.0, 16.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn syr2k<'a>(
        &self, syr2k: &Syr2k, a: impl Into<Slice<'a, f32>>, b: impl Into<Slice<'a, f32>>, c: impl Into<Slice<'a, f32>>,
    ) -> Result<()> {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped()), ("c", c.into().untyped())];
        self.call::<f32, _>(syr2k, &given)?.run(&[])
    }

    /// Multiplies by a symmetric matrix into `c`: [`Symm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[2.0f32, 0.0, 1.0, 4.0])?, gpu.upload(&[2.0f32, 2.0])?);
    /// let c = gpu.alloc::<f32>(2)?;
    /// gpu.symm(&Symm::new(2, 1), &a, &b, &c)?;
    /// assert_eq!(c.read()?, [6.0, 10.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn symm<'a>(
        &self, symm: &Symm, a: impl Into<Slice<'a, f32>>, b: impl Into<Slice<'a, f32>>, c: impl Into<Slice<'a, f32>>,
    ) -> Result<()> {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped()), ("c", c.into().untyped())];
        self.call::<f32, _>(symm, &given)?.run(&[])
    }
}

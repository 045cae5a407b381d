//! Products of dense matrices, and transposes.

use crate::dense::{Gemm, GemmBatched, Gemv, Transpose};
use crate::element::Element;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::Op;

impl Gpu {
    /// The product of `a`, m x k, and `b`, k x n, both row-major and of `f32` or `f16`, in a new buffer:
    /// [`Gemm`].
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
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `a` or `b` has another length; those of [`Gemm`] and of
    /// [`Gpu::alloc`].
    pub fn gemm<'a, T: Element>(
        &self,
        a: impl Into<Slice<'a, T>>,
        b: impl Into<Slice<'a, T>>,
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<Buffer<T>>
    where
        Gemm: Op<T>,
    {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<T, _>(&Gemm::new(m, n, k), &given)?.output("c")
    }

    /// The products of `batch` pairs of matrices, `c[i] = a[i] b[i]`, in a new buffer: [`GemmBatched`].
    ///
    /// Those of `a` are m x k, those of `b` k x n, row-major, one after another, of `f32` or `f16`.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // two of 1 x 2
    /// let b = gpu.upload(&[10.0f32, 1.0, 0.5, 0.25])?; // two of 2 x 1
    /// assert_eq!(gpu.gemm_batched(&a, &b, 2, 1, 1, 2)?.read()?, [12.0, 2.5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `a` or `b` has another length; those of [`GemmBatched`] and of
    /// [`Gpu::alloc`].
    pub fn gemm_batched<'a, T: Element>(
        &self,
        a: impl Into<Slice<'a, T>>,
        b: impl Into<Slice<'a, T>>,
        batch: usize,
        m: usize,
        n: usize,
        k: usize,
    ) -> Result<Buffer<T>>
    where
        GemmBatched: Op<T>,
    {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<T, _>(&GemmBatched::new(batch, m, n, k), &given)?.output("c")
    }

    /// The product of `a`, m x k, row-major and of `f32` or `f16`, and `x`, k elements, in a new buffer: [`Gemv`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let a = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3
    /// let x = gpu.upload(&[1.0f32, 10.0, 100.0])?;
    /// assert_eq!(gpu.gemv(&a, &x, 2, 3)?.read()?, [321.0, 654.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `a` or `x` has another length; those of [`Gemv`] and of
    /// [`Gpu::alloc`].
    pub fn gemv<'a, T: Element>(
        &self,
        a: impl Into<Slice<'a, T>>,
        x: impl Into<Slice<'a, T>>,
        m: usize,
        k: usize,
    ) -> Result<Buffer<T>>
    where
        Gemv: Op<T>,
    {
        let given = [("a", a.into().untyped()), ("x", x.into().untyped())];
        self.call::<T, _>(&Gemv::new(m, k), &given)?.output("y")
    }

    /// The rows of `input`, m x n, as columns, in a new buffer: [`Transpose`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1u8, 2, 3, 4, 5, 6])?; // 2 x 3
    /// assert_eq!(gpu.transpose(&x, 2, 3)?.read()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Transpose`] and of
    /// [`Gpu::alloc`].
    pub fn transpose<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        m: usize,
        n: usize,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(&Transpose::new(m, n), &[("input", input.into().untyped())])?.output("output")
    }
}

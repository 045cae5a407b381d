use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::prelude::*;
use crate::quantize::{Cast, Code, Dequantize, GemmInt8, Quantize};

impl Gpu {
    /// Converts `f32` to `f16`, or `f16` to `f32`, into a new buffer: [`Cast`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use half::f16;
    /// use tilework::{Buffer, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let halves: Buffer<f16> = gpu.cast(&gpu.upload(&[1.0f32, 0.5])?)?;
    /// let floats: Buffer<f32> = gpu.cast(&halves)?;
    /// assert_eq!(floats.read()?, [1.0, 0.5]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `U` is not the other of the two types.
    pub fn cast<'a, T: Element, U: Element>(&self, x: impl Into<Slice<'a, T>>) -> Result<Buffer<U>>
    where
        Cast: Op<T>,
    {
        let x = x.into();
        self.call::<T, _>(&Cast::new(x.len()), &[("x", x.untyped())])?.output("output")
    }

    /// Computes `nearest(x / scale)` with `scale = max|x| / largest` of each row of `width` elements of `x`. Returns
    /// codes of `i8` or `u8` (E4M3) and the scales in new buffers: [`Quantize`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[127.0f32, -3.0, 0.0, 254.0])?;
    /// let (codes, scale) = gpu.quantize::<f32, i8>(&x, 2)?;
    /// assert_eq!(codes.read()?, [127, -3, 0, 127]);
    /// assert_eq!(gpu.dequantize::<i8, f32>(&codes, &scale, 2)?.read()?, x.read()?);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`.
    pub fn quantize<'a, T: Element, Q: Code>(
        &self, x: impl Into<Slice<'a, T>>, width: usize,
    ) -> Result<(Buffer<Q>, Buffer<f32>)>
    where
        Quantize<Q>: Op<T>,
    {
        let rows = |rows| Quantize::<Q>::new(rows, width);
        self.call_rows::<T, _>(width, rows, &[("x", x.into().untyped())])?.outputs(["output", "scale"])
    }

    /// Computes `x scale` of codes `x` of `i8` or `u8` (E4M3), with a scale for each row of `width` elements, as
    /// `f32` or `f16`, into a new buffer: [`Dequantize`], the inverse of [`quantize`](Self::quantize), which has an
    /// example.
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`, or `scale` does not have one
    /// element per row.
    pub fn dequantize<'a, Q: Code, T: Element>(
        &self, x: impl Into<Slice<'a, Q>>, scale: impl Into<Slice<'a, f32>>, width: usize,
    ) -> Result<Buffer<T>>
    where
        Dequantize<Q>: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("scale", scale.into().untyped())];
        self.call_rows::<T, _>(width, |rows| Dequantize::<Q>::new(rows, width), &given)?.output("output")
    }

    /// Multiplies `a`, m x k, by `b`, k x n, both row-major and of bytes, with sums in `i32`, into a new buffer:
    /// [`GemmInt8`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (a, b) = (gpu.upload(&[1i8, -2])?, gpu.upload(&[100i8, 7])?);
    /// assert_eq!(gpu.gemm_int8(&a, &b, 1, 1, 2)?.read()?, [86]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn gemm_int8<'a>(
        &self, a: impl Into<Slice<'a, i8>>, b: impl Into<Slice<'a, i8>>, m: usize, n: usize, k: usize,
    ) -> Result<Buffer<i32>> {
        let given = [("a", a.into().untyped()), ("b", b.into().untyped())];
        self.call::<i32, _>(&GemmInt8::new(m, n, k), &given)?.output("c")
    }
}

use crate::gpu::{Buffer, Gpu, Slice};
use crate::image::{Blur, Equalize, Gaussian, Grey, Image, Median, Sobel};
use crate::program::prelude::*;

impl Gpu {
    /// Converts an image of 3 or 4 channels, of `u8` or `f32`, to its brightness, in a new buffer: [`Grey`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let rgb = gpu.upload(&[0u8, 0, 0, 90, 90, 90])?;
    /// assert_eq!(gpu.grey(&rgb, [1, 2, 3])?.read()?, [0, 90]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn grey<'a, T: Element>(&self, rgb: impl Into<Slice<'a, T>>, image: impl Into<Image>) -> Result<Buffer<T>> {
        self.call::<T, _>(&Grey::new(image), &[("input", rgb.into().untyped())])?.output("output")
    }

    /// Computes the means of windows of `2 radius + 1` pixels a side, of an image of `u8` or `f32`, into a new
    /// buffer: [`Blur`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let rgb = gpu.upload(&[0u8, 0, 0, 90, 90, 90, 30, 30, 30])?;
    /// let grey = gpu.grey(&rgb, [1, 3, 3])?;
    /// assert_eq!(gpu.blur(&grey, [1, 3], 1)?.read()?, [45, 40, 60]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn blur<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, image: impl Into<Image>, radius: usize,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(&Blur::new(image, radius), &[("input", input.into().untyped())])?.output("output")
    }

    /// Blurs an image of `u8` or `f32` with a Gaussian of standard deviation `sigma`, into a new buffer:
    /// [`Gaussian`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[0.0f32, 1.0, 0.0])?;
    /// let y = gpu.gaussian(&x, [1, 3], 1.0)?.read()?;
    /// assert!(y[0] > 0.0 && y[0] < y[1] && y[1] < 1.0);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn gaussian<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, image: impl Into<Image>, sigma: f64,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(&Gaussian::new(image, sigma), &[("input", input.into().untyped())])?.output("output")
    }

    /// Computes the medians of windows of `size` x `size` pixels, of an image of `u8` or `f32`, into a new buffer:
    /// [`Median`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[7u8, 7, 255, 7, 8])?;
    /// assert_eq!(gpu.median(&x, [1, 5], 3)?.read()?, [7, 7, 7, 8, 8]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn median<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, image: impl Into<Image>, size: usize,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(&Median::new(image, size), &[("input", input.into().untyped())])?.output("output")
    }

    /// Computes the gradient magnitude of an image of `u8` or `f32` into a new buffer: [`Sobel`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let flat = gpu.upload(&[0.5f32; 25])?;
    /// assert_eq!(gpu.sobel(&flat, [5, 5])?.read()?[12], 0.0); // the centre
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn sobel<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, image: impl Into<Image>) -> Result<Buffer<T>> {
        self.call::<T, _>(&Sobel::new(image), &[("input", input.into().untyped())])?.output("output")
    }

    /// Equalizes the histogram of an image of `u8` or `f32`, into a new buffer: [`Equalize`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[100u8, 101, 102, 102])?;
    /// assert_eq!(gpu.equalize(&x, [2, 2])?.read()?, [0, 85, 255, 255]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn equalize<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, image: impl Into<Image>,
    ) -> Result<Buffer<T>> {
        self.call::<T, _>(&Equalize::new(image), &[("input", input.into().untyped())])?.output("output")
    }
}

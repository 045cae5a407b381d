use crate::conv::{Conv2d, Conv2dBackwardData, Conv2dBackwardWeights, ConvTranspose2d, Filter1d, Filter2d, Filter3d};
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::prelude::*;

impl Gpu {
    /// Filters `input`, elements of `f32` or `f16`, with a filter of odd length, zeros outside, into a new buffer:
    /// [`Filter1d`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(gpu.filter1d(&x, &[1.0; 3])?.read()?, [3.0, 6.0, 5.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn filter1d<'a, T: Element>(&self, input: impl Into<Slice<'a, T>>, filter: &[f32]) -> Result<Buffer<T>> {
        let input = input.into();
        self.call::<T, _>(&Filter1d::new(input.len(), filter), &[("input", input.untyped())])?.output("output")
    }

    /// Filters an image of `h` x `w` elements of `f32`, `f16` or `u8` with a filter of odd extents, zeros outside, into
    /// a new buffer: [`Filter2d`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
    /// let sums = gpu.filter2d(&x, [3, 3], [1, 3], &[1.0; 3])?;
    /// assert_eq!(sums.read()?, [3.0, 6.0, 5.0, 9.0, 15.0, 11.0, 15.0, 24.0, 17.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn filter2d<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, [h, w]: [usize; 2], shape: [usize; 2], filter: &[f32],
    ) -> Result<Buffer<T>> {
        let op = Filter2d::new([h, w], shape, filter);
        self.call::<T, _>(&op, &[("input", input.into().untyped())])?.output("output")
    }

    /// Filters a volume of `f32` or `f16` with a filter of odd extents, zeros outside, into a new buffer: [`Filter3d`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0])?; // one plane of one row
    /// let sums = gpu.filter3d(&x, [1, 1, 3], [1, 1, 3], &[1.0; 3])?;
    /// assert_eq!(sums.read()?, [3.0, 6.0, 5.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn filter3d<'a, T: Element>(
        &self, input: impl Into<Slice<'a, T>>, extents: [usize; 3], shape: [usize; 3], filter: &[f32],
    ) -> Result<Buffer<T>> {
        let op = Filter3d::new(extents, shape, filter);
        self.call::<T, _>(&op, &[("input", input.into().untyped())])?.output("output")
    }

    /// Computes a convolution layer of images `x` with weights `w` into a new buffer: [`Conv2d`] has the formula, the
    /// shapes and the options. A bias needs a plan.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Conv2d, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
    /// let sums = Conv2d::new([1, 1, 3, 3], 1, [2, 2]);
    /// let output = gpu.conv(&sums, &x, &gpu.upload(&[1.0f32; 4])?)?;
    /// assert_eq!(output.read()?, [12.0, 16.0, 24.0, 28.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn conv<'a, T: Element>(
        &self, conv: &Conv2d, x: impl Into<Slice<'a, T>>, w: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        Conv2d: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("w", w.into().untyped())];
        self.call::<T, _>(conv, &given)?.output("output")
    }

    /// Computes a transposed convolution layer of images `x` with weights `w` into a new buffer: [`ConvTranspose2d`]
    /// has the formula, the shapes and the options. A bias needs a plan.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{ConvTranspose2d, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let double = ConvTranspose2d::new([1, 1, 1, 2], 1, [1, 2]).stride([1, 2]);
    /// let output = gpu.conv_transpose(&double, &x, &gpu.upload(&[1.0f32, 10.0])?)?;
    /// assert_eq!(output.read()?, [1.0, 10.0, 2.0, 20.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn conv_transpose<'a, T: Element>(
        &self, conv: &ConvTranspose2d, x: impl Into<Slice<'a, T>>, w: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        ConvTranspose2d: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("w", w.into().untyped())];
        self.call::<T, _>(conv, &given)?.output("output")
    }

    /// Computes the gradient with respect to a layer's images, from the output's gradient `dy` and the weights, into
    /// a new buffer: [`Conv2dBackwardData`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Conv2d, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let layer = Conv2d::new([1, 1, 1, 3], 1, [1, 2]);
    /// let (dy, w) = (gpu.upload(&[1.0f32, 10.0])?, gpu.upload(&[2.0f32, 3.0])?);
    /// assert_eq!(gpu.conv_backward_data(&layer, &dy, &w)?.read()?, [2.0, 23.0, 30.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn conv_backward_data<'a, T: Element>(
        &self, layer: &Conv2d, dy: impl Into<Slice<'a, T>>, w: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        Conv2dBackwardData: Op<T>,
    {
        let given = [("dy", dy.into().untyped()), ("w", w.into().untyped())];
        self.call::<T, _>(&Conv2dBackwardData::new(layer), &given)?.output("dx")
    }

    /// Computes the gradient with respect to a layer's weights, from its images and the output's gradient `dy`, into
    /// a new buffer: [`Conv2dBackwardWeights`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Conv2d, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let layer = Conv2d::new([1, 1, 1, 3], 1, [1, 2]);
    /// let (x, dy) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[1.0f32, 10.0])?);
    /// assert_eq!(gpu.conv_backward_weights(&layer, &x, &dy)?.read()?, [21.0, 32.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn conv_backward_weights<'a, T: Element>(
        &self, layer: &Conv2d, x: impl Into<Slice<'a, T>>, dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        Conv2dBackwardWeights: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("dy", dy.into().untyped())];
        self.call::<T, _>(&Conv2dBackwardWeights::new(layer), &given)?.output("dw")
    }
}

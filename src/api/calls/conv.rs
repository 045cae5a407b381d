//! Filters, convolutions of layers and their gradients.

use crate::conv::{Conv, Conv1d, Conv2d, Conv3d, ConvBackwardData, ConvBackwardWeights, ConvTranspose};
use crate::element::Element;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::Op;

impl Gpu {
    /// `input` under a filter of odd length, with 0 outside, in a new buffer: [`Conv1d`].
    ///
    /// # Errors
    /// Those of [`Conv1d`] and of [`Gpu::alloc`].
    pub fn conv1d<'a>(&self, input: impl Into<Slice<'a, f32>>, filter: &[f32]) -> Result<Buffer<f32>> {
        let input = input.into();
        self.call::<f32, _>(&Conv1d::new(input.len(), filter), &[("input", input.untyped())])?
            .output("output")
    }

    /// `input`, an image of `h` x `w` of `f32` or `u8`, under a filter of odd extents, with 0 outside, in a new buffer:
    /// [`Conv2d`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
    /// let sums = gpu.conv2d(&x, [3, 3], [1, 3], &[1.0; 3])?;
    /// assert_eq!(sums.read()?, [3.0, 6.0, 5.0, 9.0, 15.0, 11.0, 15.0, 24.0, 17.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Conv2d`] and of [`Gpu::alloc`].
    pub fn conv2d<'a, T: Element>(
        &self,
        input: impl Into<Slice<'a, T>>,
        [h, w]: [usize; 2],
        shape: [usize; 2],
        filter: &[f32],
    ) -> Result<Buffer<T>> {
        let op = Conv2d::new(h, w, shape, filter);
        self.call::<T, _>(&op, &[("input", input.into().untyped())])?.output("output")
    }

    /// `input`, a volume of these extents, under a filter of odd extents, with 0 outside, in a new buffer: [`Conv3d`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `input` has another length; those of [`Conv3d`] and of [`Gpu::alloc`].
    pub fn conv3d<'a>(
        &self,
        input: impl Into<Slice<'a, f32>>,
        extents: [usize; 3],
        shape: [usize; 3],
        filter: &[f32],
    ) -> Result<Buffer<f32>> {
        let op = Conv3d::new(extents, shape, filter);
        self.call::<f32, _>(&op, &[("input", input.into().untyped())])?.output("output")
    }

    /// The convolution of a layer, of images `x` by weights `w`, in a new buffer: [`Conv`], which has the formula, the
    /// shapes and the options but a bias.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Conv, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
    /// let sums = Conv::new([1, 1, 3, 3], 1, [2, 2]);
    /// let output = gpu.conv(&sums, &x, &gpu.upload(&[1.0f32; 4])?)?;
    /// assert_eq!(output.read()?, [12.0, 16.0, 24.0, 28.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `x` or `w` has another length; those of [`Conv`] and of
    /// [`Gpu::alloc`].
    pub fn conv<'a, T: Element>(
        &self,
        conv: &Conv,
        x: impl Into<Slice<'a, T>>,
        w: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        Conv: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("w", w.into().untyped())];
        self.call::<T, _>(conv, &given)?.output("output")
    }

    /// The transposed convolution of a layer, of images `x` by weights `w`, in a new buffer: [`ConvTranspose`], which
    /// has the formula, the shapes and the options but a bias.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{ConvTranspose, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let double = ConvTranspose::new([1, 1, 1, 2], 1, [1, 2]).stride([1, 2]);
    /// let output = gpu.conv_transpose(&double, &x, &gpu.upload(&[1.0f32, 10.0])?)?;
    /// assert_eq!(output.read()?, [1.0, 10.0, 2.0, 20.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `x` or `w` has another length; those of [`ConvTranspose`] and of
    /// [`Gpu::alloc`].
    pub fn conv_transpose<'a, T: Element>(
        &self,
        conv: &ConvTranspose,
        x: impl Into<Slice<'a, T>>,
        w: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        ConvTranspose: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("w", w.into().untyped())];
        self.call::<T, _>(conv, &given)?.output("output")
    }

    /// The gradient of a loss by the images of a layer, from that by its output, `dy`, and the weights, in a new
    /// buffer: [`ConvBackwardData`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Conv, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let layer = Conv::new([1, 1, 1, 3], 1, [1, 2]);
    /// let (dy, w) = (gpu.upload(&[1.0f32, 10.0])?, gpu.upload(&[2.0f32, 3.0])?);
    /// assert_eq!(gpu.conv_backward_data(&layer, &dy, &w)?.read()?, [2.0, 23.0, 30.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `dy` or `w` has another length; those of [`ConvBackwardData`] and of
    /// [`Gpu::alloc`].
    pub fn conv_backward_data<'a, T: Element>(
        &self,
        layer: &Conv,
        dy: impl Into<Slice<'a, T>>,
        w: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        ConvBackwardData: Op<T>,
    {
        let given = [("dy", dy.into().untyped()), ("w", w.into().untyped())];
        self.call::<T, _>(&ConvBackwardData::new(layer), &given)?.output("dx")
    }

    /// The gradient of a loss by the weights of a layer, from its images and that by its output, `dy`, in a new buffer:
    /// [`ConvBackwardWeights`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Conv, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let layer = Conv::new([1, 1, 1, 3], 1, [1, 2]);
    /// let (x, dy) = (gpu.upload(&[1.0f32, 2.0, 3.0])?, gpu.upload(&[1.0f32, 10.0])?);
    /// assert_eq!(gpu.conv_backward_weights(&layer, &x, &dy)?.read()?, [21.0, 32.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `x` or `dy` has another length; those of [`ConvBackwardWeights`] and of
    /// [`Gpu::alloc`].
    pub fn conv_backward_weights<'a, T: Element>(
        &self,
        layer: &Conv,
        x: impl Into<Slice<'a, T>>,
        dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        ConvBackwardWeights: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("dy", dy.into().untyped())];
        self.call::<T, _>(&ConvBackwardWeights::new(layer), &given)?.output("dw")
    }
}

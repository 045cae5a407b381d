//! Gradients of layers, and steps of training.

use crate::dense::Activation;
use crate::element::Element;
use crate::error::Result;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::nn::{
    ActivationBackward, Adam, BiasBackward, LayerNormBackward, LogSoftmaxBackward, Pool2dBackward,
    RmsNormBackward, Sgd, SoftmaxBackward,
};
use crate::program::Op;

impl Gpu {
    /// The gradient by the argument of [`softmax`](Gpu::softmax), from its result `y` and the gradient by that, `dy`,
    /// by rows of `width` elements, in a new buffer: [`SoftmaxBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (y, dy) = (gpu.upload(&[0.5f32, 0.5])?, gpu.upload(&[1.0f32, 0.0])?);
    /// assert_eq!(gpu.softmax_backward(&y, &dy, 2)?.read()?, [0.25, -0.25]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `width` does not divide the length of `y`, or `dy` has another; those of
    /// [`SoftmaxBackward`] and of [`Gpu::alloc`].
    pub fn softmax_backward<'a>(
        &self,
        y: impl Into<Slice<'a, f32>>,
        dy: impl Into<Slice<'a, f32>>,
        width: usize,
    ) -> Result<Buffer<f32>> {
        let given = [("y", y.into().untyped()), ("dy", dy.into().untyped())];
        self.call_rows::<f32, _>(width, |rows| SoftmaxBackward::new(rows, width), &given)?.output("dx")
    }

    /// The gradient by the argument of [`log_softmax`](Gpu::log_softmax), from its result `y` and the gradient by that,
    /// `dy`, by rows of `width` elements, in a new buffer: [`LogSoftmaxBackward`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `width` does not divide the length of `y`, or `dy` has another; those of
    /// [`LogSoftmaxBackward`] and of [`Gpu::alloc`].
    pub fn log_softmax_backward<'a>(
        &self,
        y: impl Into<Slice<'a, f32>>,
        dy: impl Into<Slice<'a, f32>>,
        width: usize,
    ) -> Result<Buffer<f32>> {
        let given = [("y", y.into().untyped()), ("dy", dy.into().untyped())];
        self.call_rows::<f32, _>(width, |rows| LogSoftmaxBackward::new(rows, width), &given)?.output("dx")
    }

    /// The gradients by `x`, `gamma` and `beta` of [`layer_norm`](Gpu::layer_norm), from the gradient by its result,
    /// `dy`, in new buffers: [`LayerNormBackward`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `width` does not divide the length of `x`, or an operand has
    /// another length; those of [`LayerNormBackward`] and of
    /// [`Gpu::alloc`].
    pub fn layer_norm_backward<'a>(
        &self,
        x: impl Into<Slice<'a, f32>>,
        gamma: impl Into<Slice<'a, f32>>,
        dy: impl Into<Slice<'a, f32>>,
        width: usize,
    ) -> Result<(Buffer<f32>, Buffer<f32>, Buffer<f32>)> {
        let given =
            [("x", x.into().untyped()), ("gamma", gamma.into().untyped()), ("dy", dy.into().untyped())];
        let rows = |rows| LayerNormBackward::new(rows, width);
        self.call_rows::<f32, _>(width, rows, &given)?.three_outputs(["dx", "dgamma", "dbeta"])
    }

    /// The gradients by `x` and `gamma` of [`rms_norm`](Gpu::rms_norm), from the gradient by its result, `dy`, in new
    /// buffers: [`RmsNormBackward`].
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `width` does not divide the length of `x`, or an operand has
    /// another length; those of [`RmsNormBackward`] and of
    /// [`Gpu::alloc`].
    pub fn rms_norm_backward<'a>(
        &self,
        x: impl Into<Slice<'a, f32>>,
        gamma: impl Into<Slice<'a, f32>>,
        dy: impl Into<Slice<'a, f32>>,
        width: usize,
    ) -> Result<(Buffer<f32>, Buffer<f32>)> {
        let given =
            [("x", x.into().untyped()), ("gamma", gamma.into().untyped()), ("dy", dy.into().untyped())];
        let rows = |rows| RmsNormBackward::new(rows, width);
        self.call_rows::<f32, _>(width, rows, &given)?.outputs(["dx", "dgamma"])
    }

    /// `dx = dy f'(x)` of an activation f, from `value`, its result (of GELU its argument), in a new buffer:
    /// [`ActivationBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Activation, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let (y, dy) = (gpu.upload(&[0.0f32, 3.0])?, gpu.upload(&[5.0f32, 7.0])?);
    /// assert_eq!(gpu.activation_backward(Activation::Relu, &y, &dy)?.read()?, [0.0, 7.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if the lengths differ; those of [`ActivationBackward`] and of
    /// [`Gpu::alloc`].
    pub fn activation_backward<'a, T: Element>(
        &self,
        activation: Activation,
        value: impl Into<Slice<'a, T>>,
        dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        ActivationBackward: Op<T>,
    {
        let value = value.into();
        let op = ActivationBackward::new(activation, value.len());
        self.call::<T, _>(&op, &[("value", value.untyped()), ("dy", dy.into().untyped())])?.output("dx")
    }

    /// The gradient by a bias that was added to each channel: the sums of `dy` over images and planes, in a new buffer:
    /// [`BiasBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::BiasBackward};
    ///
    /// let gpu = Gpu::new()?;
    /// let dy = gpu.upload(&[1.0f32, 2.0, 10.0, 20.0])?; // one image of two channels
    /// assert_eq!(gpu.bias_backward(&BiasBackward::new([1, 2, 2]), &dy)?.read()?, [3.0, 30.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `dy` has another length; those of [`BiasBackward`] and of
    /// [`Gpu::alloc`].
    pub fn bias_backward<'a>(
        &self,
        bias: &BiasBackward,
        dy: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<f32>> {
        self.call::<f32, _>(bias, &[("dy", dy.into().untyped())])?.output("db")
    }

    /// The gradient by the images of a pooling, from them and the gradient by its result, `dy`, in a new buffer:
    /// [`Pool2dBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Pool2dBackward, PoolKind};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, dy) = (gpu.upload(&[1.0f32, 4.0, 3.0, 2.0])?, gpu.upload(&[7.0f32])?);
    /// let pool = Pool2dBackward::new(PoolKind::Max, [1, 1, 2, 2], [2, 2]);
    /// assert_eq!(gpu.pool_backward(&pool, &x, &dy)?.read()?, [0.0, 7.0, 0.0, 0.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if `x` or `dy` has another length; those of [`Pool2dBackward`] and of
    /// [`Gpu::alloc`].
    pub fn pool_backward<'a, T: Element>(
        &self,
        pool: &Pool2dBackward,
        x: impl Into<Slice<'a, T>>,
        dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        Pool2dBackward: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("dy", dy.into().untyped())];
        self.call::<T, _>(pool, &given)?.output("dx")
    }

    /// A step of gradient descent, `p -= rate (g + decay p)`, in place: [`Sgd`], without momentum.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::Sgd};
    ///
    /// let gpu = Gpu::new()?;
    /// let (parameters, gradients) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[4.0f32, 8.0])?);
    /// gpu.sgd(&Sgd::new(2, 0.25), &parameters, &gradients)?;
    /// assert_eq!(parameters.read()?, [0.0, 0.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if an operand has another length;
    /// [`Aliasing`](crate::ErrorKind::Aliasing) if both lie in one buffer; those of [`Sgd`].
    pub fn sgd<'a>(
        &self,
        sgd: &Sgd,
        parameters: impl Into<Slice<'a, f32>>,
        gradients: impl Into<Slice<'a, f32>>,
    ) -> Result<()> {
        let given = [("parameters", parameters.into().untyped()), ("gradients", gradients.into().untyped())];
        self.call::<f32, _>(sgd, &given)?.run(&[])
    }

    /// A step of Adam, in place: [`Adam`], which has the formula. The moments `first` and `second` and the two numbers
    /// of `fullness` are zeros before the first step.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::Adam};
    ///
    /// let gpu = Gpu::new()?;
    /// let (parameters, gradients) = (gpu.upload(&[1.0f32])?, gpu.upload(&[4.0f32])?);
    /// let (first, second) = (gpu.alloc_zeroed::<f32>(1)?, gpu.alloc_zeroed::<f32>(1)?);
    /// let fullness = gpu.alloc_zeroed::<f32>(2)?;
    /// gpu.adam(&Adam::new(1, 0.5), &parameters, &gradients, &first, &second, &fullness)?;
    /// assert!((parameters.read()?[0] - 0.5).abs() < 1e-4);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](crate::ErrorKind::Shape) if an operand has another length;
    /// [`Aliasing`](crate::ErrorKind::Aliasing) if two lie in one buffer; those of [`Adam`].
    pub fn adam<'a>(
        &self,
        adam: &Adam,
        parameters: impl Into<Slice<'a, f32>>,
        gradients: impl Into<Slice<'a, f32>>,
        first: impl Into<Slice<'a, f32>>,
        second: impl Into<Slice<'a, f32>>,
        fullness: impl Into<Slice<'a, f32>>,
    ) -> Result<()> {
        let given = [
            ("parameters", parameters.into().untyped()),
            ("gradients", gradients.into().untyped()),
            ("first", first.into().untyped()),
            ("second", second.into().untyped()),
            ("fullness", fullness.into().untyped()),
        ];
        self.call::<f32, _>(adam, &given)?.run(&[])
    }
}

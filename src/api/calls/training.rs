use crate::dense::Activation;
use crate::gpu::{Buffer, Gpu, Slice};
use crate::nn::{
    ActivationBackward, Adam, BiasBackward, LayerNormBackward, LogSoftmaxBackward, Pool2dBackward,
    Pool2dBackwardWeights, RmsNormBackward, Sgd, SoftmaxBackward,
};
use crate::program::prelude::*;

impl Gpu {
    /// Computes the gradient with respect to the input of [`softmax`](Gpu::softmax), from its result `y` and the
    /// result's gradient `dy`, in rows of `width` elements, into a new buffer: [`SoftmaxBackward`].
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
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `y`.
    pub fn softmax_backward<'a>(
        &self, y: impl Into<Slice<'a, f32>>, dy: impl Into<Slice<'a, f32>>, width: usize,
    ) -> Result<Buffer<f32>> {
        let given = [("y", y.into().untyped()), ("dy", dy.into().untyped())];
        self.call_rows::<f32, _>(width, |rows| SoftmaxBackward::new(rows, width), &given)?.output("dx")
    }

    /// Computes the gradient with respect to the input of [`log_softmax`](Gpu::log_softmax), from its result `y`
    /// and the result's gradient `dy`, in rows of `width` elements, into a new buffer: [`LogSoftmaxBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (y, dy) = (gpu.upload(&[0.5f32.ln(); 2])?, gpu.upload(&[1.0f32, 0.0])?);
    /// let dx = gpu.log_softmax_backward(&y, &dy, 2)?.read()?;
    /// assert!((dx[0] - 0.5).abs() < 1e-5 && (dx[1] + 0.5).abs() < 1e-5);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `y`.
    pub fn log_softmax_backward<'a>(
        &self, y: impl Into<Slice<'a, f32>>, dy: impl Into<Slice<'a, f32>>, width: usize,
    ) -> Result<Buffer<f32>> {
        let given = [("y", y.into().untyped()), ("dy", dy.into().untyped())];
        self.call_rows::<f32, _>(width, |rows| LogSoftmaxBackward::new(rows, width), &given)?.output("dx")
    }

    /// Computes the gradients with respect to `x`, `gamma` and `beta` of [`layer_norm`](Gpu::layer_norm), from the
    /// result's gradient `dy`, into new buffers `dx`, `dgamma`, `dbeta`: [`LayerNormBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, gamma, dy) = (gpu.upload(&[1.0f32, 3.0])?, gpu.upload(&[1.0f32; 2])?, gpu.upload(&[5.0f32, 7.0])?);
    /// let (_, dgamma, dbeta) = gpu.layer_norm_backward(&x, &gamma, &dy, 2)?; // x is normalised to -1, 1
    /// let dgamma = dgamma.read()?;
    /// assert!((dgamma[0] + 5.0).abs() < 1e-3 && (dgamma[1] - 7.0).abs() < 1e-3);
    /// assert_eq!(dbeta.read()?, [5.0, 7.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`.
    pub fn layer_norm_backward<'a>(
        &self, x: impl Into<Slice<'a, f32>>, gamma: impl Into<Slice<'a, f32>>, dy: impl Into<Slice<'a, f32>>,
        width: usize,
    ) -> Result<(Buffer<f32>, Buffer<f32>, Buffer<f32>)> {
        let given = [("x", x.into().untyped()), ("gamma", gamma.into().untyped()), ("dy", dy.into().untyped())];
        let rows = |rows| LayerNormBackward::new(rows, width);
        self.call_rows::<f32, _>(width, rows, &given)?.three_outputs(["dx", "dgamma", "dbeta"])
    }

    /// Computes the gradients with respect to `x` and `gamma` of [`rms_norm`](Gpu::rms_norm), from the result's
    /// gradient `dy`, into new buffers `dx`, `dgamma`: [`RmsNormBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, gamma, dy) = (gpu.upload(&[3.0f32, -3.0])?, gpu.upload(&[1.0f32; 2])?, gpu.upload(&[5.0f32, 7.0])?);
    /// let (_, dgamma) = gpu.rms_norm_backward(&x, &gamma, &dy, 2)?; // x is scaled to 1, -1
    /// let dgamma = dgamma.read()?;
    /// assert!((dgamma[0] - 5.0).abs() < 1e-3 && (dgamma[1] + 7.0).abs() < 1e-3);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`.
    pub fn rms_norm_backward<'a>(
        &self, x: impl Into<Slice<'a, f32>>, gamma: impl Into<Slice<'a, f32>>, dy: impl Into<Slice<'a, f32>>,
        width: usize,
    ) -> Result<(Buffer<f32>, Buffer<f32>)> {
        let given = [("x", x.into().untyped()), ("gamma", gamma.into().untyped()), ("dy", dy.into().untyped())];
        let rows = |rows| RmsNormBackward::new(rows, width);
        self.call_rows::<f32, _>(width, rows, &given)?.outputs(["dx", "dgamma"])
    }

    /// Computes `dx = dy f'(x)` of an activation f into a new buffer, from `value`, which is f's result (for GELU its
    /// input): [`ActivationBackward`].
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
    pub fn activation_backward<'a, T: Element>(
        &self, activation: Activation, value: impl Into<Slice<'a, T>>, dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        ActivationBackward: Op<T>,
    {
        let value = value.into();
        let op = ActivationBackward::new(activation, value.len());
        self.call::<T, _>(&op, &[("value", value.untyped()), ("dy", dy.into().untyped())])?.output("dx")
    }

    /// Computes the gradient with respect to a bias per channel, the sums of `dy` over images and planes, into a new
    /// buffer: [`BiasBackward`].
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
    pub fn bias_backward<'a>(&self, bias: &BiasBackward, dy: impl Into<Slice<'a, f32>>) -> Result<Buffer<f32>> {
        self.call::<f32, _>(bias, &[("dy", dy.into().untyped())])?.output("db")
    }

    /// Computes the gradient with respect to the images of a pooling layer, from the images and the result's gradient
    /// `dy`, into a new buffer: [`Pool2dBackward`].
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
    pub fn pool_backward<'a, T: Element>(
        &self, pool: &Pool2dBackward, x: impl Into<Slice<'a, T>>, dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<T>>
    where
        Pool2dBackward: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("dy", dy.into().untyped())];
        self.call::<T, _>(pool, &given)?.output("dx")
    }

    /// Computes the gradient with respect to the weights of a weighted pool, from the images and the result's gradient
    /// `dy`, into a new buffer: [`Pool2dBackwardWeights`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::Pool2dBackwardWeights};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, dy) = (gpu.upload(&[1.0f32, 4.0, 3.0, 2.0])?, gpu.upload(&[2.0f32])?);
    /// let pool = Pool2dBackwardWeights::new([1, 1, 2, 2], [2, 2]);
    /// assert_eq!(gpu.pool_backward_weights(&pool, &x, &dy)?.read()?, [2.0, 8.0, 6.0, 4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn pool_backward_weights<'a, T: Element>(
        &self, pool: &Pool2dBackwardWeights, x: impl Into<Slice<'a, T>>, dy: impl Into<Slice<'a, T>>,
    ) -> Result<Buffer<f32>>
    where
        Pool2dBackwardWeights: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("dy", dy.into().untyped())];
        self.call::<T, _>(pool, &given)?.output("dw")
    }

    /// Takes a step of gradient descent, `p -= rate (g + decay p)`, in place: [`Sgd`], without momentum.
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
    pub fn sgd<'a>(
        &self, sgd: &Sgd, parameters: impl Into<Slice<'a, f32>>, gradients: impl Into<Slice<'a, f32>>,
    ) -> Result<()> {
        let given = [("parameters", parameters.into().untyped()), ("gradients", gradients.into().untyped())];
        self.call::<f32, _>(sgd, &given)?.run(&[])
    }

    /// Takes a step of Adam in place: [`Adam`] has the formula. The moments `first` and `second` and the two elements
    /// of `fullness` must be zeros before the first step.
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
    pub fn adam<'a>(
        &self, adam: &Adam, parameters: impl Into<Slice<'a, f32>>, gradients: impl Into<Slice<'a, f32>>,
        first: impl Into<Slice<'a, f32>>, second: impl Into<Slice<'a, f32>>, fullness: impl Into<Slice<'a, f32>>,
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

use crate::gpu::{Buffer, Gpu, Slice};
use crate::nn::{
    BatchNorm, BinaryCrossEntropy, CrossEntropy, LayerNorm, LogSoftmax, MeanPool, Pool2d, RmsNorm, Rope, Softmax,
    SquaredError,
};
use crate::program::prelude::*;

impl Gpu {
    /// Computes `exp(x[i]) / sum over j of exp(x[j])` of each row of `width` elements of `x`, of `f32` or `f16`, into
    /// a new buffer: [`Softmax`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[3.0f32, 3.0, -1.0, f32::NEG_INFINITY])?;
    /// assert_eq!(gpu.softmax(&x, 2)?.read()?, [0.5, 0.5, 1.0, 0.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`.
    pub fn softmax<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>, width: usize) -> Result<Buffer<T>>
    where
        Softmax: Op<T>,
    {
        let rows = |rows| Softmax::new(rows, width);
        self.call_rows::<T, _>(width, rows, &[("x", x.into().untyped())])?.output("output")
    }

    /// Computes `x[i] - log(sum over j of exp(x[j]))` of each row of `width` elements of `x`, of `f32` or `f16`, into
    /// a new buffer: [`LogSoftmax`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let x = gpu.upload(&[-1.0f32, f32::NEG_INFINITY])?;
    /// assert_eq!(gpu.log_softmax(&x, 2)?.read()?, [0.0, f32::NEG_INFINITY]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`.
    pub fn log_softmax<'a, T: Element>(&self, x: impl Into<Slice<'a, T>>, width: usize) -> Result<Buffer<T>>
    where
        LogSoftmax: Op<T>,
    {
        let rows = |rows| LogSoftmax::new(rows, width);
        self.call_rows::<T, _>(width, rows, &[("x", x.into().untyped())])?.output("output")
    }

    /// Computes `(x - mean(x)) / sqrt(var(x) + 1e-5) * gamma + beta` of each row of `width` elements of `x`, of `f32`
    /// or `f16`, into a new buffer: [`LayerNorm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, gamma) = (gpu.upload(&[1.0f32, 3.0])?, gpu.upload(&[10.0f32; 2])?);
    /// let y = gpu.layer_norm(&x, &gamma, &gpu.upload(&[100.0f32; 2])?, 2)?.read()?;
    /// assert!((y[0] - 90.0).abs() < 1e-3 && (y[1] - 110.0).abs() < 1e-3);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`, or is not the length of `gamma`
    /// and `beta`.
    pub fn layer_norm<'a, T: Element>(
        &self, x: impl Into<Slice<'a, T>>, gamma: impl Into<Slice<'a, T>>, beta: impl Into<Slice<'a, T>>, width: usize,
    ) -> Result<Buffer<T>>
    where
        LayerNorm: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("gamma", gamma.into().untyped()), ("beta", beta.into().untyped())];
        let rows = |rows| LayerNorm::new(rows, width).with_beta();
        self.call_rows::<T, _>(width, rows, &given)?.output("output")
    }

    /// Computes `x / sqrt(mean(x^2) + eps) * gamma` of each row of `width` elements of `x`, of `f32` or `f16`, into a
    /// new buffer: [`RmsNorm`], with its default epsilon.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, gamma) = (gpu.upload(&[1.0f32, -1.0])?, gpu.upload(&[2.0f32, 5.0])?);
    /// let y = gpu.rms_norm(&x, &gamma, 2)?.read()?;
    /// assert!((y[0] - 2.0).abs() < 1e-4 && (y[1] + 5.0).abs() < 1e-4);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `x`, or is not the length of
    /// `gamma`.
    pub fn rms_norm<'a, T: Element>(
        &self, x: impl Into<Slice<'a, T>>, gamma: impl Into<Slice<'a, T>>, width: usize,
    ) -> Result<Buffer<T>>
    where
        RmsNorm: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("gamma", gamma.into().untyped())];
        self.call_rows::<T, _>(width, |rows| RmsNorm::new(rows, width), &given)?.output("output")
    }

    /// Computes `(x - mean[c]) / sqrt(variance[c] + eps) * gamma[c] + beta[c]` of images, with c the channel of an
    /// element, into a new buffer: [`BatchNorm`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::BatchNorm};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 3.0])?;
    /// let [mean, variance, gamma, beta] = [1.0f32, 4.0, 10.0, 0.5].map(|v| gpu.upload(&[v]));
    /// let norm = BatchNorm::new([1, 1, 1, 2]).eps(0.0);
    /// let y = gpu.batch_norm(&norm, &x, &mean?, &variance?, &gamma?, &beta?)?.read()?;
    /// assert!((y[0] - 0.5).abs() < 1e-4 && (y[1] - 10.5).abs() < 1e-4);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn batch_norm<'a>(
        &self, norm: &BatchNorm, x: impl Into<Slice<'a, f32>>, mean: impl Into<Slice<'a, f32>>,
        variance: impl Into<Slice<'a, f32>>, gamma: impl Into<Slice<'a, f32>>, beta: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<f32>> {
        let given = [
            ("x", x.into().untyped()),
            ("mean", mean.into().untyped()),
            ("variance", variance.into().untyped()),
            ("gamma", gamma.into().untyped()),
            ("beta", beta.into().untyped()),
        ];
        self.call::<f32, _>(norm, &given)?.output("output")
    }

    /// Pools each window of images `x`, of `f32` or `f16`, into one element of a new buffer: [`Pool2d`] has the
    /// formulas, the shapes and the options. A bias needs a plan.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, Pool2d, PoolKind};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// assert_eq!(gpu.pool(&Pool2d::new(PoolKind::Max, [1, 1, 2, 2], [2, 2]), &x)?.read()?, [4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn pool<'a, T: Element>(&self, pool: &Pool2d, x: impl Into<Slice<'a, T>>) -> Result<Buffer<T>>
    where
        Pool2d: Op<T>,
    {
        self.call::<T, _>(pool, &[("x", x.into().untyped())])?.output("output")
    }

    /// Computes the mean of the first `lengths[b]` tokens of each sequence b of `x`, of `f32` or `f16`, into a new
    /// buffer: [`MeanPool`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::MeanPool};
    ///
    /// let gpu = Gpu::new()?;
    /// let x = gpu.upload(&[1.0f32, 2.0, 3.0, 6.0])?; // two tokens of two elements
    /// let means = gpu.mean_pool(&MeanPool::new([1, 2, 2]), &x, &gpu.upload(&[2u32])?)?;
    /// assert_eq!(means.read()?, [2.0, 4.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn mean_pool<'a, T: Element>(
        &self, pool: &MeanPool, x: impl Into<Slice<'a, T>>, lengths: impl Into<Slice<'a, u32>>,
    ) -> Result<Buffer<f32>>
    where
        MeanPool: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("lengths", lengths.into().untyped())];
        self.call::<T, _>(pool, &given)?.output("output")
    }

    /// Rotates pairs of elements of each row of `x`, of `f32` or `f16`, by the angles of its token, into a new
    /// buffer: [`Rope`]. Positions need a plan.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, nn::Rope};
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, cos, sin) = (gpu.upload(&[3.0f32, 4.0])?, gpu.upload(&[0.0f32])?, gpu.upload(&[1.0f32])?);
    /// assert_eq!(gpu.rope(&Rope::new([1, 1, 1, 2]), &x, &cos, &sin)?.read()?, [-4.0, 3.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn rope<'a, T: Element>(
        &self, rope: &Rope, x: impl Into<Slice<'a, T>>, cos: impl Into<Slice<'a, f32>>, sin: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<T>>
    where
        Rope: Op<T>,
    {
        let given = [("x", x.into().untyped()), ("cos", cos.into().untyped()), ("sin", sin.into().untyped())];
        self.call::<T, _>(rope, &given)?.output("output")
    }

    /// Computes `-log(softmax(logits[r])[labels[r]])` of each row r of `width` logits, one per class, and the mean
    /// over all rows, into new buffers: [`CrossEntropy`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let logits = gpu.upload(&[0.0f32, 0.0, 50.0, 0.0])?;
    /// let (losses, mean) = gpu.cross_entropy(&logits, &gpu.upload(&[1u32, 0])?, 2)?;
    /// assert!((losses.read()?[0] - 2.0f32.ln()).abs() < 1e-5);
    /// assert!((mean.read()?[0] - 2.0f32.ln() / 2.0).abs() < 1e-5);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Shape`](ErrorKind::Shape) if `width` does not divide the length of `logits`, or `labels` does not have
    /// one element per row.
    pub fn cross_entropy<'a>(
        &self, logits: impl Into<Slice<'a, f32>>, labels: impl Into<Slice<'a, u32>>, width: usize,
    ) -> Result<(Buffer<f32>, Buffer<f32>)> {
        let given = [("logits", logits.into().untyped()), ("labels", labels.into().untyped())];
        let rows = |rows| CrossEntropy::new(rows, width);
        self.call_rows::<f32, _>(width, rows, &given)?.outputs(["losses", "mean"])
    }

    /// Computes the mean of `(x[i] - target[i])^2` into a new buffer: [`SquaredError`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, target) = (gpu.upload(&[1.0f32, 5.0])?, gpu.upload(&[1.0f32, 1.0])?);
    /// assert_eq!(gpu.squared_error(&x, &target)?.read()?, [8.0]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn squared_error<'a>(
        &self, x: impl Into<Slice<'a, f32>>, target: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<f32>> {
        let x = x.into();
        let given = [("x", x.untyped()), ("target", target.into().untyped())];
        self.call::<f32, _>(&SquaredError::new(x.len()), &given)?.output("mean")
    }

    /// Computes the mean cross-entropy of logits `x` with probabilities `target` into a new buffer:
    /// [`BinaryCrossEntropy`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// let gpu = tilework::Gpu::new()?;
    /// let (x, target) = (gpu.upload(&[0.0f32, 0.0])?, gpu.upload(&[1.0f32, 0.0])?);
    /// assert!((gpu.binary_cross_entropy(&x, &target)?.read()?[0] - 2f32.ln()).abs() < 1e-5);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn binary_cross_entropy<'a>(
        &self, x: impl Into<Slice<'a, f32>>, target: impl Into<Slice<'a, f32>>,
    ) -> Result<Buffer<f32>> {
        let x = x.into();
        let given = [("x", x.untyped()), ("target", target.into().untyped())];
        self.call::<f32, _>(&BinaryCrossEntropy::new(x.len()), &given)?.output("mean")
    }
}

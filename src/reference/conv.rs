use super::maps::{activate, activation_errors};
use super::prelude::*;
use crate::conv::{Conv2d, Conv2dBackwardData, Conv2dBackwardWeights, ConvTranspose2d, Layer};
use crate::dense::{Activation, Precision};

judges! {
    conv => judge_conv, conv_transpose => judge_conv_transpose, conv_backward_data => judge_conv_backward_data,
    conv_backward_weights => judge_conv_backward_weights
}

fn judge_conv(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2d>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, w, bias) = (input::<T>(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
        let bound = conv_bound(op, x, w, bias)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), conv(op, x, w, bias)?, bound)?])
    })
}

/// Computes the output of the layer, with a bias for each channel if one is given. Sums are exact and rounded once.
///
/// # Errors
/// [`Shape`](ErrorKind::Shape): an invalid shape, or an operand that does not match it.
/// [`Unsupported`](ErrorKind::Unsupported): a precision that rounds or splits f32.
pub fn conv<T: Number>(op: &Conv2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<T>> {
    Ok(rounded(&outputs(op, x, w, bias)?))
}

/// Bounds the difference from [`conv`] of each output after the op ran: `gamma(k + 4)` times the magnitudes of its
/// k products, with `gamma(j) = j u / (1 - j u)` and u = 2^-24, through the activation. Where the variant may be
/// Winograd's, the bound is 256 times that of products of the largest cells and weights: the worst case of its
/// transforms. Where it may run on cooperative matrices, which truncate sums, those of products are four times as wide.
/// f16 adds the rounding to either neighbour.
pub fn conv_bound<T: Number>(op: &Conv2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&outputs(op, x, w, bias)?))
}

pub(super) fn rounded<T: Number>(sums: &[OutputSum]) -> Vec<T> {
    sums.iter().map(|sum| T::from_f64(sum.exact)).collect()
}

/// The distance of each result from its sum rounded once.
pub(super) fn bounds<T: Number>(sums: &[OutputSum]) -> Vec<f64> {
    let bound = |sum: &OutputSum| {
        let want = T::from_f64(sum.exact);
        if T::DTYPE != DType::F16 || !sum.exact.is_finite() {
            return spread(want, sum.exact, sum.error);
        }
        // WGSL lets a conversion to f16 take either neighbour, and a device flush subnormal numbers.
        let most = sum.exact.abs() + sum.error;
        let error = sum.error + 2f64.powi(-10) * most + 2f64.powi(-14);
        if most + error > f16::MAX.to_f64() { f64::INFINITY } else { error }
    };
    sums.iter().map(bound).collect()
}

/// Which sums a variant of a layer may make: those of Winograd, and those of cooperative matrices.
pub(super) struct LayerSums {
    pub(super) winograd: bool,
    pub(super) matrices: bool,
}

impl LayerSums {
    pub(super) fn of<T: Number>(layer: &Layer, variant: &str) -> Result<Self> {
        let half = T::DTYPE == DType::F16;
        let precision = layer.precision;
        if precision == Precision::Split || precision == Precision::Tensor && !half {
            return Err(err!(
                Unsupported,
                "reference {}: no reference for {}; take Precision::Strict",
                layer.op,
                precision.name()
            ));
        }
        Ok(Self {
            winograd: matches!(variant, "auto" | "winograd") && !half && !layer.last && is_winograd(layer),
            matrices: matches!(variant, "auto" | "coop") && half && precision != Precision::Exact,
        })
    }
}

/// A sum of products, then the result made from it.
#[derive(Clone, Default)]
pub(super) struct OutputSum {
    pub(super) exact: f64,
    /// The largest error of the computed sum.
    pub(super) error: f64,
    products: usize,
}

impl OutputSum {
    /// While products are added, `error` is the sum of their magnitudes.
    pub(super) fn add(&mut self, product: f64) {
        self.exact += product;
        self.error += product.abs();
        self.products += 1;
    }

    /// Ends the sum after `terms` roundings, each of which may flush a subnormal number to 0.
    pub(super) fn close(&mut self, terms: f64) {
        let u = 2f64.powi(-24);
        self.error *= terms * u / (1.0 - terms * u);
        self.error += terms * f64::from(f32::MIN_POSITIVE);
    }

    /// Ends the sum with as many roundings as it has products.
    pub(super) fn finish(&mut self, matrices: bool) {
        self.close(self.products as f64 + 4.0);
        if matrices {
            self.error *= 4.0;
        }
    }

    fn end(&mut self, bias: Option<f64>, activation: Activation) {
        let u = ulp(1.0);
        if let Some(bias) = bias {
            self.exact += bias;
            self.error += u * self.exact.abs();
        }
        let (slope, own) = activation_errors(activation);
        self.exact = activate(activation, self.exact);
        self.error = slope * self.error + own * (1.0 + self.exact.abs());
    }
}

/// The largest factor by which Winograd's transforms enlarge the error of a sum.
pub(super) const WINOGRAD: f64 = 256.0;

/// The end of a layer: the number of sums along an image, bias, activation, and the error of Winograd's transforms.
pub(super) struct ConvEnd<'a, T> {
    pub(super) channels: usize,
    pub(super) pixels: usize,
    /// Sums next to each other are of channels.
    pub(super) last: bool,
    pub(super) bias: Option<&'a [T]>,
    pub(super) activation: Activation,
    /// The largest cell and weight, and channels of a window, if the sums may be Winograd's.
    pub(super) winograd: Option<[f64; 3]>,
    /// The sums may be those of cooperative matrices.
    pub(super) matrices: bool,
}

impl<T: Number> ConvEnd<'_, T> {
    pub(super) fn close(&self, sums: &mut [OutputSum]) {
        for (i, sum) in sums.iter_mut().enumerate() {
            match self.winograd {
                None => sum.finish(self.matrices),
                Some([cell, weight, channels]) => {
                    sum.error = WINOGRAD * 9.0 * channels * cell * weight;
                    sum.close(channels + 36.0);
                }
            }
            let channel = if self.last { i % self.channels } else { i / self.pixels % self.channels };
            sum.end(self.bias.map(|bias| bias[channel].to_f64()), self.activation);
        }
    }
}

pub(super) fn largest<T: Number>(x: &[T]) -> f64 {
    x.iter().fold(0.0, |largest, x| x.to_f64().abs().max(largest))
}

/// Says if Winograd's variant can run these windows.
fn is_winograd(layer: &Layer) -> bool {
    layer.kernel == [3, 3] && layer.stride == [1, 1] && layer.dilation == [1, 1]
}

fn outputs<T: Number>(op: &Conv2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<OutputSum>> {
    let (layer, activation, variant) = op.parts();
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(layer, variant)?;
    let [_, m, p, q] = layer.output_shape()?;
    let [len_x, len_w, len_y] = layer.lengths()?;
    check(layer, &[("x", x.len(), len_x), ("w", w.len(), len_w)])?;
    if let Some(bias) = bias {
        check(layer, &[("bias", bias.len(), m)])?;
    }
    let mut sums = vec![OutputSum::default(); len_y];
    each_product(layer, [p, q], |at| sums[at.y].add(x[at.x].to_f64() * w[at.w].to_f64()));
    let channels = (layer.shape[1] / layer.groups) as f64;
    let winograd = winograd.then(|| [largest(x), largest(w), channels]);
    let last = layer.last;
    ConvEnd { channels: m, pixels: p * q, last, bias, activation, winograd, matrices }.close(&mut sums);
    Ok(sums)
}

/// Checks that operands have the lengths of the layer: name, length, wanted length.
pub(super) fn check(layer: &Layer, operands: &[(&str, usize, usize)]) -> Result<()> {
    for (name, len, wanted) in operands {
        if len != wanted {
            return Err(err!(Shape, "reference {}: {name} has {len} elements; it must have {wanted}", layer.op));
        }
    }
    Ok(())
}

/// The places of a product's factors and of its sum: in x, the weights and the output of the layer.
pub(super) struct At {
    pub(super) x: usize,
    pub(super) w: usize,
    pub(super) y: usize,
}

/// Calls `visit` for every product of a layer with an output of P x Q, except those with padding.
pub(super) fn each_product(layer: &Layer, [p, q]: [usize; 2], mut visit: impl FnMut(At)) {
    let Layer { shape: [n, c, h, w], filters, kernel: [r, s], stride, pads, dilation, groups, last, .. } = *layer;
    let (from, to) = (c / groups, filters / groups);
    let along = |axis: usize, i: usize, a: usize, size: usize| {
        (i * stride[axis] + a * dilation[axis]).checked_sub(pads[axis]).filter(|at| *at < size)
    };
    for image in 0..n {
        for filter in 0..filters {
            for (i, j) in (0..p).flat_map(|i| (0..q).map(move |j| (i, j))) {
                let y = match last {
                    true => ((image * p + i) * q + j) * filters + filter,
                    false => ((image * filters + filter) * p + i) * q + j,
                };
                for channel in 0..from {
                    let of_x = filter / to * from + channel;
                    for (a, b) in (0..r).flat_map(|a| (0..s).map(move |b| (a, b))) {
                        if let (Some(row), Some(column)) = (along(0, i, a, h), along(1, j, b, w)) {
                            let (x, w) = if last {
                                let x = ((image * h + row) * w + column) * c + of_x;
                                (x, ((filter * r + a) * s + b) * from + channel)
                            } else {
                                let x = ((image * c + of_x) * h + row) * w + column;
                                (x, ((filter * from + channel) * r + a) * s + b)
                            };
                            visit(At { x, w, y });
                        }
                    }
                }
            }
        }
    }
}

fn judge_conv_transpose(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<ConvTranspose2d>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, w, bias) = (input::<T>(call, 0)?, input(call, 1)?, optional_input(call, 2)?);
        let bound = conv_transpose_bound(op, x, w, bias)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), conv_transpose(op, x, w, bias)?, bound)?])
    })
}

/// Computes the output of the layer, with a bias for each channel if one is given.
pub fn conv_transpose<T: Number>(op: &ConvTranspose2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<T>> {
    Ok(rounded(&conv_transpose_sums(op, x, w, bias)?))
}

/// Bounds the difference from [`conv_transpose`] of each output after the op ran; see
/// [`conv_bound`].
pub fn conv_transpose_bound<T: Number>(op: &ConvTranspose2d, x: &[T], w: &[T], bias: Option<&[T]>) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&conv_transpose_sums(op, x, w, bias)?))
}

fn conv_transpose_sums<T: Number>(
    op: &ConvTranspose2d, x: &[T], w: &[T], bias: Option<&[T]>,
) -> Result<Vec<OutputSum>> {
    let (layer, (activation, variant)) = (op.layer()?, op.end());
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(&layer, variant)?;
    let [output, len_w, _] = layer.lengths()?;
    let [height, width] = op.size();
    let [n, channels, p, q] = layer.shape;
    check(&layer, &[("x", x.len(), n * layer.filters * height * width), ("w", w.len(), len_w)])?;
    if let Some(bias) = bias {
        check(&layer, &[("bias", bias.len(), channels)])?;
    }
    let mut sums = vec![OutputSum::default(); output];
    each_product(&layer, [height, width], |at| sums[at.x].add(x[at.y].to_f64() * w[at.w].to_f64()));
    let from = (layer.filters / layer.groups) as f64;
    let winograd = winograd.then(|| [largest(x), largest(w), from]);
    let last = layer.last;
    ConvEnd { channels, pixels: p * q, last, bias, activation, winograd, matrices }.close(&mut sums);
    Ok(sums)
}

fn judge_conv_backward_data(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2dBackwardData>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (dy, w) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = conv_backward_data_bound(op, dy, w)?;
        Ok(vec![Wanted::near(&output_shape(call, 0), conv_backward_data(op, dy, w)?, bound)?])
    })
}

/// Computes the gradient with respect to x from that with respect to the output.
pub fn conv_backward_data<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&conv_backward_data_sums(op, dy, w)?))
}

/// Bounds the difference from [`conv_backward_data`] of each element after the op ran; see
/// [`conv_bound`].
pub fn conv_backward_data_bound<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&conv_backward_data_sums(op, dy, w)?))
}

fn conv_backward_data_sums<T: Number>(op: &Conv2dBackwardData, dy: &[T], w: &[T]) -> Result<Vec<OutputSum>> {
    let (layer, variant) = op.parts();
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(layer, variant)?;
    let [_, filters, p, q] = layer.output_shape()?;
    let [len_x, len_w, len_y] = layer.lengths()?;
    check(layer, &[("dy", dy.len(), len_y), ("w", w.len(), len_w)])?;
    let mut sums = vec![OutputSum::default(); len_x];
    each_product(layer, [p, q], |at| sums[at.x].add(dy[at.y].to_f64() * w[at.w].to_f64()));
    let channels = (filters / layer.groups) as f64;
    let winograd = winograd.then(|| [largest(dy), largest(w), channels]);
    let [_, channels, h, w] = layer.shape;
    let (activation, last) = (Activation::None, layer.last);
    ConvEnd::<T> { channels, pixels: h * w, last, bias: None, activation, winograd, matrices }.close(&mut sums);
    Ok(sums)
}

fn judge_conv_backward_weights(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2dBackwardWeights>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let (x, dy) = (input::<T>(call, 0)?, input(call, 1)?);
        let bound = conv_backward_weights_bound(op, x, dy)?;
        let mut wanted = vec![Wanted::near(&output_shape(call, 0), conv_backward_weights(op, x, dy)?, bound)?];
        if call.outputs().count() > 1 {
            let bound = conv_backward_bias_bound(op, dy)?;
            wanted.push(Wanted::near(&output_shape(call, 1), conv_backward_bias(op, dy)?, bound)?);
        }
        Ok(wanted)
    })
}

/// Computes the gradient with respect to the weights from that with respect to the output.
pub fn conv_backward_weights<T: Number>(op: &Conv2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&weights(op, x, dy)?))
}

/// Bounds the difference from [`conv_backward_weights`] of each element after the op ran: `gamma(k + 4)` times the
/// magnitudes of its k products; where the variant may be Winograd's, as [`conv_bound`].
pub fn conv_backward_weights_bound<T: Number>(op: &Conv2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&weights(op, x, dy)?))
}

/// Computes the gradient with respect to the bias.
pub fn conv_backward_bias<T: Number>(op: &Conv2dBackwardWeights, dy: &[T]) -> Result<Vec<T>> {
    Ok(rounded(&bias(op, dy)?))
}

/// Bounds the difference from [`conv_backward_bias`] of each element after the op ran.
pub fn conv_backward_bias_bound<T: Number>(op: &Conv2dBackwardWeights, dy: &[T]) -> Result<Vec<f64>> {
    Ok(bounds::<T>(&bias(op, dy)?))
}

fn weights<T: Number>(op: &Conv2dBackwardWeights, x: &[T], dy: &[T]) -> Result<Vec<OutputSum>> {
    let (layer, variant) = op.parts();
    let LayerSums { winograd, matrices } = LayerSums::of::<T>(layer, variant)?;
    let [n, _, p, q] = layer.output_shape()?;
    let [len_x, len_w, len_y] = layer.lengths()?;
    check(layer, &[("x", x.len(), len_x), ("dy", dy.len(), len_y)])?;
    let mut sums = vec![OutputSum::default(); len_w];
    each_product(layer, [p, q], |at| sums[at.w].add(x[at.x].to_f64() * dy[at.y].to_f64()));
    if winograd {
        let tiles = (n * p.div_ceil(4) * q.div_ceil(4)) as f64;
        for sum in &mut sums {
            sum.error = WINOGRAD * 16.0 * tiles * largest(x) * largest(dy);
            sum.close(tiles + 64.0);
        }
    } else {
        sums.iter_mut().for_each(|sum| sum.finish(matrices));
    }
    Ok(sums)
}

fn bias<T: Number>(op: &Conv2dBackwardWeights, dy: &[T]) -> Result<Vec<OutputSum>> {
    let layer = op.parts().0;
    let [_, filters, p, q] = layer.output_shape()?;
    check(layer, &[("dy", dy.len(), layer.lengths()?[2])])?;
    let mut sums = vec![OutputSum::default(); filters];
    for (i, dy) in dy.iter().enumerate() {
        let filter = if layer.last { i % filters } else { i / (p * q) % filters };
        sums[filter].add(dy.to_f64());
    }
    sums.iter_mut().for_each(|sum| sum.finish(false));
    Ok(sums)
}

#[cfg(test)]
#[path = "tests/conv.rs"]
mod tests;

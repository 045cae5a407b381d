//! Convolution layers, product by product in f64.

use super::activation::{activate, activation_errors};
use super::judge::{Wanted, descriptor, input, optional_input, output_shape};
use super::number::{spread, ulp};
use crate::conv::{Conv2d, Layer};
use crate::dense::{Activation, Precision};
use crate::error::{Result, err};
use crate::program::Form;

pub(super) fn judge(form: &Form) -> Result<Vec<Wanted>> {
    let op = descriptor::<Conv2d>(form)?;
    if !matches!(op.precision, Precision::Strict | Precision::Exact) {
        return Err(err!(
            Unsupported,
            "reference conv: no reference for {}; take Precision::Strict",
            op.precision.name()
        ));
    }
    let (x, w, bias) = (input(form, 0)?, input(form, 1)?, optional_input(form, 2)?);
    let bound = conv_bound(op, x, w, bias)?;
    Ok(vec![Wanted::near(&output_shape(form, 0), conv(op, x, w, bias)?, bound)?])
}

/// Computes the output of the layer, with a bias for each channel if one is given.
///
/// # Errors
/// [`Shape`](crate::ErrorKind::Shape): an invalid shape, or an operand that does not match it.
pub fn conv(op: &Conv2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<f32>> {
    Ok(outputs(op, x, w, bias)?.iter().map(|sum| sum.exact as f32).collect())
}

/// Bounds the difference from [`conv`] of each output after the op ran: `gamma(k + 4)` times the magnitudes of its
/// k products, with `gamma(j) = j u / (1 - j u)` and u = 2^-24, through the activation. Where the variant may be
/// Winograd's, the bound is 256 times that of products of the largest cells and weights: the worst case of its
/// transforms.
///
/// # Errors
/// As [`conv`].
pub fn conv_bound(op: &Conv2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<f64>> {
    Ok(outputs(op, x, w, bias)?.iter().map(|sum| spread(sum.exact as f32, sum.exact, sum.error)).collect())
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
    pub(super) fn finish(&mut self) {
        self.close(self.products as f64 + 4.0);
    }

    /// Ends the sum of a layer, with bias and activation.
    fn end(&mut self, bias: Option<f32>, activation: Activation) {
        let u = ulp(1.0);
        if let Some(bias) = bias {
            self.exact += f64::from(bias);
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
pub(super) struct ConvEnd<'a> {
    pub(super) channels: usize,
    pub(super) pixels: usize,
    pub(super) bias: Option<&'a [f32]>,
    pub(super) activation: Activation,
    /// The largest cell and weight, and channels of a window, if the sums may be Winograd's.
    pub(super) winograd: Option<[f64; 3]>,
}

impl ConvEnd<'_> {
    pub(super) fn close(&self, sums: &mut [OutputSum]) {
        for (i, sum) in sums.iter_mut().enumerate() {
            match self.winograd {
                None => sum.finish(),
                Some([cell, weight, channels]) => {
                    sum.error = WINOGRAD * 9.0 * channels * cell * weight;
                    sum.close(channels + 36.0);
                }
            }
            sum.end(self.bias.map(|bias| bias[i / self.pixels % self.channels]), self.activation);
        }
    }
}

/// The largest magnitude.
pub(super) fn largest(x: &[f32]) -> f64 {
    x.iter().fold(0.0, |largest, x| f64::from(x.abs()).max(largest))
}

/// Says if Winograd's variant can run these windows.
pub(super) fn is_winograd(layer: &Layer) -> bool {
    layer.kernel == [3, 3] && layer.stride == [1, 1] && layer.dilation == [1, 1]
}

fn outputs(op: &Conv2d, x: &[f32], w: &[f32], bias: Option<&[f32]>) -> Result<Vec<OutputSum>> {
    let (layer, activation, maybe_winograd) = op.parts();
    let [_, m, p, q] = layer.output_shape()?;
    let [len_x, len_w, len_y] = layer.lengths()?;
    check(layer, &[("x", x.len(), len_x), ("w", w.len(), len_w)])?;
    if let Some(bias) = bias {
        check(layer, &[("bias", bias.len(), m)])?;
    }
    let mut sums = vec![OutputSum::default(); len_y];
    each_product(layer, [p, q], |at| sums[at.y].add(f64::from(x[at.x]) * f64::from(w[at.w])));
    let channels = (layer.shape[1] / layer.groups) as f64;
    let winograd = (maybe_winograd && is_winograd(layer)).then(|| [largest(x), largest(w), channels]);
    ConvEnd { channels: m, pixels: p * q, bias, activation, winograd }.close(&mut sums);
    Ok(sums)
}

/// Checks that operands have the lengths of the layer: name, length, wanted length.
pub(super) fn check(layer: &Layer, operands: &[(&str, usize, usize)]) -> Result<()> {
    for (name, len, wanted) in operands {
        if len != wanted {
            return Err(err!(
                Shape,
                "reference {}: {name} has {len} elements; it must have {wanted}",
                layer.op
            ));
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
    let Layer { shape: [n, c, h, w], filters, kernel: [r, s], stride, pads, dilation, groups, .. } = *layer;
    let (from, to) = (c / groups, filters / groups);
    let along = |axis: usize, i: usize, a: usize, size: usize| {
        (i * stride[axis] + a * dilation[axis]).checked_sub(pads[axis]).filter(|at| *at < size)
    };
    for image in 0..n {
        for filter in 0..filters {
            for (i, j) in (0..p).flat_map(|i| (0..q).map(move |j| (i, j))) {
                let y = ((image * filters + filter) * p + i) * q + j;
                for channel in 0..from {
                    let plane = image * c + filter / to * from + channel;
                    for (a, b) in (0..r).flat_map(|a| (0..s).map(move |b| (a, b))) {
                        if let (Some(row), Some(column)) = (along(0, i, a, h), along(1, j, b, w)) {
                            let x = (plane * h + row) * w + column;
                            visit(At { x, w: ((filter * from + channel) * r + a) * s + b, y });
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: [f32; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

    #[test]
    fn sums_of_windows_are_known() {
        let op = Conv2d::new([1, 1, 3, 3], 1, [2, 2]);
        assert_eq!(conv(&op, &X, &[1.0, 0.0, 0.0, 10.0], None).unwrap(), [51.0, 62.0, 84.0, 95.0]);
        let same = Conv2d::new([1, 1, 3, 3], 1, [3, 3]).pad([1, 1]);
        let right = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert_eq!(conv(&same, &X, &right, None).unwrap(), [2.0, 3.0, 0.0, 5.0, 6.0, 0.0, 8.0, 9.0, 0.0]);
        let corners = Conv2d::new([1, 1, 3, 3], 1, [2, 2]).dilation([2, 2]);
        assert_eq!(conv(&corners, &X, &[1.0, 1.0, 1.0, 1.0], Some(&[0.5])).unwrap(), [20.5]);
        let strided = Conv2d::new([1, 1, 3, 3], 1, [1, 1]).stride([2, 2]).pad_each([0, 0, 0, 1]);
        assert_eq!(conv(&strided, &X, &[1.0], None).unwrap(), [1.0, 3.0, 7.0, 9.0]);
    }

    #[test]
    fn groups_see_their_channels() {
        let op = Conv2d::new([1, 2, 1, 2], 4, [1, 1]).groups(2).activation(Activation::Relu);
        let y = conv(&op, &[1.0, -2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, -1.0], None).unwrap();
        assert_eq!(y, [1.0, 0.0, 2.0, 0.0, 9.0, 12.0, 0.0, 0.0]);
        let op = Conv2d::new([1, 2, 1, 2], 1, [1, 1]);
        assert_eq!(conv(&op, &[1.0, 2.0, 3.0, 4.0], &[10.0, 1.0], None).unwrap(), [13.0, 24.0]);
        assert!(conv(&op, &X, &[10.0, 1.0], None).is_err());
    }
}

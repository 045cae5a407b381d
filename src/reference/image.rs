use super::filters::outside;
use super::histogram;
use super::prelude::*;
use crate::conv::Boundary;
use crate::image::{
    Blur, Divide, EQUALIZE_BINS as BINS, Equalize, Gaussian, Gradient, Grey, GreyWeights, Layout, Median, Sobel,
};

judges! {
    grey => judge_grey, blur => judge_blur, gaussian => judge_gaussian, median => judge_median,
    sobel => judge_sobel, equalize => judge_equalize
}

fn judge_grey(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Grey>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (grey(op, x), grey_bound(op, x));
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

fn pixels<'a, T: Number>(op: &Grey, input: &'a [T]) -> impl Iterator<Item = [f64; 3]> + 'a {
    let count = input.len() / op.image.channels.max(1);
    let [step, next] = if op.image.layout == Layout::Planar { [1, count] } else { [op.image.channels, 1] };
    (0..count).map(move |i| [0, 1, 2].map(|c| input[i * step + c * next].to_f64()))
}

/// Applies `op` to an image; `u8` results are whole numbers.
pub fn grey<T: Number>(op: &Grey, input: &[T]) -> Vec<f64> {
    let whole = T::DTYPE == DType::U8;
    let of = |[r, g, b]: [f64; 3]| match op.weights {
        GreyWeights::Luma if whole => ((299.0 * r + 587.0 * g + 114.0 * b + 500.0) / 1000.0).floor(),
        GreyWeights::Source if whole => (3.0 * r / 10.0).floor() + (6.0 * g / 10.0).floor() + (b / 10.0).floor(),
        GreyWeights::Luma => 0.299 * r + 0.587 * g + 0.114 * b,
        GreyWeights::Source => 0.3 * r + 0.6 * g + 0.1 * b,
    };
    pixels(op, input).map(of).collect()
}

/// Returns the error bound of each pixel against [`grey`]; 0 for `u8`.
pub fn grey_bound<T: Number>(op: &Grey, input: &[T]) -> Vec<f64> {
    // A rounding of each weight, product and sum.
    let of = |p: [f64; 3]| {
        let size: f64 = p.iter().map(|c| c.abs()).sum();
        let bound = 6.0 * 2f64.powi(-24) * size + 6.0 * f64::from(f32::MIN_POSITIVE);
        if size > f64::from(f32::MAX) { f64::INFINITY } else { bound }
    };
    let whole = T::DTYPE == DType::U8;
    pixels(op, input).map(|p| if whole { 0.0 } else { of(p) }).collect()
}

fn judge_blur(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Blur>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (blur(op, x), blur_bound(op, x));
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Returns for each element the sum of its window, the sum of magnitudes, and the divisor.
fn windows<T: Number>(op: &Blur, input: &[T]) -> Vec<(f64, f64, f64)> {
    let values: Vec<_> = input.iter().map(|x| (x.to_f64(), x.to_f64().abs(), 1.0)).collect();
    let [planes, h, row] = op.image.extents();
    let step = op.image.step();
    // Sums along an axis of `n` places, `apart` elements from each other. Sums of bytes are exact.
    let along = |values: &[(f64, f64, f64)], n: usize, apart: usize| -> Vec<_> {
        let window = |place: usize| {
            let i = place / apart % n;
            let from = i.saturating_sub(op.radius)..=(i + op.radius).min(n - 1);
            from.map(|j| values[place - i * apart + j * apart])
                .fold((0.0, 0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2))
        };
        (0..values.len()).map(window).collect()
    };
    if planes * h * row == 0 {
        return Vec::new();
    }
    let mut all = along(&along(&values, row / step, step), h, row);
    if op.divide == Divide::Window {
        all.iter_mut().for_each(|w| w.2 = (2.0 * op.radius as f64 + 1.0).powi(2));
    }
    all
}

/// Applies `op` to an image; `u8` results are whole numbers.
pub fn blur<T: Number>(op: &Blur, input: &[T]) -> Vec<f64> {
    let mean = |(sum, _, count): (f64, f64, f64)| match op.divide {
        _ if T::DTYPE != DType::U8 => sum / count,
        Divide::Inside => ((2.0 * sum + count) / (2.0 * count)).floor(),
        Divide::Window => (sum / count).floor(),
    };
    windows(op, input).into_iter().map(mean).collect()
}

/// Returns the error bound of each element against [`blur`]; 0 for `u8`.
pub fn blur_bound<T: Number>(op: &Blur, input: &[T]) -> Vec<f64> {
    // A rounding a term, and those of the quotient.
    let bound = |(_, size, count): (f64, f64, f64)| {
        (count + 4.0) * 2f64.powi(-24) * size / count + 2.0 * f64::from(f32::MIN_POSITIVE)
    };
    let whole = T::DTYPE == DType::U8;
    windows(op, input).into_iter().map(|w| if whole { 0.0 } else { bound(w) }).collect()
}

fn judge_gaussian(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Gaussian>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        // Bytes are the nearest to what came, anywhere within the bound.
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &gaussian(op, x), &gaussian_bound(op, x))?])
    })
}

/// The sum of each element, and the same with every term made positive.
fn sums<T: Element + Into<f64>>(op: &Gaussian, input: &[T]) -> Vec<(f64, f64)> {
    let values = input.iter().map(|&x| x.into()).map(|x: f64| (x, x.abs())).collect::<Vec<_>>();
    let [planes, h, row] = op.image.extents();
    let step = op.image.step();
    let (weights, radius) = (op.weights(), op.reach() as isize);
    // Sums along an axis of `n` places, `apart` elements from each other.
    let along = |values: &[(f64, f64)], n: usize, apart: usize| -> Vec<(f64, f64)> {
        (0..values.len())
            .map(|place| {
                let i = place / apart % n;
                let terms = weights.iter().zip(-radius..).filter_map(|(weight, off)| {
                    let from = outside(op.boundary, i as isize + off, n)?;
                    let (sum, size) = values[place - i * apart + from * apart];
                    Some((weight * sum, weight * size))
                });
                terms.fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
            })
            .collect()
    };
    if planes * h * row == 0 {
        return Vec::new();
    }
    along(&along(&values, row / step, step), h, row)
}

/// Applies `op` to an image, without rounding. For `u8` round to the nearest.
pub fn gaussian<T: Element + Into<f64>>(op: &Gaussian, input: &[T]) -> Vec<f64> {
    sums(op, input).into_iter().map(|(sum, _)| sum).collect()
}

/// Returns the error bound of each element against [`gaussian`], before rounding to `u8`: `(t^2 + 8) u s + 2 t^2 m`,
/// with `t` weights along an axis, u = 2^-24, `s` the weighted sum of the window's magnitudes and `m` the smallest
/// normal f32.
pub fn gaussian_bound<T: Element + Into<f64>>(op: &Gaussian, input: &[T]) -> Vec<f64> {
    // A rounding of a sum a term, one of each weight, and one of their product; the naive one sums by windows.
    let taps = op.weights().len() as f64;
    let gamma = (taps * taps + 8.0) / 2.0;
    let flush = 2.0 * taps * taps * f64::from(f32::MIN_POSITIVE);
    sums(op, input).into_iter().map(|(_, size)| gamma * 2f64.powi(-23) * size + flush).collect()
}

fn judge_median(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Median>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let want = median(op, input::<T>(call, 0)?);
        let shape = output_shape(call, 0);
        Ok(vec![if want.iter().any(|x| x.to_f64().is_nan()) {
            // Any NaN is right.
            let bound = vec![0.0; want.len()];
            Wanted::near(&shape, want, bound)?
        } else {
            Wanted::exact(&shape, want)?
        }])
    })
}

/// Applies `op` to an image: exact bits, except those of a NaN.
pub fn median<T: Number>(op: &Median, input: &[T]) -> Vec<T> {
    let [planes, h, row] = op.image.extents();
    let (step, radius) = (op.image.step(), op.size as isize / 2);
    let mut medians = Vec::with_capacity(input.len());
    for z in 0..planes {
        for y in 0..h {
            for e in 0..row {
                let mut window = Vec::with_capacity(op.size * op.size);
                for j in -radius..=radius {
                    for i in -radius..=radius {
                        let from_y = outside(op.boundary, y as isize + j, h);
                        let from_x = outside(op.boundary, (e / step) as isize + i, row / step);
                        let place = from_y.zip(from_x).map(|(y, x)| (z * h + y) * row + x * step + e % step);
                        window.push(place.map_or(T::from_f64(0.0), |place| input[place]));
                    }
                }
                window.sort_by(|a, b| {
                    let (a, b) = (a.to_f64(), b.to_f64());
                    a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(&b))
                });
                medians.push(window[window.len() / 2]);
            }
        }
    }
    medians
}

fn judge_sobel(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Sobel>(call)?;
    by_input!(call, 0, [u8, f16, f32], T => {
        let x = input::<T>(call, 0)?;
        let (mut want, mut bound) = (sobel(op, x), sobel_bound(op, x));
        if T::DTYPE == DType::U8 {
            want.iter_mut().for_each(|g| *g = g.abs().round().min(255.0));
            bound.fill(0.0);
        }
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Returns `gx`, `gy`, and the sums of the magnitudes of their terms, for each element.
fn gradients<T: Element + Into<f64>>(op: &Sobel, input: &[T]) -> Vec<[f64; 4]> {
    let [planes, h, row] = op.image.extents();
    let step = op.image.step();
    let mut all = Vec::with_capacity(input.len());
    for z in 0..planes {
        for y in 0..h {
            for e in 0..row {
                let mut sums = [0.0; 4];
                for (j, smooth_y) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                    for (i, smooth_x) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                        let from_y = outside(Boundary::Clamp, y as isize + j, h).unwrap_or(0);
                        let from_x = outside(Boundary::Clamp, (e / step) as isize + i, row / step).unwrap_or(0);
                        let value: f64 = input[(z * h + from_y) * row + from_x * step + e % step].into();
                        // The axis itself is no term: an infinity on it is not multiplied by 0.
                        let terms = [(i, smooth_y), (j, smooth_x)];
                        for (axis, (side, smooth)) in terms.into_iter().enumerate().filter(|t| t.1.0 != 0) {
                            sums[axis] += side as f64 * smooth * value;
                            sums[2 + axis] += 4.0 * value.abs();
                        }
                    }
                }
                all.push(sums);
            }
        }
    }
    all
}

/// Applies `op` to an image, without rounding. For `u8` take the magnitude, round to the nearest, and saturate.
pub fn sobel<T: Element + Into<f64>>(op: &Sobel, input: &[T]) -> Vec<f64> {
    let of = |[x, y, ..]: [f64; 4]| match op.gradient {
        // Not `hypot`, for which NaN and an infinity make an infinity.
        Gradient::Magnitude => (x * x + y * y).sqrt(),
        Gradient::X => x,
        Gradient::Y => y,
    };
    gradients(op, input).into_iter().map(of).collect()
}

/// Returns the error bound of each element against [`sobel`] in f32.
pub fn sobel_bound<T: Element + Into<f64>>(op: &Sobel, input: &[T]) -> Vec<f64> {
    let bound = |[x, y, of_x, of_y]: [f64; 4]| {
        let size = match op.gradient {
            Gradient::Magnitude => of_x + of_y,
            Gradient::X => of_x,
            Gradient::Y => of_y,
        };
        let sums = 16.0 * 2f64.powi(-24) * size + 16.0 * f64::from(f32::MIN_POSITIVE);
        let magnitude = x.hypot(y);
        match op.gradient {
            Gradient::Magnitude if size > 1e19 => f64::INFINITY,
            // The root, and squares too small for f32.
            Gradient::Magnitude => sums + 16.0 * 2f64.powi(-24) * magnitude + 2f64.powi(-62),
            _ if size > f64::from(f32::MAX) => f64::INFINITY,
            _ => sums,
        }
    };
    gradients(op, input).into_iter().map(bound).collect()
}

fn judge_equalize(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Equalize>(call)?;
    by_input!(call, 0, [u8, f32, f16], T => {
        let x = input::<T>(call, 0)?;
        let (want, bound) = (equalize(op, x)?, equalize_bound(op, x)?);
        Ok(vec![Wanted::rounded(T::DTYPE, &output_shape(call, 0), &want, &bound)?])
    })
}

/// Returns the new elements of a channel, each with its error bound in f32.
fn channel<T: Number>(op: &Equalize, values: &[T]) -> Result<Vec<(f64, f64)>> {
    let counts = histogram(&op.histogram(T::DTYPE), values)?;
    let mut sums = counts.iter().scan(0u64, |sum, &n| {
        *sum += u64::from(n);
        Some(*sum)
    });
    let sums: Vec<u64> = sums.by_ref().collect();
    let total = sums.last().copied().unwrap_or(0);
    let least = u64::from(counts.iter().copied().find(|n| *n > 0).unwrap_or(0));
    let of_byte = |v: usize| {
        let whole = total - least;
        let part = sums[v].max(least) - least;
        // Rounded half up, in whole numbers.
        if whole == 0 { v as f64 } else { ((510 * part + whole) / (2 * whole)) as f64 }
    };
    let (lo, hi) = (f64::from(op.range.0 as f32), f64::from(op.range.1 as f32));
    let share = |bin: usize| sums[bin] as f64 / total.max(1) as f64;
    let of_float = |x: f64| {
        if x.is_nan() {
            return (x, 0.0);
        }
        let last = BINS - 1;
        let inside = ((x - lo) / (hi - lo) * BINS as f64 - 0.5).clamp(0.0, last as f64);
        let below = (inside as usize).min(last - 1);
        let y = share(below) + (inside - below as f64) * (share(below + 1) - share(below));
        // The place is off by a few roundings, maybe in the next bin; the line by a few more.
        let place = BINS as f64 * 8.0 * 2f64.powi(-24) * (1.0 + lo.abs().max(hi.abs()) / (hi - lo));
        let (from, to) = (below.saturating_sub(1), (below + 2).min(last));
        let steepest = (from..to).map(|i| share(i + 1) - share(i)).fold(0.0, f64::max);
        (y, steepest * place + 4.0 * 2f64.powi(-23))
    };
    Ok(values
        .iter()
        .map(|x| if T::DTYPE == DType::U8 { (of_byte(x.to_f64() as usize), 0.0) } else { of_float(x.to_f64()) })
        .collect())
}

fn elements<T: Number>(op: &Equalize, input: &[T]) -> Result<Vec<(f64, f64)>> {
    let mut all: Vec<_> = input.iter().map(|x| (x.to_f64(), 0.0)).collect();
    let (pixels, [step, plane]) = (op.image.h * op.image.w, op.strides());
    for colour in 0..op.colours() {
        let places: Vec<usize> = (0..pixels).map(|i| colour * plane + i * step).collect();
        let values: Vec<T> = places.iter().map(|&i| input[i]).collect();
        for (place, new) in places.into_iter().zip(channel(op, &values)?) {
            all[place] = new;
        }
    }
    Ok(all)
}

/// Applies `op` to an image.
pub fn equalize<T: Number>(op: &Equalize, input: &[T]) -> Result<Vec<f64>> {
    Ok(elements(op, input)?.into_iter().map(|(value, _)| value).collect())
}

/// Returns the error bound of each element against [`equalize`]; 0 for `u8`.
pub fn equalize_bound<T: Number>(op: &Equalize, input: &[T]) -> Result<Vec<f64>> {
    Ok(elements(op, input)?.into_iter().map(|(_, bound)| bound).collect())
}

#[cfg(test)]
#[path = "tests/image.rs"]
mod tests;

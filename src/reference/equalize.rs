use super::histogram;
use super::prelude::*;
use crate::image::{EQUALIZE_BINS as BINS, Equalize};

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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
#[path = "tests/equalize.rs"]
mod tests;

use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let plane = call.inputs().next().and_then(|dy| dy.shape().get(2..)).unwrap_or_default().iter().product();
    let (shape, dy) = (output_shape(call, 0), input::<f32>(call, 0)?);
    let channels = row_length(call);
    let bound = bias_backward_bound(channels, plane, dy);
    Ok(vec![Wanted::near(&shape, bias_backward(channels, plane, dy), bound)?])
}

/// Sums `dy`, images of `channels` planes of `plane` elements, over all axes but the channels.
pub fn bias_backward<T: Number>(channels: usize, plane: usize, dy: &[T]) -> Vec<T> {
    sums(channels, plane, dy).into_iter().map(|(exact, _)| T::from_f64(exact)).collect()
}

/// Bounds the error of each sum by its chains of additions: over a plane, a block of images, and all blocks.
pub fn bias_backward_bound<T: Number>(channels: usize, plane: usize, dy: &[T]) -> Vec<f64> {
    let images = dy.len().checked_div(channels * plane).unwrap_or(0);
    let chain = (plane.min(200) + images.min(320 + images / 128)) as f64;
    let of = |(exact, size)| spread(T::from_f64(exact), exact, chain * ulp(1.0) * size);
    sums(channels, plane, dy).into_iter().map(of).collect()
}

fn sums<T: Number>(channels: usize, plane: usize, dy: &[T]) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0.0); channels];
    for (i, g) in dy.iter().enumerate() {
        let sum = &mut sums[i / plane % channels];
        sum.0 += g.to_f64();
        sum.1 += g.to_f64().abs();
    }
    sums
}

#[cfg(test)]
#[path = "tests/bias_backward.rs"]
mod tests;

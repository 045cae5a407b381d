use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let array = call.inputs().next();
    let [h, w] = array.and_then(|array| array.shape().try_into().ok()).unwrap_or([0; 2]);
    let image = input::<f32>(call, 0)?;
    let field = |x, y| image[adaptive_grid_pixel([h, w], x, y)];
    let limit = settings(call)?.maybe("limit")?.unwrap_or(usize::MAX);
    let levels = option(call, "first")?..=option(call, "depth")?;
    let given = call.inputs().count() > 1;
    let threshold = if given { input::<f32>(call, 1)?[0] } else { option(call, "threshold")? };
    let (nodes, values) = adaptive_grid(field, levels, |_, range| range > threshold, limit);
    let bound = values.iter().flat_map(|_| [adaptive_grid_bound(image), 0.0]).collect();
    let count = nodes.len();
    Ok(vec![Wanted::exact(&[count, 4], nodes.concat())?, Wanted::near(&[count, 2], values.concat(), bound)?])
}

/// Returns the index of the pixel at a point of the unit square, by one product in f32 for each axis.
pub fn adaptive_grid_pixel([h, w]: [usize; 2], x: f64, y: f64) -> usize {
    let place = |at: f64, extent: usize| ((at as f32 * extent as f32) as usize).min(extent.saturating_sub(1));
    place(y, h) * w + place(x, w)
}

/// Bounds the error of the mean of 64 samples.
pub fn adaptive_grid_bound(samples: &[f32]) -> f64 {
    let largest = samples.iter().filter(|x| x.is_finite()).fold(0.0f32, |most, x| most.max(x.abs()));
    8.0 * f64::from(f32::EPSILON) * f64::from(largest) + f64::from(f32::MIN_POSITIVE)
}

/// Returns the cells of a grid, and the mean and range of each. `field` gives the samples at points of the unit square,
/// and `splits` whether a cell above the deepest level splits, by cell and range.
pub fn adaptive_grid(
    field: impl Fn(f64, f64) -> f32, levels: std::ops::RangeInclusive<u32>, splits: impl Fn(&[u32; 4], f32) -> bool,
    limit: usize,
) -> (Vec<[u32; 4]>, Vec<[f32; 2]>) {
    let measured = |level: u32, x: u32, y: u32| {
        let at = |i: u32, cell: u32| (f64::from(8 * cell + i) + 0.5) / f64::from(8u32 << level);
        let samples: Vec<f32> = (0..64).map(|i| field(at(i % 8, x), at(i / 8, y))).collect();
        if samples.iter().any(|x| !x.is_finite()) {
            return [f32::NAN; 2];
        }
        let least = samples.iter().fold(f32::INFINITY, |least, x| least.min(*x));
        let largest = samples.iter().fold(f32::NEG_INFINITY, |most, x| most.max(*x));
        [(samples.iter().map(|x| f64::from(*x)).sum::<f64>() / 64.0) as f32, largest - least]
    };
    let (first, depth) = (*levels.start(), *levels.end());
    let bits = |code: u32| (0..16).map(|bit| (code >> (2 * bit) & 1) << bit).sum::<u32>();
    let mut nodes: Vec<_> = (0..1 << (2 * first)).map(|i| [u32::MAX, first, bits(i), bits(i >> 1)]).collect();
    let mut values = Vec::new();
    while let Some(&cell) = nodes.get(values.len()) {
        let [_, level, x, y] = cell;
        let value = measured(level, x, y);
        if splits(&cell, value[1]) && level < depth && nodes.len() + 4 <= limit {
            nodes[values.len()][0] = nodes.len() as u32;
            nodes.extend((0..4).map(|quarter| [u32::MAX, level + 1, 2 * x + quarter % 2, 2 * y + quarter / 2]));
        }
        values.push(value);
    }
    (nodes, values)
}

#[cfg(test)]
#[path = "tests/adaptive_grid.rs"]
mod tests;

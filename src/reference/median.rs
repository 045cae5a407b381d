use super::filter3d::outside;
use super::prelude::*;
use crate::image::Median;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
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

#[cfg(test)]
#[path = "tests/median.rs"]
mod tests;

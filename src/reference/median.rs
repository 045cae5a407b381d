//! Median filter.

use super::Number;
use super::filter3d::outside;
use super::judge::{Wanted, by_input, descriptor, input, output_shape};
use crate::error::Result;
use crate::image::Median;
use crate::program::OpCall;
use half::f16;

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
mod tests {
    use super::*;
    use crate::conv::Boundary;
    use crate::image::Image;

    #[test]
    fn known_medians() {
        let x = [9u8, 2, 3, 4, 5, 6, 7, 8, 1];
        let op = Median::new([3, 3], 3);
        assert_eq!(median(&op, &x), [5, 4, 3, 7, 5, 3, 7, 6, 5]);
        assert_eq!(median(&op.clone().boundary(Boundary::Zero), &x), [0, 3, 0, 4, 5, 2, 0, 4, 0]);
        assert_eq!(median(&op.boundary(Boundary::Wrap), &x), [5; 9]);
        assert_eq!(median(&Median::new([3, 3], 1), &x), x);
        // A window that is larger than the image: the pixels at its ends count most.
        assert_eq!(median(&Median::new([1, 3], 9), &[3u8, 7, 5]), [3, 5, 5]);
        // Channels do not mix, in both layouts.
        assert_eq!(
            median(&Median::new(Image::new([1, 3], 2), 3), &[1u8, 30, 2, 10, 3, 20]),
            [1, 30, 2, 20, 3, 20]
        );
        let planes = Median::new(Image::new([1, 3], 2).planar(), 3);
        assert_eq!(median(&planes, &[1u8, 2, 3, 30, 10, 20]), [1, 2, 3, 30, 20, 20]);
    }

    #[test]
    fn negative_zero_lies_below_zero_and_nan_above_infinity() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let middle = |row: [f32; 3]| median(&Median::new([1, 3], 3), &row)[1];
        assert_eq!(middle([0.0, -0.0, -0.0]).to_bits(), (-0.0f32).to_bits());
        assert_eq!(middle([0.0, -0.0, 1.0]).to_bits(), 0);
        assert_eq!(middle([-nan, inf, 1.0]), inf);
        assert_eq!(middle([nan, -inf, 1.0]), 1.0);
        assert!(middle([nan, -nan, 1.0]).is_nan());
    }
}

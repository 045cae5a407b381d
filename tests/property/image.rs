//! Cases of the ops on images.

use super::draw::{Draw, typed};
use super::guarded::Case;
use crate::support::Sample;
use tilework::conv::Boundary;
use tilework::prelude::*;
use tilework::reference;

/// An image of one to four channels, interleaved or planar.
fn image(draw: &mut Draw, channels: &[usize]) -> Image {
    let (h, w) = (draw.length(1, 60), draw.length(1, 70));
    let image = Image::new([h, w], draw.option(channels));
    if draw.option(&[false, false, true]) { image.planar() } else { image }
}

fn len(image: Image) -> usize {
    image.h * image.w * image.channels
}

pub(super) fn grey(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let variant = draw.variant(Grey::variants());
        let image = image(draw, &[3, 4]);
        let op = Grey::new(image).weights(draw.option(&GreyWeights::ALL)).variant(variant);
        let x = draw.special::<T>(len(image));
        let (want, bound) = (reference::grey(&op, &x), reference::grey_bound(&op, &x));
        Case::new::<T>(op).given(&x).near::<T>(want, bound)
    }
    typed!(draw, of, [u8, f32])
}

pub(super) fn blur(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let variant = draw.variant(Blur::variants());
        let image = image(draw, &[1, 3, 4, 2]);
        let op = Blur::new(image, draw.option(&[1, 2, 5])).divide(draw.option(&Divide::ALL)).variant(variant);
        let x = draw.special::<T>(len(image));
        let (want, bound) = (reference::blur(&op, &x), reference::blur_bound(&op, &x));
        Case::new::<T>(op).given(&x).near::<T>(want, bound)
    }
    typed!(draw, of, [u8, f32])
}

pub(super) fn gaussian(draw: &mut Draw) -> Case {
    fn of<T: Sample + Into<f64>>(draw: &mut Draw) -> Case {
        let variant = draw.variant(Gaussian::variants());
        let image = image(draw, &[1, 3, 4, 2]);
        let boundary = draw.option(&[Boundary::Clamp, Boundary::Zero, Boundary::Wrap]);
        // Wrapping requires an image at least as large as the window.
        let boundary = if image.h.min(image.w) < 9 { Boundary::Clamp } else { boundary };
        let op = Gaussian::new(image, draw.option(&[1.0, 0.5, 0.4])).boundary(boundary).variant(variant);
        let x = draw.special::<T>(len(image));
        let (want, mut bound) = (reference::gaussian(&op, &x), reference::gaussian_bound(&op, &x));
        if !T::DTYPE.is_float() {
            // Rounded to the nearest.
            bound.iter_mut().for_each(|b| *b += 0.5);
        }
        Case::new::<T>(op).given(&x).near::<T>(want, bound)
    }
    typed!(draw, of, [f32, u8])
}

pub(super) fn sobel(draw: &mut Draw) -> Case {
    fn of<T: Sample + Into<f64>>(draw: &mut Draw) -> Case {
        let variant = draw.variant(Sobel::variants());
        let image = image(draw, &[1, 3, 4, 2]);
        let gradients = [Gradient::Magnitude, Gradient::X, Gradient::Y];
        let op = Sobel::new(image).gradient(draw.option(&gradients)).variant(variant);
        let x = draw.special::<T>(len(image));
        let (mut want, mut bound) = (reference::sobel(&op, &x), reference::sobel_bound(&op, &x));
        if !T::DTYPE.is_float() {
            want.iter_mut().for_each(|g| *g = g.abs().round().min(255.0));
            bound.fill(0.0);
        }
        Case::new::<T>(op).given(&x).near::<T>(want, bound)
    }
    typed!(draw, of, [u8, f32])
}

pub(super) fn equalize(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case {
        let variant = draw.variant(Equalize::variants());
        let image = image(draw, &[1, 3, 4, 2]);
        let op = Equalize::new(image).range(-0.5, 0.75).variant(variant);
        let x = draw.any::<T>(len(image));
        let (want, bound) =
            (reference::equalize(&op, &x).unwrap(), reference::equalize_bound(&op, &x).unwrap());
        Case::new::<T>(op).given(&x).near::<T>(want, bound)
    }
    typed!(draw, of, [u8, f32])
}

//! A picture in floats.

use super::super::pictures::{encoded, whole};
use std::path::Path;

/// Red, green and blue from 0 to 1, in sRGB.
pub(crate) type Colour = [f32; 3];

/// A picture. Positions are in pixels and may be fractional.
#[derive(Debug)]
pub(crate) struct Canvas {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pixels: Vec<Colour>,
}

impl Canvas {
    pub(crate) fn new(width: usize, height: usize, colour: Colour) -> Self {
        Self { width, height, pixels: vec![colour; width * height] }
    }

    /// Sets each pixel by its column, row and old colour.
    pub(crate) fn shade(&mut self, colour: impl Fn(usize, usize, Colour) -> Colour) {
        for (i, pixel) in self.pixels.iter_mut().enumerate() {
            *pixel = colour(i % self.width, i / self.width, *pixel);
        }
    }

    /// Fills a rectangle. Pixels at its edges are blended.
    pub(crate) fn fill(&mut self, x: [f64; 2], y: [f64; 2], colour: Colour, opacity: f32) {
        for row in span(y, self.height) {
            let down = covered(y, row);
            for column in span(x, self.width) {
                let part = opacity * down * covered(x, column);
                let pixel = &mut self.pixels[row * self.width + column];
                *pixel = mix(*pixel, colour, part);
            }
        }
    }

    /// Draws the cross that divides a rectangle into four, with lines `width` pixels wide.
    pub(crate) fn cross(&mut self, x: [f64; 2], y: [f64; 2], width: f64, colour: Colour, opacity: f32) {
        let around = |ends: [f64; 2]| {
            let middle = (ends[0] + ends[1]) / 2.0;
            [middle - width / 2.0, middle + width / 2.0]
        };
        self.fill(around(x), y, colour, opacity);
        self.fill(x, around(y), colour, opacity);
    }

    /// Writes a whole PNG file, or nothing.
    pub(crate) fn save(&self, path: &Path) -> Result<(), String> {
        let byte = |x: &f32| (255.0 * x.clamp(0.0, 1.0)).round() as u8;
        let pixels: Vec<u8> = self.pixels.iter().flatten().map(byte).collect();
        whole(path, &encoded(&pixels, (self.width as u32, self.height as u32))?)
    }
}

/// Returns the pixels that an interval touches.
fn span([begin, end]: [f64; 2], pixels: usize) -> std::ops::Range<usize> {
    (begin.max(0.0) as usize).min(pixels)..(end.ceil().max(0.0) as usize).min(pixels)
}

/// Returns the share of a pixel that an interval covers.
fn covered([begin, end]: [f64; 2], pixel: usize) -> f32 {
    let at = pixel as f64;
    (end.min(at + 1.0) - begin.max(at)).clamp(0.0, 1.0) as f32
}

/// Blends `a` with `part` of `b`.
pub(crate) fn mix(a: Colour, b: Colour, part: f32) -> Colour {
    [0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * part)
}

/// A colour map: a polynomial of degree 6 for each channel.
pub(crate) type Map = [[f32; 3]; 7];

/// Returns the colour at `t`, from 0 to 1.
pub(crate) fn colour(map: &Map, t: f32) -> Colour {
    let t = t.clamp(0.0, 1.0);
    let value = |i: usize| map.iter().rev().fold(0.0, |sum, c| sum * t + c[i]);
    [0, 1, 2].map(|i| value(i).clamp(0.0, 1.0))
}

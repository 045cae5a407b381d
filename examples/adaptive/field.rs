//! Fields over the unit square, on the processor.

use super::common::{Failure, image_file};
use std::f64::consts::TAU;
use std::path::Path;
use tilework::reference::adaptive_grid_pixel;

/// An image's grey values.
#[derive(Debug, Clone)]
pub(crate) struct Grey {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// From 0 to 1.
    pub(crate) pixels: Vec<f32>,
}

/// A field.
#[derive(Debug, Clone)]
pub(crate) enum Field {
    Waves,
    Vortex,
    Spots,
    Step,
    Image(Grey),
}

impl Field {
    pub(crate) const NAMES: &str = "waves, vortex, spots or step";

    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "waves" => Some(Self::Waves),
            "vortex" => Some(Self::Vortex),
            "spots" => Some(Self::Spots),
            "step" => Some(Self::Step),
            _ => None,
        }
    }

    /// Reads the grey values of a PNG or JPEG file, by ITU-R BT.601.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let picture = image_file::read(path)?;
        let channels = picture.image.channels;
        let grey = |p: &[u8]| {
            let byte = match *p {
                [r, g, b, ..] => (299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) + 500) / 1000,
                _ => p[0].into(),
            };
            byte as f32 / 255.0
        };
        let pixels = picture.pixels.chunks_exact(channels).map(grey).collect();
        Ok(Self::Image(Grey { width: picture.image.w, height: picture.image.h, pixels }))
    }

    /// Returns the field as a function for `AdaptiveGrid`; an image has none.
    pub(crate) fn wgsl(&self) -> String {
        let name = match self {
            Self::Waves => "waves",
            Self::Vortex => "vortex",
            Self::Spots => "spots",
            Self::Step | Self::Image(_) => "step_field",
        };
        let body = format!("fn field(p: vec2<f32>) -> f32 {{ return {name}(p); }}");
        [include_str!("fields.wgsl"), &body].join("\n")
    }

    /// Returns the allowed error of the device. WGSL allows sines an error of 2^-11, and a steep slope amplifies an
    /// error of the position a thousandfold.
    pub(crate) fn tolerance(&self) -> f64 {
        match self {
            Self::Waves | Self::Vortex | Self::Step => 2f64.powi(-10),
            Self::Spots => 2f64.powi(-16),
            // Only the mean of a cell is rounded.
            Self::Image(_) => 2f64.powi(-20),
        }
    }

    /// Returns the field at a point.
    pub(crate) fn at(&self, x: f64, y: f64) -> f64 {
        match self {
            Self::Waves => {
                let ripple = |cx: f64, cy: f64, often: f64, fade: f64| {
                    let r = (x - cx).hypot(y - cy);
                    0.3 * (TAU * often * r).sin() * (-fade * r).exp()
                };
                0.5 + ripple(0.30, 0.36, 16.0, 5.0) + ripple(0.76, 0.70, 26.0, 8.0)
            }
            Self::Vortex => {
                let (dx, dy) = (x - 0.46, y - 0.53);
                let r2 = dx * dx + dy * dy + 0.001;
                // The radius shrinks near the centre but the angle does not: arms end before they meet.
                let shrunk = ((r2 - 0.001) / r2).powf(1.5);
                let wave = shrunk * (3.0 * dy.atan2(dx) - 6.0 * r2.ln()).sin();
                0.5 + 0.5 * wave * (-10.0 * r2).exp()
            }
            Self::Spots => {
                let spot =
                    |cx: f64, cy: f64, radius: f64| (-((x - cx).powi(2) + (y - cy).powi(2)) / (radius * radius)).exp();
                0.9 * spot(0.22, 0.74, 0.090)
                    + 0.8 * spot(0.62, 0.60, 0.150)
                    + spot(0.80, 0.22, 0.040)
                    + 0.9 * spot(0.35, 0.28, 0.020)
                    + 0.7 * spot(0.12, 0.15, 0.060)
                    + spot(0.90, 0.86, 0.012)
            }
            Self::Step => {
                let (dx, dy) = (x - 0.5, y - 0.5);
                let edge = 0.32 + 0.09 * (5.0 * dy.atan2(dx)).cos();
                ((edge - dx.hypot(dy)) * 1000.0 + 0.5).clamp(0.0, 1.0)
            }
            Self::Image(grey) => grey.at(x, y),
        }
    }
}

impl Grey {
    /// Returns the pixel at a point.
    fn at(&self, x: f64, y: f64) -> f64 {
        f64::from(self.pixels[adaptive_grid_pixel([self.height, self.width], x, y)])
    }
}

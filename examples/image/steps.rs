//! The filters, on the device and on the processor.

use super::common::Failure;
use std::fmt;
use std::ops::Range;
use std::thread;
use tilework::gpu::Executable;
use tilework::image::{Blur, Equalize, Gaussian, Grey, Image, Sobel};
use tilework::reference;
use tilework::{Gpu, Plannable};

/// A step of `--ops`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Grey,
    Blur(usize),
    Gaussian(f64),
    Sobel,
    Equalize,
}

/// Differences from the processor's result.
pub(crate) struct Difference {
    /// The largest difference, in 8-bit steps.
    pub(crate) largest: f64,
    /// Whether all are within their bounds.
    pub(crate) fits: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grey => f.write_str("grey"),
            Self::Blur(radius) => write!(f, "blur={radius}"),
            Self::Gaussian(sigma) => write!(f, "gaussian={sigma:?}"),
            Self::Sobel => f.write_str("sobel"),
            Self::Equalize => f.write_str("equalize"),
        }
    }
}

impl Step {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let bad = |why: &str| Err(Failure::bad_input(format!("--ops {text}: {why}")));
        match (name, value) {
            ("grey", None) => Ok(Self::Grey),
            ("sobel", None) => Ok(Self::Sobel),
            ("equalize", None) => Ok(Self::Equalize),
            ("blur", value) => match value.unwrap_or("1").parse() {
                Ok(radius) => Ok(Self::Blur(radius)),
                Err(_) => bad("the radius must be a whole number of pixels"),
            },
            ("gaussian", value) => match value.unwrap_or("1").parse() {
                Ok(sigma) => Ok(Self::Gaussian(sigma)),
                Err(_) => bad("sigma must be a number of pixels"),
            },
            ("grey" | "sobel" | "equalize", Some(_)) => bad("takes no value"),
            _ => bad("must be grey, blur=RADIUS, gaussian=SIGMA, sobel or equalize"),
        }
    }

    /// Returns the result's layout.
    pub(crate) fn result(self, image: Image) -> Image {
        if self == Self::Grey { Image::grey([image.h, image.w]) } else { image }
    }

    /// Plans the step for such pictures.
    pub(crate) fn plan(self, gpu: &Gpu, image: Image) -> tilework::Result<Executable> {
        Ok(match self {
            Self::Grey => Grey::new(image).plan::<u8>(gpu)?.into_executable(),
            Self::Blur(radius) => Blur::new(image, radius).plan::<u8>(gpu)?.into_executable(),
            Self::Gaussian(sigma) => Gaussian::new(image, sigma).plan::<u8>(gpu)?.into_executable(),
            Self::Sobel => Sobel::new(image).plan::<u8>(gpu)?.into_executable(),
            Self::Equalize => Equalize::new(image).plan::<u8>(gpu)?.into_executable(),
        })
    }

    /// Returns the rows above and below that a row of the result depends on; `None` for all rows.
    pub(crate) fn reach(self) -> Option<usize> {
        match self {
            Self::Grey => Some(0),
            Self::Blur(radius) => Some(radius),
            Self::Gaussian(sigma) => Some((4.0 * sigma + 0.5) as usize),
            Self::Sobel => Some(1),
            Self::Equalize => None,
        }
    }

    /// Returns the processor's result and the allowed difference.
    fn reference(self, image: Image, pixels: &[u8]) -> tilework::Result<(Vec<f64>, f64)> {
        Ok(match self {
            Self::Grey => (reference::grey(&Grey::new(image), pixels), 0.0),
            Self::Blur(radius) => (reference::blur(&Blur::new(image, radius), pixels), 0.0),
            Self::Gaussian(sigma) => {
                // Rounded sums of f32, all below 256.
                let bound = 0.5 + 256.0 * 2f64.powi(-14);
                (reference::gaussian(&Gaussian::new(image, sigma), pixels), bound)
            }
            Self::Sobel => {
                let exact = reference::sobel(&Sobel::new(image), pixels);
                (exact.into_iter().map(|g| g.round().min(255.0)).collect(), 0.0)
            }
            Self::Equalize => (reference::equalize(&Equalize::new(image), pixels)?, 0.0),
        })
    }

    /// Compares the device's result, in bands of rows on all cores.
    pub(crate) fn difference(self, image: Image, pixels: &[u8], got: &[u8]) -> Result<Difference, Failure> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        // Small bands, since the reference uses 64-bit numbers.
        let band = match self.reach() {
            Some(_) => (1 << 20) / (image.w * image.channels).max(1) + 1,
            None => image.h,
        };
        let firsts: Vec<usize> = (0..image.h).step_by(band).collect();
        let share = firsts.len().div_ceil(cores).max(1);
        let all = thread::scope(|scope| {
            let threads: Vec<_> = firsts
                .chunks(share)
                .map(|firsts| {
                    scope.spawn(move || {
                        let bands = firsts.iter().map(|&y| y..(y + band).min(image.h));
                        bands.map(|rows| self.band(image, rows, pixels, got)).collect::<Result<Vec<_>, _>>()
                    })
                })
                .collect();
            let join = |t: thread::ScopedJoinHandle<'_, _>| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
            threads.into_iter().map(join).collect::<Result<Vec<_>, Failure>>()
        })?;
        let worse =
            |a: Difference, b: &Difference| Difference { largest: a.largest.max(b.largest), fits: a.fits && b.fits };
        Ok(all.iter().flatten().fold(Difference { largest: 0.0, fits: true }, worse))
    }

    /// Compares some rows, computed from them and the rows they depend on.
    fn band(self, image: Image, rows: Range<usize>, pixels: &[u8], got: &[u8]) -> Result<Difference, Failure> {
        let reach = self.reach().unwrap_or(image.h);
        let (first, last) = (rows.start.saturating_sub(reach), (rows.end + reach).min(image.h));
        let pitch = image.w * image.channels;
        let part = Image { h: last - first, ..image };
        let (want, bound) = self.reference(part, &pixels[first * pitch..last * pitch])?;
        let pitch = image.w * self.result(image).channels;
        let want = &want[(rows.start - first) * pitch..(rows.end - first) * pitch];
        let got = &got[rows.start * pitch..rows.end * pitch];
        let largest = got.iter().zip(want).map(|(g, w)| (f64::from(*g) - w).abs()).fold(0.0, f64::max);
        Ok(Difference { largest, fits: largest <= bound })
    }
}

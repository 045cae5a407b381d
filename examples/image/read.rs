//! Pictures from files.

use super::failure::{Failure, open_file};
use ::image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};
use std::fmt;
use std::io::BufReader;
use std::path::Path;
use tilework::image::Image;

/// Bytes that a decoder may take: a picture of 2 GiB, and as much again to turn it.
const MOST_BYTES: u64 = 4 << 30;

/// Pixels of 8 bits a channel: grey or red, green and blue, and maybe opacity.
pub(crate) struct Picture {
    pub(crate) image: Image,
    pub(crate) pixels: Vec<u8>,
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colours = ["", "grey", "grey and opacity", "colours", "colours and opacity"];
        let colours = colours.get(self.image.channels).copied().unwrap_or("");
        write!(f, "{} x {} pixels, {colours}", self.image.w, self.image.h)
    }
}

/// Reads a picture, upright.
pub(crate) fn read(path: &Path) -> Result<Picture, Failure> {
    let failure = |e: ImageError| Failure::bad_input(format!("{e}; it must be a PNG or JPEG file")).at(path);
    let (file, _) = open_file(path)?;
    let reader = ImageReader::new(BufReader::new(file)).with_guessed_format();
    let mut reader = reader.map_err(|e| Failure::file(path, &e))?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failure)?;
    let orientation = decoder.orientation().map_err(failure)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(failure)?;
    decoded.apply_orientation(orientation);
    let [h, w] = [decoded.height() as usize, decoded.width() as usize];
    if h == 0 || w == 0 {
        return Err(Failure::bad_input("has no pixels").at(path));
    }
    let colour = decoded.color();
    let (channels, pixels) = match (colour.has_color(), colour.has_alpha()) {
        (false, false) => (1, decoded.into_luma8().into_raw()),
        (false, true) => (2, decoded.into_luma_alpha8().into_raw()),
        (true, false) => (3, decoded.into_rgb8().into_raw()),
        (true, true) => (4, decoded.into_rgba8().into_raw()),
    };
    Ok(Picture { image: Image::new(h, w, channels), pixels })
}

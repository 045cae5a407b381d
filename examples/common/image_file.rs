//! Reads pictures from files.

use super::{Failure, open_file, room_for};
use ::image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use std::fmt;
use std::io::{Cursor, Read};
use std::path::Path;
use tilework::image::Image;

/// Maximum bytes of a decoder: a picture of 2 GiB, twice to rotate it.
const MAX_BYTES: u64 = 4 << 30;

/// 8-bit pixels: grey or colour, with or without opacity.
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

/// Reads a picture and turns it upright.
pub(crate) fn read(path: &Path) -> Result<Picture, Failure> {
    let failure = |e: ImageError| Failure::bad_input(format!("{e}; it must be a PNG or JPEG file")).at(path);
    let (file, _) = open_file(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|e| Failure::file(path, &e))?;
    let reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format();
    let mut reader = reader.map_err(|e| Failure::file(path, &e))?;
    // The decoders do not report missing pixels, or a missing end.
    let whole = match reader.format() {
        Some(ImageFormat::Jpeg) => is_whole_jpeg(&bytes),
        Some(ImageFormat::Png) => is_whole_png(&bytes),
        _ => true,
    };
    if !whole {
        return Err(Failure::bad_input("is cut off: its end marker is missing").at(path));
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failure)?;
    let orientation = decoder.orientation().map_err(failure)?;
    let size = usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX);
    // Rotating takes a second copy.
    room_for("its pixels", size, 2).map_err(|e| e.at(path))?;
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
    Ok(Picture { image: Image::new([h, w], channels), pixels })
}

/// Returns whether the end marker follows the segments. Skips segments, since a thumbnail has an end marker, too.
fn is_whole_jpeg(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(2..).unwrap_or_default();
    loop {
        // In pixel data 0xff is followed by zero or a restart marker.
        let is_mark = |two: &[u8]| two[0] == 0xff && !matches!(two[1], 0 | 1 | 0xd0..=0xd7 | 0xff);
        let Some(at) = rest.windows(2).position(is_mark) else { return false };
        if rest[at + 1] == 0xd9 {
            return true;
        }
        let Some(&[high, low]) = rest.get(at + 2..at + 4) else { return false };
        let segment = usize::from(u16::from_be_bytes([high, low]));
        rest = rest.get(at + 2 + segment..).unwrap_or_default();
    }
}

/// Returns whether a complete end chunk is there.
fn is_whole_png(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    loop {
        let Some((&[a, b, c, d], kind)) = rest.split_first_chunk::<4>() else { return false };
        // Length, kind, contents, checksum.
        let Some(next) = rest.get(u32::from_be_bytes([a, b, c, d]) as usize + 12..) else { return false };
        if kind.starts_with(b"IEND") {
            return true;
        }
        rest = next;
    }
}

//! Pictures from files.

use super::{Failure, open_file, room_for};
use ::image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use std::fmt;
use std::io::{Cursor, Read};
use std::path::Path;
use tilework::image::Image;

/// Bytes that a decoder may take: a picture of 2 GiB, and as much again to turn it.
const MAX_BYTES: u64 = 4 << 30;

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
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|e| Failure::file(path, &e))?;
    let reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format();
    let mut reader = reader.map_err(|e| Failure::file(path, &e))?;
    // The decoders make up the pixels that are missing, or do not miss the end.
    let whole = match reader.format() {
        Some(ImageFormat::Jpeg) => is_whole_jpeg(&bytes),
        Some(ImageFormat::Png) => is_whole_png(&bytes),
        _ => true,
    };
    if !whole {
        return Err(Failure::bad_input("is cut off: it ends before the mark of its end").at(path));
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failure)?;
    let orientation = decoder.orientation().map_err(failure)?;
    let size = usize::try_from(decoder.total_bytes()).unwrap_or(usize::MAX);
    // It is held twice where it is turned.
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

/// Whether the mark of the end comes behind the segments and what they announce, where a thumbnail has one too.
fn is_whole_jpeg(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(2..).unwrap_or_default();
    loop {
        // In the pixels' bits a zero follows 0xff, or the number of a restart.
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

/// Whether the chunk of the end is there, and whole.
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

//! Writes pictures.

use super::common::Failure;
pub(crate) use super::common::image_file::{Picture, read};
use ::image::codecs::jpeg::JpegEncoder;
use ::image::codecs::png::PngEncoder;
use ::image::{ExtendedColorType, ImageEncoder, ImageError};
use std::io::{self, Write};
use std::path::Path;
use tilework::io::write_aside;

/// JPEG quality.
const QUALITY: u8 = 92;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Png,
    Jpeg,
}

/// Returns the format by the file name's extension.
pub(crate) fn format_of(path: &Path) -> Result<Format, Failure> {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "png" => Ok(Format::Png),
        "jpg" | "jpeg" => Ok(Format::Jpeg),
        _ => Err(Failure::bad_input("must end with .png, .jpg or .jpeg").at(path)),
    }
}

/// Writes the whole picture, or nothing. Returns the written pixels.
pub(crate) fn write(path: &Path, format: Format, mut picture: Picture) -> Result<Picture, Failure> {
    let channels = picture.image.channels;
    if format == Format::Jpeg && [2, 4].contains(&channels) {
        let opaque = picture.pixels.chunks_exact(channels).flat_map(|p| &p[..channels - 1]);
        picture.pixels = opaque.copied().collect();
        picture.image.channels -= 1;
    }
    write_aside(path, |file| encode(file, format, &picture).map_err(io::Error::other))?;
    Ok(picture)
}

fn encode(file: &mut impl Write, format: Format, picture: &Picture) -> Result<(), ImageError> {
    let kind = match picture.image.channels {
        1 => ExtendedColorType::L8,
        2 => ExtendedColorType::La8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    let (w, h) = (picture.image.w as u32, picture.image.h as u32);
    match format {
        Format::Png => PngEncoder::new(file).write_image(&picture.pixels, w, h, kind),
        Format::Jpeg => JpegEncoder::new_with_quality(file, QUALITY).write_image(&picture.pixels, w, h, kind),
    }
}

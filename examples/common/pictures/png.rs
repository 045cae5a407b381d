//! PNG files.

use ::image::codecs::png::PngEncoder;
use ::image::{ExtendedColorType, ImageEncoder};
use std::io::Write;
use std::path::Path;
use tilework::io::write_aside;

/// Encodes RGB pixels as PNG.
pub(crate) fn encoded(pixels: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(pixels, width, height, ExtendedColorType::Rgb8)
        .map_err(|e| e.to_string())?;
    Ok(bytes)
}

/// Writes a whole file, or nothing.
pub(crate) fn whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    write_aside(path, |file| file.write_all(bytes)).map_err(|e| e.to_string())
}
